//! `timeline`: live bytes, allocations and frees over time, by any key.
//!
//! The collector `Timeline` has sums by step and by site or origin. Steps and the names of lines are made here, the lines
//! themselves in `lines`. By account, it has the kernel's own counts at each reading (`accounts`), which need no events.

mod accounts;
mod lines;

pub use accounts::{AccountAt, AccountLine, AccountTimes};

pub use lines::LineRow;
use lines::level;

use clap::builder::TypedValueParser;
use serde::Serialize;

use crate::collect::{Collectors, Handle, Timeline};
use crate::failure::{Failure, Result};
use crate::limits;
use crate::pass::Needs;
use crate::pass::caches::CacheNames;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, counted};
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;
use crate::trace::folded;

/// Numbers of each kind in all lines: lines × steps. The lines beyond it are part of the others.
const NUMBERS_MAX: usize = 1_000_000;

/// The report.
#[derive(Debug, clap::Args)]
pub struct TimelineReport {
    /// Key of the lines
    #[arg(long, value_enum, default_value = "kind")]
    pub by: TimelineKey,
    /// Number of steps
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=1_000).map(|n| n as usize))]
    pub steps: usize,
    /// Show at most N lines, and the sum of the others; 0: all lines
    #[arg(short, long = "lines", value_name = "N", default_value = "8", value_parser = limits::lines)]
    pub lines: usize,
}

impl TimelineReport {
    /// Most lines that are computed, whatever `lines` is.
    fn lines_max(&self) -> usize {
        self.lines.min(NUMBERS_MAX / self.steps.max(1))
    }

    /// A note where the trace has more lines than are computed, and `lines` asks for them.
    pub fn note(&self, timeline: &TimelineRow) -> Option<String> {
        let most = self.lines_max();
        (most < self.lines && timeline.lines.len() > most).then(|| {
            format!(
                "At most {} lines of {} are computed; the last line is the sum of the others.",
                count(most as u64),
                counted(self.steps as u64, "step", "steps")
            )
        })
    }
}

impl Report for TimelineReport {
    type Handles = Handle<Timeline>;
    type Rows = TimelineRows;

