//! Sums by allocating task, and its page allocator events.
//!
//! A task has the name of its last time in the trace. The table of page allocator events has the columns of
//! trace-pagealloc-postprocess.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::collect::page_use::Use;
use crate::collect::sums::Sums;
use crate::collect::tasks::{OriginSums, TaskSums};
use crate::int_hash::IntHash;
use crate::ledger::totals::{FrameTotals, Totals};
use crate::render::screen::{Cell, Column, Table};
use crate::reports::common::ReportContext;
use crate::reports::common::rows::{FrameSums, RecordedSums, SlabSums, text};
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::sort_rows::SortRows;
use crate::trace::names::task_name;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TaskRows {
    /// Number of tasks.
    pub tasks_total: usize,
    /// Tasks.
    pub tasks: Vec<TaskRow>,
    #[serde(skip)]
    pub shown: TasksShown,
}

/// Facts on all tasks that only the screen has.
#[derive(Debug)]
pub struct TasksShown {
    /// Sums of the slab objects of all tasks.
    pub slab: SlabSums,
    /// Tasks that allocated slab objects.
    pub slab_users_total: u64,
    /// Sums of the pages of all tasks.
    pub pages: FrameSums,
    /// Task that allocated most pages, and the bytes of these.
    pub largest_page_user: Option<(String, u64)>,
    /// Tasks that used the page allocator, those with most allocations first.
    pub page_users: Vec<(String, PageAllocatorRow)>,
    /// Number of these tasks, shown or not.
    pub page_users_total: usize,
    /// Order of a pageblock, and whether that is only assumed.
    pub pageblock_order: (u32, bool),
}

/// Sums of one task.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TaskRow {
    /// Thread id.
    pub pid: i32,
    /// Name of the task at the end of the selected time.
    pub comm: Option<String>,
    /// Slab objects that it allocated.
    pub slab: SlabSums,
    /// Slab objects that it freed, its own and those of other tasks.
    pub slab_frees: Option<u64>,
    /// Bytes of those with a traced allocation.
    pub slab_bytes_freed_by_it: Option<u64>,
    /// Slab objects that it allocated and another task freed.
    pub slab_freed_by_others: Option<u64>,
    /// Bytes of slab objects that it allocated and another task freed.
    pub slab_bytes_freed_by_others: Option<u64>,
    /// Pages that it allocated.
    pub pages: FrameSums,
    /// Events of the page allocator in the task.
    pub page_allocator: PageAllocatorRow,
}

impl TaskRow {
    /// Name and id.
    pub fn name(&self) -> String {
        name_of(self.comm.as_deref().map(str::as_bytes), self.pid)
    }
}

fn name_of(comm: Option<&[u8]>, pid: i32) -> String {
    task_name(comm.unwrap_or(b"<...>"), pid)
}

/// Page allocator events, as trace-pagealloc-postprocess counts them: events, not pages.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageAllocatorRow {
    /// Allocations.
    pub alloc_events: Option<u64>,
    /// Allocations under the zone's lock.
    pub zone_locked_events: Option<u64>,
    /// Frees.
    pub free_events: Option<u64>,
    /// Frees in a batch; each is also a free.
    pub free_batched_events: Option<u64>,
    /// Pages that went from per-CPU lists back to the buddy lists.
    pub pcpu_pages_drained: Option<u64>,
    /// Runs in which pages went from per-CPU lists back to the buddy lists.
    pub pcpu_drains: Option<u64>,
    /// Runs of allocations under the zone's lock.
    pub pcpu_refills: Option<u64>,
    /// Allocations from pageblocks of another migrate type.
    pub fallbacks: Option<u64>,
    /// Fallbacks below pageblock order, which mix types in a block.
    pub fallbacks_causing: Option<u64>,
    /// Fallbacks after which the pageblock has the requested type.
    pub fallbacks_type_changed: Option<u64>,
    /// Fallbacks below pageblock order, up to order 3.
    pub fallbacks_severe: Option<u64>,
    /// Fallbacks below pageblock order, of a larger order.
    pub fallbacks_moderate: Option<u64>,
}

/// Recorded events.
struct RecordedTasks {
    slab: RecordedSums,
    pages: RecordedSums,
    zone_locked: bool,
    batched: bool,
    drained: bool,
    fallbacks: bool,
}

impl RecordedTasks {
    fn of(context: &ReportContext<'_, '_>) -> Self {
        let basis = context.basis();
        let has = |name: &str| context.recorded_class(|class| class.name == name) == Some(true);
        Self {
            slab: RecordedSums::slab(basis, None),
            pages: RecordedSums::pages(basis),
            zone_locked: has("mm_page_alloc_zone_locked"),
            batched: has("mm_page_free_batched"),
            drained: has("mm_page_pcpu_drain"),
            fallbacks: has("mm_page_alloc_extfrag"),
        }
    }

    fn page_allocator(&self, u: &Use) -> PageAllocatorRow {
        let fallbacks = self.fallbacks && u.incomplete_fallbacks == 0;
        PageAllocatorRow {
            alloc_events: self.pages.allocs.then_some(u.allocs),
            zone_locked_events: self.zone_locked.then_some(u.allocs_under_lock),
            free_events: self.pages.frees.then_some(u.frees_direct),
            free_batched_events: self.batched.then_some(u.frees_batched),
            pcpu_pages_drained: self.drained.then_some(u.pages_drained),
            pcpu_drains: self.drained.then_some(u.drains),
            pcpu_refills: self.zone_locked.then_some(u.refills),
            fallbacks: self.fallbacks.then_some(u.fallbacks),
            fallbacks_causing: fallbacks.then_some(u.causing),
            fallbacks_type_changed: fallbacks.then_some(u.changed),
            fallbacks_severe: fallbacks.then_some(u.severe),
            fallbacks_moderate: fallbacks.then_some(u.moderate),
        }
    }
}

