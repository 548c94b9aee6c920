//! Use of pages by the stack of their allocation.
//!
//! Flags do not tell slabs, stacks, vmalloc and drivers apart. A stack does: the innermost function of it that is in a table here
//! decides. Without one, the module of the call site decides. Names are of the files beside them, 4.4 to 7.2 unless a version is
//! given; longer names with the same beginning (`_noprof`, `.constprop.0`) count too.

use kmt_common::allocators::is_allocator;

use crate::reports::common::page_sums::is_tracer;
use crate::reports::leaks::judge::kernel_names;
use crate::reports::leaks::judge::pages::RECLAIMABLE_USE;

// Uses that have an account, and those that have none.
pub const SLAB: &str = "slab";
pub const LARGE_KMALLOC: &str = "large kmalloc";
pub const KERNEL_STACKS: &str = "kernel stacks";
pub const VMALLOC: &str = "vmalloc";
pub const PERCPU: &str = "percpu";
pub const PAGE_TABLES: &str = "page tables";
pub const GUEST_TABLES: &str = "page tables of guests";
pub const PAGE_CACHE: &str = "page cache";
pub const ANONYMOUS: &str = "anonymous memory";
pub const SHMEM: &str = "tmpfs or shared memory";
pub const COMPRESSED: &str = "compressed memory (zram, zswap)";
pub const HUGETLB: &str = "huge pages (hugetlbfs)";
pub const BALLOON: &str = "balloon of the hypervisor";
pub const NETWORK: &str = "network buffers";
pub const RINGS: &str = "ring buffers of tracing";
pub const IO_URING: &str = "io_uring";
pub const PIPES: &str = "pipes";
pub const MODULES: &str = "drivers and other modules";
pub const OTHER_KERNEL: &str = "other kernel memory";
/// By flags alone: a page of the kernel.
pub const KERNEL: &str = "kernel";
/// By flags alone: memory that user space asked for, and the kernel may not move.
pub const USER: &str = "other user memory";
pub const UNKNOWN: &str = "unknown use";

/// By flags alone: memory of processes, or shared.
pub const MOVABLE: &str = "anonymous or tmpfs";

/// Accounts with pages of a use; a use without a line here has pages that are in no account.
const ACCOUNTS_OF: [(&str, &[&str]); 16] = [
    (RECLAIMABLE_USE, &["slab_reclaimable", "misc_reclaimable"]),
    (PAGE_CACHE, &["page_cache", "buffers"]),
    (MOVABLE, &["anonymous", "shmem", "swap_cache"]),
    (ANONYMOUS, &["anonymous", "swap_cache"]),
    (SHMEM, &["shmem", "swap_cache"]),
    (PAGE_TABLES, &["page_tables"]),
    (GUEST_TABLES, &["sec_page_tables"]),
    (SLAB, &["slab_reclaimable", "slab_unreclaimable"]),
    (LARGE_KMALLOC, &["slab_unreclaimable"]),
    (KERNEL_STACKS, &["kernel_stacks"]),
    (VMALLOC, &["vmalloc"]),
    (PERCPU, &["percpu"]),
    (COMPRESSED, &["zsmalloc"]),
    (HUGETLB, &["hugetlb"]),
    (BALLOON, &["balloon"]),
    (
        KERNEL,
        &[
            "slab_reclaimable",
            "slab_unreclaimable",
            "misc_reclaimable",
            "sec_page_tables",
            "kernel_stacks",
            "vmalloc",
            "percpu",
            "gpu",
            "in_no_account",
        ],
    ),
];

/// Accounts with pages of a use; empty: unknown.
pub fn accounts_of(name: &str) -> &'static [&'static str] {
    match ACCOUNTS_OF.iter().find(|(of, _)| *of == name) {
        Some((_, accounts)) => accounts,
        None if IN_NO_ACCOUNT.contains(&name) && name != UNKNOWN && name != USER => &["in_no_account"],
        None => &[],
    }
}

/// Uses of pages that no account has, as far as stacks and flags tell.
pub const IN_NO_ACCOUNT: [&str; 9] =
    [NETWORK, RINGS, IO_URING, PIPES, MODULES, OTHER_KERNEL, KERNEL, USER, UNKNOWN];

/// Functions that allocate areas of vmalloc (mm/vmalloc.c).
const VMALLOC_FUNCTIONS: [&str; 5] = ["vm_area_alloc_pages", "__vmalloc", "vmalloc", "vzalloc", "__vzalloc"];

/// Functions that allocate kernel stacks (kernel/fork.c); the first ones may be inlined in the last ones.
const STACK_MAKERS: [&str; 5] =
    ["alloc_thread_stack_node", "dup_task_struct", "copy_process", "_do_fork", "kernel_clone"];

