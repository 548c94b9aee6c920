//! Pages that are still allocated, by kind and by call site, with their uses in words.
//!
//! Kinds are by flags: pages that look like cache and that nothing reclaims, block caches, slabs. Flags of this kernel decide,
//! not their text, in which a composite name stands for several.

use super::evidence::Evidence;
use super::families::Family;
use super::judged::{Judged, PAGE_CACHE_USE, growing, sort};
use super::kernel_names::{PAGE_CACHE, PAGE_TABLES, PERCPU_PAGES, SHARED_MEMORY};
use super::rules::{Facts, judge, verdict};
use super::survivors::PageSurvivals;
use super::user_memory::{Memory, UserMemory, growth_without_swap, is_most};
use super::verdict::JudgedPart;
use crate::collect::growth::SurvivorSums;
use crate::collect::tasks::TaskEvents;
use crate::render::words::escaped;
use crate::reports::common::ReportContext;
use crate::reports::leaks::judge::makers::{LiveWithMaker, in_common};
use crate::reports::leaks::judge::survivors::grow_together;
use crate::reports::leaks::judge::tasks::{belong_to_tasks, grow_with_tasks};
use crate::stream::{GfpFlags, Interner, PageSite};
use crate::trace::meminfo;
use crate::trace::session::Session;

/// Tasks that started in the window, and the length of a step.
pub struct Started<'t> {
    pub tasks: &'t SurvivorSums,
    pub task_events: &'t TaskEvents,
    pub step: u64,
}

impl Started<'_> {
    /// True for what a task has for its memory: page tables, stacks.
    fn have(&self, evidence: &Evidence, survival: &SurvivorSums) -> bool {
        let growing = growing(evidence, survival);
        match judge(self.tasks, self.step).verdict.is_growth() {
            true => grow_with_tasks(&growing, evidence.part, self.tasks, self.task_events),
            false => belong_to_tasks(&growing, evidence.part, self.tasks, self.task_events, self.step),
        }
    }

    /// Verdict on the part that one task allocated.
    fn judge_part(&self, evidence: Evidence, survival: &SurvivorSums) -> Evidence {
        let is_of_tasks = self.have(&evidence, survival);
        Evidence { verdict: verdict(&evidence, &Facts { is_of_tasks, ..Facts::default() }), ..evidence }
    }

    /// Verdict on pages, with facts on them besides their course.
    fn judge(&self, survival: &SurvivorSums, facts: Facts<'_>) -> Evidence {
        let evidence = judge(survival, self.step);
        let is_of_tasks = facts.is_of_tasks || evidence.verdict.is_growth() && self.have(&evidence, survival);
        Evidence { verdict: verdict(&evidence, &Facts { is_of_tasks, ..facts }), ..evidence }
    }
}

/// Pages by kind; `callers` are those by call site, where stacks were recorded.
pub fn page_rows<'g>(
    context: &ReportContext<'_, '_>,
    pages: &'g PageSurvivals,
    callers: &[Judged<'_>],
    started: &Started<'_>,
) -> Vec<Judged<'g>> {
    let result = context.analysis;
    // Call sites are judged by what they do: a kind grows only if one of them does.
    let most = callers.iter().max_by_key(|row| row.evidence.old_amount).map(|row| row.evidence.verdict);
    let explained = most.filter(|_| !callers.iter().any(|row| row.evidence.verdict.is_growth()));
    let memory = UserMemory::new(context, pages);
    let unreclaimed = UnreclaimedPages::new(context.session, &result.interner, result.page_size.0);
    // Elsewhere slabs with objects are left out already.
    let has_rows_of_slabs = result.direct_map.is_none() && context.basis().allocs(None);
    let mut rows: Vec<Judged<'g>> = pages
        .kinds
        .iter()
        .map(|(number, survival)| {
            let site = result.interner.pages.get(*number).copied().unwrap_or_default();
            let migratetype = result.migratetypes.name(site.migratetype);
            let gfp = escaped(&result.interner.gfp_text(site.gfp_flags));
            let is_page_table = site.order == 0 && PAGE_TABLES.contains(&gfp.as_str());
            let flags = result.interner.gfp(site.gfp_flags);
            let by_flags = unreclaimed.use_by_flags(&site);
            let memory_kinds = memory_kinds(flags).filter(|_| by_flags.is_none());
            let mut tasks = memory_kinds.filter_map(|kind| {
                Some((kind.use_of_pages(), memory.growing_task(kind, survival, started.step)?))
            });
            let task = tasks.next();
            // Of many tasks, each of which ended.
            let all_shared =
                || unreclaimed.shared(flags, judge(survival, started.step)).filter(|_| by_flags.is_none());
            let shared = if task.is_none() { all_shared() } else { None };
            let kept_use =
                by_flags.or(task.map(|(name, _)| name)).or(shared.map(|_| Memory::Shared.use_of_pages()));
            let is_movable = site.is_movable() || migratetype == "Reclaimable";
            let facts = Facts {
                is_slab_page: has_rows_of_slabs && is_slab(flags, site.order),
                is_of_tasks: is_page_table && memory.holds(survival),
                is_user_memory: kept_use.is_none() && use_of(flags, site.order) == MOVABLE_USE,
                is_reclaimable: kept_use.is_none() && (is_movable || is_block_cache(flags, site.order)),
                ..Facts::default()
            };
            let mut evidence = match (task, shared) {
                (Some((_, evidence)), _) => started.judge_part(evidence, survival),
                (None, Some(most)) => most.limit(started.judge(survival, facts)),
                (None, None) => started.judge(survival, facts),
            };
            if let Some(verdict) = explained.filter(|_| evidence.verdict.is_growth()) {
                evidence.verdict = verdict;
            }
            let name = format!("order {}, {gfp}", site.order);
            Judged {
                is_percpu: is_percpu(flags, site.order),
                page_use: Some(kept_use.unwrap_or_else(|| use_of(flags, site.order))),
                ..Judged::new((0, name, migratetype), evidence, survival)
            }
        })
        .collect();
    sort(&mut rows);
    rows
}

