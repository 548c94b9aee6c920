//! Screens of waits for memory.
//!
//! Tables: kinds of stalls, allocations that waited, tasks that waited or reclaimed. With `--long` each long stall is shown with
//! the stalls within it and the events of its task.

use super::intervals::{IntervalLine, LongInterval, LongIntervals};
use super::kinds::StallKind;
use super::rows::{LatencyRows, LatencyTables};
use super::tasks::{OrderCount, ReclaimTask};
use super::{WaitSums, rounded};
use crate::render::screen::{Cell, Column, CommandLine, Ink, Screen, ScreenPart, Table};
use crate::render::words::{count, counted};
use crate::reports::common::View;

/// The answer and all tables, or the long stalls where a threshold was given.
pub fn screen(LatencyRows { latency, shown }: &LatencyRows, view: &View) -> Screen {
    if let Some(intervals) = &shown.long_intervals {
        return long_screen(latency, intervals, view);
    }
    let mut screen = Screen::new(
        WaitSums::of(latency).map_or_else(|| no_waits(latency), |waits| waits.sentence(view.unit)),
    );
    match shown.failed_allocations {
        0 => {}
        failed => {
            screen.answer(format!("{} failed after the wait.", counted(failed, "allocation", "allocations")))
        }
    }
    screen.table(kinds(latency, view));
    screen.table(delayed(latency, view));
    screen.table(tasks(latency, view));
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
    let waits = latency.kinds.iter().filter(|kind| kind.delays());
    let long = waits.filter_map(|kind| kind.lengths.p90).max().filter(|long| *long >= 1_000)?;
    let step = 10u64.pow(long.ilog10());
    let round = rounded(long / step * step, view.unit);
    (!round.contains("ticks")).then(|| round.replace(' ', ""))
}

/// Allocations that waited, the longest waits first.
fn delayed(latency: &LatencyTables, view: &View) -> Table {
    let result = |failed: bool| match failed {
        true => Cell::Verdict("failed".to_owned(), Ink::Bad),
        false => Cell::Empty,
    };
    let name = |key| latency.kinds.iter().find(|kind| kind.kind == key).map_or("", |kind| &kind.name);
    Table::of_rows("page allocations that waited", &latency.delayed_allocations)
        .of("kind", "kinds", latency.delayed_allocations_total)
        .column(Column::number("order"), |row| Cell::Count(row.order.into()))
        .column(Column::name("gfp flags"), |row| Cell::text(&row.gfp_flags_text))
        .column(Column::text("migrate type").leaves(3), |row| Cell::text(&row.migratetype))
        .column(Column::name("slab call site").leaves(2), |row| {
            row.symbol.as_ref().map_or(Cell::Empty, Cell::symbol)
        })
        .column(Column::whole("result").leaves(1), |row| result(row.failed))
        .column(Column::text("stall").leaves(4), |row| Cell::text(name(row.kind)))
        .column(Column::number("waits"), |row| Cell::Count(row.count))
        .column(Column::number("total"), |row| view.duration_cell(Some(row.total)))
        .column(Column::number("max"), |row| view.duration_cell(Some(row.max)))
        .explain("slab call site", "slab call site: the slab allocation that needed the page.")
        .into()
}

/// Stalls over the threshold.
fn long_screen(latency: &LatencyTables, intervals: &LongIntervals, view: &View) -> Screen {
    let threshold = rounded(latency.threshold.unwrap_or(0), view.unit);
    let all = (latency.intervals.len() as u64).saturating_add(latency.intervals_left_out);
    let Some(longest) = intervals.shown.first() else { return none(latency, &threshold, view) };
    let outer = match intervals.total as u64 {
        outer if outer == all => String::new(),
        outer => format!(" ({} not nested in another)", count(outer)),
    };
    let mut screen = Screen::new(format!("{} over {threshold}{outer}.", counted(all, "stall", "stalls")));
    screen.answer(format!("The longest: {}.", title(longest, view)));
    for interval in &intervals.shown {
        let lines = interval.lines.iter().map(|line| self::line(line, view)).collect();
        screen.parts.push(ScreenPart::Lines { heading: title(interval, view), lines });
    }
    let more = intervals.total.saturating_sub(intervals.shown.len()) as u64;
    if more > 0 {
        let line = format!("not shown: {} (-l 0)", counted(more, "stall", "stalls"));
        screen.lines("", vec![line]);
    }
    screen.note("Events are those of the stalled task; their times are from the begin of the outer stall.");
    screen.note(format!(
        "Events of reclaim and compaction are shown if their own function or stall is over {threshold}."
    ));
    if latency.intervals_left_out > 0 {
        let left = counted(latency.intervals_left_out, "shorter stall is", "shorter stalls are");
        screen.note(format!("{left} over the limit of the list and not shown."));
    }
    let ends = [longest.begin, longest.begin.saturating_add(longest.length)];
    if let [Some(begin), Some(end)] = ends.map(|time| view.time_option(time)) {
        screen.next(
            CommandLine::from("dump").option("--time", format!("{begin}..{end}")),
            "all events during the longest stall",
        );
    }
    screen
}

