//! The table of tasks that waited or reclaimed.

use super::rows::LatencyTables;
use super::tasks::{OrderCount, ReclaimTask};
use crate::render::screen::{Cell, Column, Table};
use crate::render::words::count;
use crate::reports::common::View;

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
pub fn table(latency: &LatencyTables, view: &View) -> Table {
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
