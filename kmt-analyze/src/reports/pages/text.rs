//! The screen of pages: the answer, then tables by type, flags and call site.
//!
//! The answer has the number of pages, the largest group, and failures that their flags do not announce.

use std::cmp::Reverse;

use super::callers::PassedOverRow;
use super::{PageFlagsRow, PageRows, PageTables, PageTypeRow, Pages};
use crate::render::screen::{Cell, Column, CommandLine, Screen, Table};
use crate::render::words::{count, counted, share};
use crate::reports::common::View;
use crate::reports::common::cells::part;
use crate::reports::common::page_sums::PageSums;
use crate::reports::common::rows::{FrameSums, PageAmounts};
use crate::reports::common::sorting::SortKey;
use crate::reports::grouped::GroupTable;
use crate::sort_rows::SortRows;
use crate::trace::names::function_of;

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
pub fn screen(report: &Pages, rows: &PageRows, view: &View) -> Screen {
    let sort = &report.sort;
    let Some(tables) = &rows.pages else {
        return Screen::new("No page events were recorded: record kmem:mm_page_alloc and kmem:mm_page_free.");
    };
    let answer = sentences(tables, sort.first().copied(), view);
    let mut screen = Screen { answer, ..Screen::default() };
    if let Some(groups) = &tables.groups {
        let columns = EVENTS.into_iter().chain(page_columns(view));
        screen.table(groups.table(columns, |sums| sums_cells(sums, tables, view)));
        if groups.by.iter().any(|key| key.needs_stacks()) {
            call_sites_unknown(&mut screen, tables, view);
        }
        screen.note("Slab objects are on pages: do not add slab and page totals.");
        screen.next("pages", "all pages, their totals and failures");
        return screen;
    }
    screen.table(callers(tables, sort, report.verbose, view));
    screen.table(by_type(tables, sort, view));
    screen.table(by_flags(tables, sort, view));
    screen.table(totals(&tables.all));
    let others = tables.other_events.iter().map(|(name, events)| format!("{name} {}", count(*events)));
    let others = others.collect::<Vec<_>>().join(", ");
    screen.lines("other page events", if others.is_empty() { Vec::new() } else { vec![others] });
    notes(&mut screen, tables, view);
    screen.next("leaks", "pages and objects that stay");
    screen.next("fragmentation", "free memory and pageblocks");
    screen.next("tasks", "pages by task");
    screen
}

/// Facts that the tables need.
fn notes(screen: &mut Screen, tables: &PageTables, view: &View) {
    call_sites_unknown(screen, tables, view);
    screen.note("Slab objects are on pages: do not add slab and page totals.");
    if tables.all.frees_unmatched.is_some_and(|frees| frees > 0) {
        screen.note(
            "Frees without a traced allocation: the page is older than the trace, or came from a bulk allocation or a migration, which have no event.",
        );
    }
}

/// Without stacks.
fn call_sites_unknown(screen: &mut Screen, tables: &PageTables, view: &View) {
    if view.is_folded {
        screen.note("Call sites are unknown: the sums of objects that died young have no stacks.");
    } else if tables.callers.is_empty() {
        screen.note("Call sites are unknown: the recording has no stacks of pages.");
        screen.next(
            CommandLine::recording("--stack kmem:mm_page_alloc"),
            "a recording with call sites of pages",
        );
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
        share_cell(sums.pages_alloc, tables),
        Cell::count(sums.pages_freed),
        Cell::count(sums.pages_freed_unseen),
        Cell::count(sums.pages_live),
        Cell::bytes(sums.bytes_live),
    ];
    cells.extend(view.is_lossy.then(|| Cell::count(sums.pages_uncertain)));
    cells
}

/// Share of some pages in all that were allocated.
fn share_cell(pages: Option<u64>, tables: &PageTables) -> Cell {
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
        rows.sort_rows_by_key(|row| (Reverse(row.sums.pages_alloc), row.order, row.migratetype));
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
        rows.sort_rows_by_key(|row| (Reverse(row.sums.pages_alloc), row.gfp_flags));
    }
    let total = rows.len();
    Table::of_rows("by allocation flags", rows.into_iter().take(part(view.limit, ROWS)))
        .of("group", "groups", total)
        .column(Column::text("gfp_flags"), |row| Cell::text(&row.gfp_flags_text))
        .column(Column::number("allocs").leaves(2), |row| Cell::count(row.sums.alloc_events))
        .column(Column::number("failed").leaves(1), |row| Cell::count(row.sums.alloc_failures))
        .column(Column::number("pages"), |row| Cell::count(row.sums.pages_alloc))
        .column(Column::number("share").leaves(3), |row| share_cell(row.sums.pages_alloc, tables))
        .column(Column::number("live pages"), |row| Cell::count(row.sums.pages_live))
        .into()
}

