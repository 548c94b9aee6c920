//! Tables of tasks.

use super::rows::{PageAllocatorRow, TaskRows};
use crate::render::table::{Align, table};
use crate::reports::common::View;
use crate::reports::common::cells::known;
use crate::reports::common::known::legend;
use crate::reports::common::shown::more;
use Align::{Left, Right};

/// Both tables, and the meaning of their marks.
pub fn of(rows: &TaskRows, view: &View) -> String {
    load(rows, view.is_lossy) + &page_allocator(rows)
}

/// Slab objects and pages by task.
fn load(rows: &TaskRows, is_lossy: bool) -> String {
    let mut columns = vec![
        ("task", Left),
        ("allocs", Right),
        ("bytes_alloc", Right),
        ("live", Right),
        ("bytes_live", Right),
        ("frees", Right),
        ("freed by others", Right),
        ("pages", Right),
        ("page bytes", Right),
        ("pages live", Right),
    ];
    columns.extend(is_lossy.then_some(("uncertain", Right)));
    let cells: Vec<Vec<String>> = rows
        .tasks
        .iter()
        .map(|row| {
            let numbers = [
                row.slab.alloc_events,
                row.slab.bytes_alloc,
                row.slab.live,
                row.slab.bytes_live,
                row.slab_frees,
                row.slab_freed_by_others,
                row.pages.pages_alloc,
                row.pages.bytes_alloc,
                row.pages.pages_live,
            ];
            let uncertain = is_lossy.then_some(row.slab.uncertain);
            std::iter::once(row.name.clone()).chain(numbers.into_iter().chain(uncertain).map(known)).collect()
        })
        .collect();
    let mut out =
        table(&columns, &cells) + &more(rows.tasks.len(), rows.tasks_total, "tasks") + legend(rows.all_known);
    out.push_str(
        "\nObjects and pages are charged to the task that allocated them, whoever frees them. Slab objects lie in pages: the two are not to be added. Interrupts are charged to the task that they interrupt.\n",
    );
    out
}

/// Events of the page allocator by task: the columns of trace-pagealloc-postprocess.
fn page_allocator(rows: &TaskRows) -> String {
    if rows.page_users.is_empty() && rows.page_users_total == 0 {
        return String::new();
    }
    let columns = [
        ("task", Left),
        ("allocs", Right),
        ("under lock", Right),
        ("frees", Right),
        ("batched", Right),
        ("drained", Right),
        ("drains", Right),
        ("refills", Right),
        ("fallbacks", Right),
        ("causing", Right),
        ("type changed", Right),
        ("severe", Right),
        ("moderate", Right),
    ];
    let user = |(name, row): &(String, PageAllocatorRow)| {
        std::iter::once(name.clone()).chain(numbers(row).map(known)).collect()
    };
    let cells: Vec<Vec<String>> = rows.page_users.iter().map(user).collect();
    let (order, is_assumed) = rows.pageblock_order;
    let assumed = if is_assumed { " (assumed)" } else { "" };
    format!(
        "\nevents of the page allocator\n{}{}\nEvents, not pages. A batched free is also a free. Drains and refills are runs of events of per-CPU lists. Fallbacks below pageblock order {order}{assumed} are causing fragmentation, severe up to order 3.\n",
        table(&columns, &cells),
        more(rows.page_users.len(), rows.page_users_total, "tasks")
    )
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
