//! Meanings of classes and fields: the stable part of a format whose names and layouts change with every kernel.

use core::fmt;

/// Meaning of an event class. Open: unknown values are legal and mean "other".
///
/// `{:?}` prints the name of the constant, and the number of a meaning that has none: `KMALLOC`, `Meaning(77)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Meaning(pub u16);

impl Meaning {
    /// No meaning that this library knows.
    pub const OTHER: Self = Self(0);
    /// An allocation by size: `kmem:kmalloc`, `kmem:kmalloc_node`.
    pub const KMALLOC: Self = Self(1);
    /// A free by address: `kmem:kfree`.
    pub const KFREE: Self = Self(2);
    /// An allocation from a cache: `kmem:kmem_cache_alloc`, `kmem:kmem_cache_alloc_node`.
    pub const CACHE_ALLOC: Self = Self(3);
    /// A free to a cache: `kmem:kmem_cache_free`.
    pub const CACHE_FREE: Self = Self(4);
    /// `kmem:mm_page_alloc`.
    pub const PAGE_ALLOC: Self = Self(5);
    /// `kmem:mm_page_free`.
    pub const PAGE_FREE: Self = Self(6);
    /// `kmem:mm_page_free_batched`: occurs together with `mm_page_free`, so it is not another free.
    pub const PAGE_FREE_BATCHED: Self = Self(7);
    /// `kmem:rss_stat`.
    pub const RSS_STAT: Self = Self(8);
    /// `ftrace:kernel_stack`.
    pub const KERNEL_STACK: Self = Self(9);
    /// `kmt:kvfree_call_rcu`, a probe at the entry of that function: an object is handed over, and freed after a grace
    /// period without an event of its own.
    pub const FREE_RCU: Self = Self(10);

    /// The meaning of `system:name`.
    pub fn of(system: &str, name: &str) -> Self {
        match (system, name) {
            ("kmem", "kmalloc" | "kmalloc_node") => Self::KMALLOC,
            ("kmem", "kfree") => Self::KFREE,
            ("kmem", "kmem_cache_alloc" | "kmem_cache_alloc_node") => Self::CACHE_ALLOC,
            ("kmem", "kmem_cache_free") => Self::CACHE_FREE,
            ("kmem", "mm_page_alloc") => Self::PAGE_ALLOC,
            ("kmem", "mm_page_free") => Self::PAGE_FREE,
            ("kmem", "mm_page_free_batched") => Self::PAGE_FREE_BATCHED,
            ("kmem", "rss_stat") => Self::RSS_STAT,
            ("ftrace", "kernel_stack") => Self::KERNEL_STACK,
            ("kmt", "kvfree_call_rcu") => Self::FREE_RCU,
            _ => Self::OTHER,
        }
    }

    /// True if the class allocates a slab object.
    pub fn is_slab_alloc(self) -> bool {
        self == Self::KMALLOC || self == Self::CACHE_ALLOC
    }

    /// True if the class frees a slab object.
    pub fn is_slab_free(self) -> bool {
        self == Self::KFREE || self == Self::CACHE_FREE
    }
}

/// Meaning of a field. Open: unknown values are legal and mean "none".
///
/// `{:?}` prints the name of the constant, and the number of a role that has none: `BYTES_REQ`, `Role(77)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Role(pub u16);

impl Role {
    /// No meaning that this library knows.
    pub const NONE: Self = Self(0);
    /// Event id, `common_type`.
    pub const EVENT_ID: Self = Self(1);
    /// `common_flags`.
    pub const FLAGS: Self = Self(2);
    /// `common_preempt_count`.
    pub const PREEMPT_COUNT: Self = Self(3);
    /// Thread id, `common_pid`.
    pub const PID: Self = Self(4);
    /// Address of a slab object.
    pub const PTR: Self = Self(5);
    /// Return address of the allocator's caller.
    pub const CALL_SITE: Self = Self(6);
    /// Bytes requested.
    pub const BYTES_REQ: Self = Self(7);
    /// Bytes handed out.
    pub const BYTES_ALLOC: Self = Self(8);
    /// Allocation flags of the traced kernel.
    pub const GFP_FLAGS: Self = Self(9);
    /// NUMA node requested; -1 any.
    pub const NODE: Self = Self(10);
    /// Name of the cache.
    pub const CACHE_NAME: Self = Self(11);
    /// True if memory-cgroup accounting was requested.
    pub const ACCOUNTED: Self = Self(12);
    /// Page frame number; all ones in an allocation that failed.
    pub const PFN: Self = Self(13);
    /// log2 of a number of pages.
    pub const ORDER: Self = Self(14);
    /// Migrate type requested.
    pub const MIGRATETYPE: Self = Self(15);
    /// A size of an address space, `rss_stat`.
    pub const RSS_SIZE: Self = Self(16);
    /// Return addresses, innermost first.
    pub const STACK: Self = Self(17);
    /// Number of return addresses.
    pub const STACK_DEPTH: Self = Self(18);
    /// Time when a function was entered.
    pub const ENTRY_TIME: Self = Self(19);
    /// Time when a function returned.
    pub const RETURN_TIME: Self = Self(20);
    /// Address of an object's `rcu_head`.
    pub const RCU_HEAD: Self = Self(21);
    /// Second argument of `kvfree_call_rcu`: below 4096 how far after the object's address its `rcu_head` is (as in
    /// Linux 5.9), else that address.
    pub const RCU_OBJECT: Self = Self(22);

