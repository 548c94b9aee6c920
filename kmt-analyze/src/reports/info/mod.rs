//! `info`: contents, losses and integrity of the file. `info --show NAME` prints a file of the target that the recording keeps.
//!
//! Rows are in `rows`, facts and tables in `facts`, changes of snapshots in `changes`.

mod changes;
mod changes_text;
mod facts;
mod rows;

#[cfg(test)]
pub use changes::ChangeRows;
pub use changes::{CacheChange, cache_changes};
use facts::cpus;
pub use rows::InfoRows;
use rows::{CpuRow, LossRow};

use kmt_common::tell;
use kmt_common::text::tame;
use kmt_format::read::Attachment;

use crate::failure::{Failure, Outcome, Result};
use crate::pass::selection::Selection;
use crate::render::look::Look;
use crate::render::out::{Out, Schema, missing_in_input, print_rows};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{counted, escaped, share, shown};
use crate::reports::common::lost_before::lost_before_first;
use crate::reports::common::{Context, View, ring, trust};
use crate::reports::document::print_screen;
use crate::reports::output::Output;
use crate::sort_rows::SortRows;
use crate::trace::open::outcome;
use crate::trace::session::Session;
use crate::trace::time_range::TimeRange;

/// Prints a stored file of the target: the last one, or the last that was read until `at`.
pub fn show(session: &Session<'_>, name: &str, at: Option<&TimeRange>) -> Result<Outcome> {
    let selection = Selection { at: at.cloned(), ..Selection::default() };
    let context = Context { session, selection: &selection, limit: 0 };
    let at = at.map(|_| selection.span(session).1);
    show_info(&context, name, at)
}

/// Prints what the stored counts of the kernel say changed.
pub fn diff(session: &Session<'_>, output: &Output) -> Result<Outcome> {
    let rows = changes::compute(session);
    if output.json {
        print_rows(&session.env, Schema::first("info-diff"), &rows, output.limit)?;
    } else {
        let context = Context { session, selection: &Selection::default(), limit: output.rows() };
        let screen = changes_text::screen(&rows, &context.view(output.show.look));
        print_screen(session, screen, &output.show)?;
    }
    Ok(Outcome::Done)
}

/// Prints the report.
pub fn run(session: &Session<'_>, output: &Output) -> Result<Outcome> {
    let (rows, faults) = rows::compute(session);
    if output.json {
        print_rows(&session.env, Schema::first("info"), &rows, output.limit)?;
    } else {
        let context = Context { session, selection: &Selection::default(), limit: output.rows() };
        let screen = self::screen(&rows, session, &context.view(output.show.look));
        print_screen(session, screen, &output.show)?;
    }
    Ok(outcome(session, &faults))
}

/// Prints the contents: on a terminal without control characters, else byte for byte.
///
/// Of several of that name the last one; `at`, an instant in the clock's unit, asks for the last one read until then.
fn show_info(context: &Context<'_, '_>, name: &str, at: Option<u64>) -> Result<Outcome> {
    let session = context.session;
    let all = &session.trace.metadata().attachments;
    let named: Vec<&Attachment<'_>> = all.iter().filter(|attachment| attachment.name == name).collect();
    if named.is_empty() {
        return Err(none(session, name, all));
    }
    let read_until = |attachment: &&&Attachment<'_>| match (at, attachment.times) {
        (Some(at), Some((_, to))) => to <= at,
        (Some(_), None) => false,
        (None, _) => true,
    };
    let found = named.iter().filter(read_until).max_by_key(|attachment| attachment.times);
    let Some(attachment) = found else {
        return Err(Failure::new(format!("{}: no {name} was read until then", session.path.display()))
            .hint("without --at the last one is shown"));
    };
    if named.len() > 1 && at.is_none() {
        let view = context.view(Look::default());
        let read = attachment.times.map_or(String::new(), |(_, to)| format!(", read at {}", view.time(to)));
        tell!("note: the last of {} named {name}{read}; --at T shows an earlier one", named.len());
    }
    let mut out = Out::stdout(&session.env);
    match session.env.is_terminal() {
        true => out.write(tame(&String::from_utf8_lossy(&attachment.contents)).as_bytes())?,
        false => out.write(&attachment.contents)?,
    };
    out.finish()?;
    Ok(Outcome::Done)
}

