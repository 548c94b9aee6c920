//! The tables of totals.

use super::page_text::{self, NOT_RECORDED, recorded};
use super::rows::SummaryRows;
use super::slab::{BothTotals, SlabTotals};
use crate::render::table::{Align, table};
use crate::render::text::count;
use crate::reports::common::rows::Estimated;

/// All tables.
pub fn of(rows: &SummaryRows) -> String {
    let pages = rows.pages.as_ref().map_or(String::new(), |pages| page_text::of(&pages.sums));
    let Some(slab) = &rows.slab else { return format!("slab events: not recorded\n{pages}") };
    let mut out = totals(slab, rows.is_bounded);
    let missing = slab.recorded.named().into_iter().filter(|(_, recorded)| *recorded != Some(true));
    let missing: Vec<&str> = missing.map(|(name, _)| name).collect();
    if !missing.is_empty() {
        out.push_str(&format!(
            "\nno events of {}: whether they were recorded, the file does not tell, or says that they were not\n",
            missing.join(", ")
        ));
    }
    for (name, estimated) in [("kmalloc", slab.kmalloc.estimated), ("caches", slab.cache.estimated)] {
        out.push_str(&estimated.map_or(String::new(), |estimated| estimate(name, &estimated)));
    }
    out.push_str(&pages);
    out.push_str(&ranges(rows));
    out.push_str("\nlive is since the start of the trace; objects older than it are not in these numbers\n");
    out
}

/// Slab objects: all, of kmalloc, of caches.
fn totals(slab: &BothTotals, is_bounded: bool) -> String {
    let all = [&slab.totals, &slab.kmalloc.totals, &slab.cache.totals];
    let row = |name: &str, of: fn(&SlabTotals) -> Option<u64>| -> Vec<String> {
        std::iter::once(name.to_owned()).chain(all.iter().map(|totals| recorded(of(totals)))).collect()
    };
    // Bytes that a cache rounds up and bytes that kmalloc wastes are different things; their sum means nothing.
    let apart = |mut row: Vec<String>| {
        row.splice(1..2, ["-".to_owned()]);
        row
    };
    let percent = |totals: &&SlabTotals| {
        totals.internal_fragmentation_percent.map_or(NOT_RECORDED.to_owned(), |p| format!("{p:.2} %"))
    };
    let percents = std::iter::once("  internal fragmentation".to_owned()).chain(all.iter().map(percent));
    let mut rows = vec![
        row("allocations", |t| t.alloc_events),
        row("  bytes requested", |t| t.bytes_req),
        row("  bytes allocated", |t| t.bytes_alloc),
        apart(row("  bytes wasted", |t| t.bytes_wasted)),
        apart(percents.collect()),
        row("  failed", |t| t.alloc_failures),
        row("frees", |t| t.free_events),
        row("  matched", |t| t.frees_matched),
        row("  bytes freed", |t| t.bytes_freed),
        row("  of objects allocated before", |t| t.frees_allocated_before),
        row("  of untraced birth", |t| t.frees_untraced_birth),
        row("  on another CPU", |t| t.cross_cpu_frees),
        row("  by the other interface", |t| t.mixed_api_frees),
        row("  logged late", |t| t.late_frees),
        row("freed unseen", |t| t.freed_unseen),
        row("  bytes", |t| t.bytes_freed_unseen),
        row("live at the end", |t| t.live),
        row("  bytes live", |t| t.bytes_live),
        apart(row("  bytes wasted live", |t| t.bytes_wasted_live)),
    ];
    if is_bounded {
        rows.extend(live_at_most(slab));
    }
    rows.extend([
        row("uncertain lives", |t| t.uncertain),
        row("no objects: frees of NULL", |t| t.null_frees),
        row("  frees of zero-size objects", |t| t.zero_size_frees),
        row("  second reports of one kmalloc", |t| t.double_reports),
    ]);
    let columns =
        [("slab", Align::Left), ("total", Align::Right), ("kmalloc", Align::Right), ("caches", Align::Right)];
    table(&columns, &rows)
}

/// The most that can be live.
fn live_at_most(slab: &BothTotals) -> [Vec<String>; 2] {
    let (kmalloc, cache) = (&slab.kmalloc, &slab.cache);
    let lives = [slab.totals.live, kmalloc.totals.live, cache.totals.live];
    let row = |name: &str, ranges: [Option<[u64; 2]>; 3]| {
        let cell = |(live, range): (&Option<u64>, Option<[u64; 2]>)| match (live, range) {
            (None, _) => NOT_RECORDED.to_owned(),
            (Some(_), range) => range.map_or("?".to_owned(), |[_, most]| count(most)),
        };
        std::iter::once(name.to_owned()).chain(lives.iter().zip(ranges).map(cell)).collect()
    };
    [
        row("live at most", [slab.live_range, kmalloc.live_range, cache.live_range]),
        row("  bytes", [slab.bytes_live_range, kmalloc.bytes_live_range, cache.bytes_live_range]),
    ]
}

/// Sums that the samples of an interface stand for.
fn estimate(name: &str, estimated: &Estimated) -> String {
    format!(
        "\nestimated of all {name}, by the events that samples stand for: ~{} allocations of ~{} bytes, ~{} asked for\n",
        count(estimated.alloc_events),
        count(estimated.bytes_alloc),
        count(estimated.bytes_req),
    )
}

/// The ranges that matter most.
fn ranges(rows: &SummaryRows) -> String {
    let Some(ranges) = &rows.shown_ranges else { return String::new() };
    let row = |(title, low, high): &(&str, u64, u64)| vec![(*title).to_owned(), count(*low), count(*high)];
    let rows: Vec<Vec<String>> = ranges.iter().map(row).collect();
    let columns =
        [("with what was lost, between", Align::Left), ("low", Align::Right), ("high", Align::Right)];
    format!(
        "\n{}estimated from what further losses like these would do to each total\n",
        table(&columns, &rows)
    )
}
