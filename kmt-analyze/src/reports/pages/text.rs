//! The screen of pages.

use std::cmp::Reverse;

use super::passed_over::PassedOverRow;
use super::rows::{PageFlagsRow, PageRows, PageTables, PageTypeRow};
use super::{Pages, answer};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::count;
use crate::reports::common::rows::{FrameSums, PageAmounts};
use crate::reports::common::shown::part;
use crate::reports::common::sorting::SortKey;
use crate::reports::common::{ReportContext, View};

/// Rows of the tables after the first one, unless more are allowed.
const ROWS: usize = 8;

/// Columns of pages that were allocated.
pub const PAGES: [Column; 7] = [
    Column::number("pages"),
    Column::number("allocated").leaves(3),
    Column::number("share").leaves(4),
    Column::number("freed pages").leaves(5),
    Column::number("implied frees").leaves(6),
    Column::number("live pages"),
    Column::number("live").leaves(2),
];

/// Column of pages of allocations that cross a loss.
const UNCERTAIN: Column = Column::number("uncertain").leaves(1);

/// Pages allocated, by call site, order, migrate type and flags: by pages, unless there are keys to sort by.
pub fn screen(report: &Pages, context: &ReportContext<'_, '_>, rows: &PageRows, view: &View) -> Screen {
    let sort = &report.sort;
    let Some(tables) = &rows.pages else {
        return Screen::new("No page events were recorded: record kmem:mm_page_alloc and kmem:mm_page_free.");
    };
    let answer = answer::sentences(context, tables, sort.first().copied(), view);
    let mut screen = Screen { answer, ..Screen::default() };
    if let Some(groups) = &tables.groups {
        let columns = EVENTS.into_iter().chain(page_columns(view));
        screen.table(groups.table(columns, |sums| sums_cells(sums, tables, view)));
        if groups.by.iter().any(|key| key.needs_stacks()) {
            call_sites_unknown(&mut screen, tables);
        }
        screen.note("Slab objects are on pages: do not add slab and page totals.");
        screen.next("pages", "all pages, their totals and failures");
        return screen;
    }
    screen.table(callers(tables, sort, report.verbose, view));
    screen.table(by_type(tables, sort, view));
    screen.table(by_flags(tables, sort, view));
    screen.table(totals(tables, context.analysis.page_size.0));
    let others = tables.other_events.iter().map(|(name, events)| format!("{name} {}", count(*events)));
    let others = others.collect::<Vec<_>>().join(", ");
    screen.lines("other page events", if others.is_empty() { Vec::new() } else { vec![others] });
    notes(&mut screen, tables);
    screen.next("leaks", "pages and objects that stay");
    screen.next("fragmentation", "free memory and pageblocks");
    screen.next("tasks", "pages by task");
    screen
}

/// Facts that the tables need.
fn notes(screen: &mut Screen, tables: &PageTables) {
    call_sites_unknown(screen, tables);
    screen.note("Slab objects are on pages: do not add slab and page totals.");
    if tables.all.frees_unmatched.is_some_and(|frees| frees > 0) {
        screen.note(
            "Frees without a traced allocation: the page is older than the trace, or came from a bulk allocation or a migration, which have no event.",
        );
    }
}

/// Without stacks.
fn call_sites_unknown(screen: &mut Screen, tables: &PageTables) {
    if tables.callers.is_empty() {
        screen.note("Call sites are unknown: record with --stack kmem:mm_page_alloc.");
    }
}

/// Pages by call site, in the order of the keys; with `verbose` its functions of the allocator below it.
fn callers(tables: &PageTables, sort: &[SortKey], verbose: bool, view: &View) -> Table {
    let shown = tables.callers.iter().take(view.limit);
    let hidden = tables.callers.len() - shown.len();
    let rows = shown.flat_map(|row| {
        let below = row.passed_over.iter().filter(|_| verbose).map(move |passed| (row, Some(passed)));
        std::iter::once((row, None)).chain(below)
    });
    let mut table: Table = Table::of_rows("", rows)
        .of("call site", "call sites", 0)
        .column(Column::name("call site"), |(row, passed)| match passed {
            Some(passed) => Cell::text(format!("  > {}", passed.function)),
            None => Cell::from(&row.symbol),
        })
        .column_if(sort.contains(&SortKey::Failed), FAILED, |(row, passed)| match passed {
            Some(_) => Cell::Empty,
            None => Cell::count(row.alloc_failures),
        })
        .columns(page_columns(view), |(row, passed)| match passed {
            Some(passed) => passed_cells(passed, view),
            None => page_cells(&row.pages, tables, view),
        })
        .into();
    table.rows_total = table.rows.len() + hidden;
    if verbose {
        table.explain(
            "call site",
            "  > functions of the allocator that the call site called, the first one first.",
        );
    }
    table
}

/// Cells under [`page_columns`] of a function of the allocator: pages alone.
fn passed_cells(passed: &PassedOverRow, view: &View) -> Vec<Cell> {
    let empty = std::iter::repeat_n(Cell::Empty, page_columns(view).count() - 1);
    std::iter::once(Cell::count(passed.pages_alloc)).chain(empty).collect()
}

fn page_columns(view: &View) -> impl Iterator<Item = Column> {
    PAGES.into_iter().chain(view.is_lossy.then_some(UNCERTAIN))
}