/// A task, shown or not.
struct TaskCandidate {
    pid: i32,
    comm: Option<Vec<u8>>,
    name: String,
    sums: OriginSums,
    /// Objects of the task that other tasks freed: number and bytes.
    freed_elsewhere: (u64, u64),
    page_use: Use,
}

impl TaskCandidate {
    fn is_active(&self) -> bool {
        self.sums.slab != Totals::default()
            || self.sums.freed_here > 0
            || self.sums.pages != FrameTotals::default()
            || self.page_use != Use::default()
    }
}

/// All tasks with slab or page events.
fn candidates(
    context: &ReportContext<'_, '_>,
    tasks: &TaskSums,
    page_use: &HashMap<i32, Use, IntHash>,
) -> Vec<TaskCandidate> {
    let analysis = context.analysis;
    let mut by_pid: BTreeMap<i32, (OriginSums, (u64, u64))> = BTreeMap::new();
    let pid = |origin: u32| analysis.interner.origins.get(origin).map_or(0, |o| o.pid);
    for (number, sums) in (0u32..).zip(&tasks.origins) {
        by_pid.entry(pid(number)).or_default().0.absorb(*sums);
    }
    for (&(from, to), &(objects, bytes)) in &tasks.handed {
        if pid(from) != pid(to) {
            by_pid.entry(pid(from)).or_default().1.absorb((objects, bytes));
        }
    }
    for pid in page_use.keys() {
        by_pid.entry(*pid).or_default();
    }
    let (names, end) = (context.session.names(), context.selection.span(context.session).1);
    let candidate = |(pid, (sums, freed_elsewhere))| {
        let comm = names.at(pid, end).map(<[u8]>::to_vec);
        let page_use = page_use.get(&pid).copied().unwrap_or_default();
        TaskCandidate { pid, name: name_of(comm.as_deref(), pid), comm, sums, freed_elsewhere, page_use }
    };
    by_pid.into_iter().map(candidate).filter(TaskCandidate::is_active).collect()
}

/// Rows of all tasks.
pub fn compute(
    context: &ReportContext<'_, '_>,
    tasks: &TaskSums,
    page_use: &HashMap<i32, Use, IntHash>,
    sort: &[SortKey],
) -> TaskRows {
    let analysis = context.analysis;
    let mut all = candidates(context, tasks, page_use);
    let number = |task: &TaskCandidate, key: SortKey| match key {
        SortKey::Pages => Some(task.sums.pages.frames_alloc.into()),
        SortKey::LivePages => Some(task.sums.pages.frames_live.into()),
        key => key.number(&task.sums.slab),
    };
    sort_rows(&mut all, sort, number, |a, b| a.name.cmp(&b.name));
    let recorded = RecordedTasks::of(context);
    let rows = all.iter().take(context.limit).map(|c| row(c, analysis.page_size.0, &recorded)).collect();
    let mut users: Vec<&TaskCandidate> = all.iter().filter(|c| c.page_use != Use::default()).collect();
    users.sort_rows_by(|a, b| (b.page_use.allocs, &a.name).cmp(&(a.page_use.allocs, &b.name)));
    let user = |c: &&TaskCandidate| (c.name.clone(), recorded.page_allocator(&c.page_use));
    let (mut slab, mut pages) = (Totals::default(), FrameTotals::default());
    for candidate in &all {
        slab += &candidate.sums.slab;
        pages += &candidate.sums.pages;
    }
    let page_size = analysis.page_size.0;
    let largest = all.iter().max_by_key(|c| (c.sums.pages.frames_alloc, Reverse(c.pid)));
    let shown = TasksShown {
        slab: SlabSums::of(&slab, recorded.slab),
        slab_users_total: all.iter().filter(|c| c.sums.slab.alloc_events > 0).count() as u64,
        pages: FrameSums::of(&pages, page_size, recorded.pages),
        largest_page_user: largest
            .map(|c| (c.name.clone(), c.sums.pages.frames_alloc.saturating_mul(page_size))),
        page_users_total: users.len(),
        page_users: users.iter().take(context.limit).map(user).collect(),
        pageblock_order: context.session.pageblock_order(),
    };
    TaskRows { tasks_total: all.len(), tasks: rows, shown }
}

fn row(c: &TaskCandidate, page_size: u64, recorded: &RecordedTasks) -> TaskRow {
    TaskRow {
        pid: c.pid,
        comm: c.comm.as_ref().map(|comm| text(comm)),
        slab: SlabSums::of(&c.sums.slab, recorded.slab),
        slab_frees: recorded.slab.frees.then_some(c.sums.freed_here),
        slab_bytes_freed_by_it: recorded.slab.lives.then_some(c.sums.bytes_freed_here),
        slab_freed_by_others: recorded.slab.lives.then_some(c.freed_elsewhere.0),
        slab_bytes_freed_by_others: recorded.slab.lives.then_some(c.freed_elsewhere.1),
        pages: FrameSums::of(&c.sums.pages, page_size, recorded.pages),
        page_allocator: recorded.page_allocator(&c.page_use),
    }
}

/// Events of the page allocator by task.
pub fn page_allocator(rows: &TasksShown) -> Table {
    type Events = PageAllocatorRow;
    let (order, is_assumed) = rows.pageblock_order;
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
