//! Kinds of stalls, and the figures of each task and wait.
//!
//! `events` makes intervals of these kinds from side events, `stalls/mod` adds them up, and `reports/latency` shows
//! them. Columns of a task are those of the kernel's trace-vmscan-postprocess.pl, so that the numbers can be compared.

use std::collections::BTreeMap;

use crate::collect::histogram::{Amount, Split};
use crate::stream::{SideEventKind, SideNumbers};

/// Kind of a stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stall {
    /// Direct reclaim of pages by a task whose allocation finds none.
    Direct,
    /// Reclaim of pages for a memory cgroup at its limit.
    Memcg,
    /// Reclaim of pages for a memory cgroup beyond its soft limit.
    SoftLimit,
    /// Reclaim of pages of the task's own node first (vm.zone_reclaim_mode).
    Node,
    /// Compaction of a zone by a task for its own allocation.
    DirectCompaction,
    /// kcompactd, or a compaction requested through /proc.
    Compaction,
    /// kswapd of that node is awake.
    Kswapd(Option<u64>),
    /// A shrinker: its function, and its address among shrinkers that share the function.
    Shrinker(Option<u64>, Option<u64>),
    /// A function of the function graph tracer.
    Function(u64),
}

/// Tasks that compact a zone for their own allocations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Compactors {
    /// Those that say so: mm_compaction_try_to_compact_pages comes before.
    #[default]
    Announced,
    /// That event was not recorded: all tasks but these, in order: kcompactd and kswapd.
    AllBut(Vec<i32>),
}

impl Stall {
    /// Kinds that an allocation of the task waits for.
    pub const DELAYS: [Self; 5] =
        [Self::Direct, Self::Memcg, Self::SoftLimit, Self::Node, Self::DirectCompaction];

    /// True if an allocation of the task waits for it.
    pub fn delays(self) -> bool {
        Self::DELAYS.contains(&self)
    }
}

/// A complete interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// Kind.
    pub stall: Stall,
    /// Task.
    pub pid: i32,
    /// CPU where it ended.
    pub cpu: u32,
    /// Time of its begin.
    pub begin: u64,
    /// Time of its end.
    pub end: u64,
}

/// An allocation that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Delayed {
    /// Stall that it waited for.
    pub stall: Stall,
    /// Number of the kind of the page allocation.
    pub page_site: u32,
    /// Number of the site of the slab allocation that needed the page.
    pub slab_site: Option<u32>,
    /// True if the allocation failed.
    pub failed: bool,
}

/// Figures of one task: the columns of trace-vmscan-postprocess.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskStalls {
    /// Direct reclaims, by order.
    pub direct: ByOrder,
    /// Times that it woke kswapd, by order.
    pub wakeups: ByOrder,
    /// Pages scanned on inactive lists: of files, anonymous.
    pub scanned: Split,
    /// Pages reclaimed: of files, anonymous.
    pub reclaimed: Split,
    /// Pages written: synchronously, asynchronously.
    pub written: Split,
    /// Time in direct reclaim.
    pub direct_time: u64,
    /// Reclaims for a memory cgroup at its limit, or beyond its soft limit.
    pub memcg: u64,
    /// Time in them.
    pub memcg_time: u64,
    /// Sum of all times that allocations wait for: reclaim of any kind, direct compaction.
    pub waited_time: u64,
    /// Wakes of kswapd, by order.
    pub wakes: ByOrder,
    /// Wakes of kswapd while it was awake, by order.
    pub rewakes: ByOrder,
    /// Pages freed by its direct reclaims, from their end events.
    pub direct_reclaimed: Amount,
    /// Pages that compaction scanned to migrate them.
    pub compaction_scanned: Amount,
    /// Pages that compaction isolated to migrate them.
    pub compaction_isolated: Amount,
    /// Pages that compaction scanned for free ones.
    pub free_scanned: Amount,
    /// Free pages that it isolated as targets.
    pub free_isolated: Amount,
    /// Pages that compaction migrated: done, failed.
    pub compacted: [Amount; 2],
    /// Pages migrated for any reason, compaction included: done, failed.
    pub migrated: [Amount; 2],
}

impl TaskStalls {
    /// Adds an event of compaction or migration with its two numbers.
    pub(super) fn migrate(&mut self, kind: SideEventKind, numbers: &SideNumbers) {
        let [first, second] = match kind {
            SideEventKind::IsolateMigrate => [&mut self.compaction_scanned, &mut self.compaction_isolated],
            SideEventKind::IsolateFree => [&mut self.free_scanned, &mut self.free_isolated],
            SideEventKind::CompactMigrate => self.compacted.each_mut(),
            SideEventKind::MigratePages => self.migrated.each_mut(),
            _ => return,
        };
        first.add(numbers[0]);
        second.add(numbers[1]);
    }
}

/// Counts by order; `None`: not in the event.
pub type ByOrder = BTreeMap<Option<u64>, u64>;

/// Number, sum and maximum of waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// Number of waits.
    pub count: u64,
    /// Sum, in the clock's unit.
    pub total: u64,
    /// Longest.
    pub max: u64,
}

impl Waits {
    pub(super) fn add(&mut self, length: u64) {
        self.count += 1;
        self.total = self.total.saturating_add(length);
        self.max = self.max.max(length);
    }
}
