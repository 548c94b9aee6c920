//! Events that the report needs.

use kmt_format::schema::EventClass;

use crate::reports::common::ReportContext;

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
