//! `latency --follow`: stalls over a threshold as they end, and sums at the end.

use std::collections::HashMap;
use std::path::Path;

use kmt_common::quantity::Span;
use kmt_format::print::PrintEnv;
use kmt_format::read::Event;
use serde::Serialize;

use super::lead::rounded;
use super::stall_names::name_of;
use crate::collect::stalls::{Interval, Stall, StallSums};
use crate::env::Env;
use crate::failure::{Outcome, Result};
use crate::ledger::SideEvent;
use crate::render::kernel_line::LineStart;
use crate::render::look::Look;
use crate::render::out::Out;
use crate::render::text::escaped;
use crate::render::words::counted;
use crate::reports::common::View;
use crate::reports::common::labels::function_of;
use crate::stream::Origin;
use crate::stream::side_events::SideEventPlan;
use crate::trace::clock::Clock;
use crate::trace::follow::{self, Sink, Source};
use crate::trace::session::clock_unit;

/// Stalls to print.
#[derive(Debug)]
pub struct LiveOptions {
    /// Smallest length.
    pub threshold: Span,
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
    let live =
        LiveStalls { options, sums, shrinkers, plans: HashMap::new(), start: None, out: Out::stdout(env) };
    follow::run(path, live, env)
}

/// Numbers of the shrinkers of each function, in the order in which they appear: addresses are not printed.
#[derive(Default)]
struct ShrinkerNumbers(HashMap<u64, HashMap<Option<u64>, usize>>);

/// Most shrinkers of a function that get a number: a file may name any number of them.
const NUMBERED_MAX: usize = 4_096;

impl ShrinkerNumbers {
    /// Number of a shrinker of a known function, from 1.
    fn number(&mut self, stall: Stall) -> Option<usize> {
        let Stall::Shrinker(Some(function), shrinker) = stall else { return None };
        let known = self.0.entry(function).or_default();
        let next = known.len() + 1;
        if next > NUMBERED_MAX {
            return known.get(&shrinker).copied();
        }
        Some(*known.entry(shrinker).or_insert(next))
    }
}

struct LiveStalls<'o> {
    options: &'o LiveOptions,
    sums: StallSums,
    shrinkers: ShrinkerNumbers,
    /// By number of the class; `None`: it tells nothing of stalls.
    plans: HashMap<usize, Option<SideEventPlan>>,
    /// Time of the first event.
    start: Option<u64>,
    out: Out,
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
            let threshold = Clock::of(source.metadata).units(self.options.threshold)?;
            self.sums = StallSums::over(threshold);
        }
        let start = *self.start.get_or_insert(event.time());
        let plan = self.plans.entry(event.class_index()).or_insert_with(|| SideEventPlan::of(event.class()));
        let Some(plan) = plan else { return Ok(true) };
        let origin = Origin { cpu: event.cpu(), pid: event.pid(), ..Origin::default() };
        let side = SideEvent { kind: plan.kind, numbers: plan.read(event), time: event.time(), origin };
        let is_selected = self.options.pids.is_empty() || self.options.pids.contains(&origin.pid);
        for interval in self.sums.ended_by(&side).into_iter().filter(|_| is_selected) {
            let number = self.shrinkers.number(interval.stall);
            let names = names.get_or_insert_with(|| LiveNames::of(source, start));
            let line = match self.options.json {
                true => names.json(&interval, number),
                false => names.line(&interval, number, self.sums.open_stalls(origin.pid)),
            };
            if !self.out.write(line.as_bytes())? {
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
    env: PrintEnv<'r>,
    tasks: LineStart<'r>,
    view: View,
}

impl<'r> LiveNames<'r> {
    fn of(source: &Source<'r>, start: u64) -> Self {
        let tasks = LineStart::new(source.metadata, source.metadata.kernel_version());
        let view = View {
            unit: clock_unit(source.metadata),
            start,
            start_of_day: None,
            is_lossy: false,
            limit: 0,
            look: Look::default(),
        };
        Self { env: source.print_env(), tasks, view }
    }

    fn stall(&self, stall: Stall) -> String {
        name_of(stall, |address| function_of(escaped(&self.env.symbol_with_offset(address))))
    }

    /// Shrinkers with their numbers.
    fn numbered(&self, stall: Stall, number: Option<usize>) -> String {
        number.map_or(self.stall(stall), |number| format!("{} #{number}", self.stall(stall)))
    }

    fn task(&self, interval: &Interval) -> String {
        format!("{}-{}", escaped(self.tasks.comm(interval.pid, interval.begin)), interval.pid)
    }

    /// `+4.567  direct reclaim of sh-766, 143.6 ms`, indented by the stalls around it, which end later.
    fn line(&self, interval: &Interval, number: Option<usize>, depth: usize) -> String {
        let begin = self.view.time(interval.begin);
        let length = self.view.duration(interval.end.saturating_sub(interval.begin));
        let indent = " ".repeat(2 * depth);
        format!(
            "{begin:>9}  {indent}{} of {}, {length}\n",
            self.numbered(interval.stall, number),
            self.task(interval)
        )
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

/// All stalls by kind, also those below the threshold; those with the largest sum first.
fn sums(sums: &StallSums, pids: &[i32], names: &LiveNames<'_>) -> String {
    let mut kinds: HashMap<Stall, (u64, u64, u64)> = HashMap::new();
    for ((stall, pid), waits) in &sums.by_task {
        if pids.is_empty() || pids.contains(pid) {
            let kind = kinds.entry(*stall).or_default();
            *kind = (kind.0 + waits.count, kind.1.saturating_add(waits.total), kind.2.max(waits.max));
        }
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(stall, (_, total, _))| (std::cmp::Reverse(*total), *stall));
    let mut text = String::new();
    for (stall, (count, total, max)) in &kinds {
        let (total, max) = (rounded(*total, names.view.unit), rounded(*max, names.view.unit));
        let stalls = counted(*count, "stall", "stalls");
        text.push_str(&format!("{}: {stalls}, {total} in total, the longest {max}\n", names.stall(*stall)));
    }
    match kinds.is_empty() {
        true => "No stalls.\n".to_owned(),
        false => format!("\n{text}"),
    }
}
