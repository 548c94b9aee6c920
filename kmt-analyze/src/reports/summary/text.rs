//! The screen of totals: the answer, the table of slab objects, the table of pages.
//!
//! A range is shown where events were lost. All figures come from the rows of the report.

use super::SummaryRows;
use super::slab::{self, BothTotals, InterfaceTotals, ShownRange, SlabTotals, SummaryShown};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::{count, counted, share};
use crate::reports::common::View;
use crate::reports::common::cells::at_most;
use crate::reports::common::page_sums::PageSums;
use crate::reports::common::rows::Estimated;
use crate::reports::common::stated::OlderRow;
use crate::trace::names::without_size;

/// The balance of slab objects and of pages.
pub fn screen(rows: &SummaryRows, view: &View) -> Screen {
    let shown = &rows.shown;
    let (shown_ranges, is_bounded) = (shown.ranges.as_deref(), shown.is_bounded);
    let pages = rows.pages.as_ref().map(|pages| &pages.sums);
    let mut screen = Screen::default();
    screen.answer.extend(rows.slab.as_ref().map(|slab| {
        // Without a loss an upper bound is the figure that counts.
        let most = shown_ranges.is_none().then(|| most_live(slab, is_bounded)).flatten();
        objects(slab, shown, most, view)
    }));
    let by_slabinfo = by_slabinfo(rows);
    screen.answer.extend(live_bound(rows, view));
    screen.answer.extend(rows.slab.as_ref().and_then(|slab| doubt(slab, view)));
    screen.answer.extend(pages.map(|sums| self::pages(sums, shown.older, view)));
    screen.answer.extend(missing(rows).map(str::to_owned));
    if let Some(slab) = &rows.slab {
        screen.table(slab_table(slab, is_bounded, view));
    }
    if let Some(sums) = pages {
        screen.table(pages_table(sums, view));
    }
    screen.table(ranges(shown_ranges, by_slabinfo));
    if rows.slab.is_some() && pages.is_some_and(|sums| !sums.is_empty()) {
        screen.note("Slab objects lie in pages: do not add the two tables.");
    }
    if view.is_window {
        screen.note("Live: at the end of the selected time, with what was allocated before it in the trace.");
    }
    screen.note("Memory that was allocated before the trace is not counted.");
    next(&mut screen, rows, view);
    screen
}

/// Live slab bytes as /proc/slabinfo bounds them.
fn by_slabinfo(rows: &SummaryRows) -> Option<u64> {
    rows.slab.as_ref().and_then(|slab| slab.bytes_live_range).map(|[_, most]| most)
}

/// Bounds of live slab bytes in a sentence; `None`: no events were lost.
fn live_bound(rows: &SummaryRows, view: &View) -> Option<String> {
    bound(rows.shown.ranges.as_deref(), by_slabinfo(rows), view)
}

/// Events that the totals lack.
fn missing(rows: &SummaryRows) -> Option<&'static str> {
    match (&rows.slab, &rows.pages) {
        (Some(_), Some(_)) => None,
        (Some(_), None) => Some("No page events were recorded."),
        (None, Some(_)) => Some("No slab events were recorded."),
        (None, None) => Some(
            "No slab or page events were recorded. The totals need kmem:kmalloc, kmem:kfree, kmem:kmem_cache_alloc and kmem:kmem_cache_free, or kmem:mm_page_alloc and kmem:mm_page_free.",
        ),
    }
}

