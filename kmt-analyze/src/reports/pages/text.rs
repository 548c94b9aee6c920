//! Tables of pages.

use super::rows::{PageRows, PageTables, PageTypeRow};
use crate::render::table::{Align, table};
use crate::render::text::count;
use crate::reports::common::View;
use crate::reports::common::cells::known;
use crate::reports::common::known::{NOT_RECORDED, legend};
use crate::reports::common::shown::{more, shown};
use Align::{Left, Right};

/// All tables.
pub fn of(rows: &PageRows, view: &View) -> String {
    let Some(tables) = &rows.pages else { return "page events: not recorded\n".to_owned() };
    let mut out = sums(tables);
    out.push_str("\nallocations by order and migrate type asked for (live pages behind them)\n");
    out.push_str(&by_type(&tables.by_order_and_migratetype));
    out.push_str(&by_flags(tables, view));
    out.push_str(&callers(tables, view));
    if !tables.other_events.is_empty() {
        let rows: Vec<Vec<String>> =
            tables.other_events.iter().map(|(name, events)| vec![name.clone(), count(*events)]).collect();
        out.push_str(&format!("\n{}", table(&[("other page events", Left), ("events", Right)], &rows)));
    }
    out.push_str(
        "\nPages hold slab objects too: slab and page totals are not to be added. Bulk allocations and migration targets have no event; their frees are those of what was not allocated.\n",
    );
    out
}

/// Sums of all pages.
fn sums(tables: &PageTables) -> String {
    let (all, sums) = (&tables.all, &tables.all.sums);
    let line = |name: &str, events: Option<Option<u64>>, pages: Option<u64>| {
        let events = match events {
            // No events are counted here, but their mark stands for all three.
            None if pages.is_some() => String::new(),
            events => known(events.flatten()),
        };
        let bytes = pages.map(|pages| pages.saturating_mul(all.page_size));
        vec![name.to_owned(), events, known(pages), known(bytes)]
    };
    let none = |number: Option<u64>| number.map(|_| 0);
    let rows = [
        line("allocations", Some(sums.alloc_events), sums.pages_alloc),
        line("  failed", Some(sums.alloc_failures), none(sums.alloc_failures)),
        line("frees of what was allocated", Some(all.frees_matched), sums.pages_freed),
        line("  in parts", Some(all.frees_partial), none(all.frees_partial)),
        line("frees of what was not", Some(all.frees_unmatched), all.pages_free_only),
        line("allocated again while live", None, sums.pages_freed_unseen),
        line("live at the end", None, sums.pages_live),
        line("  uncertain", None, all.pages_live_uncertain),
    ];
    let columns = [("pages", Left), ("events", Right), ("pages", Right), ("bytes", Right)];
    table(&columns, &rows) + legend(all.all_known)
}

/// Allocations by order and migrate type, one cell each.
fn by_type(rows: &[PageTypeRow]) -> String {
    let mut types: Vec<(i32, &str)> =
        rows.iter().map(|row| (row.migratetype, row.migratetype_text.as_str())).collect();
    types.sort_unstable();
    types.dedup();
    let mut columns = vec![("order", Right)];
    columns.extend(types.iter().map(|(_, name)| (*name, Right)));
    let last = rows.iter().map(|row| row.order).max().unwrap_or(0);
    let cell = |row: &PageTypeRow| {
        let allocs = row.sums.alloc_events.map_or("0".to_owned(), count);
        match row.sums.pages_live {
            Some(live) if live > 0 => format!("{allocs} ({})", count(live)),
            _ => allocs,
        }
    };
    let cells: Vec<Vec<String>> = (0..=last)
        .map(|order| {
            let of = |kind: i32| rows.iter().find(|row| (row.order, row.migratetype) == (order, kind));
            let cells = types.iter().map(|(kind, _)| of(*kind).map_or(".".to_owned(), cell));
            std::iter::once(order.to_string()).chain(cells).collect()
        })
        .collect();
    table(&columns, &cells)
}

/// Allocations by flags, most pages first.
fn by_flags(tables: &PageTables, view: &View) -> String {
    let mut rows: Vec<_> = tables.by_gfp_flags.iter().collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.sums.pages_alloc), row.gfp_flags));
    let shown = shown(Some(view.limit), rows.len());
    let number = |number: Option<u64>| number.map_or("0".to_owned(), count);
    let cells: Vec<Vec<String>> = rows
        .iter()
        .take(shown)
        .map(|row| {
            let sums = &row.sums;
            let allocs = [sums.alloc_events, sums.alloc_failures, sums.pages_alloc].map(number);
            let name = row.gfp_flags_text.clone();
            std::iter::once(name).chain(allocs).chain([known(sums.pages_live)]).collect()
        })
        .collect();
    let columns =
        [("gfp_flags", Left), ("allocs", Right), ("failed", Right), ("pages", Right), ("live", Right)];
    format!("\n{}{}", table(&columns, &cells), more(cells.len(), rows.len(), "values"))
}

/// Pages by call site.
fn callers(tables: &PageTables, view: &View) -> String {
    if tables.callers.is_empty() {
        return "\nno stacks: record with --stack 'kmem:mm_page_alloc' to see who asks for pages\n"
            .to_owned();
    }
    let shown = shown(Some(view.limit), tables.callers.len());
    let columns = [("call site", Left), ("pages", Right), ("freed", Right), ("live", Right)];
    let rows: Vec<Vec<String>> = tables
        .callers
        .iter()
        .take(shown)
        .map(|row| {
            let pages = row.pages_alloc.map_or(NOT_RECORDED.to_owned(), count);
            vec![row.symbol.clone(), pages, known(row.pages_freed), known(row.pages_live)]
        })
        .collect();
    format!("\n{}{}", table(&columns, &rows), more(shown, tables.callers.len(), "call sites"))
}
