//! Presets: what a recording takes under one name.

/// Sets of events under one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Preset {
    /// Slab allocations and frees
    Slab, // and events of pages that end the lives of objects on them
    /// Page allocations, with their stacks
    Pages,
    /// Reclaim and compaction: tracepoints, and slow calls of their functions
    Reclaim,
    /// All events of kernel memory: kmem, vmalloc, percpu, cma, page_pool
    All,
}

impl Preset {
    /// Patterns of its events.
    pub(super) fn events(self) -> &'static [&'static str] {
        match self {
            Self::Slab => &[
                "kmem:kmalloc",
                "kmem:kmalloc_node",
                "kmem:kfree",
                "kmem:kmem_cache_alloc",
                "kmem:kmem_cache_alloc_node",
                "kmem:kmem_cache_free",
                "kmem:mm_page_alloc",
                "kmem:mm_page_free",
            ],
            Self::Pages => &["kmem:mm_page_*"],
            Self::Reclaim => &["vmscan:*", "compaction:*", "migrate:mm_migrate_pages"],
            Self::All => &["kmem:*", "vmalloc:*", "percpu:*", "cma:*", "page_pool:*"],
        }
    }

    /// Patterns of events whose stacks are taken.
    pub(super) fn stacks(self) -> &'static [&'static str] {
        match self {
            Self::Pages => &["kmem:mm_page_alloc"],
            // The event has no call site.
            Self::All => &["vmalloc:alloc_vmap_area"],
            Self::Slab | Self::Reclaim => &[],
        }
    }
}

/// Names that an allocation function had in different kernels: one of a row is enough.
pub(super) const RECLAIM_FUNCTIONS: [&[&str]; 10] = [
    &["__alloc_frozen_pages_noprof", "__alloc_pages_noprof", "__alloc_pages", "__alloc_pages_nodemask"],
    &["try_to_free_pages"],
    &["mem_cgroup_soft_limit_reclaim", "memcg1_soft_limit_reclaim"],
    &["shrink_node"],
    &["shrink_node_memcgs", "shrink_node_memcg", "shrink_lruvec"],
    &["shrink_slab", "do_shrink_slab"],
    &["shrink_active_list"],
    &["shrink_inactive_list"],
    &["compact_zone"],
    &["try_to_compact_pages"],
];