/// Pages by call site.
pub fn page_caller_rows<'g>(
    context: &ReportContext<'_, '_>,
    pages: &'g PageSurvivals,
    started: &Started<'_>,
) -> Vec<Judged<'g>> {
    let labels = context.labels();
    let has_swap = meminfo::has_swap(context.session.trace.metadata()) == Some(true);
    let memory = UserMemory::new(context, pages);
    let mut rows: Vec<Judged<'g>> = pages
        .callers
        .iter()
        .filter(|(_, survival)| survival.survivors.sum() > 0)
        .map(|(&(address, is_slab), survival)| {
            let name = if address == 0 { "(the allocator)".to_owned() } else { labels.symbol(address) };
            let is_reclaimable = PAGE_CACHE.iter().any(|start| name.starts_with(start));
            let is_heap = UserMemory::is_made_at(&name);
            let is_user_memory = is_heap || has_swap && name.starts_with(SHARED_MEMORY);
            let facts = Facts { is_slab_page: is_slab, is_reclaimable, is_user_memory, ..Facts::default() };
            let kind = match () {
                () if is_heap => Some(Memory::Anonymous),
                () if name.starts_with(SHARED_MEMORY) => Some(Memory::Shared),
                () => None,
            };
            let task = kind.and_then(|kind| memory.growing_task(kind, survival, started.step));
            let evidence = match task {
                Some(evidence) => started.judge_part(evidence, survival),
                None => started.judge(survival, facts),
            };
            let cache = if is_slab { "slab" } else { "" }.to_owned();
            let is_percpu = PERCPU_PAGES.iter().any(|start| name.starts_with(start));
            Judged { is_percpu, ..Judged::new((address, name, cache), evidence, survival) }
        })
        .collect();
    sort(&mut rows);
    rows
}

/// Largest number of families that pages are compared with.
const FAMILIES_MAX: usize = 64;

/// Marks pages that the tasks of a family allocate at the pace of its leader: they are of the same leak. Those for the percpu
/// allocator may be of any task. Returns the
/// number of the family for each row.
pub fn families_of(
    rows: &[Judged<'_>],
    families: &[Family<'_>],
    task_events: &TaskEvents,
) -> Vec<Option<usize>> {
    let leaders = families.iter().take(FAMILIES_MAX).filter_map(|family| family.rows.first());
    let leaders: Vec<(LiveWithMaker<'_>, JudgedPart)> =
        leaders.map(|row| (LiveWithMaker::of(&row.growing, task_events), row.evidence.part)).collect();
    let family = |row: &Judged<'_>| {
        let made = LiveWithMaker::of(&row.growing, task_events);
        leaders.iter().position(|(leader, part)| {
            if row.is_percpu {
                let (steps, own) = (leader.steps(), row.growing.survivors.all());
                return grow_together(&steps, &own, row.evidence.part.common(*part)) == Some(true);
            }
            let common = in_common(leader, &made);
            common.and_then(|(a, b)| grow_together(&a, &b, row.evidence.part.common(*part))) == Some(true)
        })
    };
    rows.iter().map(|row| family(row).filter(|_| row.evidence.verdict.is_growth())).collect()
}

/// Smallest order of a huge page: 64 KiB of pages of 4 KiB, as arm64 has.
const HUGE_ORDER_MIN: u8 = 4;

/// Pages that nothing reclaims: of files in memory, of compressed memory, huge pages; without swap, memory of processes.
pub struct UnreclaimedPages<'k> {
    interner: &'k Interner,
    /// Pages by which shared memory grew, where no swap can take it; else 0.
    shmem: u64,
}

impl<'k> UnreclaimedPages<'k> {
    /// For a recording, by the kernel's counts in it.
    pub fn new(session: &Session<'_>, interner: &'k Interner, page_size: u64) -> Self {
        let metadata = session.trace.metadata();
        let shmem = growth_without_swap(metadata, "Shmem", page_size).unwrap_or(0);
        Self { interner, shmem: shmem.max(0).unsigned_abs() }
    }

    /// Use of pages of a kind, by its flags alone, if they are such pages.
    pub fn use_by_flags(&self, site: &PageSite) -> Option<&'static str> {
        kept_use(self.interner.gfp(site.gfp_flags), site.order)
    }

    /// The kernel's count, if most pages of a kind with these flags are files of tmpfs by it, or shared.
    fn shared(&self, flags: GfpFlags, all: Evidence) -> Option<SharedMost> {
        (is_shared(flags) && is_most(self.shmem, all.old)).then_some(SharedMost(self.shmem))
    }
}

