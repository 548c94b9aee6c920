//! Kinds of pages by their flags: those that look like cache and that nothing reclaims, block caches, slabs; and the use of
//! pages, in words.
//!
//! Flags of this kernel decide, not their text, in which a composite name stands for several.

use crate::stream::{GfpFlags, Interner, PageSite};
use crate::trace::meminfo;
use crate::trace::session::Session;

/// Smallest order of a huge page: 64 KiB of pages of 4 KiB, as arm64 has.
const HUGE_ORDER_MIN: u8 = 4;

/// Pages that nothing reclaims: of files in memory, of compressed memory, huge pages; without swap, memory of processes.
pub struct UnreclaimedPages<'k> {
    interner: &'k Interner,
    /// Pages by which shared memory grew, where no swap can take it; else 0.
    shmem: u64,
    /// The same of anonymous memory.
    anonymous: u64,
}

impl<'k> UnreclaimedPages<'k> {
    /// For a recording, by the kernel's counts in it.
    pub fn new(session: &Session<'_>, interner: &'k Interner, page_size: u64) -> Self {
        let metadata = session.trace.metadata();
        let has_no_swap = meminfo::has_swap(metadata) == Some(false);
        let grew = |key| {
            let counts = meminfo::twice(metadata, key).filter(|_| has_no_swap);
            counts.map_or(0, |(first, last)| last.saturating_sub(first) / page_size.max(1))
        };
        Self { interner, shmem: grew("Shmem"), anonymous: grew("AnonPages") }
    }

    /// True for pages of a kind, `old` of which are old.
    pub fn has(&self, site: &PageSite, old: u64) -> bool {
        let flags = self.interner.gfp(site.gfp_flags);
        let are_of = |grown: u64| grown > 0 && grown.saturating_mul(2) >= old;
        is_kept(flags, site.order)
            || is_shared(flags) && are_of(self.shmem)
            || is_anonymous(flags) && are_of(self.anonymous)
    }
}

/// True for flags that only pages have which nothing reclaims.
fn is_kept(flags: GfpFlags, order: u8) -> bool {
    type F = GfpFlags;
    let not_of_ramfs = F::MOVABLE | F::RECLAIMABLE | F::ACCOUNT | F::ZERO | F::WRITE | F::NORETRY;
    // fs/ramfs/inode.c, 4.4 to 7.2. Secret memory and memory of guests have these flags too.
    let is_ramfs = flags.contains(F::HIGHMEM | F::HARDWALL) && !flags.intersects(not_of_ramfs);
    // mm/zsmalloc.c, drivers/block/zram/zram_drv.c, 4.4 to 7.2. Pages of files and processes have __GFP_HARDWALL.
    let is_compressed = flags.contains(F::HIGHMEM | F::MOVABLE) && !flags.contains(F::HARDWALL);
    // mm/hugetlb.c, 4.4 to 7.2. Transparent huge pages have __GFP_NOMEMALLOC, large folios of files __GFP_NORETRY.
    let is_huge = order >= HUGE_ORDER_MIN
        && flags.contains(F::HIGHMEM | F::COMP | F::NOWARN)
        && !flags.intersects(F::NOMEMALLOC | F::NORETRY);
    is_ramfs || is_compressed || is_huge
}

/// True for flags of shared memory and tmpfs (mm/shmem.c). Memory of processes that they copied has them too. Written
/// pages of files have __GFP_WRITE, those read ahead __GFP_NORETRY, which huge pages may also have.
fn is_shared(flags: GfpFlags) -> bool {
    let is_read_ahead = flags.contains(GfpFlags::NORETRY) && !flags.contains(GfpFlags::NOMEMALLOC);
    flags.contains(GfpFlags::HIGHMEM | GfpFlags::MOVABLE | GfpFlags::HARDWALL)
        && !flags.intersects(GfpFlags::ZERO | GfpFlags::WRITE)
        && !is_read_ahead
}

/// True for flags of anonymous memory: zeroed pages (`alloc_zeroed_user_highpage_movable`, include/linux/highmem.h), and
/// transparent huge ones (GFP_TRANSHUGE, include/linux/gfp_types.h), of which shared memory has some, too.
fn is_anonymous(flags: GfpFlags) -> bool {
    flags.contains(GfpFlags::HIGHMEM | GfpFlags::MOVABLE | GfpFlags::HARDWALL)
        && flags.intersects(GfpFlags::ZERO | GfpFlags::NOMEMALLOC)
        && !flags.contains(GfpFlags::WRITE)
}

/// True for pages that hold blocks of a device, or a file system's own data: page cache that is not movable. Those of a
/// device have the flags of its mapping without __GFP_FS (fs/buffer.c, 4.4 to 7.2). Single pages that are allocated as
/// folios have __GFP_COMP, unlike those of other users (mm/filemap.c, 5.16 to 7.2), except slabs.
pub fn is_block_cache(flags: GfpFlags, order: u8) -> bool {
    let of_device = flags.contains(GfpFlags::IO | GfpFlags::HARDWALL | GfpFlags::NOFAIL)
        && !flags.intersects(GfpFlags::FS | GfpFlags::HIGHMEM);
    let is_folio = order == 0 && flags.contains(GfpFlags::COMP) && !flags.contains(GfpFlags::ZERO);
    !flags.contains(GfpFlags::ACCOUNT) && (of_device || is_folio) && !is_slab(flags, order)
}

/// True for single pages of slabs (mm/slub.c, 4.4 to 7.2). Those of a device that are read ahead have __GFP_HARDWALL
/// (mm/readahead.c).
pub fn is_slab(flags: GfpFlags, order: u8) -> bool {
    let others = GfpFlags::HARDWALL | GfpFlags::HIGHMEM | GfpFlags::ZERO | GfpFlags::MOVABLE;
    order == 0 && flags.contains(GfpFlags::NOWARN | GfpFlags::NORETRY) && !flags.intersects(others)
}

