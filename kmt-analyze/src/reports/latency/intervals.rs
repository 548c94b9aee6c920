//! Stalls over the threshold, nested, with the events of their tasks.
//!
//! The collector `Stalls` has the intervals; events of the same tasks are read from the file again and printed by
//! `dump`. Nested stalls are lines of the outer one, and of each event class only the first few are shown, so that a
//! long stall stays readable. `rows` has the result, `text` the screen.

use std::collections::{BTreeMap, HashMap};

use super::tracepoints::{OpenOwners, OwnerFunction, StallNames};
use crate::collect::stalls::Interval;
use crate::dump::Printer;
use crate::ledger::SideEvent;
use crate::render::words::{count, escaped};
use crate::reports::common::Context;
use crate::sort_rows::SortRows;
use crate::stream::Origin;
use crate::stream::side_events::SideEventPlan;

/// Stalls over the threshold.
#[derive(Debug)]
pub struct LongIntervals {
    /// Number of stalls that are not nested in another one of their task.
    pub total: usize,
    /// Those shown, the longest first.
    pub shown: Vec<LongInterval>,
}

/// A stall, and the lines within it.
#[derive(Debug)]
pub struct LongInterval {
    /// Name of the stall in the text.
    pub name: String,
    /// Name and id of the task.
    pub task: String,
    /// Time of its begin.
    pub begin: u64,
    pub length: u64,
    /// Nested stalls, and events of the task.
    pub lines: Vec<IntervalLine>,
}

/// A nested stall, an event, or a number of events that are left out.
#[derive(Debug)]
pub struct IntervalLine {
    /// Number of nested stalls around it.
    pub depth: usize,
    /// Time since the begin of the outer stall.
    pub since: Option<u64>,
    /// Length of a nested stall.
    pub length: Option<u64>,
    /// The stall for people, or the event.
    pub text: String,
}

/// Events of one class that are shown for each stall; the others are counted.
const EACH_MAX: u64 = 5;

/// Stalls that are not nested in another one of their task, each with those within it. `has_functions`: functions were
/// traced.
pub fn compute(
    context: &Context<'_, '_>,
    names: &StallNames<'_, '_, '_>,
    has_functions: bool,
) -> LongIntervals {
    let mut groups = grouped(&names.stalls.intervals);
    groups.sort_rows_by_key(|group| (std::cmp::Reverse(length(&group.outer)), group.outer.begin));
    let session = context.session;
    let (trace, is_terminal) = (session.trace, session.env.is_terminal());
    let mut printer = Printer::new(trace.schema(), trace.metadata(), session.print_env(), is_terminal);
    let shown = groups.iter().take(context.limit).map(|group| {
        let lines = Lines::new(names, group, has_functions).of(context, &mut printer);
        LongInterval {
            name: names.name(group.outer.stall),
            task: names.labels.task_at(group.outer.pid, group.outer.begin),
            begin: group.outer.begin,
            length: length(&group.outer),
            lines,
        }
    });
    LongIntervals { total: groups.len(), shown: shown.collect() }
}

fn length(interval: &Interval) -> u64 {
    interval.end.saturating_sub(interval.begin)
}

/// A stall, and those within it with their depths.
struct IntervalGroup {
    outer: Interval,
    nested: Vec<(usize, Interval)>,
    /// Ends of the stalls around the next one.
    open: Vec<u64>,
}

/// Groups the stalls of each task; they are sorted by their begin.
fn grouped(intervals: &[Interval]) -> Vec<IntervalGroup> {
    let mut groups: Vec<IntervalGroup> = Vec::new();
    let mut last_of: HashMap<i32, usize> = HashMap::new();
    for &interval in intervals {
        let last = last_of.get(&interval.pid).and_then(|&last| groups.get_mut(last));
        match last.filter(|group| group.outer.end >= interval.end) {
            Some(group) => {
                while group.open.last().is_some_and(|end| *end < interval.end) {
                    group.open.pop();
                }
                group.nested.push((group.open.len(), interval));
                group.open.push(interval.end);
            }
            None => {
                last_of.insert(interval.pid, groups.len());
                groups.push(IntervalGroup { outer: interval, nested: Vec::new(), open: Vec::new() });
            }
        }
    }
    groups
}

