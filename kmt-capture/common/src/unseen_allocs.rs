//! Caches of which objects are allocated without an event.

/// A cache with these objects.
#[derive(Debug, Clone, Copy)]
pub struct UnseenAllocs {
    /// Name of the cache.
    pub cache: &'static str,
    /// Part of the kernel that allocates them.
    pub of: &'static str,
    /// Begins of names of functions of that part whose allocations have events; none: too many tasks use it.
    pub functions: &'static [&'static str],
}

/// Functions of io_uring that allocate.
const IO_URING: &[&str] =
    &["io_ring_", "io_uring_", "__io_uring_", "__do_sys_io_uring_", "io_sqe_", "io_rsrc_", "io_wq_"];

/// In bulk, by kmem_cache_alloc_bulk: maple tree (lib/maple_tree.c, 6.1 to 6.17), network (net/core/skbuff.c), io_uring
/// (io_uring/io_uring.c and, since 6.8, io_uring/kbuf.c).
pub const UNSEEN_ALLOCS: [UnseenAllocs; 4] = [
    UnseenAllocs { cache: "maple_node", of: "maps of memory", functions: &[] },
    UnseenAllocs { cache: "skbuff_head_cache", of: "the network", functions: &[] },
    UnseenAllocs { cache: "io_kiocb", of: "io_uring", functions: IO_URING },
    UnseenAllocs { cache: "io_buffer", of: "io_uring", functions: IO_URING },
];

/// Allocations without an event from a cache; `None`: none are known.
pub fn unseen_allocs(cache: &str) -> Option<&'static UnseenAllocs> {
    UNSEEN_ALLOCS.iter().find(|known| known.cache == cache)
}
