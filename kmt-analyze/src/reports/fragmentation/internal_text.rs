//! Tables of bytes handed out beyond those asked for.

use super::internal::{InternalTables, Waste};
use crate::render::table::{Align, table};
use crate::render::text::count;
use crate::reports::common::View;
use crate::reports::common::cells::known;
use crate::reports::common::known::NOT_RECORDED;
use crate::reports::common::shown::more;
use Align::{Left, Right};

/// Rows that are shown at most.
const ROWS_MAX: usize = 10;

/// By kind, by call site of kmalloc, by cache.
pub fn of(rows: &InternalTables, view: &View) -> String {
    let kinds = [
        ("kmalloc, size classes", rows.kmalloc.as_ref()),
        ("kmalloc, whole pages", rows.kmalloc_large.as_ref()),
        ("caches' own rounding", rows.caches.as_ref()),
    ];
    let kinds: Vec<Vec<String>> =
        kinds.into_iter().map(|(name, waste)| cells(name, waste, rows.length)).collect();
    let limit = view.limit.min(ROWS_MAX);
    let callers = rows.kmalloc_callers.iter().take(limit);
    let callers = callers.map(|row| cells(&row.symbol, Some(&row.waste), rows.length)).collect();
    let caches = rows.cache_rounding.iter().take(limit);
    let caches = caches.map(|row| cells(&row.cache, Some(&row.waste), rows.length)).collect();
    format!(
        "INSIDE OBJECTS: bytes handed out beyond those asked for\n{}{}{}",
        table(&columns("kind"), &kinds),
        part("kmalloc by", callers, rows.kmalloc_callers_total, "call sites"),
        part("cache", caches, rows.cache_rounding_total, "caches")
    )
}

fn part(first: &'static str, cells: Vec<Vec<String>>, total: Option<usize>, what: &str) -> String {
    if cells.is_empty() {
        return String::new();
    }
    let more = more(cells.len(), total.unwrap_or(cells.len()), what);
    format!("\n{}{more}", table(&columns(first), &cells))
}

fn columns(first: &'static str) -> [(&'static str, Align); 7] {
    [
        (first, Left),
        ("wasted in all", Right),
        ("", Right),
        ("wasted live", Right),
        ("", Right),
        ("wasted on average", Right),
        ("", Right),
    ]
}

fn cells(name: &str, waste: Option<&Waste>, length: u64) -> Vec<String> {
    let percent =
        |percent: Option<f64>| percent.map_or(NOT_RECORDED.to_owned(), |percent| format!("{percent:.1}%"));
    let on_average = waste.and_then(|w| w.waste_time).map(|waste_time| on_average(waste_time, length));
    vec![
        name.to_owned(),
        known(waste.map(|w| w.bytes_wasted)),
        percent(waste.map(|w| w.percent_of_alloc)),
        known(waste.and_then(|w| w.bytes_wasted_live)),
        percent(waste.and_then(|w| w.percent_of_live)),
        on_average.unwrap_or_else(|| NOT_RECORDED.to_owned()),
        percent(waste.and_then(|w| w.percent_of_byte_time)),
    ]
}

/// Bytes times time, for people: as the bytes that are held on average over the window.
fn on_average(byte_time: u128, length: u64) -> String {
    count(u64::try_from(byte_time / u128::from(length.max(1))).unwrap_or(u64::MAX))
}