/// Lines of one group, in the order of their times.
struct Lines<'g, 'n, 's, 'd> {
    names: &'g StallNames<'n, 's, 'd>,
    group: &'g IntervalGroup,
    /// Number of nested stalls that began.
    begun: usize,
    /// Nested stalls that are not over: numbers among the nested ones.
    open: Vec<usize>,
    owners: OpenOwners,
    /// Events by stall and class: number, and the line that counts those left out.
    seen: BTreeMap<(Option<usize>, usize), (u64, usize)>,
    out: Vec<IntervalLine>,
}

impl<'g, 'n, 's, 'd> Lines<'g, 'n, 's, 'd> {
    fn new(names: &'g StallNames<'n, 's, 'd>, group: &'g IntervalGroup, has_functions: bool) -> Self {
        let nested = group.nested.iter().map(|(_, interval)| interval);
        let owners = OpenOwners::of(std::iter::once(&group.outer).chain(nested), has_functions);
        Self { names, group, begun: 0, open: Vec::new(), owners, seen: BTreeMap::new(), out: Vec::new() }
    }

    fn of(mut self, context: &Context<'_, '_>, printer: &mut Printer<'_>) -> Vec<IntervalLine> {
        let trace = context.session.trace;
        let outer = &self.group.outer;
        if let Some(function) = self.function(outer) {
            self.owners.begin(function);
        }
        let mut plans: HashMap<usize, Option<SideEventPlan>> = HashMap::new();
        let mut merge = trace.merge_between(outer.begin, outer.end);
        while let Some(run) = merge.next_run() {
            for event in run.events().filter(|event| event.pid() == outer.pid) {
                self.advance(event.time());
                let class = event.class_index();
                let plan = plans.entry(class).or_insert_with(|| SideEventPlan::of(event.class()));
                let shows = |plan: &SideEventPlan| {
                    let origin = Origin { cpu: event.cpu(), pid: event.pid(), ..Origin::default() };
                    let numbers = plan.read(&event);
                    self.owners.show(&SideEvent { kind: plan.kind, numbers, time: event.time(), origin })
                };
                if plan.as_ref().is_none_or(shows) && self.counts(class) {
                    self.event(event.time(), printer.text(&event));
                }
            }
        }
        self.advance(u64::MAX);
        for (&(_, class), &(number, line)) in self.seen.iter().filter(|(_, (number, _))| *number > EACH_MAX) {
            let name = trace.schema().class(class).map_or(String::new(), |class| {
                escaped(format!("{}:{}", class.system, class.name).as_bytes())
            });
            if let Some(line) = self.out.get_mut(line) {
                line.text = format!("... {} more {name}", count(number - EACH_MAX));
            }
        }
        self.out
    }

    fn function(&self, interval: &Interval) -> Option<OwnerFunction> {
        OwnerFunction::of(interval.stall, |address| self.names.labels.function(address))
    }

    /// Opens the nested stalls that began by then, and closes those that ended before.
    fn advance(&mut self, time: u64) {
        while let Some((depth, interval)) = self.group.nested.get(self.begun).filter(|(_, i)| i.begin <= time)
        {
            self.close(interval.begin);
            self.out.push(IntervalLine {
                depth: *depth,
                since: Some(interval.begin.saturating_sub(self.group.outer.begin)),
                length: Some(length(interval)),
                text: self.names.name(interval.stall),
            });
            if let Some(function) = self.function(interval) {
                self.owners.begin(function);
            }
            self.open.push(self.begun);
            self.begun += 1;
        }
        self.close(time);
    }

    fn close(&mut self, time: u64) {
        let nested = &self.group.nested;
        while let Some((_, over)) =
            self.open.last().and_then(|at| nested.get(*at)).filter(|(_, i)| i.end < time)
        {
            if let Some(function) = self.function(over) {
                self.owners.end(function);
            }
            self.open.pop();
        }
    }

    /// Counts an event of the innermost stall; false if it is left out.
    fn counts(&mut self, class: usize) -> bool {
        let depth = self.depth();
        let (number, line) = self.seen.entry((self.open.last().copied(), class)).or_default();
        *number += 1;
        if *number == EACH_MAX + 1 {
            *line = self.out.len();
            self.out.push(IntervalLine { depth, since: None, length: None, text: String::new() });
        }
        *number <= EACH_MAX
    }

    fn event(&mut self, time: u64, text: String) {
        let since = Some(time.saturating_sub(self.group.outer.begin));
        self.out.push(IntervalLine { depth: self.depth(), since, length: None, text });
    }

    /// Depth of lines in the innermost stall.
    fn depth(&self) -> usize {
        let nested = |at: &usize| self.group.nested.get(*at).map_or(0, |(depth, _)| depth + 1);
        self.open.last().map_or(0, nested)
    }
}