/// Pages of shared memory that there can be: others with their flags are copies.
#[derive(Clone, Copy)]
struct SharedMost(u64);

impl SharedMost {
    fn limit(self, evidence: Evidence) -> Evidence {
        Evidence { old: evidence.old.min(self.0), old_amount: evidence.old_amount.min(self.0), ..evidence }
    }
}

/// What pages of processes with these flags can be: the kinds of memory in which one of them may grow.
fn memory_kinds(flags: GfpFlags) -> impl Iterator<Item = Memory> {
    let anonymous = is_anonymous(flags).then_some(Memory::Anonymous);
    anonymous.into_iter().chain(is_shared(flags).then_some(Memory::Shared))
}

impl Memory {
    fn use_of_pages(self) -> &'static str {
        match self {
            Self::Anonymous => ANONYMOUS_USE,
            Self::Shared => SHARED_USE,
        }
    }
}

/// Use of pages with flags that only pages have which nothing reclaims.
fn kept_use(flags: GfpFlags, order: u8) -> Option<&'static str> {
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
    match () {
        () if is_ramfs => Some("ramfs, or memory of guests"),
        () if is_compressed => Some("compressed memory (zram, zswap)"),
        () if is_huge => Some("huge pages (hugetlbfs)"),
        () => None,
    }
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
fn is_block_cache(flags: GfpFlags, order: u8) -> bool {
    let of_device = flags.contains(GfpFlags::IO | GfpFlags::HARDWALL | GfpFlags::NOFAIL)
        && !flags.intersects(GfpFlags::FS | GfpFlags::HIGHMEM);
    let is_folio = order == 0 && flags.contains(GfpFlags::COMP) && !flags.contains(GfpFlags::ZERO);
    !flags.contains(GfpFlags::ACCOUNT) && (of_device || is_folio) && !is_slab(flags, order)
}

/// True for single pages of slabs (mm/slub.c, 4.4 to 7.2). Those of a device that are read ahead have __GFP_HARDWALL
/// (mm/readahead.c).
fn is_slab(flags: GfpFlags, order: u8) -> bool {
    let others = GfpFlags::HARDWALL | GfpFlags::HIGHMEM | GfpFlags::ZERO | GfpFlags::MOVABLE;
    order == 0 && flags.contains(GfpFlags::NOWARN | GfpFlags::NORETRY) && !flags.intersects(others)
}

/// True for pages that a kernel worker keeps ready for the percpu allocator (mm/percpu.c, mm/percpu-vm.c, 4.18 to 7.2).
fn is_percpu(flags: GfpFlags, order: u8) -> bool {
    let others = GfpFlags::HARDWALL | GfpFlags::MOVABLE | GfpFlags::ZERO;
    let has = flags.contains(GfpFlags::HIGHMEM | GfpFlags::NORETRY | GfpFlags::NOWARN);
    order == 0 && has && !flags.intersects(others)
}

/// True for a use of pages that user space fills: it ends with the processes, or the kernel takes it back.
pub fn is_of_user_space(name: &str) -> bool {
    [PAGE_CACHE_USE, MOVABLE_USE, ANONYMOUS_USE, SHARED_USE, "other user memory"].contains(&name)
}

/// Pages of slabs whose objects the kernel can reclaim (SLAB_RECLAIM_ACCOUNT, mm/slub.c, 4.4 to 7.2), and the like.
pub const RECLAIMABLE_USE: &str = "reclaimable slab";

// Uses of memory that user space fills.
const MOVABLE_USE: &str = "anonymous or tmpfs";
const ANONYMOUS_USE: &str = "anonymous memory";
const SHARED_USE: &str = "tmpfs or shared memory";

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
        () if flags.contains(F::MOVABLE | F::HARDWALL) => MOVABLE_USE,
        () if flags.contains(F::HARDWALL) => "other user memory",
        () if flags.contains(F::RECLAIMABLE) => RECLAIMABLE_USE,
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
            (2, kernel | F::NOWARN | F::NORETRY | F::COMP | F::RECLAIMABLE, "reclaimable slab"),
            (0, F::empty(), "unknown use"),
        ] {
            assert_eq!(use_of(flags, order), of, "{order} {flags:?}");
        }
    }
}
