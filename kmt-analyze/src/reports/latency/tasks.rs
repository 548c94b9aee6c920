//! Reclaim, compaction and migration by task: the figures of trace-vmscan-postprocess.
//!
//! Figures without their events are unknown and not 0: the events that the report needs are listed here.

use kmt_format::schema::EventClass;
use serde::Serialize;

use crate::collect::stalls::{ByOrder, StallSums, TaskStalls};
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Labels;
use crate::sort_rows::SortRows;

/// Reclaim, compaction and migration of one task; `null`: the event was not recorded, or lacks the field.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReclaimTask {
    /// Thread id.
    pub pid: i32,
    /// Name and id.
    pub task: String,
    /// Cgroup of the task at the end of the selected time; `null`: not recorded.
    pub cgroup: Option<String>,
    /// Direct reclaims that it began.
    pub direct_reclaims: Option<u64>,
    /// Direct reclaims that it began, by order.
    pub direct_reclaims_by_order: Vec<OrderCount>,
    /// Time in them, in the clock's unit.
    pub direct_reclaim_time: Option<u64>,
    /// Pages that they freed.
    pub direct_reclaimed: Option<u64>,
    /// Reclaims for a memory cgroup at its limit.
    pub memcg_reclaims: Option<u64>,
    /// Time in them, in the clock's unit.
    pub memcg_reclaim_time: Option<u64>,
    /// Time in all stalls that delay an allocation, in the clock's unit.
    pub waited_time: Option<u64>,
    /// Times that it woke kswapd.
    pub kswapd_woken: Option<u64>,
    /// Times that it woke kswapd, by order.
    pub kswapd_woken_by_order: Vec<OrderCount>,
    /// Pages scanned on inactive lists.
    pub pages_scanned: Option<u64>,
    /// Pages of files scanned on inactive lists.
    pub pages_scanned_file: Option<u64>,
    /// Anonymous pages scanned on inactive lists.
    pub pages_scanned_anon: Option<u64>,
    /// Pages reclaimed.
    pub pages_reclaimed: Option<u64>,
    /// Pages of files reclaimed.
    pub pages_reclaimed_file: Option<u64>,
    /// Anonymous pages reclaimed.
    pub pages_reclaimed_anon: Option<u64>,
    /// Pages written synchronously.
    pub pages_written_sync: Option<u64>,
    /// Pages written asynchronously.
    pub pages_written_async: Option<u64>,
    /// Pages that compaction scanned to migrate them.
    pub compaction_scanned: Option<u64>,
    /// Pages that compaction isolated to migrate them.
    pub compaction_isolated: Option<u64>,
    /// Pages that compaction scanned for free ones. Linux 5.1 to 6.4 have no event for a part of them.
    pub compaction_free_scanned: Option<u64>,
    /// Free pages that it isolated as targets, with the same exception.
    pub compaction_free_isolated: Option<u64>,
    /// Pages that compaction migrated.
    pub compaction_migrated: Option<u64>,
    /// Pages that it could not migrate.
    pub compaction_failed: Option<u64>,
    /// Pages that the task migrated for any reason, compaction included.
    pub pages_migrated: Option<u64>,
    /// Pages that it could not migrate.
    pub pages_migration_failed: Option<u64>,
    /// Times that it woke up, of kswapd alone.
    pub kswapd_wakes: Option<u64>,
    /// Times that it woke up, by order.
    pub kswapd_wakes_by_order: Vec<OrderCount>,
    /// Times that it was woken while awake, of kswapd alone.
    pub kswapd_rewakes: Option<u64>,
    /// Times that it was woken while awake, by order.
    pub kswapd_rewakes_by_order: Vec<OrderCount>,
}

/// Events of one order.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OrderCount {
    /// The order; `null`: the event lacks the field.
    pub order: Option<u64>,
    /// Number of events.
    pub count: u64,
}

/// Tasks that reclaimed, the longest waits first, at most `limit`; and the number of all.
pub fn compute(
    stalls: &StallSums,
    labels: &Labels<'_, '_>,
    recorded: &Recorded,
    limit: usize,
) -> (Vec<ReclaimTask>, usize) {
    let mut all: Vec<(i32, &TaskStalls)> = stalls.tasks.iter().map(|(pid, task)| (*pid, task)).collect();
    all.sort_rows_by_key(|(pid, task)| (std::cmp::Reverse(task.waited_time), *pid));
    let row = |&(pid, task): &(i32, &TaskStalls)| row(pid, labels, task, recorded);
    (all.iter().take(limit).map(row).collect(), all.len())
}