/// Cells under [`page_columns`].
fn page_cells(sums: &PageAmounts, tables: &PageTables, view: &View) -> Vec<Cell> {
    let mut cells = vec![
        Cell::count(sums.pages_alloc),
        Cell::bytes(sums.bytes_alloc),
        share(sums.pages_alloc, tables),
        Cell::count(sums.pages_freed),
        Cell::count(sums.pages_freed_unseen),
        Cell::count(sums.pages_live),
        Cell::bytes(sums.bytes_live),
    ];
    cells.extend(view.is_lossy.then(|| Cell::count(sums.pages_uncertain)));
    cells
}

/// Share of some pages in all that were allocated.
fn share(pages: Option<u64>, tables: &PageTables) -> Cell {
    let parts = pages.zip(tables.all.sums.pages_alloc);
    parts.map_or(Cell::Unknown, |(part, all)| Cell::share(part, all))
}

/// Columns of allocations and failures.
const EVENTS: [Column; 2] = [Column::number("allocs").leaves(7), Column::number("failed").leaves(3)];

/// Column of failures in the table of call sites.
const FAILED: Column = Column::number("failed");

/// Pages by order and migrate type, the largest first.
fn by_type(tables: &PageTables, sort: &[SortKey], view: &View) -> Table {
    let mut rows: Vec<&PageTypeRow> = tables.by_order_and_migratetype.iter().collect();
    if sort.is_empty() {
        rows.sort_by_key(|row| (Reverse(row.sums.pages_alloc), row.order, row.migratetype));
    }
    let total = rows.len();
    Table::of_rows("by order and migrate type", rows.into_iter().take(part(view.limit, ROWS)))
        .of("group", "groups", total)
        .column(Column::number("order"), |row| Cell::Count(row.order.into()))
        .column(Column::whole("migrate type"), |row| Cell::text(&row.migratetype_text))
        .columns(EVENTS.into_iter().chain(page_columns(view)), |row| sums_cells(&row.sums, tables, view))
        .into()
}

/// Cells under [`EVENTS`] and [`page_columns`].
fn sums_cells(sums: &FrameSums, tables: &PageTables, view: &View) -> Vec<Cell> {
    let events = [Cell::count(sums.alloc_events), Cell::count(sums.alloc_failures)];
    events.into_iter().chain(page_cells(&sums.pages, tables, view)).collect()
}

/// Pages by flags, the largest first. Flags need the room of other columns.
fn by_flags(tables: &PageTables, sort: &[SortKey], view: &View) -> Table {
    let mut rows: Vec<&PageFlagsRow> = tables.by_gfp_flags.iter().collect();
    if sort.is_empty() {
        rows.sort_by_key(|row| (Reverse(row.sums.pages_alloc), row.gfp_flags));
    }
    let total = rows.len();
    Table::of_rows("by allocation flags", rows.into_iter().take(part(view.limit, ROWS)))
        .of("group", "groups", total)
        .column(Column::text("gfp_flags"), |row| Cell::text(&row.gfp_flags_text))
        .column(Column::number("allocs").leaves(2), |row| Cell::count(row.sums.alloc_events))
        .column(Column::number("failed").leaves(1), |row| Cell::count(row.sums.alloc_failures))
        .column(Column::number("pages"), |row| Cell::count(row.sums.pages_alloc))
        .column(Column::number("share").leaves(3), |row| share(row.sums.pages_alloc, tables))
        .column(Column::number("live pages"), |row| Cell::count(row.sums.pages_live))
        .into()
}

/// Sums of all pages; rows of zeros are left out.
fn totals(tables: &PageTables, page_size: u64) -> Table {
    let (all, sums) = (&tables.all, &tables.all.sums);
    let bytes = |pages: Option<u64>| Cell::bytes(pages.map(|pages| pages.saturating_mul(page_size)));
    let row = |name: &str, events: Cell, pages: Option<u64>| {
        [Cell::text(name), events, Cell::count(pages), bytes(pages)]
    };
    let events_alone =
        |name: &str, events: Option<u64>| [Cell::text(name), Cell::count(events), Cell::Empty, Cell::Empty];
    let rows = [
        row("allocations", Cell::count(sums.alloc_events), sums.pages_alloc),
        events_alone("failed allocations", sums.alloc_failures),
        row("frees", Cell::count(all.frees_matched), sums.pages_freed),
        events_alone("frees of a part", all.frees_partial),
        row("frees without a traced allocation", Cell::count(all.frees_unmatched), all.pages_free_only),
        row("implied frees (page allocated again)", Cell::Empty, sums.pages_freed_unseen),
        row("still allocated", Cell::Empty, sums.pages_live),
        row("still allocated, uncertain", Cell::Empty, all.pages_live_uncertain(page_size)),
    ];
    let columns = [
        Column::text("all pages"),
        Column::number("events"),
        Column::number("pages"),
        Column::number("bytes").leaves(1),
    ];
    let mut table = Table::new("totals", columns);
    let tells = |row: &&[Cell; 4]| row.iter().skip(1).any(|cell| !cell.is_nothing());
    rows.iter().filter(tells).for_each(|row| table.row(row.iter().cloned()));
    table
}
