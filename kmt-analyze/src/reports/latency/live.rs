//! `latency --follow`: stalls over a threshold as they end, with their events, and sums at the end.
//!
//! Events come from a growing file or a stream. Tracepoints are kept until the stalls and functions that they belong to have
//! ended.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use kmt_common::quantity::Span;
use kmt_format::read::Event;
use serde::Serialize;

use super::rounded;
use super::tracepoints::{OwnerFunction, ShrinkerNumbers, TracepointOwners, name_of};
use crate::collect::stalls::{Interval, Stall, StallSums};
use crate::dump::Printer;
use crate::env::Env;
use crate::failure::{Outcome, Result};
use crate::int_hash::IntHash;
use crate::ledger::SideEvent;
use crate::render::kernel_line::LineStart;
use crate::render::out::Out;
use crate::render::words::{counted, shown};
use crate::reports::common::View;
use crate::sort_rows::SortRows;
use crate::stream::side_events::SideEventPlan;
use crate::stream::{Origin, SideEventKind};
use crate::trace::clock::Clock;
use crate::trace::follow::{self, Sink, Source};
use crate::trace::names::{Symbolizer, task_in_message};
use crate::trace::session::clock_unit;

/// Stalls to print.
#[derive(Debug)]
pub struct LiveOptions {
    /// Smallest length; `None`: all stalls, without events.
    pub threshold: Option<Span>,
    /// Tasks, by thread id; empty: all.
    pub pids: Vec<i32>,
    /// One JSON object a line, without sums.
    pub json: bool,
}

/// A stall as a line of JSON: as in the JSON of the report, and its task.
#[derive(Debug, Serialize)]
struct StallLine {
    kind: String,
    pid: i32,
    task: String,
    cpu: u32,
    begin: u64,
    end: u64,
    length: u64,
}

/// Prints the stalls of a growing file, or of a stream.
pub fn run(path: &Path, options: &LiveOptions, env: &Env) -> Result<Outcome> {
    let (sums, shrinkers) = (StallSums::default(), ShrinkerNumbers::default());
    let held = (options.threshold.is_some() && !options.json).then(HeldEvents::default);
    let (plans, out, is_terminal) = (HashMap::new(), Out::stdout(env), env.is_terminal());
    let live = LiveStalls { options, sums, shrinkers, held, plans, start: None, out, is_terminal };
    follow::run(path, live, env)
}

struct LiveStalls<'o> {
    options: &'o LiveOptions,
    sums: StallSums,
    shrinkers: ShrinkerNumbers,
    /// Tracepoints of stalls that have not ended; `None`: they are not printed.
    held: Option<HeldEvents>,
    /// By number of the class; `None`: it tells nothing of stalls.
    plans: HashMap<usize, Option<SideEventPlan>>,
    /// Time of the first event.
    start: Option<u64>,
    out: Out,
    is_terminal: bool,
}

impl Sink for LiveStalls<'_> {
    type Cache<'r> = LiveNames<'r>;

    fn see<'r>(
        &mut self,
        source: &Source<'r>,
        names: &mut Option<LiveNames<'r>>,
        event: &Event<'_>,
    ) -> Result<bool> {
        if self.start.is_none() {
            let threshold =
                Clock::of(source.metadata).units(self.options.threshold.unwrap_or(Span::Plain(0)))?;
            self.sums = StallSums::over(threshold);
        }
        let start = *self.start.get_or_insert(event.time());
        let plan = self.plans.entry(event.class_index()).or_insert_with(|| SideEventPlan::of(event.class()));
        let Some(plan) = plan else { return Ok(true) };
        let origin = Origin { cpu: event.cpu(), pid: event.pid(), ..Origin::default() };
        let side = SideEvent { kind: plan.kind, numbers: plan.read(event), time: event.time(), origin };
        let is_selected = self.options.pids.is_empty() || self.options.pids.contains(&origin.pid);
        let is_terminal = self.is_terminal;
        let names_of = || LiveNames::of(source, start);
        if let Some(held) = self.held.as_mut().filter(|_| is_selected) {
            held.hold(&side, || names.get_or_insert_with(names_of).event(source, event, is_terminal));
        }
        for interval in self.sums.ended_by(&side).into_iter().filter(|_| is_selected) {
            let number = self.shrinkers.number(interval.stall);
            let names = names.get_or_insert_with(names_of);
            let text = match &mut self.held {
                _ if self.options.json => names.json(&interval, number),
                held => names.lines(&interval, number, self.sums.stalls_around(&side), held.as_mut()),
            };
            if !self.out.write(text.as_bytes())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn gap(&mut self, _: u32) {}

    fn pause(&mut self) -> Result<bool> {
        self.out.flush()
    }

    fn end(&mut self, source: Option<&Source<'_>>) -> Result<()> {
        if let Some(source) = source.filter(|_| !self.options.json) {
            let text = sums(&self.sums, &self.options.pids, &LiveNames::of(source, self.start.unwrap_or(0)));
            self.out.write(text.as_bytes())?;
        }
        self.out.flush().map(drop)
    }
}

/// Names of functions and tasks so far.
struct LiveNames<'r> {
    symbols: Symbolizer<'r>,
    tasks: LineStart<'r>,
    view: View,
    /// Made when an event is first printed.
    printer: Option<Printer<'r>>,
}

