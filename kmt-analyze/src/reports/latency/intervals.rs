//! Intervals beyond the threshold, with the events of their task.

use std::collections::{BTreeMap, HashMap};

use super::Traced;
use crate::collect::stalls::{Interval, Stall};
use crate::dump::Printer;
use crate::render::text::{count, duration, escaped, time};
use crate::reports::common::sums::more;

impl Traced<'_, '_, '_> {
    /// Intervals beyond the threshold, the outermost of each task, with all of its events in them.
    pub(super) fn long_ones(&self) -> String {
        let mut outer: Vec<Interval> = Vec::new();
        // They are sorted by their begin: one lies inside another of its task if an earlier one ends later.
        let mut last_end: HashMap<i32, u64> = HashMap::new();
        for &interval in &self.stalls.intervals {
            let last = last_end.get(&interval.pid).copied();
            if last.is_none_or(|last| last < interval.end) {
                last_end.insert(interval.pid, interval.end);
                outer.push(interval);
            }
        }
        let unit = self.unit();
        let shown = self.context.limit.min(outer.len());
        let mut out = format!(
            "{} intervals beyond the threshold, {} of them in no other one of their task\n",
            count(self.stalls.intervals.len() as u64 + self.stalls.intervals_left_out),
            count(outer.len() as u64)
        );
        if self.stalls.intervals_left_out > 0 {
            out.push_str(&format!(
                "{} shorter ones beyond it are left out\n",
                count(self.stalls.intervals_left_out)
            ));
        }
        let session = self.context.session;
        let trace = session.trace;
        let mut printer = Printer::new(trace.schema(), trace.metadata(), session.print_env());
        for interval in outer.iter().take(shown) {
            out.push_str(&format!(
                "\n{}: {} of {}, from {} to {}\n",
                self.name(interval.stall),
                duration(interval.end.saturating_sub(interval.begin), unit),
                self.labels.task(interval.pid),
                time(interval.begin, unit),
                time(interval.end, unit),
            ));
            self.inside(interval, &mut printer, &mut out);
        }
        out.push_str(&more(shown, outer.len(), "intervals"));
        out
    }

    /// The events of the task in an interval; those that happen often are printed a few times and then counted.
    fn inside(&self, interval: &Interval, printer: &mut Printer<'_>, out: &mut String) {
        const EACH: u64 = 20;
        let trace = self.context.session.trace;
        let mut merge = trace.merge_between(interval.begin, interval.end.saturating_add(slack(interval)));
        let mut seen: BTreeMap<usize, u64> = BTreeMap::new();
        while let Some(run) = merge.next_run() {
            for event in run.events() {
                if event.pid() != interval.pid {
                    continue;
                }
                let number = seen.entry(event.class_index()).or_default();
                *number += 1;
                if *number <= EACH || event.class().name == "funcgraph_exit" {
                    out.push_str(&String::from_utf8_lossy(printer.kernel(&event)));
                }
            }
        }
        for (class, number) in seen {
            let Some(class) = trace.schema().class(class).filter(|c| c.name != "funcgraph_exit") else {
                continue;
            };
            if number > EACH {
                out.push_str(&format!(
                    "    ... {} more {}:{}\n",
                    count(number - EACH),
                    escaped(class.system.as_bytes()),
                    escaped(class.name.as_bytes())
                ));
            }
        }
    }
}

/// A function's exit is logged a little after the time that it tells.
fn slack(interval: &Interval) -> u64 {
    if matches!(interval.stall, Stall::Function(_)) { 20_000 } else { 0 }
}
