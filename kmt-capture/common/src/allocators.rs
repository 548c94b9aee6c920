//! Functions of the page allocator, in stacks.

/// Functions of the page allocator and of the layers between it and its users, by the start of their names. From
/// mm/page_alloc.c, mm/page_owner.c, mm/mempolicy.c, mm/slub.c, mm/slab_common.c, mm/vmalloc.c, mm/percpu.c and include/linux/gfp.h, 4.4
/// to 7.2; `_noprof` appeared
/// with allocation profiling in 6.10, `frozen` in 6.14.
const ALLOCATORS: [&str; 47] = [
    "__alloc_pages",
    "alloc_pages",
    "__alloc_frozen_pages",
    "alloc_frozen_pages",
    "__alloc_page",
    "alloc_page",
    "__folio_alloc",
    "folio_alloc",
    "vma_alloc_folio",
    "__get_free_page",
    "get_free_page",
    "get_zeroed_page",
    "get_page_from_freelist",
    "prep_new_page",
    "post_alloc_hook",
    "__set_page_owner",
    "__rmqueue",
    "rmqueue",
    "alloc_slab_page",
    "allocate_slab",
    "new_slab",
    "___slab_alloc",
    "__slab_alloc",
    "slab_alloc",
    "refill_objects",
    "__kmem_cache_alloc",
    "kmem_cache_alloc",
    "___kmalloc_large",
    "__kmalloc",
    "kmalloc",
    "__do_kmalloc",
    "__kvmalloc",
    "kvmalloc",
    "alloc_vmap_area",
    "__get_vm_area",
    "get_vm_area",
    "vm_area_alloc_pages",
    "__vmalloc",
    "vmalloc",
    "vzalloc",
    "new_vmap_block",
    "vm_map_ram",
    "__alloc_percpu",
    "pcpu_alloc",
    "trace_event_raw_event_",
    "stack_trace",
    "__traceiter_",
];

/// True if a symbol is part of the allocator.
pub fn is_allocator(symbol: &[u8]) -> bool {
    ALLOCATORS.iter().any(|name| symbol.starts_with(name.as_bytes()))
}
