//! Names of the kernel's functions and caches that the rules know, each with the source that was read.
//!
//! The kernel does not record why memory is allocated; names of functions show it. The rules of `judge` compare the names of call
//! sites and stacks with these lists, and so do `balance` and `diff`. A list gives the kernel versions in which its names were
//! found; a new version can rename a function.

pub use kmt_common::reclaimable::{INODE_BLOBS, ONLY_MARKED, RECLAIMABLE};

/// Functions with objects that the kernel frees by kfree_rcu, which has no event without a probe: kernfs_open_node
/// (fs/kernfs/file.c, 6.0 to 7.2). Every task that starts may leave one that is free already.
pub const FREED_BY_RCU: [&str; 2] = ["kernfs_fop_open", "kernfs_get_open_node"];

/// Functions that allocate metadata: of slabs (mm/slub.c, mm/memcontrol.c, 5.9 to 7.2), of each object for kmemleak
/// (mm/kmemleak.c, 4.4 to 7.2), of stacks for page_owner (mm/page_owner.c, 6.8 to 7.2).
pub const METADATA: [&str; 11] = [
    "alloc_slab_obj_exts",
    "memcg_alloc_slab_cgroups",
    "memcg_alloc_page_obj_cgroups",
    "__alloc_object",
    "mem_pool_alloc",
    "create_object",
    "__create_object",
    "add_scan_area",
    "kmemleak_scan_area",
    "add_stack_record_to_list",
    "__set_page_owner",
];

/// Functions whose objects the kernel frees late and many at once: areas of vmalloc wait until lazy_max_pages() of them
/// have gathered (mm/vmalloc.c, 4.4 to 7.2).
pub const LAZY: [&str; 2] = ["alloc_vmap_area", "__get_vm_area_node"];

/// Functions that allocate objects of these caches and of no other one, for allocations whose cache no event names: before 6.18
/// only a free names it, and in a short recording nothing of a cache that fills is freed. fs/dcache.c, fs/buffer.c,
/// fs/mbcache.c, fs/ext4/extents_status.c, fs/ext4/super.c, fs/proc/inode.c, lib/xarray.c, lib/radix-tree.c, fs/xfs/xfs_icache.c,
/// fs/btrfs/inode.c, fs/fuse/inode.c, fs/nfs/inode.c, fs/9p/vfs_inode.c, fs/ext2/super.c, 4.4 to 7.2.
pub const MAKES_RECLAIMABLE: [&str; 18] = [
    "__d_alloc",
    "alloc_buffer_head",
    "mb_cache_entry_create",
    "__es_insert_extent",
    "ext4_es_alloc_extent",
    "__es_alloc_extent",
    "ext4_es_insert_extent",
    "ext4_alloc_inode",
    "ext2_alloc_inode",
    "proc_alloc_inode",
    "xfs_inode_alloc",
    "btrfs_alloc_inode",
    "fuse_alloc_inode",
    "nfs_alloc_inode",
    "v9fs_alloc_inode",
    "xas_alloc",
    "xas_nomem",
    "radix_tree_node_alloc",
];

/// Functions whose objects pin an inode or a dentry: open files, mounts, marks (fs/file_table.c, fs/namespace.c,
/// fs/notify/, 4.4 to 7.2). Their caches do not show it: the kernel merges them with others of like size.
pub const PINS: [&str; 12] = [
    "alloc_empty_file",
    "__alloc_file",
    "get_empty_filp",
    "alloc_vfsmnt",
    "inotify_new_watch",
    "inotify_update_watch",
    "__x64_sys_inotify_add_watch",
    "__do_sys_inotify_add_watch",
    "fanotify_add_new_mark",
    "fanotify_add_mark",
    "do_fanotify_mark",
    "fcntl_dirnotify",
];

/// Flags of page tables (GFP_PGTABLE_USER; include/asm-generic/pgalloc.h, 4.7 to 7.2).
pub const PAGE_TABLES: [&str; 2] =
    ["GFP_KERNEL_ACCOUNT|__GFP_ZERO", "GFP_KERNEL_ACCOUNT|__GFP_ZERO|__GFP_COMP"];

