//! Stalls over the threshold, nested, with the events of their tasks.

use std::collections::{BTreeMap, HashMap};

use super::stall_names::StallNames;
use crate::collect::stalls::{Interval, Stall};
use crate::dump::Printer;
use crate::render::text::{count, escaped};
use crate::reports::common::Context;

/// Stalls over the threshold.
#[derive(Debug)]
pub struct LongIntervals {
    /// Number of stalls that are not nested in another one of their task.
    pub total: usize,
    /// Those shown, the longest first.
    pub shown: Vec<LongInterval>,
    /// The longest of all, without its lines.
    pub longest: Option<LongInterval>,
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

/// Time by which the exit of a function is logged after the time in its event.
const EXIT_DELAY: u64 = 20_000;

/// Stalls that are not nested in another one of their task, each with those within it.
pub fn of(context: &Context<'_, '_>, names: &StallNames<'_, '_, '_>) -> LongIntervals {
    let mut groups = grouped(&names.stalls.intervals);
    groups.sort_by_key(|group| (std::cmp::Reverse(length(&group.outer)), group.outer.begin));
    let session = context.session;
    let (trace, is_terminal) = (session.trace, session.env.is_terminal());
    let mut printer = Printer::new(trace.schema(), trace.metadata(), session.print_env(), is_terminal);
    let shown = groups.iter().take(context.limit).map(|group| {
        let lines = Lines::of(context, names, group, &mut printer);
        LongInterval { lines, ..without_lines(&group.outer, names) }
    });
    LongIntervals {
        total: groups.len(),
        shown: shown.collect(),
        longest: groups.first().map(|group| without_lines(&group.outer, names)),
    }
}

fn length(interval: &Interval) -> u64 {
    interval.end.saturating_sub(interval.begin)
}

fn without_lines(interval: &Interval, names: &StallNames<'_, '_, '_>) -> LongInterval {
    LongInterval {
        name: names.name(interval.stall),
        task: names.labels.task_at(interval.pid, interval.begin),
        begin: interval.begin,
        length: length(interval),
        lines: Vec::new(),
    }
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
    /// Events by stall and class: number, and the line that counts those left out.
    seen: BTreeMap<(Option<usize>, usize), (u64, usize)>,
    out: Vec<IntervalLine>,
}

impl Lines<'_, '_, '_, '_> {
    fn of(
        context: &Context<'_, '_>,
        names: &StallNames<'_, '_, '_>,
        group: &IntervalGroup,
        printer: &mut Printer<'_>,
    ) -> Vec<IntervalLine> {
        let trace = context.session.trace;
        let mut lines =
            Lines { names, group, begun: 0, open: Vec::new(), seen: BTreeMap::new(), out: Vec::new() };
        let outer = &group.outer;
        let is_function = matches!(outer.stall, Stall::Function(_));
        let until = if is_function { outer.end.saturating_add(EXIT_DELAY) } else { outer.end };
        let mut merge = trace.merge_between(outer.begin, until);
        while let Some(run) = merge.next_run() {
            for event in run.events().filter(|event| event.pid() == outer.pid) {
                let is_exit = event.class().name == "funcgraph_exit";
                lines.advance(event.time(), if is_exit { EXIT_DELAY } else { 0 });
                let class = event.class_index();
                if lines.counts(class) {
                    lines.event(event.time(), printer.text(&event));
                }
            }
        }
        lines.advance(u64::MAX, 0);
        for (&(_, class), &(number, line)) in lines.seen.iter().filter(|(_, (number, _))| *number > EACH_MAX)
        {
            let name = trace.schema().class(class).map_or(String::new(), |class| {
                escaped(format!("{}:{}", class.system, class.name).as_bytes())
            });
            if let Some(line) = lines.out.get_mut(line) {
                line.text = format!("... {} more {name}", count(number - EACH_MAX));
            }
        }
        lines.out
    }

    /// Opens the nested stalls that began by then, and closes those that ended more than `delay` before.
    fn advance(&mut self, time: u64, delay: u64) {
        while let Some((depth, interval)) = self.group.nested.get(self.begun).filter(|(_, i)| i.begin <= time)
        {
            self.close(interval.begin, 0);
            self.out.push(IntervalLine {
                depth: *depth,
                since: Some(interval.begin.saturating_sub(self.group.outer.begin)),
                length: Some(length(interval)),
                text: self.names.name(interval.stall),
            });
            self.open.push(self.begun);
            self.begun += 1;
        }
        self.close(time, delay);
    }

    fn close(&mut self, time: u64, delay: u64) {
        let nested = &self.group.nested;
        let is_over = |at: &usize| nested.get(*at).is_none_or(|(_, i)| i.end.saturating_add(delay) < time);
        while self.open.last().is_some_and(is_over) {
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