fn none(session: &Session<'_>, name: &str, all: &[Attachment<'_>]) -> Failure {
    let mut names: Vec<String> = all.iter().map(|attachment| shown(attachment.name.as_bytes())).collect();
    names.dedup();
    let failure = Failure::new(format!("{}: it has no file {name:?}", session.path.display()));
    match names.is_empty() {
        true => failure.hint("it has no files of the target at all; kmt-capture record stores them"),
        false => failure.hint(format!("it has {}", names.join(", "))),
    }
}

/// Contents and losses, the facts of the file, and tables of CPUs, losses and events.
fn screen(rows: &InfoRows, session: &Session<'_>, view: &View) -> Screen {
    let mut screen = Screen::new(contents(rows, view));
    screen.answer.extend((rows.head.trace.cpus > 0).then(|| losses(rows, session)));
    screen.answer.extend(ring::stopped(session));
    screen.answer.extend(ring::window(session));
    screen.answer.extend(ring::unknown_cpus(session));
    screen.answer.extend(
        lost_before_first(&session.losses)
            .map(|before| format!("The recorded time begins with the first event: {before}.")),
    );
    screen.answer.extend(silence(session, view));
    screen.answer.extend(trust::early_end_sentence(session));
    screen.answer.extend(trust::changes_sentence(session));
    screen.answer.extend(flaws(rows));
    screen.facts(facts::compute(rows, session, view));
    let (cpus, cpus_left) = cpus(rows, view.limit);
    let (places, places_left) = facts::places(rows, view);
    let (events, events_left) = events(rows, view.limit);
    let changes = facts::changes(rows, view);
    [cpus, places, changes, events].into_iter().for_each(|table| screen.table(table));
    let left = [
        (cpus_left, "CPU", "CPUs"),
        (places_left, "gap", "gaps"),
        (events_left, "event type", "event types"),
    ];
    let left: Vec<String> = left
        .into_iter()
        .filter(|(left, ..)| *left > 0)
        .map(|(left, one, several)| counted(left as u64, one, several))
        .collect();
    if !left.is_empty() {
        screen.note(format!("Not shown: {} (info --json).", left.join(", ")));
    }
    if rows.integrity.sound {
        screen.next("summary", "slab and page memory");
        screen.next("events", "events by task and CPU, with rates");
    } else {
        screen.next("verify", "check each chunk and each event");
        screen.next("recover -o WHOLE.kmt", "a sound file of all that can be read");
    }
    screen
}

/// Events, CPUs, length and kernel.
fn contents(rows: &InfoRows, view: &View) -> String {
    let trace = &rows.head.trace;
    let length = trace.first.zip(trace.last).map_or(0, |(first, last)| last.saturating_sub(first));
    let text = |text: &Option<String>| text.as_ref().map(|text| shown(text.as_bytes()));
    let release = text(&rows.kernel.release);
    let release = release.map_or("kernel unknown".to_owned(), |release| format!("Linux {release}"));
    if trace.events == 0 {
        return format!("The file has no events ({release}).");
    }
    let machine = text(&rows.kernel.machine).map_or(String::new(), |machine| format!(" {machine}"));
    format!(
        "{} on {} in {}, {release}{machine}.",
        counted(trace.events, "event", "events"),
        counted(trace.cpus as u64, "CPU", "CPUs"),
        view.duration(length)
    )
}

/// The longest time without an entry of a converted text that lacks some.
fn silence(session: &Session<'_>, view: &View) -> Option<String> {
    let (from, to) = session.losses.silence?;
    Some(format!(
        "No event of any CPU is between {} and {}: the missing ones are taken to be of that time.",
        view.time(from),
        view.time(to)
    ))
}

