//! Columns and cells of the parts that rows of several reports have.

use super::known::NOT_RECORDED;
use super::rows::{Estimated, LiveRange, SlabSums};
use crate::render::table::Align;
use crate::render::text::count;

/// Columns of any trace.
const SUMS: [(&str, Align); 9] = [
    ("allocs", Align::Right),
    ("bytes_req", Align::Right),
    ("bytes_alloc", Align::Right),
    ("wasted", Align::Right),
    ("frag", Align::Right),
    ("freed", Align::Right),
    ("unseen", Align::Right),
    ("live", Align::Right),
    ("bytes_live", Align::Right),
];

/// Headings of the columns of slab sums; where events were lost, lives that cross a loss stand beside them.
pub fn slab_columns(is_lossy: bool) -> Vec<(&'static str, Align)> {
    SUMS.into_iter().chain(is_lossy.then_some(("uncertain", Align::Right))).collect()
}

/// A number, or the mark that its events were not recorded.
pub fn known(number: Option<u64>) -> String {
    number.map_or(NOT_RECORDED.to_owned(), count)
}

/// The cells under [`slab_columns`]; sums of all events that samples stand for are marked.
pub fn slab_cells(sums: &SlabSums, estimated: Option<&Estimated>, is_lossy: bool) -> Vec<String> {
    let alloc = |estimate: fn(&Estimated) -> u64, exact: Option<u64>| match estimated {
        Some(all) => format!("~{}", count(estimate(all))),
        None => known(exact),
    };
    let percent = sums.internal_fragmentation_percent;
    let cells = [
        alloc(|e| e.alloc_events, sums.alloc_events),
        alloc(|e| e.bytes_req, sums.bytes_req),
        alloc(|e| e.bytes_alloc, sums.bytes_alloc),
        alloc(|e| e.bytes_wasted, sums.bytes_wasted),
        percent.map_or(NOT_RECORDED.to_owned(), |percent| format!("{percent:.1}%")),
        known(sums.bytes_freed),
        known(sums.bytes_freed_unseen),
        known(sums.live),
        known(sums.bytes_live),
    ];
    cells.into_iter().chain(is_lossy.then(|| known(sums.uncertain))).collect()
}

/// Share of the frees that have events, and the most objects that can be live.
pub fn live_range_cells(range: &LiveRange) -> [String; 2] {
    let seen = range.frees_seen_percent.map(|percent| format!("{percent:.1}%"));
    let most = range.live_range.map(|[_, most]| count(most));
    [seen, most].map(|text| text.unwrap_or_else(|| NOT_RECORDED.to_owned()))
}
