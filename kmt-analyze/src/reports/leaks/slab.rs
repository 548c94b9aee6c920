//! Slab objects that are still allocated, by call site.

use std::collections::HashMap;

use super::judged::{Judged, sort};
use super::stacks;
use crate::collect::calls::CallSums;
use crate::collect::growth::{GrowthSums, Survival};
use crate::pass::Analysis;
use crate::pass::caches::usual_names;
use crate::render::text::escaped;
use crate::reports::common::Context;
use crate::reports::common::labels::Labels;
use crate::reports::common::live_bounds::LiveBounds;
use crate::reports::leaks::verdict::families::{Candidate, families};
use crate::reports::leaks::verdict::tasks::belong_to_tasks;
use crate::reports::leaks::verdict::{Verdict, goes_with, judge, may_be_implied_frees, without};
use crate::stream::Api;
use crate::trace::slabinfo;

/// Caches whose objects the kernel reclaims (SLAB_RECLAIM_ACCOUNT), for files without /sys/kernel/slab. From fs/ of 4.4
/// to 7.2; shmem_inode_cache and mqueue_inode_cache are not marked so.
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

/// Caches that are marked as reclaimable although only the owners of their objects free them, not a shrinker.
const ONLY_MARKED: [&str; 3] = ["sock_inode_cache", "bdev_cache", "rpc_inode_cache"];

/// Caches of which some objects are freed in bulk, even if the trace shows few of these (net/core/skbuff.c, where a CPU
/// keeps packets for NAPI and frees many at once; lib/maple_tree.c; 6.1 to 7.2).
const FREED_IN_BULK: [&str; 2] = ["skbuff_head_cache", "maple_node"];

/// Functions with objects that the kernel frees by kfree_rcu, which has no event without a probe: kernfs_open_node
/// (fs/kernfs/file.c, 6.0 to 7.2). Every task that starts may leave one that is free already.
const FREED_BY_RCU: [&str; 2] = ["kernfs_fop_open", "kernfs_get_open_node"];

/// Functions that allocate the slab allocator's metadata of a slab (mm/slub.c, mm/memcontrol.c, 5.9 to 7.2).
const SLAB_METADATA: [&str; 3] =
    ["alloc_slab_obj_exts", "memcg_alloc_slab_cgroups", "memcg_alloc_page_obj_cgroups"];

/// Functions whose objects the kernel frees late and many at once: areas of vmalloc wait until lazy_max_pages() of them
/// have gathered (mm/vmalloc.c, 4.4 to 7.2).
const LAZY: [&str; 2] = ["alloc_vmap_area", "__get_vm_area_node"];

/// Slab objects by call site, in order of importance.
pub(super) fn judged<'g>(
    context: &Context<'_, '_>,
    result: &Analysis,
    growth: &'g GrowthSums,
    calls: Option<&CallSums>,
) -> Vec<Judged<'g>> {
    let labels = Labels::of(context);
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
        .filter(|(_, survival)| survival.survivors.sum() > 0)
        .map(|(number, survival)| {
            let (api, address, name) = labels.caller(result, number);
            let site = survival.site().and_then(|site| result.interner.sites.get(site));
            let named = site
                .and_then(|s| s.cache)
                .or(survival.site().and_then(|site| usual.get(site as usize).copied().flatten()));
            let cache = match (api, named, site) {
                (Api::Kmalloc, _, Some(site)) => result.size_classes.name(site.bytes_alloc),
                (_, Some(name), _) => escaped(result.interner.name(name)),
                _ => "?".to_owned(),
            };
            let mut evidence = judge(survival, growth.step());
            // By the kernel's own count most of these objects are free already.
            let most = bounds.get(&(api, address)).copied().flatten().map(|live| live.objects[1]);
            if most.is_some_and(|most| most * 2 < evidence.survivors) && evidence.verdict.is_growth() {
                evidence.verdict = Verdict::ImpliedFrees;
            }
            let is_bulk = FREED_IN_BULK.contains(&cache.as_str()) && may_be_implied_frees(&evidence);
            if evidence.verdict.is_growth() && is_bulk {
                evidence.verdict = Verdict::ImpliedFrees;
            }
            let is_reclaimable = api == Api::Cache && is_reclaimable(&cache);
            if evidence.verdict.is_growth() && is_reclaimable {
                evidence.verdict = Verdict::Reclaimable;
            }
            let function = function(&name);
            let has_frees = evidence.freed.0 > 0;
            if evidence.verdict.is_growth() && !has_frees && FREED_BY_RCU.contains(&function) {
                evidence.verdict = Verdict::ImpliedFrees;
            }
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
                survival,
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
            survival: r.survival,
            old_amount: r.evidence.old_amount,
            old_steps: r.evidence.steps.1,
        })
        .collect();
    let leaders = families(&candidates);
    rows.iter_mut().zip(leaders).for_each(|(row, leader)| row.leader = leader);
    rows
}

/// Function of a call site.
fn function(name: &str) -> &str {
    name.split_once("+0x").map_or(name, |(function, _)| function)
}

/// Largest number of call sites of security modules that are compared with all others; kernels have a dozen.
const BLOBS_MAX: usize = 64;

/// Marks objects that belong to reclaimable ones: names allocated where dentries are, and the blobs that security
/// modules allocate for each inode.
fn follow_reclaimable(rows: &mut [Judged<'_>], step: u64) {
    // Of any verdict: names of dentries may have no free event, and look like growth.
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
    // Security modules allocate a blob for each inode or file and free it with that. Inodes are of many caches.
    let is_blob = |row: &Judged<'_>| row.name.starts_with("security_") || row.name.starts_with("lsm_");
    let mut inodes = Survival::default();
    rows.iter()
        .filter(|row| row.cache.contains("inode") && !is_blob(row) && !row.evidence.verdict.is_growth())
        .for_each(|row| inodes += row.survival);
    let hosts: Vec<(Verdict, &Survival)> =
        rows.iter().filter(|r| !is_blob(r)).map(|r| (r.evidence.verdict, r.survival)).collect();
    let mut of_hosts = Vec::new();
    let blobs = rows.iter().enumerate().filter(|(_, r)| r.evidence.verdict.is_growth() && is_blob(r));
    for (number, row) in blobs.take(BLOBS_MAX) {
        let goes = |verdict| hosts.iter().any(|(v, host)| *v == verdict && goes_with(row.survival, host));
        // Inodes that do not grow explain most of the blobs: the rest does not grow either.
        let goes_with_inodes = row.name.contains("inode")
            && !judge(&without(row.survival, &inodes.survivors.all()), step).verdict.is_growth();
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

/// Tasks that started in the window and still run, by their task_struct.
pub(super) fn tasks_started(rows: &[Judged<'_>]) -> Survival {
    let mut tasks = Survival::default();
    rows.iter().filter(|row| row.cache == "task_struct").for_each(|row| tasks += row.survival);
    tasks
}

/// Marks objects that belong to tasks that started in the window and still run.
fn follow_tasks(rows: &mut [Judged<'_>], step: u64) {
    let tasks = tasks_started(rows);
    let is_theirs =
        |row: &Judged<'_>| row.evidence.verdict.is_growth() || row.evidence.verdict == Verdict::Burst;
    for row in rows.iter_mut().filter(|row| is_theirs(row) && belong_to_tasks(row.survival, &tasks, step)) {
        row.evidence.verdict = Verdict::WithTasks;
    }
}
