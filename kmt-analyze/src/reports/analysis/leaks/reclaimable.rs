//! Objects that belong to reclaimable ones, and objects that keep reclaimable ones from being reclaimed.

use std::collections::HashMap;

use super::evidence::without;
use super::judged::{Judged, function};
use super::kernel_names::{INODE_BLOBS, ONLY_MARKED, PINS, RECLAIMABLE};
use super::rules::judge;
use super::verdict::Verdict;
use crate::collect::growth::SurvivorSums;
use crate::collect::sums::Sums;
use crate::reports::analysis::leaks::family_grouping::come_in_pairs;
use crate::stream::Api;
use crate::trace::session::Session;
use crate::trace::slabinfo::{self, Sysfs};

/// Caches that the kernel shrinks when memory is short.
pub struct Reclaimable {
    sysfs: Option<Sysfs>,
}

impl Reclaimable {
    /// By the flags in a trace, or else by name.
    pub fn of(session: &Session<'_>) -> Self {
        let metadata = session.trace.metadata();
        let sysfs = ["slab_sysfs.after", "slab_sysfs.before"].iter().find_map(|n| metadata.attachment(n));
        Self { sysfs: sysfs.map(slabinfo::parse_sysfs) }
    }

    /// True if its objects are reclaimed.
    pub fn has(&self, cache: &str) -> bool {
        let flags = self.sysfs.as_ref().and_then(|sysfs| sysfs.get(cache));
        !ONLY_MARKED.contains(&cache)
            && match flags.and_then(|flags| flags.get("reclaim_account")) {
                Some(&value) => value != 0,
                None => RECLAIMABLE.contains(&cache),
            }
    }
}

/// True if each object of a row keeps an inode or a dentry: an inode of a file system in memory has a dentry that stays.
pub fn pins(row: &Judged<'_>) -> bool {
    let cache = row.caches.first().map_or("", |share| share.cache.as_str());
    let is_inode = cache.contains("inode") && !INODE_BLOBS.contains(&cache) && !row.is_reclaimable;
    // Without what the compiler adds: `.isra.0`.
    let function = row.function().split('.').next().unwrap_or_default();
    is_inode || PINS.contains(&function)
}

/// True for inodes, dentries, and what belongs to them.
pub fn is_pinnable(row: &Judged<'_>) -> bool {
    let cache = row.caches.first().map_or("", |share| share.cache.as_str());
    cache == "dentry" || cache.contains("inode") || row.evidence.verdict == Verdict::WithReclaimable
}

/// Largest number of call sites of security modules that are compared with all others; kernels have a dozen.
const BLOBS_MAX: usize = 64;

/// Marks objects that belong to reclaimable ones: names allocated where dentries are, what a file system keeps for its
/// inodes, and the blobs that security modules allocate for each inode.
pub fn follow(rows: &mut [Judged<'_>], step: u64) {
    follow_names(rows);
    follow_file_systems(rows);
    // Security modules allocate a blob for each inode or file and free it with that. Inodes are of many caches.
    let is_blob = |row: &Judged<'_>| row.name.starts_with("security_") || row.name.starts_with("lsm_");
    let mut inodes = SurvivorSums::default();
    rows.iter()
        .filter(|row| row.cache.contains("inode") && !is_blob(row) && !row.evidence.verdict.is_growth())
        .for_each(|row| inodes.absorb(row.survival.clone()));
    let hosts: Vec<(Verdict, &SurvivorSums)> =
        rows.iter().filter(|r| !is_blob(r)).map(|r| (r.evidence.verdict, r.survival)).collect();
    let mut of_hosts = Vec::new();
    let blobs = rows.iter().enumerate().filter(|(_, r)| r.evidence.verdict.is_growth() && is_blob(r));
    for (number, row) in blobs.take(BLOBS_MAX) {
        let goes = |verdict| hosts.iter().any(|(v, host)| *v == verdict && come_in_pairs(row.survival, host));
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

fn may_follow(row: &Judged<'_>) -> bool {
    row.evidence.verdict.is_growth() || row.evidence.verdict == Verdict::Burst
}

/// Long names are allocated where dentries are.
fn follow_names(rows: &mut [Judged<'_>]) {
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
    for row in rows.iter_mut().filter(|row| may_follow(row)) {
        if belongs(row) {
            row.evidence.verdict = Verdict::WithReclaimable;
        }
    }
}

/// A file system keeps link targets, lists and journal entries for an inode, and frees them with it: what its functions
/// allocate together with the inodes of its cache, no more than one for each.
fn follow_file_systems(rows: &mut [Judged<'_>]) {
    let mut hosts: HashMap<String, SurvivorSums> = HashMap::new();
    for row in rows.iter().filter(|row| row.is_reclaimable) {
        if let Some((file_system, _)) = row.cache.split_once("_inode") {
            hosts.entry(format!("{file_system}_")).or_default().absorb(row.survival.clone());
        }
    }
    for row in rows.iter_mut().filter(|row| may_follow(row) && !row.is_reclaimable) {
        let prefix = row.name.find('_').and_then(|at| row.name.get(..=at)).unwrap_or_default();
        let is_host = |host: &&SurvivorSums| {
            row.survival.survivors.sum() <= host.survivors.sum() && come_in_pairs(row.survival, host)
        };
        if hosts.get(prefix).filter(is_host).is_some() {
            row.evidence.verdict = Verdict::WithReclaimable;
        }
    }
}
