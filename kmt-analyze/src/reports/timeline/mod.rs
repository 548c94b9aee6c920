//! `timeline`: live bytes and rates over time, by any key.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::collect::Collectors;
use crate::collect::Timeline;
use crate::collect::timeline::{Row, Step};
use crate::collect::{Handle, timeline::TimelineSums};
use crate::pass;
use crate::pass::Analysis;
use crate::pass::caches::usual_names;
use crate::pass::selection::Selection;
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped, time};
use crate::reports::common::basis::{Basis, Input};
use crate::reports::common::live_bounds::LiveBounds;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::{Page, Report};
use crate::stream::Api;
use crate::trace::session::Session;
use crate::trace::session::task_names;

/// What the lines of a timeline are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Key {
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
    /// Nodes asked for
    Node,
}

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// What the lines are
    #[arg(long, value_enum, default_value = "kind")]
    by: Key,
    /// Number of steps
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    steps: u32,
    /// Lines apart from the rest
    #[arg(short, long = "lines", value_name = "N", default_value_t = 8)]
    lines: usize,
}

struct Line {
    name: String,
    /// Of pages, which hold the slab objects of the other lines.
    is_pages: bool,
    /// Steps, with live_change added up to live bytes.
    steps: Vec<Step>,
    /// Bytes of them that are known to be live; `None` by task and CPU, where call sites are not told apart, and
    /// where events were lost.
    least: Option<Vec<i64>>,
}

/// The report.
#[derive(Debug)]
pub struct TimelineReport {
    /// What the lines are.
    pub by: Key,
    /// Number of steps.
    pub steps: usize,
    /// Lines apart from the rest.
    pub lines: usize,
}

impl TimelineReport {
    fn steps_of(&self, context: &Context<'_, '_>) -> Timeline {
        let (first, last) = context.selection.span(context.session);
        Timeline::new(first, last, self.steps, matches!(self.by, Key::Task | Key::Cpu))
    }
}

/// Live bytes of one line.
pub struct LiveLine {
    /// Name.
    pub name: String,
    /// Times, each the end of a step, and bytes live then.
    pub points: Vec<(u64, i64)>,
}

impl TimelineReport {
    /// The lines' live bytes at the end of each step.
    pub fn live(
        &self,
        context: &Context<'_, '_>,
        result: &Analysis,
        timeline: &TimelineSums,
    ) -> Vec<LiveLine> {
        let (_, last) = context.selection.span(context.session);
        let end = |i: usize| {
            timeline.steps.start.saturating_add(timeline.steps.step.saturating_mul(i as u64 + 1)).min(last)
        };
        let points = |l: &Line| l.steps.iter().enumerate().map(|(i, s)| (end(i), s.live_change)).collect();
        let lines = lines(context, result, timeline, self);
        lines.iter().map(|l| LiveLine { name: l.name.clone(), points: points(l) }).collect()
    }
}

impl Report for TimelineReport {
    type Options = Options;
    type Handles = Handle<Timeline>;
    type Rows = Page;

    const NAME: &'static str = "timeline";
    const KEY: &'static str = "timeline";
    const TITLE: &'static str = "timeline";
    const ABOUT: &'static str = "Live bytes and rates over time";
    const HAS_LINES: bool = false;

    fn new(options: Options, _: &Selection) -> Self {
        Self { by: options.by, steps: options.steps as usize, lines: options.lines }
    }

    fn usual() -> Option<Self> {
        Some(Self { by: Key::Kind, steps: 20, lines: 8 })
    }

    fn rests_on(&self) -> Input {
        Input::Lives
    }

