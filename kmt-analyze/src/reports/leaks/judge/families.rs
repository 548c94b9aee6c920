//! Call sites that grow together are one finding: objects that are allocated together by the same tasks, and not freed.
//!
//! A pipe that is not closed leaves an inode, a dentry, two files, their blobs and the pipe itself. The call site that allocates
//! the thing itself, not its common parts, leads the family and names it.

use std::collections::BTreeMap;

use super::evidence::{Evidence, SURVIVORS_MIN};
use super::judged::Judged;
use super::kernel_names::{GENERAL, INDICES, THINGS};
use super::makers::{LiveWithMaker, in_common};
use super::survivors::{curve_distance, grow_together};
use super::verdict::{JudgedPart, Verdict};
use crate::collect::growth::{Numbers, STEPS, StepCounts, SurvivorSums};
use crate::collect::tasks::TaskEvents;
use crate::sort_rows::SortRows;

/// Call sites that grow together.
pub struct Family<'r> {
    /// Bytes of old survivors of the call sites.
    pub bytes: u64,
    /// Bytes of old survivors of all of them per second, or per 10^9 ticks.
    pub per_second: u64,
    /// Number of the leader: [`Judged::leader`] of the rows.
    pub leader: usize,
    /// Call sites, the leader first.
    pub rows: Vec<&'r Judged<'r>>,
}

/// Length of the first steps of a window.
pub fn until(step: usize, window: u64) -> u64 {
    (window / STEPS as u64).saturating_mul(step as u64)
}

/// Old bytes per second, or per 10^9 ticks, since growth began; of batches from the first to the last.
pub fn per_second(evidence: &Evidence, old_bytes: u64, length: u64) -> u64 {
    if let Some((steps, objects)) = evidence.paced.filter(|_| evidence.verdict == Verdict::Batches) {
        let bytes = u128::from(old_bytes) * u128::from(objects) / u128::from(evidence.old.max(1));
        let time = u128::from(until(steps, length)).max(1);
        return u64::try_from(bytes.saturating_mul(1_000_000_000) / time).unwrap_or(u64::MAX);
    }
    u64::try_from(u128::from(old_bytes) * 1_000_000_000 / old_length(evidence, length)).unwrap_or(u64::MAX)
}

/// Time in which the old survivors were allocated, since growth began; at least 1.
fn old_length(evidence: &Evidence, length: u64) -> u128 {
    let old = length.saturating_sub(evidence.old_age);
    let before = evidence.began.map_or(0, |step| until(step, length));
    u128::from(old.saturating_sub(before)).max(1)
}

/// Bytes that growth at the rate of these old bytes adds in a whole window: a measure of the growth of rows that are
/// judged over different times.
pub fn per_window(evidence: &Evidence, old_bytes: u64, length: u64) -> u64 {
    let time = match evidence.paced.filter(|_| evidence.verdict == Verdict::Batches) {
        Some((steps, objects)) => {
            u128::from(until(steps, length)) * u128::from(evidence.old.max(1)) / u128::from(objects.max(1))
        }
        None => old_length(evidence, length),
    };
    u64::try_from(u128::from(old_bytes) * u128::from(length) / time.max(1)).unwrap_or(u64::MAX)
}

/// True if these rows grew in the same time: they are judged over the same steps, from the same start.
pub fn are_of_one_time<'r>(rows: impl IntoIterator<Item = &'r Judged<'r>>) -> bool {
    let mut times = rows.into_iter().map(|row| {
        let e = &row.evidence;
        let batches = (e.verdict == Verdict::Batches).then_some(e.batches);
        (e.part.from, e.part.to, e.began, batches)
    });
    let first = times.next();
    times.all(|time| Some(time) == first)
}

/// Families, those that grow fastest first.
pub fn families<'r>(rows: &'r [Judged<'r>], length: u64) -> Vec<Family<'r>> {
    let mut by_leader: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        if let Some(leader) = row.leader {
            by_leader.entry(leader).or_default().push(number);
        }
    }
    let mut families = Vec::new();
    for (leader, mut members) in by_leader {
        // The rows are sorted, except for the leader.
        members.sort_rows_by_key(|&member| member != leader);
        let rows: Vec<&Judged<'_>> = members.into_iter().filter_map(|member| rows.get(member)).collect();
        let bytes = rows.iter().map(|r| r.evidence.old_amount).fold(0, u64::saturating_add);
        let per_second = rows.iter().map(|r| per_second(&r.evidence, r.evidence.old_amount, length));
        let per_second = per_second.fold(0, u64::saturating_add);
        families.push(Family { bytes, per_second, leader, rows });
    }
    families.sort_rows_by_key(|f| std::cmp::Reverse((f.per_second, f.bytes)));
    families
}

