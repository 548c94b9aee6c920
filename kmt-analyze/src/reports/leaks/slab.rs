//! Slab objects that stay, by call site.

use std::collections::HashMap;

use super::judged::{Judged, sort};
use super::stacks;
use crate::analysis::leaks::families::{Candidate, families};
use crate::analysis::leaks::tasks::belong_to_tasks;
use crate::analysis::leaks::{Verdict, goes_with, judge, may_be_unseen, without};
use crate::collect::calls::CallSums;
use crate::collect::growth::{GrowthSums, Survival};
use crate::pass::Analysis;
use crate::pass::caches::usual_names;
use crate::render::text::escaped;
use crate::reports::common::Context;
use crate::reports::common::labels::Labels;
use crate::reports::common::live_bounds::LiveBounds;
use crate::stream::Api;
use crate::trace::slabinfo;

/// Caches whose objects the kernel takes back (SLAB_RECLAIM_ACCOUNT), for files that hold nothing of /sys/kernel/slab.
/// From fs/ of 4.4 to 7.2; shmem_inode_cache and mqueue_inode_cache are not marked so.
const RECLAIMABLE: [&str; 12] = [
    "dentry",
    "inode_cache",
    "proc_inode_cache",
    "ext4_inode_cache",
    "ext2_inode_cache",
    "xfs_inode",
    "btrfs_inode",
    "v9fs_inode_cache",
    "nfs_inode_cache",
    "fuse_inode",
    "radix_tree_node",
    "buffer_head",
];

/// Caches that are marked as reclaimable though no shrinker frees their objects, only their owners do.
const ONLY_MARKED: [&str; 3] = ["sock_inode_cache", "bdev_cache", "rpc_inode_cache"];

/// Caches of which some objects are freed in bulk, however few of them the trace shows (net/core/skbuff.c, where a CPU keeps
/// packets for NAPI and gives them back many at once; lib/maple_tree.c; 6.1 to 7.2).
const FREED_IN_BULK: [&str; 2] = ["skbuff_head_cache", "maple_node"];

/// Functions that allocate what the slab allocator keeps for each slab (mm/slub.c, mm/memcontrol.c, 5.9 to 7.2).
const SLAB_METADATA: [&str; 3] =
    ["alloc_slab_obj_exts", "memcg_alloc_slab_cgroups", "memcg_alloc_page_obj_cgroups"];

/// Functions whose objects the kernel frees long after their use and many at once: areas of vmalloc wait until
/// lazy_max_pages() of them have gathered (mm/vmalloc.c, 4.4 to 7.2).
const LAZY: [&str; 2] = ["alloc_vmap_area", "__get_vm_area_node"];

/// Slab objects by call site, those to be looked at first.
pub(super) fn judged<'g>(
    context: &Context<'_, '_>,
    result: &Analysis,
    growth: &'g GrowthSums,
    calls: Option<&CallSums>,
) -> Vec<Judged<'g>> {
    let labels = Labels::new(context.session);
    let usual = usual_names(result);
    let metadata = context.session.trace.metadata();
    let sysfs = ["slab_sysfs.after", "slab_sysfs.before"].iter().find_map(|n| metadata.attachment(n));
    let sysfs = sysfs.map(slabinfo::parse_sysfs);
    let is_reclaimable = |cache: &str| {
        !ONLY_MARKED.contains(&cache)
            && match sysfs.as_ref().and_then(|s| s.get(cache)).and_then(|f| f.get("reclaim_account")) {
                Some(&value) => value != 0,
                None => RECLAIMABLE.contains(&cache),
            }
    };
    let bounds = LiveBounds::of(context, result).bounds.by_caller(|_| true);
    let mut stacks = stacks::by_caller(result, &labels, calls);
    let mut rows: Vec<Judged<'g>> = (0u32..)
        .zip(&growth.callers)
        .filter(|(_, course)| course.survivors.sum() > 0)
        .map(|(number, course)| {
            let (api, address, name) = labels.caller(result, number);
            let site = course.site().and_then(|site| result.interner.sites.get(site));
            let named = site
                .and_then(|s| s.cache)
                .or(course.site().and_then(|site| usual.get(site as usize).copied().flatten()));
            let cache = match (api, named, site) {
                (Api::Kmalloc, _, Some(site)) => result.size_classes.name(site.bytes_alloc),
                (_, Some(name), _) => escaped(result.interner.name(name)),
                _ => "?".to_owned(),
            };
            let mut evidence = judge(course, growth.step());
            // The kernel's own count says that most of what seems to stay is gone.
            let most = bounds.get(&(api, address)).copied().flatten().map(|live| live.objects[1]);
            if most.is_some_and(|most| most * 2 < evidence.survivors) && evidence.verdict.is_growth() {
                evidence.verdict = Verdict::FreesUnseen;
            }
            let is_bulk = FREED_IN_BULK.contains(&cache.as_str()) && may_be_unseen(&evidence);
            if evidence.verdict.is_growth() && is_bulk {
                evidence.verdict = Verdict::FreesUnseen;
            }
            let is_reclaimable = api == Api::Cache && is_reclaimable(&cache);
            if evidence.verdict.is_growth() && is_reclaimable {
                evidence.verdict = Verdict::Reclaimable;
            }
            let function = function(&name);
            if evidence.verdict.is_growth() && LAZY.contains(&function) {
                evidence.verdict = Verdict::Lazy;
            }
            if evidence.verdict.is_growth() && SLAB_METADATA.contains(&function) {
                evidence.verdict = Verdict::WithSlabs;
            }
            let stacks = stacks.remove(&number).unwrap_or_default();
            Judged {
                api: Some(api),
                address,
                name,
                cache,
                evidence,
                is_reclaimable,
                stacks,
                course,
                leader: None,
            }
        })
        .collect();
    follow_reclaimable(&mut rows, growth.step());
    follow_tasks(&mut rows, growth.step());
    sort(&mut rows);
    let candidates: Vec<Candidate<'_>> = rows
        .iter()
        .map(|r| Candidate {
            verdict: r.evidence.verdict,
            course: r.course,
            old_amount: r.evidence.old_amount,
            old_steps: r.evidence.steps.1,
        })
        .collect();
    let leaders = families(&candidates);
    rows.iter_mut().zip(leaders).for_each(|(row, leader)| row.leader = leader);
    rows
}

