//! The table of page allocator events: the columns of trace-pagealloc-postprocess.

use super::rows::{PageAllocatorRow, TaskRows};
use crate::render::screen::{Cell, Column, Table};

/// Events of the page allocator by task. Given the order of a pageblock, and whether that is only assumed.
pub fn table(rows: &TaskRows, (order, is_assumed): (u32, bool)) -> Table {
    type Events = PageAllocatorRow;
    let assumed = if is_assumed { " (assumed)" } else { "" };
    let number = |of: fn(&Events) -> Option<u64>| move |(_, row): &&(String, Events)| Cell::count(of(row));
    Table::of_rows("Page allocator events", &rows.page_users)
        .of("task", "tasks", rows.page_users_total)
        .column(Column::name("task"), |(name, _)| Cell::text(name))
        .column(Column::number("allocs"), number(|row| row.alloc_events))
        .column(Column::number("under lock").leaves(3), number(|row| row.zone_locked_events))
        .column(Column::number("frees"), number(|row| row.free_events))
        .column(Column::number("batched").leaves(2), number(|row| row.free_batched_events))
        .column(Column::number("drained").leaves(2), number(|row| row.pcpu_pages_drained))
        .column(Column::number("drains").leaves(4), number(|row| row.pcpu_drains))
        .column(Column::number("refills").leaves(4), number(|row| row.pcpu_refills))
        .column(Column::number("fallbacks").leaves(1), number(|row| row.fallbacks))
        .column(Column::number("causing").leaves(3), number(|row| row.fallbacks_causing))
        .column(Column::number("type changed").leaves(5), number(|row| row.fallbacks_type_changed))
        .column(Column::number("severe").leaves(5), number(|row| row.fallbacks_severe))
        .column(Column::number("moderate").leaves(5), number(|row| row.fallbacks_moderate))
        .explain("drained", "Drained: pages that went from per-CPU lists back to the buddy lists.")
        .explain("drains", "Drains, refills: runs of these events, and of allocations under the zone lock.")
        .explain(
            "causing",
            format!(
                "Fallbacks: allocations from pageblocks of another migrate type; causing: those below pageblock order {order}{assumed}, which mix types in a block."
            ),
        )
        .explain("severe", "Severe: causing, up to order 3; moderate: causing, above order 3.")
        .into()
}