    const NAME: &'static str = "timeline";
    const ABOUT: &'static str = "Live memory over time";
    const NEEDS: Needs = Needs::CACHE_NAMES;
    const RESTS_ON: Input = Input::Lives;
    const KEYS: Keys = Keys::All;
    const HAS_LINES: bool = false;

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        let of_whole = ["--time", "--without-recorder"];
        let mut given = context.selection.given().into_iter();
        let part = given.find(|(name, _)| self.by == TimelineKey::Account && !of_whole.contains(name));
        part.map_or(Ok(()), |(name, _)| {
            Err(Failure::new(format!("accounts are of the whole machine: omit {name}"))
                .hint("`timeline --by cache` and others select events"))
        })
    }

    fn adds_sums(&self) -> bool {
        !self.by.is_of_origins()
    }

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        if self.by != TimelineKey::Account {
            return context.basis().lacks(self.rests_on());
        }
        let readings = accounts::readings(context);
        readings.readings.is_empty().then(|| match readings.first_fault {
            Some(fault) => format!("no copy of /proc/meminfo can be read: {fault}"),
            None => "the file has no /proc/meminfo of the selected time: kmt-capture record stores it at the begin and the end, \
                     with --snapshot-every 5s meanwhile too"
                .to_owned(),
        })
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let (first, last) = context.selection.span(context.session);
        let by_origin = self.by.is_of_origins();
        collectors.add(match folded::interval(context.session.trace) {
            Some(interval) => Timeline::of_intervals(first, last, self.steps, by_origin, interval),
            None => Timeline::new(first, last, self.steps, by_origin),
        })
    }

    /// Rows of the lines.
    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> TimelineRows {
        let (session, timeline) = (context.session, context.analysis.get(*handle));
        let steps = &timeline.steps;
        let start_of = |step| start_of(steps.start, steps.step, step);
        let lost = |step| session.losses.missing_share(start_of(step), start_of(step + 1));
        let readings = (self.by == TimelineKey::Account).then(|| accounts::readings(context));
        let (mut lines, pages) = match self.by {
            TimelineKey::Account => Default::default(),
            by => lines::compute(context, timeline, by, self.lines_max()),
        };
        let has_pages = pages.is_some();
        lines.extend(pages);
        TimelineRows {
            timeline: TimelineRow {
                start: steps.start,
                step: steps.step,
                steps: steps.steps,
                lost_percent: (0..steps.steps).map(|step| lost(step).map(|share| 100.0 * share)).collect(),
                lines,
                shown: TimelineShown {
                    last: context.selection.span(session).1,
                    has_slab: context.basis().allocs(None),
                    has_pages,
                    first_fault: readings.as_ref().and_then(|readings| readings.first_fault.clone()),
                },
            },
            accounts: readings.as_ref().map(accounts::compute),
        }
    }

    /// The highest step and the last one, the steps, and the lines.
    fn screen(&self, rows: &TimelineRows, view: &View) -> Screen {
        if let Some(accounts) = &rows.accounts {
            let fault = rows.timeline.shown.first_fault.as_deref();
            return accounts::screen(accounts, fault, self.steps, view);
        }
        let timeline = &rows.timeline;
        let all = timeline.shown.has_slab.then(|| SlabSteps::of(timeline));
        let slab = all.as_ref().map(|slab| sentence("slab", &slab.bytes_live, timeline, view));
        let pages = timeline.pages().map(|pages| sentence("page", &pages.bytes_live, timeline, view));
        let mut sentences = slab.into_iter().chain(pages);
        let mut screen = Screen::new(sentences.next().unwrap_or_else(|| "Nothing was allocated.".to_owned()));
        sentences.for_each(|sentence| screen.answer(sentence));
        screen.table(steps(timeline, all.as_ref(), view));
        screen.table(lines::lines_table(timeline, self.by));
        if view.is_lossy && !has_lost(timeline) {
            screen.note("Dropped events have no known time: any step may lack events.");
        }
        screen.note("Live figures are at the end of each step, of memory allocated in the trace.");
        screen.next("peak", "exact peak and its call sites");
        if self.by == TimelineKey::Kind {
            screen.next("timeline --by call-site", "call sites behind it");
        }
        screen.note(self.note(timeline).unwrap_or_default());
        screen
    }
}

/// Keys of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum TimelineKey {
    /// kmalloc, caches and pages
    Kind,
    /// Call sites
    CallSite,
    /// Caches and size classes
    Cache,
    /// Tasks
    Task,
    /// CPUs
    Cpu,
    /// Requested nodes
    Node,
    /// Accounts of memory, by the kernel's counts (docs/balance.md)
    Account,
}

impl TimelineKey {
    /// True if lines are by the origin of the allocation, false if they are by its site.
    pub fn is_of_origins(self) -> bool {
        matches!(self, Self::Task | Self::Cpu)
    }
}