/// True for pages that a kernel worker keeps ready for the percpu allocator (mm/percpu.c, mm/percpu-vm.c, 4.18 to 7.2).
pub fn is_percpu(flags: GfpFlags, order: u8) -> bool {
    let others = GfpFlags::HARDWALL | GfpFlags::MOVABLE | GfpFlags::ZERO;
    let has = flags.contains(GfpFlags::HIGHMEM | GfpFlags::NORETRY | GfpFlags::NOWARN);
    order == 0 && has && !flags.intersects(others)
}

/// Name of the use of pages that hold data of files and devices.
pub const PAGE_CACHE_USE: &str = "page cache";

/// Use of pages with these flags, if they are known.
pub fn use_of(flags: GfpFlags, order: u8) -> &'static str {
    type F = GfpFlags;
    // GFP_PGTABLE_USER (include/asm-generic/pgalloc.h, 4.7 to 7.2).
    let table = F::IO | F::FS | F::ACCOUNT | F::ZERO;
    let is_table = order == 0 && (flags == table || flags == table | F::COMP);
    // readahead_gfp_mask (include/linux/pagemap.h); transparent huge pages have __GFP_NOMEMALLOC, too. Writes of files have
    // __GFP_WRITE (mm/filemap.c); mappings of file systems have GFP_NOFS.
    let is_read_ahead = flags.contains(F::NORETRY | F::NOWARN) && !flags.contains(F::NOMEMALLOC);
    let is_of_file =
        flags.contains(F::WRITE) || flags.contains(F::HARDWALL) && (is_read_ahead || !flags.contains(F::FS));
    // Movable ones without __GFP_ZERO are copies of a process' memory.
    let is_of_device = is_block_cache(flags, order) && !flags.contains(F::MOVABLE);
    match () {
        () if flags.is_empty() => "unknown use",
        () if is_table => "page tables",
        () if is_of_file || is_of_device => PAGE_CACHE_USE,
        () if flags.contains(F::MOVABLE | F::HARDWALL) => "anonymous or tmpfs",
        () if flags.contains(F::HARDWALL) => "other user memory",
        () => "kernel",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_device_are_page_cache() {
        type F = GfpFlags;
        const KERNEL: F = F::IO.union(F::FS);
        for (order, flags, is_cache) in [
            (0, F::IO | F::NOFAIL | F::COMP | F::HARDWALL, true),
            (0, F::IO | F::NOFAIL | F::HARDWALL, true),
            (0, KERNEL | F::NOFAIL | F::HARDWALL, false),
            // GFP_NOWAIT, before and after 6.8; GFP_NOFS.
            (0, F::COMP, true),
            (0, F::COMP | F::NOWARN, true),
            (0, F::IO | F::COMP, true),
            (0, KERNEL | F::ACCOUNT | F::ZERO | F::COMP, false),
            (0, KERNEL | F::HARDWALL | F::HIGHMEM | F::ACCOUNT, false),
            (0, KERNEL, false),
            (2, KERNEL | F::COMP, false),
            (3, F::COMP, false),
            // A slab, and a device's page that is read ahead.
            (0, KERNEL | F::COMP | F::NOWARN | F::NORETRY, false),
            (0, KERNEL | F::COMP | F::NOWARN | F::NORETRY | F::HARDWALL, true),
        ] {
            assert_eq!(is_block_cache(flags, order), is_cache, "{order} {flags:?}");
        }
    }

    #[test]
    fn pages_that_are_read_ahead_are_not_shared_memory() {
        type F = GfpFlags;
        let movable = F::IO | F::FS | F::HARDWALL | F::HIGHMEM | F::MOVABLE | F::COMP;
        for (flags, is_so) in [
            (movable, true),
            (movable | F::NORETRY | F::NOWARN, false),
            (movable | F::NORETRY | F::NOWARN | F::NOMEMALLOC, true),
            (movable | F::WRITE, false),
            (movable | F::ZERO, false),
            (movable - F::HARDWALL, false),
        ] {
            assert_eq!(is_shared(flags), is_so, "{flags:?}");
        }
    }

    #[test]
    fn uses_are_inferred_from_flags() {
        type F = GfpFlags;
        let kernel = F::IO | F::FS;
        let user = kernel | F::HARDWALL | F::HIGHMEM | F::MOVABLE;
        for (order, flags, of) in [
            (0, kernel | F::ACCOUNT | F::ZERO | F::COMP, "page tables"),
            (2, kernel | F::ACCOUNT | F::ZERO | F::COMP, "kernel"),
            (0, (user - F::FS) | F::NOWARN | F::NORETRY | F::COMP, "page cache"),
            (0, F::IO | F::HARDWALL | F::NOFAIL, "page cache"),
            // Blocks of a device: GFP_NOWAIT as a folio.
            (0, F::COMP | F::NOWARN, "page cache"),
            (0, user | F::COMP, "anonymous or tmpfs"),
            (0, user | F::WRITE, "page cache"),
            (0, user | F::NOWARN | F::NORETRY, "page cache"),
            (0, user | F::ZERO | F::COMP, "anonymous or tmpfs"),
            (9, user | F::NOWARN | F::NORETRY | F::NOMEMALLOC | F::COMP, "anonymous or tmpfs"),
            (0, kernel | F::HARDWALL | F::HIGHMEM, "other user memory"),
            (2, kernel | F::NOWARN | F::NORETRY | F::COMP, "kernel"),
            (0, F::empty(), "unknown use"),
        ] {
            assert_eq!(use_of(flags, order), of, "{order} {flags:?}");
        }
    }
}