/// Functions that put pages into the page cache, which is kept until memory is short (mm/filemap.c,
/// mm/readahead.c, fs/buffer.c, 4.4 to 7.2).
pub const PAGE_CACHE: [&str; 8] = [
    "page_cache_ra",
    "ra_alloc_folio",
    "filemap_",
    "__filemap_",
    "pagecache_get_page",
    "__page_cache_alloc",
    "__do_page_cache_readahead",
    "grow_dev_",
];

/// Functions that allocate memory of processes (mm/memory.c, mm/huge_memory.c, 4.4 to 7.2).
pub const ANONYMOUS_MEMORY: [&str; 10] = [
    "do_anonymous_page",
    "alloc_anon_folio",
    "vma_alloc_anon",
    "do_huge_pmd_anonymous_page",
    "wp_page_copy",
    "do_wp_page",
    "do_cow_fault",
    "folio_prealloc",
    "page_copy_prealloc",
    "copy_present_p",
];

/// Functions that allocate slabs (mm/slub.c, 4.4 to 7.2).
pub const SLAB_PAGES: [&str; 3] = ["allocate_slab", "new_slab", "alloc_slab_page"];

/// Functions that allocate the thing itself, the larger thing first: a network namespace has a device, a user namespace
/// has credentials. From kernel/, fs/, net/, ipc/, security/ and mm/ of 4.4 to 7.2.
pub const THINGS: [&str; 70] = [
    "dup_task_struct",
    "copy_net_ns",
    "net_alloc",
    "create_user_ns",
    "create_pid_namespace",
    "copy_pid_ns",
    "alloc_mnt_ns",
    "create_ipc_ns",
    "copy_ipcs",
    "clone_uts_ns",
    "copy_utsname",
    "copy_time_ns",
    "clone_time_ns",
    "copy_cgroup_ns",
    "cgroup_create",
    "cgroup_mkdir",
    "alloc_super",
    "alloc_vfsmnt",
    "alloc_netdev_mqs",
    "fib_nl_newrule",
    "fib_newrule",
    "fib_create_info",
    "perf_event_alloc",
    "kvm_dev_ioctl",
    "kvm_create_vm",
    "io_uring_setup",
    "io_ring_ctx_alloc",
    "do_seccomp",
    "seccomp_prepare_filter",
    "bpf_prog_alloc_no_stats",
    "bpf_map_area_alloc",
    "__bpf_map_area_alloc",
    "array_map_alloc",
    "htab_map_alloc",
    "bpf_prog_create_from_user",
    "bpf_prepare_filter",
    "alloc_tty_struct",
    "__scm_send",
    "alloc_pipe_info",
    "do_eventfd",
    "eventfd_file_create",
    "do_signalfd4",
    "signalfd4",
    "do_timerfd_create",
    "__do_sys_timerfd_create",
    "__x64_sys_timerfd_create",
    "__arm64_sys_timerfd_create",
    "new_userfaultfd",
    "__do_sys_userfaultfd",
    "ep_alloc",
    "do_epoll_create",
    "ep_insert",
    "do_epoll_ctl",
    "fanotify_add_new_mark",
    "inotify_new_watch",
    "do_inotify_init",
    "fsnotify_alloc_group",
    "fcntl_dirnotify",
    "ioctx_alloc",
    "newseg",
    "newary",
    "newque",
    "mqueue_alloc_inode",
    "mqueue_get_inode",
    "key_alloc",
    "alloc_posix_timer",
    "do_timer_create",
    "locks_alloc_lock",
    "shmem_alloc_inode",
    "sk_prot_alloc",
];

