//! Tables of stalls, of allocations that waited, of tasks.

use super::intervals::LongIntervals;
use super::rows::{LatencyRows, LatencyTables};
use super::tasks::{OrderCount, ReclaimTask};
use crate::render::table::{Align, table};
use crate::render::text::{count, duration, time};
use crate::reports::common::View;
use crate::reports::common::cells::known;
use crate::reports::common::known::NOT_RECORDED;
use crate::reports::common::shown::more;
use Align::{Left, Right};

/// All tables, or the long intervals where a threshold was given.
pub fn of(rows: &LatencyRows, view: &View) -> String {
    let rows = &rows.latency;
    if let Some(intervals) = &rows.long_intervals {
        return long_intervals(rows, intervals, view);
    }
    let mut out = kinds(rows, view) + &delayed(rows, view) + &tasks(rows, view);
    for missing in &rows.not_recorded {
        out.push_str(&format!("not recorded: {missing}\n"));
    }
    if rows.ends_without_begin + rows.begins_without_end > 0 {
        out.push_str(&format!(
            "{} ends had no beginning in the trace, {} beginnings no end: they are in no sum\n",
            count(rows.ends_without_begin),
            count(rows.begins_without_end)
        ));
    }
    out.push_str("Times are of the clock, sleep included. Reclaim holds shrinkers, and functions hold functions: rows are not to be added.\n");
    out
}

/// Stalls by kind.
fn kinds(rows: &LatencyTables, view: &View) -> String {
    if rows.kinds.is_empty() || view.limit == 0 {
        return "nothing waited, as far as was recorded\n".to_owned();
    }
    let length = |length: Option<u64>| length.map_or(String::new(), |length| duration(length, view.unit));
    let cells: Vec<Vec<String>> = rows
        .kinds
        .iter()
        .take(view.limit)
        .map(|kind| {
            let lengths = &kind.lengths;
            let numbers = [Some(lengths.total), lengths.p50, lengths.p90, lengths.p99, lengths.max];
            [kind.name.clone(), count(lengths.count)].into_iter().chain(numbers.map(length)).collect()
        })
        .collect();
    let columns = [
        ("what", Left),
        ("count", Right),
        ("total", Right),
        ("p50", Right),
        ("p90", Right),
        ("p99", Right),
        ("max", Right),
    ];
    table(&columns, &cells)
}

/// Allocations that waited.
fn delayed(rows: &LatencyTables, view: &View) -> String {
    if rows.delayed_allocations_total == 0 {
        return String::new();
    }
    let cells: Vec<Vec<String>> = rows
        .delayed_allocations
        .iter()
        .map(|row| {
            vec![
                format!("order {}, {}", row.order, row.migratetype),
                row.gfp_flags_text.clone(),
                row.symbol.clone().unwrap_or_else(|| "-".to_owned()),
                if row.failed { "failed".to_owned() } else { String::new() },
                row.name.clone(),
                count(row.count),
                duration(row.total, view.unit),
                duration(row.max, view.unit),
            ]
        })
        .collect();
    let columns = [
        ("allocation that waited", Left),
        ("gfp_flags", Left),
        ("for a slab object of", Left),
        ("", Left),
        ("waited for", Left),
        ("times", Right),
        ("total", Right),
        ("max", Right),
    ];
    let left = match rows.stalls_without_allocation {
        0 => String::new(),
        left => format!("{} waits were followed by no allocation of the task in the trace\n", count(left)),
    };
    let more = more(cells.len(), rows.delayed_allocations_total, "allocations");
    format!("\n{}{more}{left}", table(&columns, &cells))
}

/// Reclaim by task.
fn tasks(rows: &LatencyTables, view: &View) -> String {
    if rows.tasks_total == 0 {
        return String::new();
    }
    let cells: Vec<Vec<String>> = rows.tasks.iter().map(|row| task(row, view)).collect();
    let columns = [
        ("task", Left),
        ("waited", Right),
        ("direct reclaims", Left),
        ("cgroup reclaims", Right),
        ("woke kswapd", Left),
        ("scanned", Right),
        ("file recl.", Right),
        ("anon recl.", Right),
        ("sync io", Right),
        ("async io", Right),
        ("kswapd wakes", Left),
        ("rewakes", Left),
    ];
    format!("\n{}{}\n", table(&columns, &cells), more(rows.tasks.len(), rows.tasks_total, "tasks"))
}

fn task(row: &ReclaimTask, view: &View) -> Vec<String> {
    let waited = row.waited_time.map(|waited| duration(waited, view.unit));
    vec![
        row.task.clone(),
        waited.unwrap_or_else(|| NOT_RECORDED.to_owned()),
        orders(row.direct_reclaims, &row.direct_reclaims_by_order),
        known(row.memcg_reclaims),
        orders(row.kswapd_woken, &row.kswapd_woken_by_order),
        known(row.pages_scanned),
        known(row.pages_reclaimed_file),
        known(row.pages_reclaimed_anon),
        known(row.pages_written_sync),
        known(row.pages_written_async),
        orders(row.kswapd_wakes, &row.kswapd_wakes_by_order),
        orders(row.kswapd_rewakes, &row.kswapd_rewakes_by_order),
    ]
}

/// `12 (order 0: 10, order 9: 2)`.
fn orders(all: Option<u64>, counts: &[OrderCount]) -> String {
    let Some(all) = all else { return NOT_RECORDED.to_owned() };
    let one = |c: &OrderCount| {
        let order = c.order.map_or("?".to_owned(), |order| order.to_string());
        format!("{order}: {}", count(c.count))
    };
    match counts {
        _ if all == 0 => String::new(),
        [OrderCount { order: Some(0), .. }] => count(all),
        _ => format!("{} (order {})", count(all), counts.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

/// The outermost intervals beyond the threshold, with the events of their tasks.
fn long_intervals(rows: &LatencyTables, intervals: &LongIntervals, view: &View) -> String {
    let mut out = format!(
        "{} intervals beyond the threshold, {} of them in no other one of their task\n",
        count(rows.intervals.len() as u64 + rows.intervals_left_out),
        count(intervals.total as u64)
    );
    if rows.intervals_left_out > 0 {
        out.push_str(&format!("{} shorter ones beyond it are left out\n", count(rows.intervals_left_out)));
    }
    for interval in &intervals.shown {
        out.push_str(&format!(
            "\n{}: {} of {}, from {} to {}\n{}",
            interval.name,
            duration(interval.end.saturating_sub(interval.begin), view.unit),
            interval.task,
            time(interval.begin, view.unit),
            time(interval.end, view.unit),
            interval.events,
        ));
    }
    out + &more(intervals.shown.len(), intervals.total, "intervals")
}
