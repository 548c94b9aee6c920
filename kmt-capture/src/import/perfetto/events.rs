//! Events that have a message of their own: names and fields by the numbers of the messages.
//!
//! Source: protos/perfetto/trace/ftrace/{ftrace_event,kmem,vmscan,compaction,oom,task,sched}.proto of Perfetto v53. Fields
//! are in the order in which kernels print them.

use super::layout::Kind::{
    self, Function, Gfp, Hex, Pfn, Pointer, S64, Signed, Site, Size, Text, U64, Unsigned,
};

/// An event with a message of its own.
#[derive(Debug)]
pub struct Known {
    /// Number of its message in an event.
    pub number: u32,
    /// System.
    pub system: &'static str,
    /// Name.
    pub name: &'static str,
    /// Number, name and kind of each field.
    pub fields: &'static [(u32, &'static str, Kind)],
}

const fn known(
    number: u32,
    system: &'static str,
    name: &'static str,
    fields: &'static [(u32, &'static str, Kind)],
) -> Known {
    Known { number, system, name, fields }
}

type Fields = &'static [(u32, &'static str, Kind)];

const FREE: Fields = &[(1, "call_site", Site), (2, "ptr", Pointer)];
const ALLOC: Fields = &[
    (3, "call_site", Site),
    (5, "ptr", Pointer),
    (2, "bytes_req", Size),
    (1, "bytes_alloc", Size),
    (4, "gfp_flags", Gfp),
];
const ALLOC_NODE: Fields = &[
    (3, "call_site", Site),
    (6, "ptr", Pointer),
    (2, "bytes_req", Size),
    (1, "bytes_alloc", Size),
    (4, "gfp_flags", Gfp),
    (5, "node", Signed),
];
const PAGES: Fields =
    &[(3, "page", Pointer), (4, "pfn", Pfn), (2, "order", Unsigned), (1, "migratetype", Signed)];
const SCAN: Fields =
    &[(1, "start_pfn", Hex), (2, "end_pfn", Hex), (3, "nr_scanned", U64), (4, "nr_taken", U64)];
const DEFER: Fields = &[
    (1, "nid", Signed),
    (2, "idx", Unsigned),
    (3, "order", Signed),
    (4, "considered", Unsigned),
    (5, "defer_shift", Unsigned),
    (6, "order_failed", Signed),
];
const SUITABLE: Fields =
    &[(1, "nid", Signed), (2, "idx", Unsigned), (3, "order", Signed), (4, "ret", Signed)];
const WAKE: Fields = &[
    (1, "nid", Signed),
    (2, "order", Signed),
    (3, "classzone_idx", Unsigned),
    (4, "highest_zoneidx", Unsigned),
];

