//! The screen of the timeline: steps, then lines.

use super::TimelineKey;
use super::lines_text::{self, level};
use super::rows::{SlabSteps, TimelineRow, TimelineRows};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::reports::common::{ReportContext, View};

/// The highest step and the last one, the steps, and the lines.
pub fn screen(
    context: &ReportContext<'_, '_>,
    TimelineRows { timeline }: &TimelineRows,
    by: TimelineKey,
    view: &View,
) -> Screen {
    let all = context.basis().allocs(None).then(|| SlabSteps::of(timeline));
    let slab = all.as_ref().map(|slab| sentence("slab", &slab.bytes_live, timeline, view));
    let pages = timeline.pages().map(|pages| sentence("page", pages, timeline, view));
    let mut sentences = slab.into_iter().chain(pages);
    let mut screen = Screen::new(sentences.next().unwrap_or_else(|| "Nothing was allocated.".to_owned()));
    sentences.for_each(|sentence| screen.answer(sentence));
    screen.table(steps(timeline, all.as_ref(), view));
    screen.table(lines_text::table(timeline, by));
    if view.is_lossy && !has_lost(timeline) {
        screen.note("Dropped events have no known time: any step may lack events.");
    }
    screen.note("Live figures are at the end of each step, of memory allocated in the trace.");
    screen.next("peak", "exact peak and its call sites");
    if by == TimelineKey::Kind {
        screen.next("timeline --by call-site", "call sites behind it");
    }
    screen
}

/// The highest of the live bytes, and the last.
fn sentence(noun: &str, live: &[i64], timeline: &TimelineRow, view: &View) -> String {
    let highest = live.iter().enumerate().rev().max_by_key(|(_, bytes)| **bytes);
    let (Some((step, &most)), Some(&last)) = (highest, live.last()) else {
        return format!("No {noun} memory was recorded.");
    };
    let bytes = |bytes: i64| level(bytes).shown(&view.look);
    match (most, step + 1 == live.len()) {
        (..=0, _) => format!("No {noun} memory that the trace allocated was live at the end of a step."),
        (_, true) => format!("Live {noun} memory was highest at the end ({}).", bytes(most)),
        (_, false) => {
            let at = view.time(timeline.end_of(step));
            let (most, last) = (bytes(most), bytes(last));
            format!("Live {noun} memory was highest at {at} ({most}) and {last} at the end.")
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
        table = table.column(Column::number("page bytes").leaves(1), |&step| bytes(pages, step));
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