/// Name of the line of a site or origin.
fn name(context: &ReportContext<'_, '_>, caches: &CacheNames<'_>, by: TimelineKey, number: u32) -> String {
    let interner = &context.analysis.interner;
    let origin = interner.origins.get(number).copied().unwrap_or_default();
    match (by, interner.sites.get(number)) {
        (TimelineKey::Task, _) => context.labels().task(origin.pid),
        (TimelineKey::Cpu, _) => format!("CPU {}", origin.cpu),
        (_, None) => "?".to_owned(),
        (TimelineKey::Kind | TimelineKey::Account, Some(site)) => site.api.name().to_owned(),
        (TimelineKey::CallSite, Some(site)) => context.labels().symbol(site.call_site),
        (TimelineKey::Node, Some(site)) if site.node < 0 => "any node".to_owned(),
        (TimelineKey::Node, Some(site)) => format!("node {}", site.node),
        (TimelineKey::Cache, Some(_)) => caches.shown(number, None),
    }
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimelineRows {
    /// The timeline.
    pub timeline: TimelineRow,
    /// With --by account: accounts at each reading of the kernel's counts. The timeline has no lines then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounts: Option<AccountTimes>,
}

/// Steps of equal length, and the lines.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimelineRow {
    /// Start of the first step, in the clock's unit.
    pub start: u64,
    /// Length of a step, in the clock's unit.
    pub step: u64,
    /// Number of steps.
    pub steps: usize,
    /// Share of each step, over all CPUs, in which events are missing; `null`: dropped events, which have no position.
    pub lost_percent: Vec<Option<f64>>,
    /// Lines.
    pub lines: Vec<LineRow>,
    /// Facts that only screens and charts have.
    #[serde(skip)]
    shown: TimelineShown,
}

/// Facts on a timeline that only screens and charts have.
#[derive(Debug)]
struct TimelineShown {
    /// End of the selected time, in the clock's unit; the last step may reach beyond it.
    last: u64,
    /// Allocations of slab objects were recorded.
    has_slab: bool,
    /// The last line is that of pages.
    has_pages: bool,
    /// Message of the first reading of accounts that is left out.
    first_fault: Option<String>,
}

/// Sums of all lines of slab objects, by step.
#[derive(Debug)]
pub struct SlabSteps {
    /// Bytes live at the end of the step.
    pub bytes_live: Vec<i64>,
    /// Bytes live at least; `None`: the same, or not computed.
    pub bytes_live_least: Option<Vec<i64>>,
    /// Allocations.
    pub alloc_events: Vec<u64>,
    /// Frees of objects allocated in the trace.
    pub frees_matched: Vec<u64>,
}

impl SlabSteps {
    /// Those of a timeline.
    pub fn of(timeline: &TimelineRow) -> Self {
        let steps = timeline.steps;
        let lines = || timeline.slab().iter();
        let levels = |of: fn(&LineRow) -> Option<&[i64]>| -> Vec<i64> {
            let sum =
                |step| lines().filter_map(|line| of(line)?.get(step)).fold(0i64, |a, b| a.saturating_add(*b));
            (0..steps).map(sum).collect()
        };
        let counts = |of: fn(&LineRow) -> &[u64]| -> Vec<u64> {
            let sum =
                |step| lines().filter_map(|line| of(line).get(step)).fold(0u64, |a, b| a.saturating_add(*b));
            (0..steps).map(sum).collect()
        };
        let is_less = |line: &LineRow| {
            line.bytes_live_least.iter().flatten().zip(&line.bytes_live).any(|(least, live)| least < live)
        };
        let has_least = lines().any(is_less);
        Self {
            bytes_live: levels(|line| Some(&line.bytes_live)),
            bytes_live_least: has_least.then(|| levels(|line| line.bytes_live_least.as_deref())),
            alloc_events: counts(|line| &line.alloc_events),
            frees_matched: counts(|line| &line.frees_matched),
        }
    }
}

impl TimelineRow {
    /// Start of the step of that number, which is the end of the step before.
    pub fn start_of(&self, step: usize) -> u64 {
        start_of(self.start, self.step, step)
    }

    /// End of the step of that number, within the selected time.
    pub fn end_of(&self, step: usize) -> u64 {
        self.start_of(step + 1).min(self.shown.last)
    }

    /// Lines of slab objects.
    pub fn slab(&self) -> &[LineRow] {
        match self.lines.split_last() {
            Some((_, slab)) if self.shown.has_pages => slab,
            _ => &self.lines,
        }
    }

    /// The line of pages, which include those of slab objects.
    pub fn pages(&self) -> Option<&LineRow> {
        self.lines.last().filter(|_| self.shown.has_pages)
    }