/// All of them, by number.
static KNOWN: [Known; 46] = [
    known(
        46,
        "vmscan",
        "mm_vmscan_direct_reclaim_begin",
        &[(1, "order", Signed), (2, "may_writepage", Signed), (3, "gfp_flags", Gfp)],
    ),
    known(47, "vmscan", "mm_vmscan_direct_reclaim_end", &[(1, "nr_reclaimed", U64)]),
    known(
        48,
        "vmscan",
        "mm_vmscan_kswapd_wake",
        &[(1, "nid", Signed), (2, "order", Signed), (3, "zid", Signed)],
    ),
    known(49, "vmscan", "mm_vmscan_kswapd_sleep", &[(1, "nid", Signed)]),
    known(
        99,
        "compaction",
        "mm_compaction_begin",
        &[
            (1, "zone_start", Hex),
            (2, "migrate_pfn", Hex),
            (3, "free_pfn", Hex),
            (4, "zone_end", Hex),
            (5, "sync", Unsigned),
        ],
    ),
    known(100, "compaction", "mm_compaction_defer_compaction", DEFER),
    known(101, "compaction", "mm_compaction_deferred", DEFER),
    known(102, "compaction", "mm_compaction_defer_reset", DEFER),
    known(
        103,
        "compaction",
        "mm_compaction_end",
        &[
            (1, "zone_start", Hex),
            (2, "migrate_pfn", Hex),
            (3, "free_pfn", Hex),
            (4, "zone_end", Hex),
            (5, "sync", Unsigned),
            (6, "status", Signed),
        ],
    ),
    known(104, "compaction", "mm_compaction_finished", SUITABLE),
    known(105, "compaction", "mm_compaction_isolate_freepages", SCAN),
    known(106, "compaction", "mm_compaction_isolate_migratepages", SCAN),
    known(107, "compaction", "mm_compaction_kcompactd_sleep", &[(1, "nid", Signed)]),
    known(108, "compaction", "mm_compaction_kcompactd_wake", WAKE),
    known(109, "compaction", "mm_compaction_migratepages", &[(1, "nr_migrated", U64), (2, "nr_failed", U64)]),
    known(110, "compaction", "mm_compaction_suitable", SUITABLE),
    known(
        111,
        "compaction",
        "mm_compaction_try_to_compact_pages",
        &[(1, "order", Signed), (2, "gfp_mask", Gfp), (3, "mode", Unsigned), (4, "prio", Signed)],
    ),
    known(112, "compaction", "mm_compaction_wakeup_kcompactd", WAKE),
    known(
        235,
        "task",
        "task_newtask",
        &[(1, "pid", Signed), (2, "comm", Text), (3, "clone_flags", Hex), (4, "oom_score_adj", Signed)],
    ),
    known(
        236,
        "task",
        "task_rename",
        &[(1, "pid", Signed), (2, "oldcomm", Text), (3, "newcomm", Text), (4, "oom_score_adj", Signed)],
    ),
    known(
        237,
        "sched",
        "sched_process_exec",
        &[(1, "filename", Text), (2, "pid", Signed), (3, "old_pid", Signed)],
    ),
    known(
        238,
        "sched",
        "sched_process_exit",
        &[(1, "comm", Text), (2, "pid", Signed), (4, "prio", Signed), (3, "tgid", Signed)],
    ),
    known(
        239,
        "sched",
        "sched_process_fork",
        &[
            (1, "parent_comm", Text),
            (2, "parent_pid", Signed),
            (3, "child_comm", Text),
            (4, "child_pid", Signed),
        ],
    ),
    known(240, "sched", "sched_process_free", &[(1, "comm", Text), (2, "pid", Signed), (3, "prio", Signed)]),
    known(298, "kmem", "kfree", FREE),
    known(299, "kmem", "kmalloc", ALLOC),
    known(300, "kmem", "kmalloc_node", ALLOC_NODE),
    known(301, "kmem", "kmem_cache_alloc", ALLOC),
    known(302, "kmem", "kmem_cache_alloc_node", ALLOC_NODE),
    known(303, "kmem", "kmem_cache_free", FREE),
    known(304, "kmem", "migrate_pages_end", &[(1, "mode", Signed)]),
    known(305, "kmem", "migrate_pages_start", &[(1, "mode", Signed)]),
    known(306, "kmem", "migrate_retry", &[(1, "tries", Signed)]),
    known(
        307,
        "kmem",
        "mm_page_alloc",
        &[
            (4, "page", Pointer),
            (5, "pfn", Pfn),
            (3, "order", Unsigned),
            (2, "migratetype", Signed),
            (1, "gfp_flags", Gfp),
        ],
    ),
    known(
        308,
        "kmem",
        "mm_page_alloc_extfrag",
        &[
            (5, "page", Pointer),
            (7, "pfn", Pfn),
            (2, "alloc_order", Signed),
            (4, "fallback_order", Signed),
            (1, "alloc_migratetype", Signed),
            (3, "fallback_migratetype", Signed),
            (6, "change_ownership", Signed),
        ],
    ),
    known(309, "kmem", "mm_page_alloc_zone_locked", PAGES),
    known(310, "kmem", "mm_page_free", &[(2, "page", Pointer), (3, "pfn", Pfn), (1, "order", Unsigned)]),
    known(311, "kmem", "mm_page_free_batched", &[(2, "page", Pointer), (3, "pfn", Pfn), (1, "cold", Signed)]),
    known(312, "kmem", "mm_page_pcpu_drain", PAGES),
    known(
        313,
        "kmem",
        "rss_stat",
        &[(4, "mm_id", Unsigned), (3, "curr", Unsigned), (1, "member", Signed), (2, "size", S64)],
    ),
    known(
        326,
        "oom",
        "oom_score_adj_update",
        &[(3, "pid", Signed), (1, "comm", Text), (2, "oom_score_adj", Signed)],
    ),
    known(334, "oom", "mark_victim", &[(1, "pid", Signed)]),
    known(
        443,
        "vmscan",
        "mm_shrink_slab_start",
        &[
            (8, "shrink", Function),
            (7, "shr", Pointer),
            (10, "nid", Signed),
            (5, "nr_objects_to_shrink", S64),
            (3, "gfp_flags", Gfp),
            (6, "pgs_scanned", U64),
            (4, "lru_pgs", U64),
            (1, "cache_items", U64),
            (2, "delta", U64),
            (9, "total_scan", U64),
            (11, "priority", Signed),
        ],
    ),
    known(
        444,
        "vmscan",
        "mm_shrink_slab_end",
        &[
            (4, "shrink", Function),
            (3, "shr", Pointer),
            (7, "nid", Signed),
            (6, "unused_scan", S64),
            (1, "new_scan", S64),
            (5, "total_scan", S64),
            (2, "retval", Signed),
        ],
    ),
    known(
        607,
        "vmscan",
        "mm_vmscan_memcg_reclaim_begin",
        &[(1, "order", Signed), (2, "may_writepage", Signed), (3, "gfp_flags", Gfp)],
    ),
    known(608, "vmscan", "mm_vmscan_memcg_reclaim_end", &[(1, "nr_reclaimed", U64)]),
];

