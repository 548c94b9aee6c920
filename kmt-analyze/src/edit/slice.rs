//! `slice`: part of a trace, by time, CPU, task and event.
//!
//! The part is written with `copy` to a new file, with the metadata of the old one and the positions of its losses.
//! Stacks stay with their events (`StackJoiner`). Sums of lives that died young are kept for a window of whole
//! intervals, and refused for other selections, which cannot divide them.

use kmt_common::tell;
use kmt_common::text::{count, grouped};
use kmt_format::read::{EarlyEnd, StackJoiner};
use kmt_format::schema::Meaning;

use super::copy::{self, failed};
use super::folds::{Folds, Same};
use super::{InputArgs, OutputArgs};
use crate::failure::{Failure, Outcome, Result};
use crate::render::head;
use crate::render::words::time;
use crate::trace::ages::EVENTS_AT_ZERO;
use crate::trace::event_names::{EventArgs, SelectedEvents};
use crate::trace::faults::Faults;
use crate::trace::folded;
use crate::trace::losses::LACKS_OF_INPUT;
use crate::trace::open::outcome;
use crate::trace::session::Session;
use crate::trace::sliced::{ALL, SEPARATOR, SLICE, SLICE_OF, TIME};

/// Options of `slice`.
#[derive(Debug, clap::Args)]
pub struct SliceOptions {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub made: OutputArgs,
    #[command(flatten)]
    pub events: EventArgs,
}

/// Writes the selected part of the trace.
pub fn run(session: &Session<'_>, options: &SliceOptions) -> Result<Outcome> {
    let trace = session.trace;
    let selected = &options.events;
    check_sums(session, selected)?;
    let asked = selected.window(session)?;
    check_time(session, asked)?;
    let window = match asked {
        Some(window) if trace.header().folded => Some(folded::whole_intervals(trace, window, false)),
        asked => asked,
    };
    let mut classes = SelectedEvents::of(session, &selected.event)?;
    let mut file = copy::begin(session, &options.made, identity(session, selected))?;
    copy::clock(&mut file.writer, session)?;
    let note = describe(selected);
    let early_end = trace.early_end().map(|end| end.to_text());
    let pairs = trace.metadata().pairs.iter().map(|(k, v)| (k.as_ref(), v.as_ref()));
    // What a converted text lacks stays outside of a part without its hole.
    let is_whole = window.is_some_and(|window| !session.losses.lacks_input_between(window));
    let has_zero = window.is_none_or(|(first, _)| first == 0);
    let stays = |key: &str| {
        key != EarlyEnd::KEY
            && !(is_whole && LACKS_OF_INPUT.contains(&key))
            && (has_zero || key != EVENTS_AT_ZERO)
    };
    let mut pairs: Vec<(&str, &[u8])> = pairs.filter(|(key, _)| stays(key)).collect();
    pairs.extend(early_end.as_ref().map(|end| (EarlyEnd::KEY, end.as_bytes())));
    let span = session.first_time().zip(session.last_time()).filter(|_| window.is_some());
    let span = span.map(|(first, last)| format!("{first} {last}"));
    // The first slice by time has the times of the recording.
    if let Some(span) = span.as_ref().filter(|_| trace.metadata().value(SLICE_OF).is_none()) {
        pairs.push((SLICE_OF, span.as_bytes()));
    }
    pairs.push((SLICE, note.as_bytes()));
    file.writer.add_metadata(&pairs).map_err(|e| failed(&e))?;
    for attached in &trace.metadata().attachments {
        // Snapshots are of the whole recording, and are copied with their times.
        file.writer
            .add_file_at(&attached.name, &attached.contents, attached.times)
            .map_err(|e| failed(&e))?;
    }
    copy::tasks(&mut file.writer, session)?;
    copy::lines(&mut file.writer, session)?;
    if window.is_none() {
        // Counters are of the whole recording.
        copy::counters(&mut file.writer, session, |cpu| selected.has_cpu(cpu), |stats| stats)?;
    }
    copy::symbols(&mut file.writer, session)?;
    let mut merge = match window {
        Some((first, last)) => trace.merge_between(first, last),
        None => trace.merge(),
    };
    let mut stacks: StackJoiner<bool> = StackJoiner::default();
    let mut folds = Folds::of(session, window);
    let mut record = Vec::new();
    while let Some(run) = merge.next_run() {
        if !selected.has_cpu(run.cpu) {
            continue;
        }
        if let Some(gap) = run.gap.as_ref().filter(|gap| !gap.is_empty()) {
            stacks.gap(run.cpu);
            copy::gap(&mut file, run.cpu, gap)?;
        }
        for event in run.events() {
            folds.until(event.time(), &mut file, &mut Same)?;
            let keeps = selected.has_pid(event.pid()) && classes.has(trace.schema(), event.class_index());
            let of = stacks.see(&event, keeps);
            let is_stack = event.class().meaning == Meaning::KERNEL_STACK;
            if if is_stack { of.unwrap_or(keeps) } else { keeps } {
                event.to_record(&mut record);
                copy::event(&mut file, run.cpu, event.time(), &record)?;
            }
        }
    }
    folds.finish(&mut file, &mut Same)?;
    let mut faults: Faults = merge.damages().into();
    faults.damages.append(&mut folds.damages);
    let events = copy::finish(file)?;
    tell!("{}", closing(session, events, folds.events, window.filter(|_| asked != window)));
    if events == 0 && folds.events == 0 {
        head::report_no_event(session);
    }
    Ok(outcome(session, &faults))
}