/// Uses by functions, the beginnings of their names.
const FUNCTIONS: [(&str, &[&str]); 16] = [
    // mm/slub.c, mm/slab.c until 6.7, mm/slob.c until 6.3.
    (
        SLAB,
        &[
            "alloc_slab_page",
            "allocate_slab",
            "new_slab",
            "___slab_alloc",
            "__slab_alloc",
            "refill_objects",
            "cache_grow",
            "kmem_getpages",
            "slob_new_pages",
        ],
    ),
    // mm/slub.c, mm/slab_common.c.
    (LARGE_KMALLOC, &["___kmalloc_large", "__kmalloc_large", "kmalloc_large", "kmalloc_order"]),
    // mm/percpu.c, mm/percpu-vm.c.
    (PERCPU, &["pcpu_populate_chunk", "pcpu_alloc_pages", "pcpu_create_chunk", "pcpu_balance_"]),
    // include/asm-generic/pgalloc.h, mm/memory.c, mm/sparse-vmemmap.c, arch/*/mm.
    (
        PAGE_TABLES,
        &[
            "pte_alloc",
            "__pte_alloc",
            "pmd_alloc",
            "__pmd_alloc",
            "pud_alloc",
            "__pud_alloc",
            "p4d_alloc",
            "__p4d_alloc",
            "pgd_alloc",
            "_pgd_alloc",
            "__pgd_alloc",
            "pagetable_alloc",
        ],
    ),
    // virt/kvm/kvm_main.c, arch/x86/kvm/mmu.
    (GUEST_TABLES, &["kvm_mmu_topup", "__kvm_mmu_topup", "tdp_mmu_alloc"]),
    // mm/shmem.c.
    (SHMEM, &["shmem_"]),
    (PAGE_CACHE, &kernel_names::PAGE_CACHE),
    (ANONYMOUS, &kernel_names::ANONYMOUS_MEMORY),
    // net/core/page_pool.c, net/core/skbuff.c, net/core/sock.c, mm/page_frag_cache.c, net/packet/af_packet.c.
    (
        NETWORK,
        &[
            "page_pool_",
            "__page_pool_",
            "skb_",
            "__skb_",
            "alloc_skb",
            "__alloc_skb",
            "sk_page_frag_refill",
            "sock_alloc_send",
            "__netdev_alloc",
            "napi_alloc",
            "__napi_alloc",
            "page_frag_",
            "__page_frag_",
            "alloc_pg_vec",
            "alloc_one_pg_vec_page",
            "packet_set_ring",
        ],
    ),
    // kernel/trace/ring_buffer.c, kernel/events/ring_buffer.c.
    (
        RINGS,
        &[
            "__rb_allocate",
            "rb_allocate",
            "ring_buffer_",
            "__ring_buffer_",
            "perf_mmap_alloc_page",
            "rb_alloc",
        ],
    ),
    // io_uring.
    (
        IO_URING,
        &[
            "io_uring",
            "__io_uring",
            "io_mem_alloc",
            "io_pages_map",
            "io_create_region",
            "io_region_",
            "io_alloc_pbuf",
            "io_allocate_",
        ],
    ),
    // fs/pipe.c.
    (PIPES, &["pipe_write", "anon_pipe_"]),
    // mm/zsmalloc.c.
    (COMPRESSED, &["alloc_zspage", "zs_malloc"]),
    // mm/hugetlb.c.
    (
        HUGETLB,
        &[
            "alloc_buddy_hugetlb",
            "alloc_fresh_hugetlb",
            "only_alloc_fresh_hugetlb",
            "alloc_surplus_hugetlb",
            "alloc_gigantic",
        ],
    ),
    // mm/balloon_compaction.c.
    (BALLOON, &["balloon_page_alloc"]),
    (KERNEL_STACKS, &["alloc_thread_stack_node", "dup_task_struct"]),
];

/// Functions that allocate pages for their callers: the owner is further out (kernel/dma, drivers/iommu/dma-iommu.c,
/// lib/scatterlist.c, and those of [`NETWORK`]).
const HELPERS: [&str; 22] = [
    "dma_",
    "__dma_",
    "dmam_",
    "iommu_dma_",
    "__iommu_dma_",
    "devm_",
    "sg_alloc",
    "__sg_alloc",
    "sgl_alloc",
    "page_pool_",
    "__page_pool_",
    "skb_page_frag_refill",
    "sk_page_frag_refill",
    "page_frag_",
    "__page_frag_",
    "alloc_skb",
    "__alloc_skb",
    "sock_alloc_send",
    "__netdev_alloc",
    "napi_alloc",
    "__napi_alloc",
    "kvrealloc",
];

