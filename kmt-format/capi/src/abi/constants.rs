//! Meanings of events and fields, as numbers. `kmt_format::schema` has them as constants; a test holds them equal.
// Literals: cbindgen evaluates none.

/// No meaning that this library knows.
pub const KMT_OTHER: u16 = 0;
/// An allocation by size: `kmem:kmalloc`, `kmem:kmalloc_node`.
pub const KMT_KMALLOC: u16 = 1;
/// A free by address: `kmem:kfree`.
pub const KMT_KFREE: u16 = 2;
/// An allocation from a cache: `kmem:kmem_cache_alloc`, `kmem:kmem_cache_alloc_node`.
pub const KMT_CACHE_ALLOC: u16 = 3;
/// A free to a cache: `kmem:kmem_cache_free`.
pub const KMT_CACHE_FREE: u16 = 4;
/// `kmem:mm_page_alloc`.
pub const KMT_PAGE_ALLOC: u16 = 5;
/// `kmem:mm_page_free`.
pub const KMT_PAGE_FREE: u16 = 6;
/// `kmem:mm_page_free_batched`: comes besides `mm_page_free`, is never a free of its own.
pub const KMT_PAGE_FREE_BATCHED: u16 = 7;
/// `kmem:rss_stat`.
pub const KMT_RSS_STAT: u16 = 8;
/// `ftrace:kernel_stack`.
pub const KMT_KERNEL_STACK: u16 = 9;
/// `kmt:kvfree_call_rcu`, a probe at the entry of that function: an object is handed over, and freed after a grace
/// period without an event of its own.
pub const KMT_FREE_RCU: u16 = 10;

/// No meaning that this library knows.
pub const KMT_ROLE_NONE: u16 = 0;
/// Event id, `common_type`.
pub const KMT_ROLE_EVENT_ID: u16 = 1;
/// `common_flags`.
pub const KMT_ROLE_FLAGS: u16 = 2;
/// `common_preempt_count`.
pub const KMT_ROLE_PREEMPT_COUNT: u16 = 3;
/// Thread id, `common_pid`.
pub const KMT_ROLE_PID: u16 = 4;
/// Address of a slab object.
pub const KMT_ROLE_PTR: u16 = 5;
/// Return address of the allocator's caller.
pub const KMT_ROLE_CALL_SITE: u16 = 6;
/// Bytes requested.
pub const KMT_ROLE_BYTES_REQ: u16 = 7;
/// Bytes handed out.
pub const KMT_ROLE_BYTES_ALLOC: u16 = 8;
/// Allocation flags of the traced kernel.
pub const KMT_ROLE_GFP_FLAGS: u16 = 9;
/// NUMA node requested; -1 any.
pub const KMT_ROLE_NODE: u16 = 10;
/// Name of the cache.
pub const KMT_ROLE_CACHE_NAME: u16 = 11;
/// True if memory-cgroup accounting was requested.
pub const KMT_ROLE_ACCOUNTED: u16 = 12;
/// Page frame number; all ones in an allocation that failed.
pub const KMT_ROLE_PFN: u16 = 13;
/// log2 of a number of pages.
pub const KMT_ROLE_ORDER: u16 = 14;
/// Migrate type requested.
pub const KMT_ROLE_MIGRATETYPE: u16 = 15;
/// A size of an address space, `rss_stat`.
pub const KMT_ROLE_RSS_SIZE: u16 = 16;
/// Return addresses, innermost first.
pub const KMT_ROLE_STACK: u16 = 17;
/// Number of return addresses.
pub const KMT_ROLE_STACK_DEPTH: u16 = 18;
/// Time when a function was entered.
pub const KMT_ROLE_ENTRY_TIME: u16 = 19;
/// Time when a function returned.
pub const KMT_ROLE_RETURN_TIME: u16 = 20;
/// Address of an object's `rcu_head`.
pub const KMT_ROLE_RCU_HEAD: u16 = 21;
/// Second argument of `kvfree_call_rcu`: below 4096 the offset of its `rcu_head` in the object (as in
/// Linux 5.9), else that address.
pub const KMT_ROLE_RCU_OBJECT: u16 = 22;

#[cfg(test)]
mod tests {
    use super::*;
    use kmt_format::schema::{Meaning, Role};

    #[test]
    fn numbers_are_those_of_the_format() {
        let meanings = [
            (KMT_OTHER, Meaning::OTHER),
            (KMT_KMALLOC, Meaning::KMALLOC),
            (KMT_KFREE, Meaning::KFREE),
            (KMT_CACHE_ALLOC, Meaning::CACHE_ALLOC),
            (KMT_CACHE_FREE, Meaning::CACHE_FREE),
            (KMT_PAGE_ALLOC, Meaning::PAGE_ALLOC),
            (KMT_PAGE_FREE, Meaning::PAGE_FREE),
            (KMT_PAGE_FREE_BATCHED, Meaning::PAGE_FREE_BATCHED),
            (KMT_RSS_STAT, Meaning::RSS_STAT),
            (KMT_KERNEL_STACK, Meaning::KERNEL_STACK),
            (KMT_FREE_RCU, Meaning::FREE_RCU),
        ];
        for (number, meaning) in meanings {
            assert_eq!(number, meaning.0);
        }
        let roles = [
            (KMT_ROLE_NONE, Role::NONE),
            (KMT_ROLE_EVENT_ID, Role::EVENT_ID),
            (KMT_ROLE_FLAGS, Role::FLAGS),
            (KMT_ROLE_PREEMPT_COUNT, Role::PREEMPT_COUNT),
            (KMT_ROLE_PID, Role::PID),
            (KMT_ROLE_PTR, Role::PTR),
            (KMT_ROLE_CALL_SITE, Role::CALL_SITE),
            (KMT_ROLE_BYTES_REQ, Role::BYTES_REQ),
            (KMT_ROLE_BYTES_ALLOC, Role::BYTES_ALLOC),
            (KMT_ROLE_GFP_FLAGS, Role::GFP_FLAGS),
            (KMT_ROLE_NODE, Role::NODE),
            (KMT_ROLE_CACHE_NAME, Role::CACHE_NAME),
            (KMT_ROLE_ACCOUNTED, Role::ACCOUNTED),
            (KMT_ROLE_PFN, Role::PFN),
            (KMT_ROLE_ORDER, Role::ORDER),
            (KMT_ROLE_MIGRATETYPE, Role::MIGRATETYPE),
            (KMT_ROLE_RSS_SIZE, Role::RSS_SIZE),
            (KMT_ROLE_STACK, Role::STACK),
            (KMT_ROLE_STACK_DEPTH, Role::STACK_DEPTH),
            (KMT_ROLE_ENTRY_TIME, Role::ENTRY_TIME),
            (KMT_ROLE_RETURN_TIME, Role::RETURN_TIME),
            (KMT_ROLE_RCU_HEAD, Role::RCU_HEAD),
            (KMT_ROLE_RCU_OBJECT, Role::RCU_OBJECT),
        ];
        for (number, role) in roles {
            assert_eq!(number, role.0);
        }
    }
}
