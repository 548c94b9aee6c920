//! Reclaim, compaction and migration by task: the figures of trace-vmscan-postprocess.

use serde::Serialize;

use super::recorded::Recorded;
use crate::collect::stalls::{ByOrder, StallSums, TaskStalls};
use crate::reports::common::labels::Labels;

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
    all.sort_by_key(|(pid, task)| (std::cmp::Reverse(task.waited_time), *pid));
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
