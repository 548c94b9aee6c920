//! The screen of waits for memory.

use super::kinds::StallKind;
use super::lead::{WaitSums, rounded};
use super::rows::{LatencyRows, LatencyTables};
use super::{delayed_text, long_text, tasks_text};
use crate::render::screen::{Cell, Column, CommandLine, Screen, Table};
use crate::render::words::{count, counted};
use crate::reports::common::View;

/// The answer and all tables, or the long stalls where a threshold was given.
pub fn screen(LatencyRows { latency }: &LatencyRows, view: &View) -> Screen {
    if let Some(intervals) = &latency.long_intervals {
        return long_text::screen(latency, intervals, view);
    }
    let mut screen = Screen::new(
        WaitSums::of(latency).map_or_else(|| no_waits(latency), |waits| waits.sentence(view.unit)),
    );
    match latency.failed_allocations {
        0 => {}
        failed => {
            screen.answer(format!("{} failed after the wait.", counted(failed, "allocation", "allocations")))
        }
    }
    screen.table(kinds(latency, view));
    screen.table(delayed_text::table(latency, view));
    screen.table(tasks_text::table(latency, view));
    notes(&mut screen, latency);
    if let Some(threshold) = threshold(latency, view) {
        screen.next(
            CommandLine::from("latency").option("--threshold", threshold),
            "the longest stalls with their events",
        );
    }
    screen.next("fragmentation", "free memory by order");
    screen
}

/// The answer where no task waited.
fn no_waits(latency: &LatencyTables) -> String {
    const WAITS: [&str; 3] = ["direct reclaim", "reclaim for memory cgroups", "compaction"];
    let lacks = |wait: &&str| latency.not_recorded.iter().any(|name| name.starts_with(wait));
    if !WAITS.iter().all(lacks) {
        return "No task waited for memory: the selected events have no direct reclaim or compaction."
            .to_owned();
    }
    "Waits for memory are unknown: events of direct reclaim and compaction were not recorded.".to_owned()
}

/// Stalls by kind.
fn kinds(latency: &LatencyTables, view: &View) -> Table {
    let table = Table::of_rows("", latency.kinds.iter().take(view.limit))
        .of("kind", "kinds", latency.kinds.len())
        .column(Column::name("stall"), |kind| Cell::text(name(kind)))
        .column(Column::number("count"), |kind| Cell::Count(kind.lengths.count))
        .column(Column::number("total"), |kind| view.duration_cell(Some(kind.lengths.total)))
        .column(Column::number("p50").leaves(2), |kind| view.duration_cell(kind.lengths.p50))
        .column(Column::number("p90").leaves(3), |kind| view.duration_cell(kind.lengths.p90))
        .column(Column::number("p99").leaves(1), |kind| view.duration_cell(kind.lengths.p99))
        .column(Column::number("max"), |kind| view.duration_cell(kind.lengths.max));
    let nested = latency.kinds.iter().filter(|kind| matches!(kind.kind, "shrinker" | "function"));
    let note = "Rows overlap: reclaim includes shrinkers, functions include the functions that they call.";
    if nested.count() > 0 { table.explain("total", note).into() } else { table.into() }
}

/// Name of a kind, shorter where that is clear.
fn name(kind: &StallKind) -> String {
    match (kind.kind, &kind.function) {
        ("compaction", _) => "background compaction".to_owned(),
        ("function", Some(Some(function))) => format!("{function}()"),
        _ => kind.name.clone(),
    }
}

/// Sentences on events that are missing.
fn notes(screen: &mut Screen, latency: &LatencyTables) {
    // Function graphs are an addition; no number of the tables needs them.
    let missing = latency.not_recorded.iter().filter(|name| !name.starts_with("functions"));
    let missing: Vec<&str> = missing.filter_map(|name| name.split(" (").next()).collect();
    if !missing.is_empty() {
        screen.note(format!(
            "Not recorded: {}. kmt-capture record -p reclaim records them.",
            missing.join(", ")
        ));
    }
    let unmatched = [
        (latency.ends_without_begin, "end without a begin", "ends without a begin"),
        (latency.begins_without_end, "begin without an end", "begins without an end"),
    ];
    let unmatched: Vec<String> = unmatched
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, one, several)| counted(number, one, several))
        .collect();
    if !unmatched.is_empty() {
        screen.note(format!(
            "Stalls that are only partly in the trace are not counted: {}.",
            unmatched.join(", ")
        ));
    }
    if latency.stalls_without_allocation > 0 {
        screen.note(format!(
            "{} of the waits had no allocation of the task after it.",
            count(latency.stalls_without_allocation)
        ));
    }
}

/// A threshold that shows the longest tenth of the waits: one digit, as the option accepts it.
fn threshold(latency: &LatencyTables, view: &View) -> Option<String> {
    let waits = latency.kinds.iter().filter(|kind| kind.delays);
    let long = waits.filter_map(|kind| kind.lengths.p90).max().filter(|long| *long >= 1_000)?;
    let step = 10u64.pow(long.ilog10());
    let round = rounded(long / step * step, view.unit);
    (!round.contains("ticks")).then(|| round.replace(' ', ""))
}