/// Slab objects in a sentence: allocated, still allocated, and the call site that holds most.
fn objects(slab: &BothTotals, shown: &SummaryShown, most: Option<u64>, view: &View) -> String {
    let totals = &slab.totals;
    let objects = |number| counted(number, "object", "objects");
    let allocated = match (totals.alloc_events, totals.bytes_alloc, totals.free_events) {
        (Some(allocs), Some(bytes), _) => match slab::estimated(slab) {
            None => format!("{} allocated ({})", objects(allocs), view.bytes(bytes)),
            Some(Estimated { alloc_events, bytes_alloc, .. }) => format!(
                "~{} allocated (~{}, estimated from samples)",
                objects(alloc_events),
                view.bytes(bytes_alloc)
            ),
        },
        (_, _, Some(frees)) => format!("{} freed, allocations unknown", objects(frees)),
        _ => "the total of kmalloc and caches is unknown".to_owned(),
    };
    let live = match (totals.live, totals.bytes_live) {
        (Some(live), Some(bytes)) => {
            let largest = shown.largest.as_ref().map_or(String::new(), |(name, part)| {
                format!(", {} of it at {}", share(*part, bytes), without_size(name))
            });
            let older = shown
                .older
                .map_or(String::new(), |older| with_older(older.objects_live, view.bytes(older.bytes_live)));
            match most {
                None if view.is_lossy => {
                    format!(", {}{older}", at_most_live(live, &view.bytes(bytes), &largest))
                }
                None => {
                    format!(", {} still allocated ({}{largest}){older}", count(live), view.bytes(bytes))
                }
                Some(most) => format!(
                    ", {} seem still allocated ({}{largest}){older}; at most {} are, since some frees have no event",
                    count(live),
                    view.bytes(bytes),
                    view.bytes(most)
                ),
            }
        }
        _ => "; live objects are unknown".to_owned(),
    };
    format!("Slab: {allocated}{live}.")
}

/// `217,984 without a free event (at most 34.1 MiB are still allocated, 50 % of it at alloc_buffer_head+0x1d)`: where events were
/// lost, their frees may be among them.
fn at_most_live(number: u64, bytes: &str, largest: &str) -> String {
    format!("{} without a free event (at most {bytes} are still allocated{largest})", count(number))
}

/// The part of live memory that is older than the selected time; empty: none is.
fn with_older(number: u64, bytes: String) -> String {
    match number {
        0 => String::new(),
        _ => format!(", {} of them ({bytes}) older than the selected time", count(number)),
    }
}

/// Live objects of a time without losses whose free may be among the events that were lost before it; `None`: there are
/// none.
fn doubt(slab: &BothTotals, view: &View) -> Option<String> {
    let live = slab.totals.bytes_live.filter(|_| view.is_lossy && !view.is_window_lossy)?;
    let uncertain = slab.totals.bytes_live_uncertain.filter(|&bytes| bytes > 0)?;
    let [low, high] = [live.saturating_sub(uncertain), live].map(|bytes| view.bytes(bytes));
    let is_known = low != high;
    is_known.then(|| {
        format!(
            "Events were lost before this time, maybe frees of older objects: {low} to {high} of slab objects may be live."
        )
    })
}

/// Upper bound of live slab bytes, where it is below those without a free event.
fn most_live(slab: &BothTotals, is_bounded: bool) -> Option<u64> {
    let [_, most] = slab.bytes_live_range?;
    (is_bounded && slab.totals.bytes_live.is_some_and(|live| most < live)).then_some(most)
}

/// Bounds of live slab bytes, where events were lost: those of the removal of more events, else of slabinfo.
/// Slab bytes that are certainly live, where lost events leave others uncertain; `None`: no events were lost.
pub fn live_least(rows: &SummaryRows, view: &View) -> Option<String> {
    let ranges = rows.shown.ranges.as_deref()?;
    ranges.iter().find(|range| range.title == slab::LIVE).map(|range| view.bytes(range.low))
}

fn bound(ranges: Option<&[ShownRange]>, by_slabinfo: Option<u64>, view: &View) -> Option<String> {
    let range = ranges?.iter().find(|range| range.title == slab::LIVE)?;
    let low = view.bytes(range.low);
    let older = if view.is_window { ", with older ones" } else { "" };
    Some(match (range.high.map(|high| view.bytes(high)), by_slabinfo) {
        (Some(high), _) if high == low => {
            format!("The lost events do not change that: {low} of slab objects are live{older}.")
        }
        (Some(high), _) => {
            format!("Because events were lost, {low} to {high} of slab objects may be live{older}.")
        }
        (None, Some(most)) => format!(
            "Because events were lost, at least {low} of slab objects are live, and at most {}: all objects of their caches in /proc/slabinfo, also those allocated before the trace.",
            view.bytes(most)
        ),
        (None, None) => format!(
            "Because events were lost, at least {low} of slab objects are live{older}; the upper bound is unknown."
        ),
    })
}