/// The screen where no stall is over the threshold.
fn none(latency: &LatencyTables, threshold: &str, view: &View) -> Screen {
    let longest = latency.kinds.iter().filter_map(|kind| kind.lengths.max).max();
    let longest = longest
        .map_or(String::new(), |longest| format!("; the longest took {}", rounded(longest, view.unit)));
    let mut screen = Screen::new(format!("No stall over {threshold}{longest}."));
    screen.next("latency", "all stalls by kind and task");
    screen
}

/// `direct reclaim of sh-766, 143.6 ms at +4.567`.
fn title(interval: &LongInterval, view: &View) -> String {
    let length = view.duration(interval.length);
    format!("{} of {}, {length} at {}", interval.name, interval.task, view.time(interval.begin))
}

/// A line of a stall, indented by the stalls around it.
fn line(line: &IntervalLine, view: &View) -> String {
    let indent = " ".repeat(2 * (line.depth + 1));
    match (line.since.map(|since| view.duration(since)), line.length) {
        (None, _) => format!("{indent}{}", line.text),
        (Some(since), None) => format!("{indent}{since}: {}", line.text),
        (Some(since), Some(length)) => format!("{indent}{}, {} at {since}", line.text, view.duration(length)),
    }
}

/// A column and its cell of a task.
type TaskColumn = (Column, fn(&ReclaimTask, &View) -> Cell);

const COLUMNS: [TaskColumn; 22] = [
    (Column::name("task"), |task, _| Cell::text(&task.task)),
    (Column::number("waited"), |task, view| view.duration_cell(task.waited_time)),
    (Column::number("reclaims"), |task, _| Cell::count(task.direct_reclaims)),
    (Column::text("by order").leaves(6), |task, _| orders(&task.direct_reclaims_by_order)),
    (Column::number("cgroup reclaims").leaves(3), |task, _| Cell::count(task.memcg_reclaims)),
    (Column::name("cgroup").leaves(5), |task, _| match &task.cgroup {
        Some(cgroup) => Cell::text(cgroup),
        None => Cell::Unknown,
    }),
    (Column::number("scanned").leaves(4), |task, _| Cell::count(task.pages_scanned)),
    (Column::number("file pages").leaves(1), |task, _| Cell::count(task.pages_reclaimed_file)),
    (Column::number("anon pages").leaves(2), |task, _| Cell::count(task.pages_reclaimed_anon)),
    (Column::number("sync writes").leaves(7), |task, _| Cell::count(task.pages_written_sync)),
    (Column::number("async writes").leaves(8), |task, _| Cell::count(task.pages_written_async)),
    (Column::number("compact scan").leaves(11), |task, _| Cell::count(task.compaction_scanned)),
    (Column::number("isolated").leaves(10), |task, _| Cell::count(task.compaction_isolated)),
    (Column::number("free scan").leaves(11), |task, _| Cell::count(task.compaction_free_scanned)),
    (Column::number("free isolated").leaves(10), |task, _| Cell::count(task.compaction_free_isolated)),
    (Column::number("compacted").leaves(3), |task, _| Cell::count(task.compaction_migrated)),
    (Column::number("not compacted").leaves(6), |task, _| Cell::count(task.compaction_failed)),
    (Column::number("migrated").leaves(4), |task, _| Cell::count(task.pages_migrated)),
    (Column::number("not migrated").leaves(7), |task, _| Cell::count(task.pages_migration_failed)),
    (Column::number("woke kswapd").leaves(5), |task, _| Cell::count(task.kswapd_woken)),
    (Column::number("kswapd wakes").leaves(9), |task, _| of_kswapd(task.kswapd_wakes)),
    (Column::number("rewakes").leaves(9), |task, _| of_kswapd(task.kswapd_rewakes)),
];

/// Tasks, the longest waits first. A column of events that were not recorded is left out: a note names the events.
fn tasks(latency: &LatencyTables, view: &View) -> Table {
    let is_known = |(_, cell): &&TaskColumn| latency.tasks.iter().any(|task| !cell(task, view).is_unknown());
    let columns: Vec<&TaskColumn> = COLUMNS.iter().filter(is_known).collect();
    let headings = columns.iter().map(|(column, _)| column.clone());
    let mut table = Table::new("tasks", headings).of("task", "tasks", latency.tasks_total);
    for task in &latency.tasks {
        table.row(columns.iter().map(|(_, cell)| cell(task, view)));
    }
    table.explain("file pages", "file pages, anon pages: pages that the task reclaimed.");
    table.explain("compacted", "compacted: pages that compaction migrated.");
    table.explain("migrated", "migrated: pages that the task migrated for any reason, compaction included.");
    table.explain("rewakes", "rewakes: kswapd was woken while awake.");
    table
}

/// A number of kswapd; empty for other tasks.
fn of_kswapd(number: Option<u64>) -> Cell {
    if number == Some(0) { Cell::Empty } else { Cell::count(number) }
}

/// `0: 10, 9: 2`; empty where all are of order 0.
fn orders(counts: &[OrderCount]) -> Cell {
    let one = |c: &OrderCount| {
        let order = c.order.map_or("?".to_owned(), |order| order.to_string());
        format!("{order}: {}", count(c.count))
    };
    match counts {
        [] | [OrderCount { order: Some(0), .. }] => Cell::Empty,
        _ => Cell::text(counts.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}
