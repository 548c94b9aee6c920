//! Intervals beyond the threshold, with the events of their task.

use std::collections::{BTreeMap, HashMap};

use super::stall_names::StallNames;
use crate::collect::stalls::{Interval, Stall};
use crate::dump::Printer;
use crate::render::text::{count, escaped};
use crate::reports::common::Context;

/// Intervals beyond the threshold that lie in no other one of their task.
#[derive(Debug)]
pub struct LongIntervals {
    /// How many there are.
    pub total: usize,
    /// The first of them.
    pub shown: Vec<LongInterval>,
}

/// An interval and the events in it.
#[derive(Debug)]
pub struct LongInterval {
    /// The stall for people.
    pub name: String,
    /// Name and id of the task.
    pub task: String,
    /// When it began.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// Events of the task in it, a line each.
    pub events: String,
}

/// Events of one kind that are printed; the others are counted.
const EACH_MAX: u64 = 20;

/// The outermost intervals of each task, with all of its events in them.
pub fn of(context: &Context<'_, '_>, names: &StallNames<'_, '_, '_>) -> LongIntervals {
    let outer = outermost(&names.stalls.intervals);
    let session = context.session;
    let trace = session.trace;
    let mut printer = Printer::new(trace.schema(), trace.metadata(), session.print_env());
    let shown = outer.iter().take(context.limit).map(|interval| LongInterval {
        name: names.name(interval.stall),
        task: names.labels.task(interval.pid),
        begin: interval.begin,
        end: interval.end,
        events: events(context, interval, &mut printer),
    });
    LongIntervals { total: outer.len(), shown: shown.collect() }
}

/// Intervals that lie in no other one of their task; they come sorted by their begin.
fn outermost(intervals: &[Interval]) -> Vec<Interval> {
    let mut out = Vec::new();
    let mut last_end: HashMap<i32, u64> = HashMap::new();
    for &interval in intervals {
        let last = last_end.get(&interval.pid).copied();
        if last.is_none_or(|last| last < interval.end) {
            last_end.insert(interval.pid, interval.end);
            out.push(interval);
        }
    }
    out
}

/// The events of the task in an interval; those that happen often are printed a few times and then counted.
fn events(context: &Context<'_, '_>, interval: &Interval, printer: &mut Printer<'_>) -> String {
    let trace = context.session.trace;
    let mut out = String::new();
    let mut merge = trace.merge_between(interval.begin, interval.end.saturating_add(slack(interval)));
    let mut counts: BTreeMap<usize, u64> = BTreeMap::new();
    while let Some(run) = merge.next_run() {
        for event in run.events() {
            if event.pid() != interval.pid {
                continue;
            }
            let number = counts.entry(event.class_index()).or_default();
            *number += 1;
            if *number <= EACH_MAX || event.class().name == "funcgraph_exit" {
                out.push_str(&String::from_utf8_lossy(printer.kernel(&event)));
            }
        }
    }
    for (class, number) in counts.into_iter().filter(|(_, number)| *number > EACH_MAX) {
        let class = trace.schema().class(class).filter(|class| class.name != "funcgraph_exit");
        out.push_str(&class.map_or(String::new(), |class| {
            let (system, name) = (escaped(class.system.as_bytes()), escaped(class.name.as_bytes()));
            format!("    ... {} more {system}:{name}\n", count(number - EACH_MAX))
        }));
    }
    out
}

/// A function's exit is logged a little after the time that it tells.
fn slack(interval: &Interval) -> u64 {
    if matches!(interval.stall, Stall::Function(_)) { 20_000 } else { 0 }
}