    fn keys(&self) -> Keys {
        Keys::All
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(self.steps_of(context))
    }

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, handles: &Self::Handles) -> Page {
        let session = context.session;

        let timeline = result.get(*handles);
        let lines = lines(context, result, timeline, self);
        // Whether frees may have no event of what is in the lines.
        let is_doubtful = lines.iter().filter(|l| !l.is_pages).any(|l| {
            l.least
                .as_ref()
                .is_some_and(|least| l.steps.iter().zip(least).any(|(s, least)| *least < s.live_change))
        });
        let losses = &session.losses;
        let basis = Basis::of(session, result);
        let at = |i: usize| timeline.steps.start.saturating_add(timeline.steps.step.saturating_mul(i as u64));
        let lost: Vec<Option<f64>> =
            (0..timeline.steps.steps).map(|i| losses.missing_share(at(i), at(i + 1))).collect();
        Page::of(
            |out| {
                out.insert(
                    "timeline".into(),
                    json!({
                        "start": timeline.steps.start,
                        "step": timeline.steps.step,
                        "steps": timeline.steps.steps,
                        "lost_percent": lost.iter().map(|l| l.map(|share| 100.0 * share)).collect::<Vec<_>>(),
                        "lines": lines.iter().map(line_json).collect::<Vec<_>>(),
                    }),
                );
            },
            || {
                let mut columns = vec![("until", Align::Right)];
                columns.extend(losses.any().then_some(("time lost", Align::Right)));
                if basis.allocs(None) {
                    columns.extend(["allocs", "frees", "live slab bytes"].map(|name| (name, Align::Right)));
                    columns.extend(is_doubtful.then_some(("at least", Align::Right)));
                }
                columns.extend(lines.iter().map(|l| (l.name.as_str(), Align::Right)));
                let rows: Vec<Vec<String>> = (0..timeline.steps.steps)
                    .map(|i| {
                        let mut all = Step::default();
                        let slab = lines.iter().filter(|l| !l.is_pages);
                        slab.filter_map(|l| l.steps.get(i)).for_each(|s| all.add(s));
                        let mut row = vec![time(at(i + 1), session.unit())];
                        let share = lost.get(i).copied().flatten();
                        let share = share.map_or("?".to_owned(), |share| format!("{:.1}%", 100.0 * share));
                        row.extend(losses.any().then_some(share));
                        if basis.allocs(None) {
                            row.extend([count(all.allocs), count(all.frees), signed(all.live_change)]);
                            let slab = lines.iter().filter(|l| !l.is_pages);
                            let least = slab.filter_map(|l| l.least.as_ref()?.get(i)).sum();
                            row.extend(is_doubtful.then(|| signed(least)));
                        }
                        row.extend(
                            lines.iter().filter_map(|l| l.steps.get(i)).map(|s| signed(s.live_change)),
                        );
                        row
                    })
                    .collect();
                let note = if self.by == Key::Kind {
                    "pages hold the slab objects too: slab and pages are not to be added\n"
                } else {
                    ""
                };
                let doubt = if is_doubtful {
                    "at least: of what is of caches and call sites whose frees have events; frees of the rest may have none\n"
                } else {
                    ""
                };
                format!(
                    "{}\nlive bytes at the end of each step, of what was allocated in the trace\n{doubt}{note}{}",
                    table(&columns, &rows),
                    if losses.any() {
                        "time lost: share of the step, over all CPUs, in which events are missing: what is counted there is too low, and live bytes are too high or too low from there on (?: dropped events, which mark no place)\n"
                    } else {
                        ""
                    },
                )
            },
        )
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

fn lines(
    context: &Context<'_, '_>,
    result: &pass::Analysis,
    timeline: &TimelineSums,
    options: &TimelineReport,
) -> Vec<Line> {
    let names = SeriesNames::new(context.session, result);
    let is_told = !matches!(options.by, Key::Task | Key::Cpu) && !context.session.losses.any();
    let certain = is_told.then(|| LiveBounds::of(context, result).bounds.certain_sites());
    // Steps of all, and of those whose frees have events.
    let width = timeline.steps.width();
    let mut lines: BTreeMap<String, [Row; 2]> = BTreeMap::new();
    for (number, row) in timeline.slab.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
        let [all, least] = lines.entry(names.of(options.by, number as u32)).or_default();
        add(all, row, width);
        if certain.as_ref().is_some_and(|certain| certain.get(number) == Some(&true)) {
            add(least, row, width);
        }
    }
    // The largest lines first; all others in one.
    let mut lines: Vec<(u64, String, [Row; 2])> =
        lines.into_iter().map(|(name, rows)| (most_live(&rows[0]), name, rows)).collect();
    lines.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let others = lines.split_off(options.lines.min(lines.len()));
    if !others.is_empty() {
        let mut sums: [Row; 2] = Default::default();
        for (_, _, rows) in &others {
            sums.iter_mut().zip(rows).for_each(|(sum, row)| add(sum, row, width));
        }
        lines.push((0, format!("{} others", others.len()), sums));
    }
    let mut out: Vec<Line> = lines
        .into_iter()
        .map(|(_, name, [all, least])| {
            let least = live(dense(&least, width, 1)).iter().map(|s| s.live_change).collect();
            let steps = live(dense(&all, width, 1));
            Line { name, is_pages: false, steps, least: certain.is_some().then_some(least) }
        })
        .collect();
    if options.by == Key::Kind && timeline.pages.iter().any(|s| !s.is_empty()) {
        let mut sum = Row::default();
        timeline.pages.iter().for_each(|row| add(&mut sum, row, width));
        let steps = live(dense(&sum, width, result.page_size.0 as i64));
        out.push(Line { name: "pages".to_owned(), is_pages: true, steps, least: None });
    }
    out
}