/// Pages in a sentence.
fn pages(pages: &PageSums, older: Option<OlderRow>, view: &View) -> String {
    let sums = &pages.sums;
    let allocated = match (sums.pages_alloc, sums.bytes_alloc) {
        (Some(pages), Some(bytes)) => format!("{} allocated ({})", count(pages), view.bytes(bytes)),
        _ => "allocations unknown".to_owned(),
    };
    let live = match (sums.pages_live, sums.bytes_live) {
        (Some(pages), Some(bytes)) => {
            let page_size = bytes / pages.max(1);
            let older = older.map_or(String::new(), |older| {
                with_older(older.pages_live, view.bytes(older.pages_live.saturating_mul(page_size)))
            });
            match view.is_lossy {
                true => format!(", {}{older}", at_most_live(pages, &view.bytes(bytes), "")),
                false => format!(", {} still allocated ({}){older}", count(pages), view.bytes(bytes)),
            }
        }
        _ => "; live pages are unknown".to_owned(),
    };
    format!("Pages: {allocated}{live}.")
}

/// The ranges that matter most. Live bytes that the losses do not bound have the bound of slabinfo, as in the sentence.
fn ranges(ranges: Option<&[ShownRange]>, by_slabinfo: Option<u64>) -> Table {
    let cell = |range: &ShownRange, number: Option<u64>| match number {
        None => Cell::text("no bound"),
        Some(bytes) if range.is_bytes => Cell::Bytes(bytes),
        Some(count) => Cell::Count(count),
    };
    let is_bounded = ranges.into_iter().flatten().all(|range| range.high.is_some());
    let note = match is_bounded {
        true => "The ranges come from removing more events from this trace, in the pattern of its losses.",
        false => {
            "No bound: most events are missing, or they are missing in few gaps, at the start or the end, or at unknown places. There the number of lost events bounds counts, and nothing bounds bytes."
        }
    };
    Table::of_rows("", ranges.into_iter().flatten())
        .column(Column::text("range with lost events"), |range| Cell::text(range.title))
        .column(Column::number("at least"), |range| cell(range, Some(range.low)))
        .column(Column::number("at most"), |range| {
            cell(range, range.high.or(by_slabinfo.filter(|_| range.title == slab::LIVE)))
        })
        .explain("at least", note)
        .into()
}

fn next(screen: &mut Screen, rows: &SummaryRows, view: &View) {
    let totals = rows.slab.as_ref().map(|slab| &slab.totals);
    if totals.is_some_and(|totals| totals.live.is_some()) {
        screen.next("callers --sort live", "call sites that hold the memory");
        screen.next("leaks", "allocations that grow and are not freed");
    } else if totals.is_some_and(|totals| totals.alloc_events.is_some()) {
        screen.next("callers", "call sites that allocate most");
    }
    if view.is_lossy {
        screen.next("info", "what is missing, and where as far as known");
    } else if rows.pages.is_some() {
        screen.next("pages", "pages by call site and order");
    } else if totals.is_none() {
        screen.next("events", "events that the file has");
    }
}

/// Balance of all pages; no rows where nothing happened to any. `--wide` has rows of zeros, too.
fn pages_table(pages: &PageSums, view: &View) -> Table {
    let columns = [
        Column::text("page allocator"),
        Column::number("events"),
        Column::number("pages"),
        Column::number("bytes"),
    ];
    let mut table = Table::new("", columns);
    if pages.is_empty() {
        return table;
    }
    for (name, cells) in rows(pages) {
        if view.look.wide || !cells.iter().all(Cell::is_nothing) {
            table.row(std::iter::once(Cell::text(name)).chain(cells));
        }
    }
    table
}