/// Sums of all pages; rows of zeros are left out.
fn totals(all: &PageSums) -> Table {
    let sums = &all.sums;
    let bytes =
        |pages: Option<u64>| Cell::bytes(pages.map(|pages| pages.saturating_mul(all.shown.page_size)));
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
        row("still allocated, uncertain", Cell::Empty, all.pages_live_uncertain()),
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

/// Sentences of the answer.
fn sentences(tables: &PageTables, sort: Option<SortKey>, view: &View) -> Vec<String> {
    [Some(amounts(&tables.all, view)), largest(tables, sort), failures(tables)]
        .into_iter()
        .flatten()
        .collect()
}

/// Pages allocated, freed and still allocated.
fn amounts(all: &PageSums, view: &View) -> String {
    let sums = &all.sums;
    let bytes = |pages: u64| view.bytes(pages.saturating_mul(all.shown.page_size));
    let pages = |number: u64| format!("{} ({})", counted(number, "page", "pages"), bytes(number));
    let allocated = match (sums.pages_alloc, all.shown.raw_pages_freed) {
        (Some(allocated), _) => format!("The kernel allocated {}", pages(allocated)),
        (None, Some(freed)) => {
            return format!("The kernel freed {}; page allocations were not recorded.", pages(freed));
        }
        (None, None) => return "The number of pages is unknown.".to_owned(),
    };
    match sums.pages_freed.zip(sums.pages_live) {
        // At a moment, nothing is allocated and freed.
        Some((0, live)) if sums.pages_alloc == Some(0) && live > 0 => {
            let are = if live == 1 { "is" } else { "are" };
            format!("{} {are} allocated.", pages(live))
        }
        Some((freed, live)) => {
            let are = if live == 1 { "is" } else { "are" };
            let uncertain = match all.pages_live_uncertain().unwrap_or(0) {
                0 => String::new(),
                uncertain => format!(" ({} uncertain)", count(uncertain)),
            };
            // Frees of the time count, also of pages that are older than it.
            let older = all.shown.older_pages_freed;
            let freed = count(freed.saturating_sub(older));
            let of_older =
                if older == 0 { String::new() } else { format!(" and {} older ones", count(older)) };
            let live = pages(live);
            format!(
                "{allocated} and freed {freed} of them{of_older}; {live} {are} still allocated{uncertain}."
            )
        }
        None if all.free_events.is_none() => {
            format!("{allocated}; page frees were not recorded, so live pages are unknown.")
        }
        None => format!("{allocated}; live pages are unknown."),
    }
}

/// The group of --by with most pages, allocated or live.
fn largest_group(
    groups: &GroupTable<FrameSums>,
    tables: &PageTables,
    sort: Option<SortKey>,
) -> Option<String> {
    let (phrase, sums) = groups.first().filter(|_| groups.groups_total > 1)?;
    let (what, part, all) = match sort {
        None | Some(SortKey::Pages | SortKey::Alloc) => {
            ("pages are", sums.pages_alloc?, tables.all.sums.pages_alloc?)
        }
        Some(SortKey::LivePages | SortKey::Live) => {
            ("live pages are", sums.pages_live?, tables.all.sums.pages_live?)
        }
        Some(_) => return None,
    };
    (part > 0).then(|| format!("Most {what} of {phrase}: {} ({}).", count(part), share(part, all)))
}

/// The largest call site, or the largest group of equal order and migrate type.
fn largest(tables: &PageTables, sort: Option<SortKey>) -> Option<String> {
    if let Some(groups) = &tables.groups {
        return largest_group(groups, tables, sort);
    }
    let all = tables.all.sums.pages_alloc.filter(|&pages| pages > 0)?;
    let of = |pages: u64| format!("{} ({})", counted(pages, "page", "pages"), share(pages, all));
    let caller = tables.callers.iter().find(|row| row.call_site.is_some());
    if let Some((caller, pages)) = caller.and_then(|row| Some((row, row.pages.pages_alloc?))) {
        return Some(format!("The largest call site is {}: {}.", function_of(&caller.symbol), of(pages)));
    }
    let types = tables.by_order_and_migratetype.iter();
    let row = types.max_by_key(|row| (row.sums.pages_alloc, Reverse((row.order, row.migratetype))))?;
    let pages = row.sums.pages_alloc?;
    Some(format!("The largest group is {}, order {}: {}.", row.migratetype_text, row.order, of(pages)))
}

/// Failed allocations, and the flags and the call site of most of them.
fn failures(tables: &PageTables) -> Option<String> {
    let all = tables.all.sums.alloc_failures.filter(|&failed| failed > 0)?;
    let failed = counted(all, "allocation", "allocations");
    let flags = tables.by_gfp_flags.iter();
    let worst = flags.max_by_key(|row| (row.sums.alloc_failures, Reverse(row.gfp_flags)));
    let worst = worst.and_then(|row| Some((row.gfp_flags_text.as_str(), row.sums.alloc_failures?)));
    let with = worst.map_or(String::new(), |(flags, number)| match number {
        number if number == all => format!(" with {flags}"),
        number => format!(", {} of them with {flags}", count(number)),
    });
    let at = failing_caller(tables).map_or(String::new(), |(function, number)| match number {
        number if number == all => format!(", at {function}"),
        number => format!(", {} of them at {function}", count(number)),
    });
    Some(format!("{failed} failed{with}{at}."))
}

/// Function of the call site with most failures, and their number; `None` without stacks of failures.
fn failing_caller(tables: &PageTables) -> Option<(String, u64)> {
    let mut worst: Option<(String, u64)> = None;
    for row in tables.callers.iter().filter(|row| row.call_site.is_some()) {
        let number = row.alloc_failures.unwrap_or(0);
        // The first one of several, as in the table.
        if number > worst.as_ref().map_or(0, |(_, most)| *most) {
            worst = Some((function_of(&row.symbol), number));
        }
    }
    worst
}
