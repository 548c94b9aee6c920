//! Lines of the timeline: sums of sites or origins by name, the largest first, and their table.
//!
//! A line has live bytes at each step; on a screen it is a sparkline.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{TimelineKey, TimelineRow, name};
use crate::collect::steps::Row;
use crate::collect::timeline::{Step, TimelineSums};
use crate::pass::Analysis;
use crate::pass::caches::CacheNames;
use crate::render::screen::{Cell, Column, Table};
use crate::reports::common::ReportContext;
use crate::sort_rows::SortRows;

/// One line; each list has one number for each step.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LineRow {
    /// Name.
    pub name: String,
    /// Bytes live at the end of the step, of those allocated in the trace.
    pub bytes_live: Vec<i64>,
    /// Bytes live at least; `null`: by task and CPU, for pages, and where events were lost.
    pub bytes_live_least: Option<Vec<i64>>,
    /// Bytes live at most, with those that wait for a grace period; `null` as for the least.
    pub bytes_live_most: Option<Vec<i64>>,
    /// Allocations.
    pub alloc_events: Vec<u64>,
    /// Bytes allocated.
    pub bytes_alloc: Vec<u64>,
    /// Frees of objects allocated in the trace.
    pub frees_matched: Vec<u64>,
    /// Bytes freed of objects allocated in the trace.
    pub bytes_freed: Vec<u64>,
}

impl LineRow {
    /// The line of steps, whose changes are levels; `least`: certain live bytes.
    fn of(name: String, steps: &[Step], least: Option<Vec<i64>>) -> Self {
        let counts = |of: fn(&Step) -> u64| steps.iter().map(of).collect::<Vec<_>>();
        let most = steps.iter().map(|step| step.live_change.saturating_add(step.waiting_change));
        Self {
            bytes_live: steps.iter().map(|step| step.live_change).collect(),
            bytes_live_most: least.is_some().then(|| most.collect()),
            bytes_live_least: least,
            alloc_events: counts(|step| step.allocs),
            bytes_alloc: counts(|step| step.bytes_alloc),
            frees_matched: counts(|step| step.frees),
            bytes_freed: counts(|step| step.bytes_freed),
            name,
        }
    }
}

/// Steps of all sites of a line, and of those whose frees have events.
#[derive(Default)]
struct LineSums {
    all: Row<Step>,
    certain: Row<Step>,
}

impl LineSums {
    fn add(&mut self, other: &Self, width: usize) {
        self.all.add_all(&other.all, width);
        self.certain.add_all(&other.certain, width);
    }
}

/// Lines by name, at most `lines_max`, then the sum of the others; and the line of pages, which include those of slab objects.
pub fn compute(
    context: &ReportContext<'_, '_>,
    timeline: &TimelineSums,
    by: TimelineKey,
    lines_max: usize,
) -> (Vec<LineRow>, Option<LineRow>) {
    let analysis = context.analysis;
    let has_certain = !by.is_of_origins() && !context.session.losses.any();
    let certain = has_certain.then(|| context.live_bounds().bounds.certain_sites());
    let width = timeline.steps.width();
    let caches = CacheNames::of(analysis);
    let mut lines: BTreeMap<String, LineSums> = BTreeMap::new();
    for (number, row) in timeline.slab.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
        let sums = lines.entry(name(context, &caches, by, number as u32)).or_default();
        sums.all.add_all(row, width);
        if certain.as_ref().is_some_and(|certain| certain.get(number) == Some(&true)) {
            sums.certain.add_all(row, width);
        }
    }
    let line = |(name, sums): (String, LineSums)| {
        let least = levels(&sums.certain, width, 1).iter().map(|step| step.live_change).collect();
        let least = has_certain.then_some(least);
        LineRow::of(name, &levels(&sums.all, width, 1), least)
    };
    let lines = largest(lines, lines_max, width).into_iter().map(line).collect();
    (lines, if by == TimelineKey::Kind { pages(analysis, timeline) } else { None })
}

/// The largest lines, the largest first; the sum of the others after them.
fn largest(lines: BTreeMap<String, LineSums>, lines_max: usize, width: usize) -> Vec<(String, LineSums)> {
    let mut lines: Vec<(u64, (String, LineSums))> =
        lines.into_iter().map(|line| (most_live(&line.1.all), line)).collect();
    lines.sort_rows_by(|(most_a, (a, _)), (most_b, (b, _))| most_b.cmp(most_a).then_with(|| a.cmp(b)));
    let mut lines: Vec<(String, LineSums)> = lines.into_iter().map(|(_, line)| line).collect();
    let others = lines.split_off(lines_max.min(lines.len()));
    if !others.is_empty() {
        let mut sum = LineSums::default();
        others.iter().for_each(|(_, sums)| sum.add(sums, width));
        lines.push((format!("{} others", others.len()), sum));
    }
    lines
}

