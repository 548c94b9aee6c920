//! Caches of which objects are freed without an event.

use kmt_format::kernel::KernelVersion;

/// A cache with such objects.
#[derive(Debug, Clone, Copy)]
pub struct UnseenFrees {
    /// Name of the cache.
    pub cache: &'static str,
    /// First kernel that was found to do so: major and minor version.
    pub since: (u32, u32),
    /// Freed many at once by kmem_cache_free_bulk, else by kfree_rcu.
    pub in_bulk: bool,
}

/// By kfree_rcu, whose batches and sheaves have no events (fs/eventpoll.c; kernel/time/posix-timers.c; lib/maple_tree.c,
/// since 6.18), or in bulk (lib/maple_tree.c; net/core/skbuff.c, where a CPU keeps packets for NAPI; up to 7.2).
pub const UNSEEN_FREES: [UnseenFrees; 4] = [
    UnseenFrees { cache: "maple_node", since: (6, 1), in_bulk: true },
    UnseenFrees { cache: "skbuff_head_cache", since: (5, 13), in_bulk: true },
    UnseenFrees { cache: "eventpoll_epi", since: (6, 11), in_bulk: false },
    UnseenFrees { cache: "posix_timers_cache", since: (6, 13), in_bulk: false },
];

/// True if objects of a cache are freed in bulk.
pub fn is_freed_in_bulk(cache: &str) -> bool {
    UNSEEN_FREES.iter().any(|known| known.in_bulk && known.cache == cache)
}

/// Caches of a kernel with frees without events.
pub fn unseen_frees(version: KernelVersion) -> impl Iterator<Item = &'static str> {
    let is_in = move |known: &&UnseenFrees| version >= KernelVersion::new(known.since.0, known.since.1);
    UNSEEN_FREES.iter().filter(is_in).map(|known| known.cache)
}
