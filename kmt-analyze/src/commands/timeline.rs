//! `timeline`: live bytes and rates over time, by any key.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::basis::{Basis, Input};
use super::live_bounds::LiveBounds;
use super::parts::{self, Page, Report, Subject};
use super::selection::{Selection, task_names};
use super::session::Session;
use super::stated::Keys;
use crate::analysis::caches::usual_names;
use crate::analysis::pass;
use crate::analysis::sinks::timeline::Step;
use crate::analysis::sinks::{Sinks, Timeline};
use crate::failure::{Outcome, Result};
use crate::render::table::{Align, table};
use crate::render::text::{count, escaped, time};
use crate::stream::Api;

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

/// What to print.
#[derive(Debug)]
pub struct Options {
    /// What is counted.
    pub selection: Selection,
    /// What the lines are.
    pub by: Key,
    /// Number of steps.
    pub steps: usize,
    /// Lines apart from the rest.
    pub limit: usize,
    /// As JSON.
    pub json: bool,
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

/// Prints the timeline.
pub fn run(session: &Session<'_>, options: &Options) -> Result<Outcome> {
    let report = Course { by: options.by, steps: options.steps, lines: options.limit };
    parts::run(session, &options.selection, None, options.json, &[&report])
}

/// The report.
#[derive(Debug)]
pub struct Course {
    /// What the lines are.
    pub by: Key,
    /// Number of steps.
    pub steps: usize,
    /// Lines apart from the rest.
    pub lines: usize,
}

impl Course {
    fn empty(&self, subject: &Subject<'_, '_>) -> Timeline {
        let (first, last) = subject.selection.span(subject.session);
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

impl Course {
    /// The lines' live bytes at the end of each step.
    pub fn live(&self, subject: &Subject<'_, '_>, result: &pass::Result) -> Vec<LiveLine> {
        let empty = self.empty(subject);
        let timeline = result.balance.sinks.timeline.as_ref().unwrap_or(&empty);
        let (_, last) = subject.selection.span(subject.session);
        let end =
            |i: usize| timeline.start.saturating_add(timeline.step.saturating_mul(i as u64 + 1)).min(last);
        let points = |l: &Line| l.steps.iter().enumerate().map(|(i, s)| (end(i), s.live_change)).collect();
        let lines = lines(subject, result, timeline, self);
        lines.iter().map(|l| LiveLine { name: l.name.clone(), points: points(l) }).collect()
    }
}

impl Report for Course {
    fn title(&self) -> &'static str {
        "timeline"
    }

    fn rests_on(&self) -> Input {
        Input::Lives
    }

    fn keys(&self) -> Keys {
        Keys::All
    }

    fn want(&self, subject: &Subject<'_, '_>, sinks: &mut Sinks) {
        sinks.timeline = Some(self.empty(subject));
    }

    fn page(&self, subject: &Subject<'_, '_>, result: &mut pass::Result) -> Page {
        let (session, result) = (subject.session, &*result);

        let empty = self.empty(subject);
        let timeline = result.balance.sinks.timeline.as_ref().unwrap_or(&empty);
        let lines = lines(subject, result, timeline, self);
        // Whether frees may have no event of what is in the lines.
        let is_doubtful = lines.iter().filter(|l| !l.is_pages).any(|l| {
            l.least
                .as_ref()
                .is_some_and(|least| l.steps.iter().zip(least).any(|(s, least)| *least < s.live_change))
        });
        let losses = &session.losses;
        let basis = Basis::of(session, result);
        let at = |i: usize| timeline.start.saturating_add(timeline.step.saturating_mul(i as u64));
        let lost: Vec<Option<f64>> =
            (0..timeline.steps).map(|i| losses.missing_share(at(i), at(i + 1))).collect();
        Page::of(
            |out| {
                out.insert(
                    "timeline".into(),
                    json!({
                        "start": timeline.start,
                        "step": timeline.step,
                        "steps": timeline.steps,
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
                let rows: Vec<Vec<String>> = (0..timeline.steps)
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
}

fn lines(
    subject: &Subject<'_, '_>,
    result: &pass::Result,
    timeline: &Timeline,
    options: &Course,
) -> Vec<Line> {
    let names = SeriesNames::new(subject.session, result);
    let is_told = !matches!(options.by, Key::Task | Key::Cpu) && !subject.session.losses.any();
    let certain = is_told.then(|| LiveBounds::of(subject, result).bounds.certain_sites());
    // Steps of all, and of those whose frees have events.
    let mut lines: BTreeMap<String, [Vec<Step>; 2]> = BTreeMap::new();
    for (number, steps) in timeline.slab.iter().enumerate().filter(|(_, s)| !s.is_empty()) {
        let [all, least] = lines.entry(names.of(options.by, number as u32)).or_default();
        add(all, steps, 1);
        if certain.as_ref().is_some_and(|certain| certain.get(number) == Some(&true)) {
            add(least, steps, 1);
        }
    }
    let mut out: Vec<Line> = lines
        .into_iter()
        .map(|(name, [steps, mut least])| {
            least.resize(steps.len().max(timeline.steps), Step::default());
            let least = live(least).iter().map(|s| s.live_change).collect();
            Line { name, is_pages: false, steps: live(steps), least: certain.is_some().then_some(least) }
        })
        .collect();
    // The largest lines first; all others in one.
    let weight = |l: &Line| l.steps.iter().map(|s| s.live_change.unsigned_abs()).max().unwrap_or(0);
    out.sort_by(|a, b| weight(b).cmp(&weight(a)).then_with(|| a.name.cmp(&b.name)));
    if out.len() > options.lines {
        let others = out.split_off(options.lines);
        out.push(together(&others));
    }
    if options.by == Key::Kind && timeline.pages.iter().any(|s| !s.is_empty()) {
        let mut steps = Vec::new();
        let size = result.page_size.0 as i64;
        timeline.pages.iter().for_each(|s| add(&mut steps, s, size));
        out.push(Line { name: "pages".to_owned(), is_pages: true, steps: live(steps), least: None });
    }
    out
}

/// One line for several.
fn together(others: &[Line]) -> Line {
    let (mut steps, mut least) = (Vec::new(), Vec::new());
    for line in others {
        add(&mut steps, &line.steps, 1);
        let of_line = line.least.iter().flatten();
        let missing = line.steps.len().saturating_sub(least.len());
        least.extend(std::iter::repeat_n(0, missing));
        least.iter_mut().zip(of_line).for_each(|(sum, new)| *sum += new);
    }
    let is_known = others.iter().all(|line| line.least.is_some());
    Line {
        name: format!("{} others", others.len()),
        is_pages: false,
        steps,
        least: is_known.then_some(least),
    }
}

/// Adds steps, bytes taken `scale` times.
fn add(to: &mut Vec<Step>, steps: &[Step], scale: i64) {
    if to.len() < steps.len() {
        to.resize(steps.len(), Step::default());
    }
    for (to, step) in to.iter_mut().zip(steps) {
        to.add(&Step {
            live_change: step.live_change * scale,
            bytes_alloc: step.bytes_alloc * scale as u64,
            bytes_freed: step.bytes_freed * scale as u64,
            ..*step
        });
    }
}

/// Adds changes up.
fn live(mut steps: Vec<Step>) -> Vec<Step> {
    let (mut live, mut waiting) = (0, 0);
    for step in &mut steps {
        live += step.live_change;
        waiting += step.waiting_change;
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
        "bytes_live_most": line.least.is_some().then(|| all(|s| (s.live_change + s.waiting_change).into())),
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
    result: &'r pass::Result,
    env: kmt_format::print::PrintEnv<'r>,
    tasks: std::collections::HashMap<i32, &'r [u8]>,
    caches: Vec<Option<crate::stream::NameId>>,
}

impl<'r> SeriesNames<'r> {
    fn new(session: &'r Session<'_>, result: &'r pass::Result) -> Self {
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