/// Names of the rows, and their events, pages and bytes.
fn rows(pages: &PageSums) -> [(&'static str, [Cell; 3]); 7] {
    let (sums, page_size) = (&pages.sums, pages.shown.page_size);
    let size = |frames: Option<u64>| {
        [Cell::count(frames), Cell::bytes(frames.map(|frames| frames.saturating_mul(page_size)))]
    };
    let both = |events: Option<u64>, frames: Option<u64>| {
        let [pages, bytes] = size(frames);
        [Cell::count(events), pages, bytes]
    };
    let events = |events: Option<u64>| [Cell::count(events), Cell::Empty, Cell::Empty];
    let frames = |frames: Option<u64>| {
        let [pages, bytes] = size(frames);
        [Cell::Empty, pages, bytes]
    };
    let frees = match pages.frees_matched {
        Some(_) => both(pages.frees_matched, sums.pages_freed),
        None => both(pages.free_events, pages.shown.raw_pages_freed),
    };
    [
        ("allocs", both(sums.alloc_events, sums.pages_alloc)),
        ("  failed", events(sums.alloc_failures)),
        ("frees", frees),
        ("  of part of an allocation", events(pages.frees_partial)),
        ("frees without a traced allocation", both(pages.frees_unmatched, pages.pages_free_only)),
        ("implied frees", frames(sums.pages_freed_unseen)),
        ("live", frames(sums.pages_live)),
    ]
}

/// Balance of all slab objects, those of kmalloc, and those of caches. `--wide` has rows of zeros, too.
fn slab_table(slab: &BothTotals, is_bounded: bool, view: &View) -> Table {
    let columns = [
        Column::text("slab objects"),
        Column::number("total"),
        Column::number("kmalloc"),
        Column::number("caches"),
    ];
    let mut table = Table::new("", columns);
    let mut all = allocations(slab);
    all.extend(slab::estimated(slab).iter().flat_map(|total| estimates(slab, total)));
    all.extend(frees(slab, view.is_lossy));
    all.extend(lives(slab));
    if is_bounded {
        all.extend(live_at_most(slab));
    }
    all.extend(others(slab));
    for (name, cells) in all {
        if view.look.wide || is_shown(name, &cells) {
            table.row(std::iter::once(Cell::text(name)).chain(cells));
        }
    }
    if is_bounded && view.is_lossy && slab.bytes_live_range.is_some() {
        table.explain(
            "slab objects",
            "Live at most: all objects of these caches in /proc/slabinfo, also those allocated before the trace.",
        );
    }
    table
}

/// A row: its name, and its cells for the total, kmalloc and caches.
type TextRow = (&'static str, [Cell; 3]);

/// True if it is a part of another row that is known, or a row of its own that is not zero.
fn is_shown(name: &str, cells: &[Cell; 3]) -> bool {
    let is_part = name.starts_with(' ');
    !cells.iter().all(|cell| cell.is_nothing() || is_part && cell.is_unknown())
}

fn all(slab: &BothTotals) -> [&SlabTotals; 3] {
    [&slab.totals, &slab.kmalloc.totals, &slab.cache.totals]
}

fn count_row(slab: &BothTotals, name: &'static str, of: fn(&SlabTotals) -> Option<u64>) -> TextRow {
    (name, all(slab).map(|totals| Cell::count(of(totals))))
}

fn bytes(slab: &BothTotals, name: &'static str, of: fn(&SlabTotals) -> Option<u64>) -> TextRow {
    (name, all(slab).map(|totals| Cell::bytes(of(totals))))
}

/// The row without its total: bytes that a cache rounds up and bytes that kmalloc wastes are different things, and
/// their sum means nothing.
fn apart((name, [_, kmalloc, caches]): TextRow) -> TextRow {
    (name, [Cell::Empty, kmalloc, caches])
}

fn allocations(slab: &BothTotals) -> Vec<TextRow> {
    let percent = |totals: &SlabTotals| Cell::percent(totals.internal_fragmentation_percent);
    vec![
        count_row(slab, "allocs", |t| t.alloc_events),
        bytes(slab, "  requested", |t| t.bytes_req),
        bytes(slab, "  allocated", |t| t.bytes_alloc),
        apart(bytes(slab, "  wasted", |t| t.bytes_wasted)),
        apart(("  waste %", all(slab).map(percent))),
        count_row(slab, "  failed", |t| t.alloc_failures),
    ]
}

/// Sums of all events, estimated from samples.
fn estimates(slab: &BothTotals, total: &Estimated) -> [TextRow; 3] {
    let all = [Some(*total), slab.kmalloc.estimated, slab.cache.estimated];
    let row = |name, of: fn(&Estimated) -> Cell| {
        let cell = |all: Option<Estimated>| all.map_or(Cell::Empty, |all| Cell::About(Box::new(of(&all))));
        (name, all.map(cell))
    };
    [
        row("estimated allocs of all events", |all| Cell::Count(all.alloc_events)),
        row("  estimated requested", |all| Cell::Bytes(all.bytes_req)),
        row("  estimated allocated", |all| Cell::Bytes(all.bytes_alloc)),
    ]
}

/// Frees. Where events were lost, the allocation of an object that seems older may be among them.
fn frees(slab: &BothTotals, is_lossy: bool) -> Vec<TextRow> {
    let older = match is_lossy {
        true => "  allocated before the trace, or lost",
        false => "  allocated before the trace",
    };
    vec![
        count_row(slab, "frees", |t| t.free_events),
        count_row(slab, "  of traced allocations", |t| t.frees_matched),
        bytes(slab, "  freed", |t| t.bytes_freed),
        count_row(slab, older, |t| t.frees_allocated_before),
        count_row(slab, "  without a traced allocation", |t| t.frees_untraced_birth),
        count_row(slab, "  on another CPU", |t| t.cross_cpu_frees),
        count_row(slab, "  mixed API (kmalloc / kmem_cache_free)", |t| t.mixed_api_frees),
        count_row(slab, "  late free events", |t| t.late_frees),
        count_row(slab, "implied frees", |t| t.freed_unseen),
        bytes(slab, "  implied freed", |t| t.bytes_freed_unseen),
    ]
}

fn lives(slab: &BothTotals) -> Vec<TextRow> {
    vec![
        count_row(slab, "live", |t| t.live),
        bytes(slab, "  live bytes", |t| t.bytes_live),
        apart(bytes(slab, "  wasted in live objects", |t| t.bytes_wasted_live)),
    ]
}

/// Upper bounds of live objects.
fn live_at_most(slab: &BothTotals) -> [TextRow; 2] {
    let BothTotals { kmalloc, cache, .. } = slab;
    let lives = all(slab).map(|totals| totals.live);
    let row = |name, bound: fn(u64) -> Cell, ranges: [Option<[u64; 2]>; 3]| {
        let mut cells =
            lives.iter().zip(ranges).map(|(live, range)| at_most(*live, range.map(|[_, most]| most), bound));
        (name, std::array::from_fn(|_| cells.next().unwrap_or(Cell::Empty)))
    };
    let objects = |totals: &InterfaceTotals| totals.live_range;
    let bytes = |totals: &InterfaceTotals| totals.bytes_live_range;
    [
        row("live at most", Cell::Count, [slab.live_range, objects(kmalloc), objects(cache)]),
        row("  live bytes at most", Cell::Bytes, [slab.bytes_live_range, bytes(kmalloc), bytes(cache)]),
    ]
}

fn others(slab: &BothTotals) -> Vec<TextRow> {
    vec![
        count_row(slab, "uncertain objects", |t| t.uncertain),
        bytes(slab, "  live bytes", |t| t.bytes_live_uncertain),
        count_row(slab, "frees of NULL", |t| t.null_frees),
        count_row(slab, "frees of zero-size objects", |t| t.zero_size_frees),
        count_row(slab, "duplicate kmalloc events", |t| t.double_reports),
    ]
}