    /// The role of field `field` of `system:name`.
    pub fn of(system: &str, name: &str, field: &str) -> Self {
        match field {
            "common_type" => return Self::EVENT_ID,
            "common_flags" => return Self::FLAGS,
            "common_preempt_count" => return Self::PREEMPT_COUNT,
            "common_pid" => return Self::PID,
            _ => {}
        }
        match (system, field) {
            ("kmem", "ptr") => Self::PTR,
            ("kmem", "call_site") => Self::CALL_SITE,
            ("kmem", "bytes_req") => Self::BYTES_REQ,
            ("kmem", "bytes_alloc") => Self::BYTES_ALLOC,
            ("kmem", "gfp_flags") => Self::GFP_FLAGS,
            ("kmem", "node") => Self::NODE,
            ("kmem", "name") if name.starts_with("kmem_cache_") => Self::CACHE_NAME,
            ("kmem", "accounted") => Self::ACCOUNTED,
            ("kmem", "pfn") => Self::PFN,
            ("kmem", "order") => Self::ORDER,
            ("kmem", "migratetype") => Self::MIGRATETYPE,
            ("kmem", "size") if name == "rss_stat" => Self::RSS_SIZE,
            ("ftrace", "caller") if name == "kernel_stack" => Self::STACK,
            ("ftrace", "size") if name == "kernel_stack" => Self::STACK_DEPTH,
            ("ftrace", "calltime") => Self::ENTRY_TIME,
            ("ftrace", "rettime") => Self::RETURN_TIME,
            ("kmt", "call_site") if name == "kvfree_call_rcu" => Self::CALL_SITE,
            ("kmt", "head") if name == "kvfree_call_rcu" => Self::RCU_HEAD,
            ("kmt", "object") if name == "kvfree_call_rcu" => Self::RCU_OBJECT,
            _ => Self::NONE,
        }
    }

    /// True if this version of the library has a name for it.
    pub fn is_known(self) -> bool {
        self.0 <= Self::RCU_OBJECT.0
    }

    /// True if the field moves with nearly every event, so that it belongs into the value word.
    pub(crate) fn is_moving(self) -> bool {
        matches!(self, Self::PTR | Self::PFN | Self::RSS_SIZE | Self::RCU_OBJECT)
    }
}

/// Names of the constants of [`Meaning`], by number.
const MEANINGS: [&str; 11] = [
    "OTHER",
    "KMALLOC",
    "KFREE",
    "CACHE_ALLOC",
    "CACHE_FREE",
    "PAGE_ALLOC",
    "PAGE_FREE",
    "PAGE_FREE_BATCHED",
    "RSS_STAT",
    "KERNEL_STACK",
    "FREE_RCU",
];

/// Names of the constants of [`Role`], by number.
const ROLES: [&str; 23] = [
    "NONE",
    "EVENT_ID",
    "FLAGS",
    "PREEMPT_COUNT",
    "PID",
    "PTR",
    "CALL_SITE",
    "BYTES_REQ",
    "BYTES_ALLOC",
    "GFP_FLAGS",
    "NODE",
    "CACHE_NAME",
    "ACCOUNTED",
    "PFN",
    "ORDER",
    "MIGRATETYPE",
    "RSS_SIZE",
    "STACK",
    "STACK_DEPTH",
    "ENTRY_TIME",
    "RETURN_TIME",
    "RCU_HEAD",
    "RCU_OBJECT",
];

impl fmt::Debug for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "Meaning", &MEANINGS, self.0)
    }
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug(f, "Role", &ROLES, self.0)
    }
}

/// The name of that number, or the type with the number.
fn debug(f: &mut fmt::Formatter<'_>, kind: &str, names: &[&str], number: u16) -> fmt::Result {
    match names.get(usize::from(number)) {
        Some(name) => f.write_str(name),
        None => write!(f, "{kind}({number})"),
    }
}