    /// Times and live bytes at the end of each step of a line; no time is beyond the selected time.
    pub fn points<'r>(&'r self, line: &'r LineRow) -> impl Iterator<Item = (u64, i64)> + 'r {
        let point = |(step, bytes): (usize, &i64)| (self.end_of(step), *bytes);
        line.bytes_live.iter().enumerate().map(point)
    }
}

fn start_of(start: u64, length: u64, step: usize) -> u64 {
    start.saturating_add(length.saturating_mul(step as u64))
}

/// The highest of the live bytes, and the last.
fn sentence(noun: &str, live: &[i64], timeline: &TimelineRow, view: &View) -> String {
    let highest = live.iter().enumerate().rev().max_by_key(|(_, bytes)| **bytes);
    let (Some((step, &most)), Some(&last)) = (highest, live.last()) else {
        return format!("No {noun} memory was recorded.");
    };
    let bytes = |bytes: i64| level(bytes).shown(&view.look);
    let is_last = step + 1 == live.len();
    let live = if view.is_window_lossy { "By the recorded events, live" } else { "Live" };
    match (most, is_last) {
        (..=0, _) => format!("No {noun} memory that the trace allocated was live at the end of a step."),
        (_, true) => format!("{live} {noun} memory was highest at the end ({}).", bytes(most)),
        (_, false) => {
            let at = view.time(timeline.end_of(step));
            let (most, last) = (bytes(most), bytes(last));
            format!("{live} {noun} memory was highest at {at} ({most}) and {last} at the end.")
        }
    }
}

/// True if the share of missing events is known of any step.
fn has_lost(timeline: &TimelineRow) -> bool {
    timeline.lost_percent.iter().any(Option::is_some)
}

/// The table of steps.
fn steps(timeline: &TimelineRow, slab: Option<&SlabSteps>, view: &View) -> Table {
    let bytes = |all: &[i64], step: usize| all.get(step).map_or(Cell::Empty, |bytes| level(*bytes));
    let number = |all: &[u64], step: usize| all.get(step).map_or(Cell::Empty, |n| Cell::Count(*n));
    let positive = |bytes: Option<&i64>| bytes.map_or(0, |bytes| (*bytes).max(0) as u64);
    let lost = |step: usize| timeline.lost_percent.get(step).copied().flatten();
    let has_lost = view.is_lossy && has_lost(timeline);
    let mut table = Table::of_rows("", 0..timeline.steps)
        .of("step", "steps", timeline.steps)
        .column(Column::number("until"), |&step| Cell::text(view.time(timeline.end_of(step))))
        .column_if(has_lost, Column::number("time lost"), |&step| Cell::percent(lost(step)));
    if let Some(slab) = slab {
        let (live, least) = (&slab.bytes_live, slab.bytes_live_least.as_deref());
        let most = positive(live.iter().max());
        table = table
            .column(Column::number("live"), |&step| bytes(live, step))
            .column(Column::whole("").leaves(4), |&step| Cell::bar(positive(live.get(step)), most))
            .column_if(least.is_some(), Column::number("at least").leaves(3), |&step| {
                bytes(least.unwrap_or_default(), step)
            })
            .column(Column::number("allocs").leaves(2), |&step| number(&slab.alloc_events, step))
            .column(Column::number("frees").leaves(2), |&step| number(&slab.frees_matched, step));
    }
    if let Some(pages) = timeline.pages() {
        table = table.column(Column::number("page bytes").leaves(1), |&step| bytes(&pages.bytes_live, step));
    }
    table = table
        .explain(
            "time lost",
            "time lost: share of the step, over all CPUs, in which events are missing: its counts are too low, and live figures from there on are uncertain.",
        )
        .explain(
            "at least",
            "at least: memory of call sites and caches whose frees have events; frees of the rest may have none.",
        );
    if slab.is_some() {
        table =
            table.explain("page bytes", "Pages include those of slab memory: do not add them to live bytes.");
    }
    table.into()
}