/// Refuses a time in which the trace has nothing: a file of it would be empty.
fn check_time(session: &Session<'_>, asked: Option<(u64, u64)>) -> Result<()> {
    let span = session.first_time().zip(session.last_time());
    let Some(((from, to), (first, last))) = asked.zip(span) else { return Ok(()) };
    if from <= last && to >= first {
        return Ok(());
    }
    let [first, last] = [first, last].map(|at| time(at, session.unit()));
    Err(Failure::new(format!("{} has no event in that time", session.path.display()))
        .hint(format!("its events are from {first} to {last}; --time +A..+B counts from the first of them")))
}

/// Refuses a part that sums of objects that died young cannot be divided into.
fn check_sums(session: &Session<'_>, selected: &EventArgs) -> Result<()> {
    let is_by_time = selected.cpu.is_empty() && selected.pid.is_empty() && selected.event.is_empty();
    if !session.trace.header().folded || is_by_time {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} has sums of objects that died young: they have no CPU, task or event to select by",
        session.path.display()
    ))
    .hint("slice --time FROM..TO keeps whole intervals of sums"))
}

/// Number of events in the new file; with sums also those in the sums, and the window if it was `moved`.
fn closing(session: &Session<'_>, events: u64, in_sums: u64, moved: Option<(u64, u64)>) -> String {
    let of = |events: u64, all: u64| format!("{} of {}", count(events, "event"), grouped(all));
    let mut text = of(events, session.trace.event_count());
    if session.trace.header().folded {
        let all = folded::all_events(session.trace).saturating_sub(session.trace.event_count());
        text += &format!("; sums of {}", of(in_sums, all));
    }
    if let Some((first, last)) = moved {
        let [first, last] = [first, last].map(|at| time(at, session.unit()));
        text += &format!("; the window was moved to whole intervals of sums: {first} to {last}");
    }
    text
}

fn describe(options: &EventArgs) -> String {
    let mut parts = Vec::new();
    parts.extend(options.time.as_ref().map(|t| format!("{TIME}{t}")));
    let list = |numbers: Vec<String>| numbers.join(",");
    if !options.cpu.is_empty() {
        parts.push(format!("cpu {}", list(options.cpu.iter().map(u32::to_string).collect())));
    }
    if !options.pid.is_empty() {
        parts.push(format!("pid {}", list(options.pid.iter().map(i32::to_string).collect())));
    }
    if !options.event.is_empty() {
        parts.push(format!("event {}", options.event.join(",")));
    }
    if parts.is_empty() { ALL.to_owned() } else { parts.join(SEPARATOR) }
}

/// Identity of the part: the same for the same part of the same trace.
fn identity(session: &Session<'_>, options: &EventArgs) -> [u8; 16] {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = session.trace.header().trace_uuid.into_iter().chain(describe(options).into_bytes());
    let hash = bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    });
    hash.to_le_bytes()
}