/// Beginnings of functions that allocate what things of many kinds have: files, inodes, names, blobs, buffers, nodes of
/// trees, sysfs entries, counters. From the same folders.
pub const GENERAL: [&str; 61] = [
    "alloc_empty_file",
    "__alloc_file",
    "get_empty_filp",
    "init_file",
    "alloc_inode",
    "new_inode",
    "iget",
    "__d_alloc",
    "d_alloc",
    "inode_init_always",
    "security_",
    "lsm_",
    "selinux_",
    "apparmor_",
    "prepare_creds",
    "alloc_fdtable",
    "dup_fd",
    "expand_f",
    "kvmalloc",
    "__kvmalloc",
    "kmem",
    "kmalloc",
    "__kmalloc",
    "kstr",
    "__kstr",
    "kasprintf",
    "kvasprintf",
    "kobject_",
    "kset_",
    "device_",
    "dev_",
    "__alloc_skb",
    "alloc_skb",
    "kmalloc_reserve",
    "sock_alloc_inode",
    "sock_wmalloc",
    "__kernfs_",
    "kernfs_",
    "sysfs_",
    "proc_",
    "__proc_",
    "__register_sysctl_table",
    "radix_tree_",
    "xas_",
    "xa_",
    "idr_",
    "ida_",
    "mas_",
    "mt_",
    "percpu_",
    "pcpu_",
    "alloc_percpu",
    "__percpu",
    "call_usermodehelper",
    "alloc_pid",
    "memcg_",
    "__memcg",
    "rhashtable_",
    "assoc_array_",
    "init_srcu_struct",
    "bucket_table_alloc",
];

/// Beginnings of functions that allocate nodes of an index: they grow with what is in it, at a pace of their own (lib/ of
/// 4.4 to 7.2).
pub const INDICES: [&str; 8] =
    ["assoc_array_", "radix_tree_", "xas_", "idr_", "mas_", "rhashtable_", "bucket_table_alloc", "btree_"];

/// Things that the kernel keeps for a time when nothing uses them any more: function that allocates them, seconds, and the
/// largest number that it keeps so. More of them are kept for another reason.
///
/// TIME_WAIT and its ports: TCP_TIMEWAIT_LEN (include/net/tcp.h, net/ipv4/inet_timewait_sock.c,
/// net/ipv4/inet_hashtables.c). Requests: the SYN-ACK and five more, of 1 to 32 s (net/ipv4/inet_connection_sock.c).
/// Neighbours: 60 s and half of 30 s, 1,024 of a table (GC_STALETIME, BASE_REACHABLE_TIME, gc_thresh3: net/core/neighbour.c,
/// net/ipv4/arp.c). Peers: inet_peer_maxttl (net/ipv4/inetpeer.c). All 4.4 to 7.2.
pub const KNOWN_LIVES: [(&str, u64, u64); 10] = [
    ("inet_twsk_alloc", 60, u64::MAX),
    ("inet_bind_bucket_create", 60, u64::MAX),
    ("inet_bind2_bucket_create", 60, u64::MAX),
    // Where those are inlined (6.18).
    ("__inet_hash_connect", 60, u64::MAX),
    ("inet_reqsk_alloc", 63, u64::MAX),
    ("reqsk_alloc", 63, u64::MAX),
    ("___neigh_create", 75, 1_024),
    ("__neigh_create", 75, 1_024),
    ("neigh_alloc", 75, 1_024),
    ("inet_getpeer", 600, u64::MAX),
];

/// Functions of the percpu allocator that allocate pages; a kernel worker calls them too (mm/percpu.c, mm/percpu-vm.c, 4.4 to
/// 7.2).
pub const PERCPU_PAGES: [&str; 3] = ["pcpu_populate_chunk", "pcpu_balance_", "pcpu_create_chunk"];

/// Functions of file systems in memory whose pages nothing reclaims, where they ask the page cache for a page: of ramfs
/// (fs/libfs.c, fs/ramfs, 4.4 to 7.2).
pub const KEPT_CALLERS: [&str; 2] = ["simple_write_begin", "ramfs_"];

/// Beginning of functions that allocate shared memory and pages of tmpfs, which go to swap (mm/shmem.c, 4.4 to 7.2).
pub const SHARED_MEMORY: &str = "shmem_";
