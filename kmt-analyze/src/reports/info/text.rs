//! The screen of a file.

use super::cpus::{CpuRow, LossRow};
use super::facts;
use super::losses::{self, cpus};
use super::rows::InfoRows;
use crate::render::out::missing_in_input;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{counted, escaped, share, shown};
use crate::reports::common::lost_before::lost_before_first;
use crate::reports::common::{View, ring, trust};
use crate::trace::session::Session;

/// Contents and losses, the facts of the file, and tables of CPUs, losses and events.
pub fn screen(rows: &InfoRows, session: &Session<'_>, view: &View) -> Screen {
    let mut screen = Screen::new(contents(rows, view));
    screen.answer.extend((rows.head.trace.cpus > 0).then(|| losses(rows, session)));
    screen.answer.extend(ring::stopped(session));
    screen.answer.extend(ring::window(session));
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
    let (places, places_left) = losses::places(rows, view);
    let (events, events_left) = events(rows, view.limit);
    let changes = losses::changes(rows, view);
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
    events.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then(a.cmp(b)));
    let all = rows.head.trace.events;
    let table = Table::of_rows("", events.iter().take(limit))
        .column(Column::name("event"), |(name, _)| Cell::text(escaped(name.as_bytes())))
        .column(Column::number("count"), |(_, count)| Cell::Count(*count))
        .column(Column::number("%"), |(_, count)| Cell::share(*count, all));
    (table.into(), events.len().saturating_sub(limit))
}