/// The line of pages, if there are any.
fn pages(analysis: &Analysis, timeline: &TimelineSums) -> Option<LineRow> {
    if timeline.pages.iter().all(Row::is_empty) {
        return None;
    }
    let width = timeline.steps.width();
    let mut sum = Row::default();
    timeline.pages.iter().for_each(|row| sum.add_all(row, width));
    let steps = levels(&sum, width, analysis.page_size.0 as i64);
    Some(LineRow::of("pages".to_owned(), &steps, None))
}

/// Largest live bytes of a line at the end of a step, by absolute value.
fn most_live(row: &Row<Step>) -> u64 {
    let mut live = 0i64;
    let levels = row.iter().map(|(_, step)| {
        live = live.saturating_add(step.live_change);
        live.unsigned_abs()
    });
    levels.max().unwrap_or(0)
}

/// All steps with bytes multiplied by `scale`, changes summed to levels.
fn levels(row: &Row<Step>, width: usize, scale: i64) -> Vec<Step> {
    let mut steps = vec![Step::default(); width];
    for (number, step) in row.iter() {
        if let Some(to) = steps.get_mut(number) {
            *to = Step {
                live_change: step.live_change.saturating_mul(scale),
                bytes_alloc: step.bytes_alloc.saturating_mul(scale as u64),
                bytes_freed: step.bytes_freed.saturating_mul(scale as u64),
                ..*step
            };
        }
    }
    let (mut live, mut waiting) = (0i64, 0i64);
    for step in &mut steps {
        live = step.live_change.saturating_add(live);
        waiting = step.waiting_change.saturating_add(waiting);
        (step.live_change, step.waiting_change) = (live, waiting);
    }
    steps
}

/// Characters of a sparkline at most: it is never shortened.
const COURSE_MAX: usize = 20;

/// Lines, the largest first.
pub fn lines_table(timeline: &TimelineRow, by: TimelineKey) -> Table {
    let (one, several) = noun(by);
    let bytes = |bytes: Option<&i64>| bytes.map_or(Cell::Empty, |bytes| level(*bytes));
    let slab = timeline.slab().iter().map(|line| (line, true));
    let rows = slab.chain(timeline.pages().map(|line| (line, false)));
    let count =
        |has_objects: bool, all: &[u64]| if has_objects { Cell::Count(sum(all)) } else { Cell::Empty };
    Table::of_rows(format!("live bytes by {one}"), rows)
        .of(one, several, timeline.lines.len())
        .column(Column::name(one), |(line, _)| Cell::symbol(&line.name))
        .column(Column::whole("over time").leaves(1), |(line, _)| Cell::Sparkline(sparkline_values(line)))
        .column(Column::number("highest"), |(line, _)| bytes(line.bytes_live.iter().max()))
        .column(Column::number("at the end"), |(line, _)| bytes(line.bytes_live.last()))
        .column(Column::number("allocs").leaves(3), |(line, has_objects)| {
            count(*has_objects, &line.alloc_events)
        })
        .column(Column::number("allocated").leaves(2), |(line, _)| Cell::Bytes(sum(&line.bytes_alloc)))
        .column(Column::number("frees").leaves(5), |(line, has_objects)| {
            count(*has_objects, &line.frees_matched)
        })
        .column(Column::number("freed").leaves(4), |(line, _)| Cell::Bytes(sum(&line.bytes_freed)))
        .into()
}

fn sum(all: &[u64]) -> u64 {
    all.iter().fold(0, |sum, number| sum.saturating_add(*number))
}

/// Live bytes at equal steps, as many as fit.
fn sparkline_values(line: &LineRow) -> Vec<u64> {
    let each = line.bytes_live.len().div_ceil(COURSE_MAX).max(1);
    let highest = |steps: &[i64]| steps.iter().max().map_or(0, |bytes| (*bytes).max(0) as u64);
    line.bytes_live.chunks(each).map(highest).collect()
}

/// Noun of a line, and of several.
fn noun(by: TimelineKey) -> (&'static str, &'static str) {
    match by {
        TimelineKey::Kind => ("kind", "kinds"),
        TimelineKey::CallSite => ("call site", "call sites"),
        TimelineKey::Cache => ("cache", "caches"),
        TimelineKey::Task => ("task", "tasks"),
        TimelineKey::Cpu => ("CPU", "CPUs"),
        TimelineKey::Node => ("node", "nodes"),
        TimelineKey::Account => ("account", "accounts"),
    }
}

/// A level of live bytes; one below zero is of frees whose allocations are not selected.
pub fn level(bytes: i64) -> Cell {
    u64::try_from(bytes).map_or(Cell::BytesChange(bytes), Cell::Bytes)
}
