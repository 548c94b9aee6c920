//! Caches that the kernel reclaims, by name: for kernels and files without /sys/kernel/slab. Names from the source that was read.

/// Caches whose objects the kernel reclaims (SLAB_RECLAIM_ACCOUNT), for files without /sys/kernel/slab. From fs/ of 4.4
/// to 7.2; shmem_inode_cache and mqueue_inode_cache are not marked so.
pub const RECLAIMABLE: [&str; 15] = [
    "dentry",
    "inode_cache",
    "proc_inode_cache",
    "ext4_inode_cache",
    "ext4_extent_status",
    "extent_status",
    "ext2_inode_cache",
    "xfs_inode",
    "btrfs_inode",
    "v9fs_inode_cache",
    "nfs_inode_cache",
    "fuse_inode",
    "radix_tree_node",
    "buffer_head",
    "mb_cache_entry",
];

/// Caches that are marked as reclaimable although only the owners of their objects free them, not a shrinker.
pub const ONLY_MARKED: [&str; 3] = ["sock_inode_cache", "bdev_cache", "rpc_inode_cache"];

/// Caches of what security modules keep for an inode: they pin nothing (security/security.c, 5.1 to 7.2;
/// security/selinux/hooks.c, security/smack/smack_lsm.c, 4.4 to 5.0).
pub const INODE_BLOBS: [&str; 3] = ["lsm_inode_cache", "selinux_inode_security", "smack_inode_cache"];

/// True if the kernel can reclaim the objects of a cache, or frees them with those. `mark` is reclaim_account of
/// /sys/kernel/slab; `None`: unknown.
pub fn is_reclaimable(cache: &str, mark: Option<bool>) -> bool {
    let is_by_name = || RECLAIMABLE.contains(&cache) || cache.starts_with("kmalloc-rcl-");
    INODE_BLOBS.contains(&cache) || !ONLY_MARKED.contains(&cache) && mark.unwrap_or_else(is_by_name)
}

#[cfg(test)]
mod tests {
    use super::is_reclaimable;

    #[test]
    fn the_mark_counts_and_names_stand_in_for_it() {
        assert!(is_reclaimable("ext4_inode_cache", None) && is_reclaimable("kmalloc-rcl-64", None));
        assert!(is_reclaimable("other", Some(true)) && !is_reclaimable("dentry", Some(false)));
        assert!(!is_reclaimable("filp", None) && !is_reclaimable("sock_inode_cache", Some(true)));
        assert!(is_reclaimable("lsm_inode_cache", Some(false)));
    }
}