/// Most bytes of a line that are live at once, or missing.
fn most_live(row: &Row) -> u64 {
    let mut live = 0i64;
    let changes = row.iter().map(|(_, step)| {
        live = live.saturating_add(step.live_change);
        live.unsigned_abs()
    });
    changes.max().unwrap_or(0)
}

/// Adds a row.
fn add(to: &mut Row, row: &Row, width: usize) {
    for (place, step) in row.iter() {
        if let Some(to) = to.at(place, width) {
            to.add(step);
        }
    }
}

/// All steps, bytes taken `scale` times.
fn dense(row: &Row, width: usize, scale: i64) -> Vec<Step> {
    let mut steps = vec![Step::default(); width];
    for (place, step) in row.iter() {
        if let Some(to) = steps.get_mut(place) {
            *to = Step {
                live_change: step.live_change.saturating_mul(scale),
                bytes_alloc: step.bytes_alloc.saturating_mul(scale as u64),
                bytes_freed: step.bytes_freed.saturating_mul(scale as u64),
                ..*step
            };
        }
    }
    steps
}

/// Adds changes up.
fn live(mut steps: Vec<Step>) -> Vec<Step> {
    let (mut live, mut waiting) = (0i64, 0i64);
    for step in &mut steps {
        live = step.live_change.saturating_add(live);
        waiting = step.waiting_change.saturating_add(waiting);
        (step.live_change, step.waiting_change) = (live, waiting);
    }
    steps
}

fn line_json(line: &Line) -> Value {
    let all = |of: fn(&Step) -> Value| line.steps.iter().map(of).collect::<Vec<_>>();
    json!({
        "name": line.name,
        "bytes_live": all(|s| s.live_change.into()),
        "bytes_live_least": line.least,
        "bytes_live_most": line.least.is_some().then(|| all(|s| s.live_change.saturating_add(s.waiting_change).into())),
        "alloc_events": all(|s| s.allocs.into()),
        "bytes_alloc": all(|s| s.bytes_alloc.into()),
        "frees_matched": all(|s| s.frees.into()),
        "bytes_freed": all(|s| s.bytes_freed.into()),
    })
}

fn signed(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", count(number.unsigned_abs()))
}

/// Names of what lines are made of.
struct SeriesNames<'r> {
    result: &'r pass::Analysis,
    env: kmt_format::print::PrintEnv<'r>,
    tasks: std::collections::HashMap<i32, &'r [u8]>,
    caches: Vec<Option<crate::stream::NameId>>,
}

impl<'r> SeriesNames<'r> {
    fn new(session: &'r Session<'_>, result: &'r pass::Analysis) -> Self {
        Self { result, env: session.print_env(), tasks: task_names(session), caches: usual_names(result) }
    }

    fn of(&self, by: Key, number: u32) -> String {
        let site = self.result.interner.sites.get(number);
        let origin = self.result.interner.origins.get(number).copied().unwrap_or_default();
        match (by, site) {
            (Key::Task, _) => {
                let comm = self.tasks.get(&origin.pid).map_or("<...>".to_owned(), |c| escaped(c));
                format!("{comm}-{}", origin.pid)
            }
            (Key::Cpu, _) => format!("CPU {}", origin.cpu),
            (_, None) => "?".to_owned(),
            (Key::Kind, Some(site)) => site.api.name().to_owned(),
            (Key::CallSite, Some(site)) => escaped(&self.env.symbol_with_offset(site.call_site)),
            (Key::Node, Some(site)) if site.node < 0 => "any node".to_owned(),
            (Key::Node, Some(site)) => format!("node {}", site.node),
            (Key::Cache, Some(site)) if site.api == Api::Kmalloc => {
                self.result.size_classes.name(site.bytes_alloc)
            }
            (Key::Cache, Some(site)) => {
                let name = site.cache.or(self.caches.get(number as usize).copied().flatten());
                name.map_or(format!("? ({} bytes)", site.bytes_req), |n| {
                    escaped(self.result.interner.name(n))
                })
            }
        }
    }
}
