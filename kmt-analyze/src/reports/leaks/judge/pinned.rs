//! Inodes and dentries that the kernel cannot reclaim: open files, mounts and marks keep them.
//!
//! They are growth as far as the objects that keep them are, of the same task; others fill the same caches at the same call
//! sites. A call site is in one family, so what a second leak keeps at it is added up apart.

use std::collections::HashMap;

use super::evidence::{Evidence, SURVIVORS_MIN};
use super::families::{Family, PINNED_BY_ONE, per_window};
use super::judged::{self, Judged};
use super::kernel_names::{INODE_BLOBS, PINS};
use super::makers::Maker;
use super::survivors::grow_together;
use super::verdict::{JudgedPart, Verdict};
use crate::collect::growth::{Numbers, STEPS, StepCounts};
use crate::collect::tasks::TaskEvents;

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
    cache == "dentry"
        || row.function() == "__d_alloc"
        || cache.contains("inode")
        || row.evidence.verdict == Verdict::WithReclaimable
}

/// True if the kernel would reclaim them, if nothing kept them.
fn would_be_reclaimed(row: &Judged<'_>) -> bool {
    matches!(row.evidence.verdict, Verdict::Reclaimable | Verdict::WithReclaimable)
}

/// Of reclaimable objects in a family, those of its task alone are pinned: others fill the cache at the same call site.
pub fn narrow_pinned(rows: &mut [Judged<'_>], task_events: &TaskEvents, step: u64) {
    let of_one = |leader: &Judged<'_>| match Maker::of(&leader.growing, task_events) {
        Maker::Task(pid) => Some(pid),
        _ => None,
    };
    let mut tasks: HashMap<usize, Option<i32>> = HashMap::new();
    let leaders: Vec<Option<usize>> = rows.iter().map(|row| row.leader).collect();
    for leader in leaders.iter().flatten() {
        let task = || rows.get(*leader).and_then(of_one);
        tasks.entry(*leader).or_insert_with(task);
    }
    for (row, leader) in rows.iter_mut().zip(leaders) {
        let Some(&Some(pid)) =
            leader.filter(|_| would_be_reclaimed(row)).and_then(|leader| tasks.get(&leader))
        else {
            continue;
        };
        let Evidence { verdict, window_needed, part, .. } = row.evidence;
        if part.task.is_some() || row.survival.task(pid).is_none() {
            continue;
        }
        let part = JudgedPart { task: Some(pid), ..part };
        let evidence = Evidence::of_part(row.survival, step, part);
        let evidence = Evidence { verdict, window_needed, began: evidence.begin_of_growth(), ..evidence };
        if evidence.old >= SURVIVORS_MIN && evidence.old < row.evidence.old {
            row.growing = judged::growing(&evidence, row.survival);
            row.evidence = evidence;
        }
    }
}

/// Growth in a window, by call site, of inodes and dentries that growing objects of a task keep, and that a family does not count
/// as its own.
pub fn pinned_elsewhere(rows: &[Judged<'_>], family: &Family<'_>, task: i32, length: u64) -> Vec<u64> {
    let Some(first) = family.rows.first() else { return Vec::new() };
    let part = JudgedPart { task: Some(task), ..first.evidence.part };
    let keepers = rows.iter().filter(|row| pins(row) && row.evidence.verdict.is_growth());
    let keepers = sum_of_steps(keepers.filter_map(|row| row.growing.task(task)));
    let kept = keepers
        .get(part.from..part.to)
        .unwrap_or_default()
        .iter()
        .fold(0, |sum: u64, n| sum.saturating_add(*n));
    let growth = |row: &Judged<'_>| {
        let steps = row.survival.task(task)?.all();
        let evidence = Evidence::of_part(row.survival, length / STEPS as u64, part);
        let grows = (SURVIVORS_MIN..=kept.saturating_mul(PINNED_BY_ONE)).contains(&evidence.old)
            && grow_together(&keepers, &steps, part.from..part.to) == Some(true);
        grows.then(|| per_window(&evidence, evidence.old_amount, length))
    };
    let counts = |row: &Judged<'_>| {
        row.leader == Some(family.leader) && row.evidence.part.task.is_none_or(|own| own == task)
    };
    rows.iter()
        .filter(|row| is_pinnable(row) && would_be_reclaimed(row) && !counts(row))
        .filter_map(growth)
        .collect()
}

fn sum_of_steps<'s>(all: impl Iterator<Item = &'s StepCounts>) -> Numbers {
    let mut sum = [0_u64; STEPS];
    for steps in all {
        sum.iter_mut().zip(steps.all()).for_each(|(sum, n)| *sum = sum.saturating_add(n));
    }
    sum
}
