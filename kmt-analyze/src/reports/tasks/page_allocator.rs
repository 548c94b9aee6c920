//! The table of page allocator events: the columns of trace-pagealloc-postprocess.

use super::rows::{PageAllocatorRow, TaskRows};
use crate::render::screen::{Cell, Column, Table};

/// Events of the page allocator by task.
pub fn of(rows: &TaskRows) -> Table {
    let columns = [
        Column::name("task"),
        Column::number("allocs"),
        Column::number("under lock").leaves(3),
        Column::number("frees"),
        Column::number("batched").leaves(2),
        Column::number("drained").leaves(2),
        Column::number("drains").leaves(4),
        Column::number("refills").leaves(4),
        Column::number("fallbacks").leaves(1),
        Column::number("causing").leaves(3),
        Column::number("type changed").leaves(5),
        Column::number("severe").leaves(5),
        Column::number("moderate").leaves(5),
    ];
    let total = rows.page_users_total;
    let mut table = Table::new("Page allocator events", columns).of("task", "tasks", total);
    for (name, row) in &rows.page_users {
        table.row(std::iter::once(Cell::text(name)).chain(numbers(row).map(Cell::count)));
    }
    explain(&mut table, rows.pageblock_order);
    table
}

fn numbers(row: &PageAllocatorRow) -> [Option<u64>; 12] {
    [
        row.alloc_events,
        row.zone_locked_events,
        row.free_events,
        row.free_batched_events,
        row.pcpu_pages_drained,
        row.pcpu_drains,
        row.pcpu_refills,
        row.fallbacks,
        row.fallbacks_causing,
        row.fallbacks_type_changed,
        row.fallbacks_severe,
        row.fallbacks_moderate,
    ]
}

fn explain(table: &mut Table, (order, is_assumed): (u32, bool)) {
    let assumed = if is_assumed { " (assumed)" } else { "" };
    table.explain("drained", "Drained: pages that went from per-CPU lists back to the buddy lists.");
    table.explain("drains", "Drains, refills: runs of these events, and of allocations under the zone lock.");
    table.explain(
        "causing",
        format!(
            "Fallbacks: allocations from pageblocks of another migrate type; causing: those below pageblock order {order}{assumed}, which mix types in a block."
        ),
    );
    table.explain("severe", "Severe: causing, up to order 3; moderate: causing, above order 3.");
}
