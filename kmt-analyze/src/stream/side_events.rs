//! Side events: other events of which reports need some fields, such as reclaim, compaction, fallbacks and function
//! graphs.
//!
//! One list has the system and event names with the fields that are read, from the headers of Linux 4.4 to 7.2. The
//! decoder makes a plan for each class of a file; numbers of an event go beside the operations to the ledger, and as
//! `SideEvent` to collectors such as stalls and fallbacks. A field that an older kernel lacks is `None`.

use kmt_format::read::Event;
use kmt_format::schema::EventClass;

use super::plan::Interests;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Kind of a side event; each has a list of its fields, or a description if it has none.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum SideEventKind {
            $($(#[$doc])* $name,)*
        }

        impl SideEventKind {
            /// All kinds, by number.
            const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

kinds! {
    /// order: a task enters direct reclaim.
    DirectBegin,
    /// nr_reclaimed.
    DirectEnd,
    /// A task enters reclaim for a memory cgroup at its limit.
    MemcgBegin,
    /// Reclaim for a memory cgroup at its limit ends.
    MemcgEnd,
    /// A task enters reclaim for a memory cgroup beyond its soft limit.
    SoftLimitBegin,
    /// Reclaim for a memory cgroup beyond its soft limit ends.
    SoftLimitEnd,
    /// A task enters reclaim of its own node first.
    NodeBegin,
    /// Reclaim of the own node ends.
    NodeEnd,
    /// nid, order.
    KswapdWake,
    /// nid.
    KswapdSleep,
    /// order.
    WakeupKswapd,
    /// shr, shrink.
    ShrinkBegin,
    /// shr, shrink, objects freed.
    ShrinkEnd,
    /// nr_scanned, isolate_mode, lru, file. Kernels before 4.9 have file and no lru.
    LruIsolate,
    /// nr_reclaimed, reclaim_flags.
    ShrinkInactive,
    /// reclaim_flags.
    WritePage,
    /// Compaction of a zone begins.
    CompactBegin,
    /// Compaction of a zone ends.
    CompactEnd,
    /// A task compacts for its own allocation.
    TryCompact,
    /// nr_scanned, nr_taken: compaction isolates pages to migrate.
    IsolateMigrate,
    /// nr_scanned, nr_taken: it isolates free pages as targets.
    IsolateFree,
    /// nr_migrated, nr_failed: it migrated the isolated pages.
    CompactMigrate,
    /// succeeded, failed: pages were migrated, for any reason.
    MigratePages,
    /// pfn, alloc_order, fallback_order, alloc_migratetype, fallback_migratetype, change_ownership.
    Fallback,
    /// func, depth.
    GraphEntry,
    /// func, depth, calltime, rettime.
    GraphExit,
    /// A page goes from a per-CPU list back to the buddy lists.
    PcpuDrain,
    /// A page was taken from the buddy lists under the zone's lock.
    ZoneLocked,
    /// A page was freed in a batch.
    FreeBatched,
    /// pid, clone_flags: a task starts another.
    NewTask,
    /// pid: a task exits.
    TaskExit,
    /// addr, size, failed.
    VmallocAlloc,
    /// va_start.
    VmallocFree,
    /// ptr, size, bytes_alloc, call_site. Kernels before 5.19 have neither bytes_alloc nor call_site.
    PercpuAlloc,
    /// An allocation of the percpu allocator fails.
    PercpuFail,
    /// ptr.
    PercpuFree,
}

/// Largest number of fields of a side event.
pub const FIELDS: usize = 6;

/// Fields of one event, in the order of its [`SideEventKind`]; `None`: not in the event.
pub type SideNumbers = [Option<u64>; FIELDS];

/// One kind: system, event, names of its fields.
type Description = (&'static str, &'static str, SideEventKind, &'static [&'static str]);

/// From include/trace/events/{vmscan,compaction,migrate,kmem,task,sched,vmalloc,percpu}.h and
/// kernel/trace/trace_entries.h, 4.4 to 7.2.
const SIDE_EVENTS: [Description; 39] = {
    use SideEventKind::*;
    [
        ("vmscan", "mm_vmscan_direct_reclaim_begin", DirectBegin, &["order"]),
        ("vmscan", "mm_vmscan_direct_reclaim_end", DirectEnd, &["nr_reclaimed"]),
        ("vmscan", "mm_vmscan_memcg_reclaim_begin", MemcgBegin, &[]),
        ("vmscan", "mm_vmscan_memcg_reclaim_end", MemcgEnd, &[]),
        ("vmscan", "mm_vmscan_memcg_softlimit_reclaim_begin", SoftLimitBegin, &[]),
        ("vmscan", "mm_vmscan_memcg_softlimit_reclaim_end", SoftLimitEnd, &[]),
        ("vmscan", "mm_vmscan_node_reclaim_begin", NodeBegin, &[]),
        ("vmscan", "mm_vmscan_node_reclaim_end", NodeEnd, &[]),
        ("vmscan", "mm_vmscan_kswapd_wake", KswapdWake, &["nid", "order"]),
        ("vmscan", "mm_vmscan_kswapd_sleep", KswapdSleep, &["nid"]),
        ("vmscan", "mm_vmscan_wakeup_kswapd", WakeupKswapd, &["order"]),
        ("vmscan", "mm_shrink_slab_start", ShrinkBegin, &["shr", "shrink"]),
        ("vmscan", "mm_shrink_slab_end", ShrinkEnd, &["shr", "shrink", "retval"]),
        ("vmscan", "mm_vmscan_lru_isolate", LruIsolate, &["nr_scanned", "isolate_mode", "lru", "file"]),
        ("vmscan", "mm_vmscan_lru_shrink_inactive", ShrinkInactive, &["nr_reclaimed", "reclaim_flags"]),
        ("vmscan", "mm_vmscan_write_folio", WritePage, &["reclaim_flags"]),
        ("vmscan", "mm_vmscan_writepage", WritePage, &["reclaim_flags"]),
        ("compaction", "mm_compaction_begin", CompactBegin, &[]),
        ("compaction", "mm_compaction_end", CompactEnd, &[]),
        ("compaction", "mm_compaction_try_to_compact_pages", TryCompact, &[]),
        ("compaction", "mm_compaction_isolate_migratepages", IsolateMigrate, &["nr_scanned", "nr_taken"]),
        ("compaction", "mm_compaction_isolate_freepages", IsolateFree, &["nr_scanned", "nr_taken"]),
        ("compaction", "mm_compaction_fast_isolate_freepages", IsolateFree, &["nr_scanned", "nr_taken"]),
        ("compaction", "mm_compaction_migratepages", CompactMigrate, &["nr_migrated", "nr_failed"]),
        ("migrate", "mm_migrate_pages", MigratePages, &["succeeded", "failed"]),
        (
            "kmem",
            "mm_page_alloc_extfrag",
            Fallback,
            &[
                "pfn",
                "alloc_order",
                "fallback_order",
                "alloc_migratetype",
                "fallback_migratetype",
                "change_ownership",
            ],
        ),
        ("ftrace", "funcgraph_entry", GraphEntry, &["func", "depth"]),
        ("ftrace", "funcgraph_retaddr_entry", GraphEntry, &["func", "depth"]),
        ("ftrace", "funcgraph_exit", GraphExit, &["func", "depth", "calltime", "rettime"]),
        ("kmem", "mm_page_pcpu_drain", PcpuDrain, &[]),
        ("kmem", "mm_page_alloc_zone_locked", ZoneLocked, &[]),
        ("kmem", "mm_page_free_batched", FreeBatched, &[]),
        ("task", "task_newtask", NewTask, &["pid", "clone_flags"]),
        ("sched", "sched_process_exit", TaskExit, &["pid"]),
        ("vmalloc", "alloc_vmap_area", VmallocAlloc, &["addr", "size", "failed"]),
        ("vmalloc", "free_vmap_area_noflush", VmallocFree, &["va_start"]),
        ("percpu", "percpu_alloc_percpu", PercpuAlloc, &["ptr", "size", "bytes_alloc", "call_site"]),
        ("percpu", "percpu_alloc_percpu_fail", PercpuFail, &[]),
        ("percpu", "percpu_free_percpu", PercpuFree, &["ptr"]),
    ]
};

impl SideEventKind {
    /// The kind of that number.
    #[inline]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// True if it has fields.
    #[inline]
    pub fn has_fields(self) -> bool {
        use SideEventKind::*;
        !matches!(
            self,
            MemcgBegin
                | MemcgEnd
                | SoftLimitBegin
                | SoftLimitEnd
                | NodeBegin
                | NodeEnd
                | CompactBegin
                | CompactEnd
                | TryCompact
                | PcpuDrain
                | ZoneLocked
                | FreeBatched
                | PercpuFail
        )
    }

    /// True for allocations that the ledger of areas enters, which may have a stack.
    #[inline]
    pub fn allocates_area(self) -> bool {
        matches!(self, Self::VmallocAlloc | Self::PercpuAlloc)
    }

    /// True for events of the ledger of areas.
    #[inline]
    pub fn is_about_areas(self) -> bool {
        self as u32 >= Self::VmallocAlloc as u32
    }

    fn is_about_pages(self) -> bool {
        matches!(self, Self::PcpuDrain | Self::ZoneLocked | Self::FreeBatched | Self::Fallback)
    }
}

/// Fields of a class of side events.
#[derive(Debug, Clone)]
pub struct SideEventPlan {
    /// Kind of its events.
    pub kind: SideEventKind,
    fields: [Option<usize>; FIELDS],
}

impl SideEventPlan {
    /// Plan for a class, if it has side events.
    pub fn of(class: &EventClass) -> Option<Self> {
        let (.., kind, names) = SIDE_EVENTS.iter().find(|n| n.0 == class.system && n.1 == class.name)?;
        let mut fields = [None; FIELDS];
        for (field, name) in fields.iter_mut().zip(*names) {
            *field = class.field_named(name);
        }
        Some(Self { kind: *kind, fields })
    }

    /// True if it is needed.
    pub fn is_wanted(&self, interests: Interests) -> bool {
        interests.contains(match self.kind {
            SideEventKind::NewTask | SideEventKind::TaskExit => Interests::TASKS,
            kind if kind.is_about_pages() => Interests::PAGE_SIDE_EVENTS,
            kind if kind.is_about_areas() => Interests::AREAS,
            _ => Interests::STALLS,
        })
    }

    /// Fields of an event.
    pub fn read(&self, event: &Event<'_>) -> SideNumbers {
        self.fields.map(|field| event.uint(field?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_numbers_belong_together() {
        for (number, &kind) in SideEventKind::ALL.iter().enumerate() {
            assert_eq!(kind as usize, number);
            assert_eq!(SideEventKind::of(number as u32), Some(kind));
            assert!(SIDE_EVENTS.iter().any(|n| n.2 == kind), "{kind:?}");
        }
        for (.., kind, names) in SIDE_EVENTS {
            assert_eq!(kind.has_fields(), !names.is_empty());
        }
    }
}