impl<'r> LiveNames<'r> {
    fn of(source: &Source<'r>, start: u64) -> Self {
        let tasks = LineStart::new(source.metadata, source.metadata.kernel_version());
        let view = View { unit: clock_unit(source.metadata), start, ..View::plain() };
        Self { symbols: Symbolizer::new(source.print_env()), tasks, view, printer: None }
    }

    fn stall(&self, stall: Stall) -> String {
        name_of(stall, |address| self.function(address))
    }

    fn function(&self, address: u64) -> String {
        shown(self.symbols.function(address).as_bytes())
    }

    fn event(&mut self, source: &Source<'r>, event: &Event<'_>, is_terminal: bool) -> String {
        let new = || Printer::new(source.schema, source.metadata, source.print_env(), is_terminal);
        self.printer.get_or_insert_with(new).text(event)
    }

    /// Shrinkers with their numbers.
    fn numbered(&self, stall: Stall, number: Option<usize>) -> String {
        number.map_or(self.stall(stall), |number| format!("{} #{number}", self.stall(stall)))
    }

    fn task(&self, interval: &Interval) -> String {
        task_in_message(self.tasks.comm(interval.pid, interval.begin), interval.pid)
    }

    /// `+4.567  direct reclaim of sh-766, 143.6 ms`, indented by the stalls around it, which end later; before it the
    /// events that belong to it.
    fn lines(
        &self,
        interval: &Interval,
        number: Option<usize>,
        depth: usize,
        held: Option<&mut HeldEvents>,
    ) -> String {
        let line = |time, depth: usize, text: &str| {
            format!("{:>9}  {}{text}\n", self.view.time(time), " ".repeat(2 * depth))
        };
        let function = OwnerFunction::of(interval.stall, |address| self.function(address));
        let events = held.map_or_else(Vec::new, |held| held.take(interval, function));
        let mut text: String = events.iter().map(|e| line(e.time, depth + 1, &e.text)).collect();
        let length = self.view.duration(interval.end.saturating_sub(interval.begin));
        let (name, task) = (self.numbered(interval.stall, number), self.task(interval));
        text.push_str(&line(interval.begin, depth, &format!("{name} of {task}, {length}")));
        text
    }