/// A call site of a family.
#[derive(Debug, Clone, Copy)]
pub struct FamilySite<'f> {
    pub function: &'f str,
    /// Old survivors.
    pub old: u64,
    /// Allocations in the time of the old survivors.
    pub old_births: u64,
    /// Bytes of old survivors.
    pub old_amount: u64,
}

/// True for a function that allocates nodes of an index.
fn is_index(function: &str) -> bool {
    INDICES.iter().any(|start| function.starts_with(start))
}

/// Rank of a call site; the highest one names its family.
fn rank(site: &FamilySite<'_>) -> usize {
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
fn leading_site(sites: &[(usize, FamilySite<'_>)]) -> Option<usize> {
    let share = |site: &FamilySite<'_>| site.old as f64 / site.old_births.max(1) as f64;
    let best = sites.iter().map(|(_, site)| share(site)).fold(0.0, f64::max);
    let is_own = |site: &FamilySite<'_>| share(site) * OTHERS_MAX >= best;
    let key = |(_, site): &&(usize, FamilySite<'_>)| (is_own(site), rank(site), site.old_amount);
    // The first of equal ones.
    sites.iter().rev().max_by_key(key).map(|(at, _)| *at)
}

/// Candidate for a family.
#[derive(Debug, Clone, Copy)]
pub struct FamilyCandidate<'c> {
    pub verdict: Verdict,
    /// Births and survivors.
    pub survival: &'c SurvivorSums,
    /// Function that allocates it.
    pub function: &'c str,
    /// Old survivors.
    pub old: u64,
    /// Bytes of old survivors.
    pub old_amount: u64,
    /// Allocations in the steps that the old survivors come from.
    pub old_births: u64,
    /// Part of all survivors that these are.
    pub part: JudgedPart,
    /// Its frees have no event: it grows if what the same tasks make grows at that pace.
    pub is_unsure: bool,
    /// Keeps one inode and its dentry from being reclaimed: an open file, a mount, a mark.
    pub pins: bool,
    /// An inode or a dentry, or what belongs to one.
    pub is_pinnable: bool,
}

impl FamilyCandidate<'_> {
    fn leads(&self) -> bool {
        self.verdict.is_growth()
    }

    /// Grows, if another of the family does.
    fn grows(&self) -> bool {
        self.leads() || self.is_unsure
    }

    /// True for arrays that grow in batches with the number of `things`: of shrinkers for each memory cgroup (mm/shrinker.c), of files.
    fn is_table_of(&self, things: &Self) -> bool {
        self.verdict == Verdict::Batches
            && things.verdict == Verdict::Grows
            && self.old_amount.saturating_mul(TABLE_SHARE) <= things.old_amount
    }

    fn may_be_pinned(&self) -> bool {
        self.is_pinnable && matches!(self.verdict, Verdict::Reclaimable | Verdict::WithReclaimable)
    }

    /// Survivors of one task by step, and the number of old ones, where they may be pinned: another task may fill the cache at
    /// the same call site.
    fn pinnable_of(&self, task: Option<i32>) -> Option<(Numbers, u64)> {
        let steps = self.survival.task(task.filter(|_| self.may_be_pinned())?)?.all();
        let old = steps.get(self.part.from..self.part.to)?.iter().copied().fold(0, u64::saturating_add);
        (old >= SURVIVORS_MIN).then_some((steps, old))
    }

    /// Number of old survivors, of one task where they may be pinned.
    fn old_of(&self, task: Option<i32>) -> u64 {
        self.pinnable_of(task).map_or(self.old, |(_, old)| old.min(self.old))
    }
}

/// Old bytes of arrays, as 1/N of those of the things in them, at most: 1/19 was seen (IPC namespaces, 6.18).
const TABLE_SHARE: u64 = 10;
/// Inodes and dentries of one call site that an object keeps, at most: it may allocate those of two kinds.
pub const PINNED_BY_ONE: u64 = 2;
/// Largest distance over time of objects that come in pairs.
const APART_MAX: f64 = 0.2;
/// Largest number of candidates that found a family, the largest first: each is compared with all others.
const LEADERS_MAX: usize = 256;

/// Number of the leader of each candidate; `None`: in no family.
pub fn family_leaders(candidates: &[FamilyCandidate<'_>], task_events: &TaskEvents) -> Vec<Option<usize>> {
    let made: Vec<LiveWithMaker<'_>> =
        candidates.iter().map(|c| LiveWithMaker::of(c.survival, task_events)).collect();
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    // An index grows with what is in it.
    order.sort_rows_by_key(|&at| {
        candidates.get(at).map(|c| (is_index(c.function), std::cmp::Reverse(c.old_amount)))
    });
    let mut found: Vec<Option<usize>> = vec![None; candidates.len()];
    let mut founders = 0;
    for founder in order {
        let is_free = |at: usize| found.get(at).is_some_and(Option::is_none);
        let (Some(one), Some(made_one)) = (candidates.get(founder), made.get(founder)) else { continue };
        if !one.leads() || !is_free(founder) {
            continue;
        }
        founders += 1;
        let is_member = |(at, (other, made_other)): (usize, (&FamilyCandidate<'_>, &LiveWithMaker<'_>))| {
            let is_table = is_index(other.function) || other.is_table_of(one);
            let grows_along = || {
                let of_task = other.pinnable_of(made_one.task()).map(|(steps, _)| (made_one.steps(), steps));
                let (a, b) = of_task.or_else(|| in_common(made_one, made_other))?;
                Some(is_table || grow_together(&a, &b, one.part.common(other.part))?)
            };
            let may = founders <= LEADERS_MAX && is_free(at) && (other.grows() || other.may_be_pinned());
            (at == founder || may && grows_along() == Some(true)).then_some(at)
        };
        let members: Vec<usize> = candidates.iter().zip(&made).enumerate().filter_map(is_member).collect();
        form_family(candidates, &members, made_one.task(), &mut found);
    }
    found
}

/// Makes a family of these members, which one task made or several: those that grow, and reclaimable ones as far as others pin
/// them.
fn form_family(
    candidates: &[FamilyCandidate<'_>],
    members: &[usize],
    task: Option<i32>,
    found: &mut [Option<usize>],
) {
    let all = || members.iter().filter_map(|&at| Some((at, candidates.get(at)?)));
    // Files of the same task pin too where another family has their call site.
    let of_task = |c: &FamilyCandidate<'_>| {
        let steps = task.and_then(|pid| c.survival.task(pid)).map(StepCounts::all);
        let old = steps.as_ref().and_then(|steps| steps.get(c.part.from..c.part.to)).unwrap_or_default();
        old.iter().copied().fold(0, u64::saturating_add)
    };
    let own = all().filter(|(_, c)| c.pins && c.leads()).map(|(_, c)| c.old);
    let elsewhere = candidates.iter().filter(|c| c.pins && c.leads()).map(of_task);
    let pins = own.chain(elsewhere).max().unwrap_or(0);
    let is_pinned = |c: &FamilyCandidate<'_>| c.old_of(task) <= pins.saturating_mul(PINNED_BY_ONE);
    let belongs = |c: &FamilyCandidate<'_>| c.grows() || c.may_be_pinned() && is_pinned(c);
    let growing: Vec<(usize, FamilySite<'_>)> = all()
        .filter(|(_, c)| c.grows())
        .map(|(at, c)| {
            let site = FamilySite {
                function: c.function,
                old: c.old,
                old_births: c.old_births,
                old_amount: c.old_amount,
            };
            (at, site)
        })
        .collect();
    let Some(leader) = leading_site(&growing) else { return };
    for (at, candidate) in all() {
        if let Some(of) = found.get_mut(at).filter(|_| belongs(candidate)) {
            *of = Some(leader);
        }
    }
}

/// True if two call sites allocate objects that come in pairs: their survivors were allocated in the same steps.
pub fn come_in_pairs(one: &SurvivorSums, other: &SurvivorSums) -> bool {
    curve_distance(&one.survivors.all(), &other.survivors.all(), 0..STEPS)
        .is_some_and(|distance| distance <= APART_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::growth::SurvivorSums;

    #[test]
    fn a_page_in_four_seconds_is_growth() {
        let evidence = Evidence { old_age: 20_000_000_000, ..Evidence::of(&SurvivorSums::default(), 1, 0) };
        assert_eq!(per_second(&evidence, 24 * 4096, 120_000_000_000), 983);
        assert_eq!(per_window(&evidence, 20 * 4096, 120_000_000_000), 24 * 4096);
    }

    fn site(function: &str, old: u64, old_births: u64, old_amount: u64) -> FamilySite<'_> {
        FamilySite { function, old, old_births, old_amount }
    }

    #[test]
    fn the_thing_names_the_family_not_its_parts() {
        let of = |sites: &[FamilySite<'_>]| {
            let sites: Vec<_> = sites.iter().copied().enumerate().collect();
            leading_site(&sites).map(|at| sites[at].1.function.to_owned())
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

    fn survival(pid: i32, survivors: impl Fn(usize) -> u64) -> SurvivorSums {
        let mut survival = SurvivorSums::default();
        for step in 0..STEPS {
            survival.survivors.add(step, survivors(step));
            survival.of_task(pid).add(step, survivors(step));
        }
        survival
    }

    fn of(verdict: Verdict, survival: &SurvivorSums, old_amount: u64) -> FamilyCandidate<'_> {
        let old = survival.survivors.sum();
        FamilyCandidate {
            verdict,
            survival,
            function: "leak",
            old,
            old_amount,
            old_births: old,
            part: JudgedPart { to: STEPS, ..JudgedPart::default() },
            is_unsure: false,
            pins: false,
            is_pinnable: true,
        }
    }

    #[test]
    fn arrays_that_grow_in_batches_are_of_the_things_in_them() {
        // At a pace of their own: the arrays were large enough until then.
        let batches = |s: usize| if [16, 19, 21, 24, 27, 29].contains(&s) { 14 } else { 0 };
        let (things, array, of_other) = (survival(7, |_| 25), survival(7, batches), survival(8, batches));
        let leaders = |array: &SurvivorSums, bytes: u64| {
            let all = [of(Verdict::Grows, &things, 1_000_000), of(Verdict::Batches, array, bytes)];
            family_leaders(&all, &TaskEvents::default())
        };
        assert_eq!(leaders(&array, 70_000), [Some(0), Some(0)]);
        assert_eq!(leaders(&array, 700_000), [Some(0), Some(1)], "as large as the things");
        assert_eq!(leaders(&of_other, 70_000), [Some(0), Some(1)], "of another task");
    }

    #[test]
    fn what_stays_together_is_one_finding() {
        let (files, pipe, inode) = (
            survival(7, |s| 2 * (s as u64 % 5)),
            survival(7, |s| s as u64 % 5),
            survival(7, |s| s as u64 % 5),
        );
        let (other_task, other_time) = (survival(8, |s| s as u64 % 5), survival(7, |s| u64::from(s > 16)));
        // Another task leaves some at the same call site, at its own times.
        let mut shared = survival(7, |s| s as u64 % 5);
        for step in 0..9 {
            shared.survivors.add(step, 3);
            shared.of_task(9).add(step, 3);
        }
        let all = [
            of(Verdict::Grows, &shared, 10),
            FamilyCandidate { pins: true, ..of(Verdict::Grows, &files, 200) },
            of(Verdict::Grows, &pipe, 900),
            of(Verdict::Reclaimable, &inode, 5_000),
            of(Verdict::Grows, &other_task, 100),
            of(Verdict::Grows, &other_time, 50),
            of(Verdict::Young, &pipe, 50),
        ];
        let unknown = TaskEvents::default();
        assert_eq!(
            family_leaders(&all, &unknown),
            [Some(2), Some(2), Some(2), Some(2), Some(4), Some(5), None]
        );
    }

    #[test]
    fn reclaimable_objects_are_pinned_by_as_many_others() {
        let (marks, inodes) = (survival(7, |s| s as u64 % 5), survival(7, |s| 5 * (s as u64 % 5)));
        let marks = FamilyCandidate { pins: true, ..of(Verdict::Grows, &marks, 100) };
        let inodes = of(Verdict::Reclaimable, &inodes, 900);
        let unknown = TaskEvents::default();
        assert_eq!(family_leaders(&[marks, inodes], &unknown), [Some(0), None], "five for each mark");
        let fewer = FamilyCandidate { old: marks.old, ..inodes };
        assert_eq!(family_leaders(&[marks, fewer], &unknown), [Some(0), Some(0)]);
        let node = FamilyCandidate { is_pinnable: false, ..fewer };
        assert_eq!(family_leaders(&[marks, node], &unknown), [Some(0), None], "no inode");
        let no_pin = FamilyCandidate { pins: false, ..marks };
        assert_eq!(family_leaders(&[no_pin, fewer], &unknown), [Some(0), None]);
    }

    /// A tar fills the cache where a leak pins dentries.
    #[test]
    fn what_a_leak_pins_is_of_its_task_alone() {
        let files = survival(7, |s| 2 + s as u64 % 5);
        let mut dentries = survival(7, |s| 2 + s as u64 % 5);
        for step in 0..STEPS {
            let of_tar = if step % 8 == 3 { 60 } else { 1 };
            dentries.survivors.add(step, of_tar);
            dentries.of_task(9).add(step, of_tar);
        }
        let files = FamilyCandidate { pins: true, ..of(Verdict::Grows, &files, 900) };
        let dentries = of(Verdict::Reclaimable, &dentries, 5_000);
        assert!(dentries.old > 2 * files.old, "most are of the tar");
        let unknown = TaskEvents::default();
        assert_eq!(family_leaders(&[files, dentries], &unknown), [Some(0), Some(0)]);
        let of_tar = survival(9, |_| 5);
        let of_tar = of(Verdict::Reclaimable, &of_tar, 5_000);
        assert_eq!(family_leaders(&[files, of_tar], &unknown), [Some(0), None]);
    }

    /// The files of two leaks have one call site, which is in the family of the larger one.
    #[test]
    fn files_of_another_family_pin_inodes_of_their_task() {
        let (of_first, of_second) = (|s: usize| 3 + s as u64 % 5, |s: usize| if s % 3 == 0 { 9 } else { 1 });
        let mut files = survival(7, of_first);
        for step in 0..STEPS {
            files.survivors.add(step, of_second(step));
            files.of_task(8).add(step, of_second(step));
        }
        let (sockets, pipes, inodes) =
            (survival(7, of_first), survival(8, of_second), survival(8, of_second));
        let files = FamilyCandidate { pins: true, ..of(Verdict::Grows, &files, 900) };
        let sockets = of(Verdict::Grows, &sockets, 5_000);
        let [pipes, inodes] = [of(Verdict::Grows, &pipes, 800), of(Verdict::Reclaimable, &inodes, 700)];
        let unknown = TaskEvents::default();
        let all = [files, sockets, pipes, inodes];
        assert_eq!(family_leaders(&all, &unknown), [Some(1), Some(1), Some(2), Some(2)]);
        let no_files = [FamilyCandidate { pins: false, ..files }, sockets, pipes, inodes];
        assert_eq!(family_leaders(&no_files, &unknown), [Some(1), Some(1), Some(2), None]);
    }

    #[test]
    fn what_may_be_free_grows_with_a_leak_only() {
        let files = survival(7, |s| s as u64 % 5);
        let timers = FamilyCandidate { is_unsure: true, ..of(Verdict::ImpliedFrees, &files, 900) };
        let unknown = TaskEvents::default();
        assert_eq!(family_leaders(&[timers], &unknown), [None]);
        assert_eq!(family_leaders(&[timers, of(Verdict::Grows, &files, 100)], &unknown), [Some(0), Some(0)]);
    }

    #[test]
    fn an_index_grows_with_what_is_in_it() {
        let (keys, nodes) = (survival(7, |_| 40), survival(7, |s| if s < 9 { 30 } else { 4 }));
        let all = |function| {
            [FamilyCandidate { function, ..of(Verdict::Grows, &nodes, 900) }, of(Verdict::Grows, &keys, 500)]
        };
        let unknown = TaskEvents::default();
        assert_eq!(family_leaders(&all("assoc_array_insert"), &unknown), [Some(1), Some(1)]);
        assert_eq!(family_leaders(&all("another_leak"), &unknown), [Some(0), Some(1)]);
    }

    #[test]
    fn pairs_are_born_together() {
        let (a, b) = (survival(1, |s| (s as u64 * 7) % 13), survival(2, |s| ((s as u64 * 7) % 13) * 3));
        assert!(come_in_pairs(&a, &b));
        assert!(!come_in_pairs(&a, &survival(1, |s| 32 - s as u64)));
    }
}
