//! The call site that names a family of objects: the one that allocates the thing itself, not its common parts.

/// A call site of a family.
#[derive(Debug, Clone, Copy)]
pub struct Site<'f> {
    pub function: &'f str,
    /// Old survivors.
    pub old: u64,
    /// Allocations in the time of the old survivors.
    pub old_births: u64,
    /// Bytes of old survivors.
    pub old_amount: u64,
}

/// Functions that allocate the thing itself, the larger thing first: a network namespace has a device, a user namespace
/// has credentials. From kernel/, fs/, net/, ipc/, security/ and mm/ of 4.4 to 7.2.
const THINGS: [&str; 70] = [
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
const GENERAL: [&str; 61] = [
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
const INDICES: [&str; 8] =
    ["assoc_array_", "radix_tree_", "xas_", "idr_", "mas_", "rhashtable_", "bucket_table_alloc", "btree_"];

/// True for a function that allocates nodes of an index.
pub fn is_index(function: &str) -> bool {
    INDICES.iter().any(|start| function.starts_with(start))
}

/// Rank of a call site; the highest one names its family.
fn rank(site: &Site<'_>) -> usize {
    // Without what the compiler adds: `.isra.0`, `.cold`.
    let function = site.function.split('.').next().unwrap_or_default().trim_end_matches("_noprof");
    let thing = THINGS.iter().position(|&thing| thing == function);
    match thing {
        Some(at) => 1 + THINGS.len() - at,
        None => usize::from(!GENERAL.iter().any(|start| function.starts_with(start))),
    }
}

/// A site at which others allocate this many times as much as the family does not name the family.
const OTHERS_MAX: f64 = 20.0;

/// Number of the call site that names the family. Sites of which others use more than their part come after those that only
/// this family uses; of several alike the one with most bytes.
pub fn most(sites: &[(usize, Site<'_>)]) -> Option<usize> {
    let share = |site: &Site<'_>| site.old as f64 / site.old_births.max(1) as f64;
    let best = sites.iter().map(|(_, site)| share(site)).fold(0.0, f64::max);
    let is_own = |site: &Site<'_>| share(site) * OTHERS_MAX >= best;
    let key = |(_, site): &&(usize, Site<'_>)| (is_own(site), rank(site), site.old_amount);
    // The first of equal ones.
    sites.iter().rev().max_by_key(key).map(|(at, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(function: &str, old: u64, old_births: u64, old_amount: u64) -> Site<'_> {
        Site { function, old, old_births, old_amount }
    }

    #[test]
    fn the_thing_names_the_family_not_its_parts() {
        let of = |sites: &[Site<'_>]| {
            let sites: Vec<_> = sites.iter().copied().enumerate().collect();
            most(&sites).map(|at| sites[at].1.function.to_owned())
        };
        let file = site("alloc_empty_file", 100, 500, 9_000);
        assert_eq!(of(&[file, site("do_eventfd", 100, 500, 800)]).as_deref(), Some("do_eventfd"));
        assert_eq!(of(&[file, site("my_driver_open", 100, 500, 800)]).as_deref(), Some("my_driver_open"));
        let netns = [site("neigh_parms_alloc", 9, 9, 90_000), site("copy_net_ns", 9, 9, 40_000)];
        assert_eq!(of(&netns).as_deref(), Some("copy_net_ns"));
        // A site at which others allocate most names no family.
        let shared = site("sk_prot_alloc", 100, 30_000, 80_000);
        assert_eq!(of(&[shared, site("my_socket", 100, 500, 800)]).as_deref(), Some("my_socket"));
        assert_eq!(of(&[file]).as_deref(), Some("alloc_empty_file"));
        assert_eq!(of(&[]), None);
    }
}