/// The function that a call site is in.
fn function(name: &str) -> &str {
    name.split_once("+0x").map_or(name, |(function, _)| function)
}

/// Call sites of security modules that are compared with all others; kernels have a dozen.
const BLOBS_MAX: usize = 64;

/// Finds what belongs to objects that the kernel takes back: names that are allocated where dentries are, and what
/// security modules keep for each inode.
fn follow_reclaimable(rows: &mut [Judged<'_>], step: u64) {
    // Whatever is said of those: their names may never be seen freed, and look as if they stayed.
    let mut hosts: HashMap<String, u64> = HashMap::new();
    for row in rows.iter().filter(|row| row.is_reclaimable) {
        let most = hosts.entry(function(&row.name).to_owned()).or_default();
        *most = row.evidence.survivors.max(*most);
    }
    let belongs = |row: &Judged<'_>| {
        let survivors = row.evidence.survivors;
        row.api == Some(Api::Kmalloc) && hosts.get(function(&row.name)).is_some_and(|most| survivors <= *most)
    };
    for row in rows
        .iter_mut()
        .filter(|row| row.evidence.verdict.is_growth() || row.evidence.verdict == Verdict::Burst)
    {
        if belongs(row) {
            row.evidence.verdict = Verdict::WithReclaimable;
        }
    }
    // Security modules keep a blob for each inode or file; it goes when that does. Inodes are of many caches.
    let is_blob = |row: &Judged<'_>| row.name.starts_with("security_") || row.name.starts_with("lsm_");
    let mut inodes = Survival::default();
    rows.iter()
        .filter(|row| row.cache.contains("inode") && !is_blob(row) && !row.evidence.verdict.is_growth())
        .for_each(|row| inodes += row.course);
    let hosts: Vec<(Verdict, &Survival)> =
        rows.iter().filter(|r| !is_blob(r)).map(|r| (r.evidence.verdict, r.course)).collect();
    let mut of_hosts = Vec::new();
    let blobs = rows.iter().enumerate().filter(|(_, r)| r.evidence.verdict.is_growth() && is_blob(r));
    for (number, row) in blobs.take(BLOBS_MAX) {
        let goes = |verdict| hosts.iter().any(|(v, host)| *v == verdict && goes_with(row.course, host));
        // Those that do not grow explain most of them: what is left does not grow either.
        let goes_with_inodes = row.name.contains("inode")
            && !judge(&without(row.course, &inodes.survivors.all()), step).verdict.is_growth();
        if (goes(Verdict::Reclaimable) || goes_with_inodes) && !goes(Verdict::Grows) {
            of_hosts.push(number);
        }
    }
    for number in of_hosts {
        if let Some(row) = rows.get_mut(number) {
            row.evidence.verdict = Verdict::WithReclaimable;
        }
    }
}

/// Tasks that started in the window and still run, as their task_struct shows.
pub(super) fn tasks_started(rows: &[Judged<'_>]) -> Survival {
    let mut tasks = Survival::default();
    rows.iter().filter(|row| row.cache == "task_struct").for_each(|row| tasks += row.course);
    tasks
}

/// Finds what belongs to tasks that started in the window and still run.
fn follow_tasks(rows: &mut [Judged<'_>], step: u64) {
    let tasks = tasks_started(rows);
    let is_theirs =
        |row: &Judged<'_>| row.evidence.verdict.is_growth() || row.evidence.verdict == Verdict::Burst;
    for row in rows.iter_mut().filter(|row| is_theirs(row) && belong_to_tasks(row.course, &tasks, step)) {
        row.evidence.verdict = Verdict::WithTasks;
    }
}