fn row(pid: i32, labels: &Labels<'_, '_>, t: &TaskStalls, r: &Recorded) -> ReclaimTask {
    let all = |counts: &ByOrder| counts.values().sum::<u64>();
    ReclaimTask {
        pid,
        task: labels.task(pid),
        cgroup: labels.cgroup(pid),
        direct_reclaims: r.direct.then(|| all(&t.direct)),
        direct_reclaims_by_order: by_order(&t.direct),
        direct_reclaim_time: r.direct.then_some(t.direct_time),
        direct_reclaimed: t.direct_reclaimed.recorded().filter(|_| r.direct),
        memcg_reclaims: r.memcg.then_some(t.memcg),
        memcg_reclaim_time: r.memcg.then_some(t.memcg_time),
        waited_time: (r.direct || r.memcg || r.compaction).then_some(t.waited_time),
        kswapd_woken: r.wakeups.then(|| all(&t.wakeups)),
        kswapd_woken_by_order: by_order(&t.wakeups),
        pages_scanned: t.scanned.all.recorded().filter(|_| r.scanned),
        pages_scanned_file: t.scanned.parts[0].recorded().filter(|_| r.scanned),
        pages_scanned_anon: t.scanned.parts[1].recorded().filter(|_| r.scanned),
        pages_reclaimed: t.reclaimed.all.recorded().filter(|_| r.reclaimed),
        pages_reclaimed_file: t.reclaimed.parts[0].recorded().filter(|_| r.reclaimed),
        pages_reclaimed_anon: t.reclaimed.parts[1].recorded().filter(|_| r.reclaimed),
        pages_written_sync: t.written.parts[0].recorded().filter(|_| r.written),
        pages_written_async: t.written.parts[1].recorded().filter(|_| r.written),
        compaction_scanned: t.compaction_scanned.recorded().filter(|_| r.isolated),
        compaction_isolated: t.compaction_isolated.recorded().filter(|_| r.isolated),
        compaction_free_scanned: t.free_scanned.recorded().filter(|_| r.free_isolated),
        compaction_free_isolated: t.free_isolated.recorded().filter(|_| r.free_isolated),
        compaction_migrated: t.compacted[0].recorded().filter(|_| r.compacted),
        compaction_failed: t.compacted[1].recorded().filter(|_| r.compacted),
        pages_migrated: t.migrated[0].recorded().filter(|_| r.migrated),
        pages_migration_failed: t.migrated[1].recorded().filter(|_| r.migrated),
        kswapd_wakes: r.kswapd.then(|| all(&t.wakes)),
        kswapd_wakes_by_order: by_order(&t.wakes),
        kswapd_rewakes: r.kswapd.then(|| all(&t.rewakes)),
        kswapd_rewakes_by_order: by_order(&t.rewakes),
    }
}

fn by_order(counts: &ByOrder) -> Vec<OrderCount> {
    counts.iter().map(|(order, count)| OrderCount { order: *order, count: *count }).collect()
}

/// Events that were recorded.
pub struct Recorded {
    pub(super) direct: bool,
    pub(super) memcg: bool,
    pub(super) compaction: bool,
    pub(super) kswapd: bool,
    pub(super) shrinkers: bool,
    pub(super) scanned: bool,
    pub(super) reclaimed: bool,
    pub(super) written: bool,
    pub(super) wakeups: bool,
    pub(super) isolated: bool,
    pub(super) free_isolated: bool,
    pub(super) compacted: bool,
    pub(super) migrated: bool,
    pub(super) graph: bool,
}

impl Recorded {
    /// Of a trace. Events that were recorded and do not occur did not happen.
    pub fn of(context: &ReportContext<'_, '_>) -> Self {
        let has = |start: &str| {
            let is_it = |class: &EventClass| class.name.starts_with(start);
            context.recorded_class(is_it).unwrap_or(false)
        };
        let has_event = |name: &str| context.recorded_class(|class| class.name == name).unwrap_or(false);
        Self {
            direct: has("mm_vmscan_direct_reclaim_begin"),
            memcg: has("mm_vmscan_memcg_"),
            compaction: has("mm_compaction_begin"),
            kswapd: has("mm_vmscan_kswapd_wake"),
            shrinkers: has("mm_shrink_slab_start"),
            scanned: has("mm_vmscan_lru_isolate"),
            reclaimed: has("mm_vmscan_lru_shrink_inactive"),
            written: has("mm_vmscan_write"),
            wakeups: has("mm_vmscan_wakeup_kswapd"),
            isolated: has_event("mm_compaction_isolate_migratepages"),
            free_isolated: has_event("mm_compaction_isolate_freepages"),
            compacted: has_event("mm_compaction_migratepages"),
            migrated: has_event("mm_migrate_pages"),
            graph: has("funcgraph_exit"),
        }
    }

    /// Events that were not recorded, for people.
    pub fn missing(&self) -> Vec<&'static str> {
        let all = [
            (self.direct, "direct reclaim (vmscan:mm_vmscan_direct_reclaim_begin and _end)"),
            (self.memcg, "reclaim for memory cgroups (vmscan:mm_vmscan_memcg_reclaim_begin and _end)"),
            (self.compaction, "compaction (compaction:mm_compaction_begin and _end)"),
            (self.kswapd, "kswapd (vmscan:mm_vmscan_kswapd_wake and _sleep)"),
            (self.wakeups, "kswapd wakeups (vmscan:mm_vmscan_wakeup_kswapd)"),
            (self.shrinkers, "shrinkers (vmscan:mm_shrink_slab_start and _end)"),
            (self.scanned, "pages scanned (vmscan:mm_vmscan_lru_isolate)"),
            (self.reclaimed, "pages reclaimed (vmscan:mm_vmscan_lru_shrink_inactive)"),
            (self.written, "pages written by reclaim (vmscan:mm_vmscan_write_folio)"),
            (self.isolated, "pages isolated by compaction (compaction:mm_compaction_isolate_migratepages)"),
            (self.free_isolated, "free pages isolated (compaction:mm_compaction_isolate_freepages)"),
            (self.compacted, "pages migrated by compaction (compaction:mm_compaction_migratepages)"),
            (self.migrated, "pages migrated (migrate:mm_migrate_pages)"),
            (self.graph, "functions (a function graph)"),
        ];
        all.into_iter().filter(|(has, _)| !has).map(|(_, name)| name).collect()
    }
}