    fn json(&self, interval: &Interval, number: Option<usize>) -> String {
        let line = StallLine {
            kind: self.numbered(interval.stall, number),
            pid: interval.pid,
            task: self.task(interval),
            cpu: interval.cpu,
            begin: interval.begin,
            end: interval.end,
            length: interval.end.saturating_sub(interval.begin),
        };
        let mut text = serde_json::to_string(&line).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// Stalls of a kind; shrinkers of one function are one kind.
#[derive(Default)]
struct KindSums {
    count: u64,
    total: u64,
    max: u64,
    /// Shrinkers of the function.
    shrinkers: HashSet<Option<u64>>,
}

/// All stalls by kind, also those below the threshold; those with the largest sum first.
fn sums(sums: &StallSums, pids: &[i32], names: &LiveNames<'_>) -> String {
    let mut kinds: HashMap<Stall, KindSums> = HashMap::new();
    for ((stall, pid), waits) in &sums.by_task {
        if pids.is_empty() || pids.contains(pid) {
            // Numbers of shrinkers are in the order of their first stalls: sums do not have them.
            let (kind, shrinker) = match *stall {
                Stall::Shrinker(function, shrinker) => (Stall::Shrinker(function, None), Some(shrinker)),
                other => (other, None),
            };
            let kind = kinds.entry(kind).or_default();
            kind.count += waits.count;
            kind.total = kind.total.saturating_add(waits.total);
            kind.max = kind.max.max(waits.max);
            kind.shrinkers.extend(shrinker);
        }
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_rows_by_key(|(stall, kind)| (std::cmp::Reverse(kind.total), *stall));
    let mut text = String::new();
    for (stall, kind) in &kinds {
        let (total, max) = (rounded(kind.total, names.view.unit), rounded(kind.max, names.view.unit));
        let stalls = counted(kind.count, "stall", "stalls");
        let several = match kind.shrinkers.len() {
            0 | 1 => String::new(),
            several => format!(", {several} shrinkers"),
        };
        let name = names.stall(*stall);
        text.push_str(&format!("{name}{several}: {stalls}, {total} in total, the longest {max}\n"));
    }
    match kinds.is_empty() {
        true => "No stalls.\n".to_owned(),
        false => format!("\n{text}"),
    }
}

/// Events of one kind that are kept for each task: the latest. A function has one or two of its own.
const EACH_MAX: usize = 5;
/// Characters of a text.
const TEXT_MAX: usize = 1_024;
/// Tasks with kept events.
const TASKS_MAX: usize = 4_096;

/// A tracepoint.
#[derive(Debug)]
pub struct HeldEvent {
    kind: SideEventKind,
    pub time: u64,
    owners: TracepointOwners,
    pub text: String,
}

/// Latest tracepoints of each task, by rising time.
#[derive(Debug, Default)]
pub struct HeldEvents {
    tasks: HashMap<i32, Vec<HeldEvent>, IntHash>,
    /// True if a function was traced.
    has_functions: bool,
}

impl HeldEvents {
    /// Keeps an event, if a rule is about it.
    pub fn hold(&mut self, event: &SideEvent, text: impl FnOnce() -> String) {
        self.has_functions |= matches!(event.kind, SideEventKind::GraphEntry | SideEventKind::GraphExit);
        let Some(owners) = TracepointOwners::of(event) else { return };
        if self.tasks.len() >= TASKS_MAX && !self.tasks.contains_key(&event.origin.pid) {
            self.tasks.clear();
        }
        let events = self.tasks.entry(event.origin.pid).or_default();
        let is_alike = |held: &HeldEvent| held.kind == event.kind;
        let mut alike = events.iter().enumerate().filter(|(_, held)| is_alike(held)).map(|(at, _)| at);
        if let (Some(oldest), true) = (alike.next(), alike.count() + 1 >= EACH_MAX) {
            events.remove(oldest);
        }
        let text = text().chars().take(TEXT_MAX).collect();
        events.push(HeldEvent { kind: event.kind, time: event.time, owners, text });
    }

    /// Takes the events that belong to a stall over the threshold, which has ended.
    pub fn take(&mut self, interval: &Interval, function: Option<OwnerFunction>) -> Vec<HeldEvent> {
        let Entry::Occupied(mut entry) = self.tasks.entry(interval.pid) else { return Vec::new() };
        let has_functions = self.has_functions;
        let is_its = |held: &HeldEvent| {
            let is_within = (interval.begin..=interval.end).contains(&held.time);
            held.owners.include(interval, function, held.time)
                || (is_within && held.owners.is_unknown(has_functions))
        };
        let (taken, kept): (Vec<_>, Vec<_>) = std::mem::take(entry.get_mut()).into_iter().partition(is_its);
        if kept.is_empty() {
            drop(entry.remove())
        } else {
            *entry.get_mut() = kept
        }
        taken
    }
}
