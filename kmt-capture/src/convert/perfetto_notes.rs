//! Notes on a trace of Perfetto: facts that it does not have, and events that are left out.

use kmt_common::text::{count, shown};

use crate::import::Bounds;
use crate::import::perfetto::{Reader, Survey};

/// Adds them, a sentence each.
pub fn add(survey: &Survey, reader: &Reader<'_>, bounds: &Bounds, notes: &mut Vec<String>) {
    let counts = &reader.counts;
    notes.extend((counts.kmem > 0).then(|| {
        "Perfetto records no stacks, cache names, memory cgroup accounting or interrupt levels, and no allocation flags of 64-bit kernels since 5.19: they are unknown"
            .to_owned()
    }));
    notes.extend(left_out(reader));
    let mut counted = |number: u64, what: &str, which: String| {
        if number > 0 {
            notes.push(format!("{} {which}", count(number, what)));
        }
    };
    let lost = |why: &str| format!("{why}: counted as lost");
    counted(reader.copies(), "event", "recorded by several data sources: the copies are left out".to_owned());
    counted(counts.other_machines, "part", "with events of another machine: left out".to_owned());
    counted(counts.without_cpu, "event", lost("without a CPU"));
    counted(counts.incomplete, "event", lost("without a time or without fields"));
    counted(counts.unreadable, "event", lost("with a field that cannot be read"));
    counted(counts.without_pid, "event", "without a task: it is unknown".to_owned());
    counted(
        counts.unknown_functions,
        "function",
        "without a symbol in the trace or in kallsyms: left out".to_owned(),
    );
    if reader.is_forced() {
        notes.push("events of several data sources may be out of order; a larger --limit waiting=SIZE sorts more of them".to_owned());
    }
    if !survey.failed_events.is_empty() {
        let names: Vec<&str> = survey.failed_events.iter().take(8).map(String::as_str).collect();
        let names = shown(names.join(", ").as_bytes());
        notes.push(format!(
            "the recorder could not enable {}: {names}",
            count(survey.failed_events.len() as u64, "event")
        ));
    }
    let Bounds { layouts, functions, tasks, .. } = bounds;
    for (number, what, name) in [
        (
            counts.layouts_left_out,
            format!("events have a layout beyond the first {layouts}: they are counted as lost"),
            "layouts",
        ),
        (
            survey.symbols_left_out,
            format!("symbols are beyond the first {functions}: they are left out"),
            "functions",
        ),
        (
            survey.tasks_left_out.saturating_add(reader.tasks.left_out),
            format!("names of tasks are beyond the first {tasks} tasks: they are left out"),
            "tasks",
        ),
    ] {
        if number > 0 {
            notes.push(format!("{number} {what}; --limit {name}=SIZE raises the limit"));
        }
    }
}

/// The events that are left out, by their numbers.
fn left_out(reader: &Reader<'_>) -> Option<String> {
    /// Numbers that are printed.
    const NUMBERS: usize = 8;
    let counts = &reader.counts;
    let all = counts.left_out();
    let mut numbers: Vec<(u32, u64)> =
        counts.left_out.iter().map(|(number, events)| (*number, *events)).collect();
    numbers.sort_by_key(|(number, events)| (std::cmp::Reverse(*events), *number));
    let more = if numbers.len() > NUMBERS { " and others" } else { "" };
    let mut kinds: Vec<String> =
        numbers.iter().take(NUMBERS).map(|(number, events)| format!("{number} ({events})")).collect();
    if counts.compact > 0 {
        kinds.push(format!("compact sched ({})", counts.compact));
    }
    (all > 0).then(|| {
        format!(
            "{} of other kinds than memory and tasks left out, by number in FtraceEvent: {}{more}",
            count(all, "event"),
            kinds.join(", ")
        )
    })
}