/// Use of pages, and the function that holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackUse {
    /// Use; `None`: no function of the tables is in the stack.
    pub by_function: Option<&'static str>,
    /// Index in the stack of the innermost function outside of the allocators and of helpers; `None`: there is none.
    pub holder: Option<usize>,
}

/// Use of pages by the symbols of their stack, the innermost first.
pub fn use_of_stack<S: AsRef<[u8]>>(stack: &[S]) -> StackUse {
    let starts =
        |symbol: &S, names: &[&str]| names.iter().any(|name| symbol.as_ref().starts_with(name.as_bytes()));
    let named = |symbol: &S| FUNCTIONS.iter().find(|(_, names)| starts(symbol, names)).map(|(name, _)| *name);
    let (mut by_function, mut is_vmalloc) = (None, false);
    for (index, symbol) in stack.iter().enumerate() {
        if is_tracer(symbol.as_ref()) {
            continue;
        }
        if by_function.is_none() && !is_vmalloc {
            is_vmalloc = starts(symbol, &VMALLOC_FUNCTIONS);
            by_function = named(symbol).filter(|_| !is_vmalloc);
        }
        if is_allocator(symbol.as_ref()) || starts(symbol, &VMALLOC_FUNCTIONS) || starts(symbol, &HELPERS) {
            continue;
        }
        // Pages of stacks are areas of vmalloc with CONFIG_VMAP_STACK.
        let is_stack = by_function.is_none() && starts(symbol, &STACK_MAKERS);
        let by_area = is_vmalloc.then_some(VMALLOC);
        let by_function = if is_stack { Some(KERNEL_STACKS) } else { by_function.or(by_area) };
        return StackUse { by_function, holder: Some(index) };
    }
    StackUse { by_function: by_function.or(is_vmalloc.then_some(VMALLOC)), holder: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(stack: &str) -> (Option<&'static str>, Option<usize>) {
        let stack: Vec<String> = stack.split(' ').map(|name| format!("{name}+0x1/0x2")).collect();
        let StackUse { by_function, holder } = use_of_stack(&stack);
        (by_function, holder)
    }

    #[test]
    fn the_innermost_known_function_decides() {
        for (stack, by_function, holder) in [
            (
                "__alloc_pages allocate_slab ___slab_alloc kmem_cache_alloc dup_task_struct",
                Some(SLAB),
                Some(4),
            ),
            (
                "__alloc_pages ___kmalloc_large_node __kmalloc_large_node_noprof f",
                Some(LARGE_KMALLOC),
                Some(3),
            ),
            (
                "__alloc_pages vm_area_alloc_pages __vmalloc_node_range_noprof dup_task_struct",
                Some(KERNEL_STACKS),
                Some(3),
            ),
            ("__alloc_pages alloc_thread_stack_node copy_process", Some(KERNEL_STACKS), Some(1)),
            ("__alloc_pages __vmalloc_node_range_noprof vmalloc_noprof f", Some(VMALLOC), Some(3)),
            // A table of the kernel for an area, and a table of the page cache's user.
            ("__alloc_pages __pte_alloc_kernel __vmalloc_node_range f", Some(PAGE_TABLES), Some(1)),
            ("__alloc_pages pte_alloc_one filemap_map_pages", Some(PAGE_TABLES), Some(1)),
            ("get_zeroed_page pcpu_populate_chunk pcpu_alloc_noprof f", Some(PERCPU), Some(1)),
            (
                "__alloc_pages page_pool_alloc_pages_noprof page_pool_alloc virtnet_poll",
                Some(NETWORK),
                Some(3),
            ),
            ("__alloc_pages skb_page_frag_refill sk_page_frag_refill tcp_sendmsg", Some(NETWORK), Some(3)),
            ("__alloc_pages __rb_allocate_pages rb_allocate_cpu_buffer", Some(RINGS), Some(1)),
            ("__alloc_pages dma_direct_alloc dma_alloc_attrs probe", None, Some(3)),
            ("__alloc_pages alloc_pages_mpol f filemap_read", None, Some(2)),
            ("trace_event_raw_event_mm_page_alloc __alloc_pages", None, None),
        ] {
            assert_eq!(found(stack), (by_function, holder), "{stack}");
        }
    }

    #[test]
    fn a_name_is_in_one_use() {
        for (name, functions) in FUNCTIONS {
            for function in functions {
                let is_other = |(other, others): &&(&str, &[&str])| {
                    *other != name && others.iter().any(|other| function.starts_with(other))
                };
                assert_eq!(FUNCTIONS.iter().find(is_other), None, "{name} {function}");
            }
        }
    }
}