/// Number of the event that has its name and the names of its fields with it.
pub const GENERIC: u32 = 327;
/// First number of events that are described by a descriptor.
pub const DESCRIBED_FROM: u32 = 65_536;

impl Known {
    /// By number.
    pub fn numbered(number: u32) -> Option<&'static Self> {
        KNOWN.binary_search_by_key(&number, |known| known.number).ok().and_then(|at| KNOWN.get(at))
    }
}

/// Fields of an event with the name and the id of a task, and of its thread group.
#[derive(Debug)]
pub struct NameFields {
    /// Name.
    pub comm: u32,
    /// Task.
    pub pid: u32,
    /// Thread group.
    pub tgid: Option<u32>,
}

const fn name_fields(comm: u32, pid: u32) -> NameFields {
    NameFields { comm, pid, tgid: None }
}

/// Names of tasks in the event of that number: of sched_switch, sched_wakeup, sched_waking, sched_wakeup_new,
/// sched_process_exit, sched_process_fork, sched_process_free, oom_score_adj_update.
pub fn names_in(number: u32) -> &'static [NameFields] {
    const FIRST: &[NameFields] = &[name_fields(1, 2)];
    const SWITCH: &[NameFields] = &[name_fields(1, 2), name_fields(5, 6)];
    const FORK: &[NameFields] = &[name_fields(1, 2), name_fields(3, 4)];
    const EXIT: &[NameFields] = &[NameFields { comm: 1, pid: 2, tgid: Some(3) }];
    const ADJ: &[NameFields] = &[name_fields(1, 3)];
    match number {
        4 => SWITCH,
        17 | 20 | 114 | 240 => FIRST,
        238 => EXIT,
        239 => FORK,
        326 => ADJ,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_in_the_order_of_their_numbers() {
        assert!(KNOWN.is_sorted_by(|a, b| a.number < b.number));
        for known in &KNOWN {
            assert!(Known::numbered(known.number).is_some_and(|found| found.name == known.name));
            let mut numbers: Vec<u32> = known.fields.iter().map(|field| field.0).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), known.fields.len(), "{}", known.name);
        }
    }
}
