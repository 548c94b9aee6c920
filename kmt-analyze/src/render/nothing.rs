//! A selection that leaves nothing: the same words everywhere, with values of the trace that would match.

use std::collections::{BTreeMap, BTreeSet};

use kmt_common::tell;

use crate::render::screen::Screen;
use crate::render::text::{count, shown, time};
use crate::trace::names::task_in_message;
use crate::trace::session::Session;

/// The sentence.
const NOTHING: &str = "Nothing matches.";

/// The heading of the values.
const HAS: &str = "The trace has:";

/// The screen, with lines of values.
pub fn screen(values: Vec<String>) -> Screen {
    let mut screen = Screen::new(NOTHING);
    screen.lines(HAS, values);
    screen
}

/// Reports on standard error that no event was selected, with the events, tasks, CPUs and times of the trace.
pub fn report_no_event(session: &Session<'_>) {
    report(&values(session));
}

/// Reports the sentence of [`screen`] on standard error, beside data.
pub fn report(values: &[String]) {
    tell!("{NOTHING} {HAS}");
    values.iter().for_each(|line| tell!("  {line}"));
}

/// Events with their numbers, tasks, CPUs and times. Reads the whole trace.
fn values(session: &Session<'_>) -> Vec<String> {
    let trace = session.trace;
    let (mut events, mut pids) = (BTreeMap::<usize, u64>::new(), BTreeSet::new());
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for event in run.events() {
            *events.entry(event.class_index()).or_default() += 1;
            pids.insert(event.pid());
        }
    }
    let named = events.iter().filter_map(|(index, number)| {
        let class = trace.schema().class(*index)?;
        let name = shown(format!("{}:{}", class.system, class.name).as_bytes());
        Some(format!("{name} ({})", count(*number)))
    });
    let names = session.names();
    let task = |&pid: &i32| task_in_message(names.shown_at(pid, u64::MAX), pid);
    let cpus = session.losses.cpus.iter().map(|cpu| cpu.cpu.to_string());
    let mut out = vec![
        format!("events: {}", some(named.collect())),
        format!("tasks: {}", some(pids.iter().map(task).collect())),
        format!("CPUs: {}", some(cpus.collect())),
    ];
    if let (Some(start), Some(end)) = (session.first_time(), session.last_time()) {
        out.push(format!("times: {} to {}", time(start, session.unit()), time(end, session.unit())));
    }
    out
}

/// The first values of a list, and the number of the others.
pub fn some(all: Vec<String>) -> String {
    const SHOWN: usize = 12;
    let more = all.len().saturating_sub(SHOWN);
    let shown = all.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown}, and {more} more") } else { shown }
}