/// Lost events, and the CPU with most.
fn losses(rows: &InfoRows, session: &Session<'_>) -> String {
    let trace = &rows.head.trace;
    let lost = trace.lost_events.saturating_sub(trace.lost_events_before_first);
    let is_inside = |loss: &LossRow| !loss.early_end && !loss.before_first;
    let has_places = trace.per_cpu.iter().any(|cpu| cpu.losses.iter().any(is_inside));
    if lost == 0 {
        let is_cut_or_changed = trace.ended_unexpectedly || !rows.changes.is_empty();
        if trace.lost_events_is_minimum && is_cut_or_changed && !has_places {
            return nothing_counted(rows);
        }
        let mut places = trace.per_cpu.iter().flat_map(|cpu| &cpu.losses);
        let since = if places.any(|loss| loss.before_first) { " since the first event" } else { "" };
        return match (has_places, trace.per_cpu.iter().all(|cpu| cpu.stats.is_some())) {
            (true, _) => {
                "Parts of the recording are missing; the number of lost events is unknown.".to_owned()
            }
            (false, true) => format!("No events were lost{since}, by the kernel's counters."),
            (false, false) if session.losses.by_perf => "perf marked no lost events.".to_owned(),
            (false, false) => {
                format!("Losses{since} are unknown: the kernel's counters were not recorded.")
            }
        };
    }
    let least = if trace.lost_events_is_minimum { "At least " } else { "" };
    let all = trace.events.saturating_add(lost);
    if trace.missing_in_input > 0 {
        return missing_in_input(&session.losses, trace.events);
    }
    let lost_on = |cpu: &CpuRow| cpu.head.lost_events.saturating_sub(cpu.head.lost_events_before_first);
    let worst = trace.per_cpu.iter().max_by_key(|cpu| lost_on(cpu));
    let worst = worst.filter(|_| trace.per_cpu.len() > 1).map_or(String::new(), |cpu| {
        format!(", {} of them on CPU {}", share(lost_on(cpu), lost), cpu.head.cpu)
    });
    format!("{least}{} ({}) were lost{worst}.", counted(lost, "event", "events"), share(lost, all))
}

/// Events that may be missing although no lost event is counted or marked.
fn nothing_counted(rows: &InfoRows) -> String {
    let cpus = &rows.head.trace.per_cpu;
    let none = match cpus.iter().all(|cpu| cpu.stats.is_some()) {
        true => "The kernel counted no lost events",
        false => "No lost events are marked",
    };
    let is_cut =
        rows.changes.is_empty() || cpus.iter().any(|cpu| cpu.losses.iter().any(|loss| loss.early_end));
    let but = match is_cut {
        true => "the recording was cut: events that were still in the ring buffers are unknown",
        false => "another process changed the recording: the number of lost events is unknown",
    };
    format!("{none}, but {but}.")
}

/// Flaws of the file itself.
fn flaws(rows: &InfoRows) -> Option<String> {
    let integrity = &rows.integrity;
    match (integrity.damages_total, integrity.finished) {
        (0, true) => None,
        (0, false) => Some(
            "The file has no end: the recorder was killed or is still recording, or the copy is incomplete."
                .to_owned(),
        ),
        (damages, _) => Some(format!("The file is damaged in {}.", counted(damages, "place", "places"))),
    }
}

/// Counts by event, and the number of events that are left out.
fn events(rows: &InfoRows, limit: usize) -> (Table, usize) {
    let mut events: Vec<&(String, u64)> = rows.events.iter().collect();
    events.sort_rows_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then(a.cmp(b)));
    let all = rows.head.trace.events;
    let table = Table::of_rows("", events.iter().take(limit))
        .column(Column::name("event"), |(name, _)| Cell::text(escaped(name.as_bytes())))
        .column(Column::number("count"), |(_, count)| Cell::Count(*count))
        .column(Column::number("%"), |(_, count)| Cell::share(*count, all));
    (table.into(), events.len().saturating_sub(limit))
}
