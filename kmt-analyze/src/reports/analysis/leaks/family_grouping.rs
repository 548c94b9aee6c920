//! One leak is one finding: objects that are allocated together by the same tasks, and not freed.
//!
//! A pipe that is not closed leaves an inode, a dentry, two files, their blobs and the pipe itself.

use super::family_leader;
use super::judged_part::JudgedPart;
use super::makers::{LiveWithMaker, in_common};
use super::survivor_curves::{curve_distance, grow_together};
use super::verdict::Verdict;
use crate::collect::growth::{STEPS, SurvivorSums};
use crate::collect::tasks::TaskEvents;

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

    fn may_be_pinned(&self) -> bool {
        self.is_pinnable && matches!(self.verdict, Verdict::Reclaimable | Verdict::WithReclaimable)
    }
}

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
    order.sort_by_key(|&at| {
        candidates.get(at).map(|c| (family_leader::is_index(c.function), std::cmp::Reverse(c.old_amount)))
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
            let grows_along = || {
                let (a, b) = in_common(made_one, made_other)?;
                Some(
                    family_leader::is_index(other.function)
                        || grow_together(&a, &b, one.part.common(other.part))?,
                )
            };
            let may = founders <= LEADERS_MAX && is_free(at) && (other.grows() || other.may_be_pinned());
            (at == founder || may && grows_along() == Some(true)).then_some(at)
        };
        let members: Vec<usize> = candidates.iter().zip(&made).enumerate().filter_map(is_member).collect();
        form_family(candidates, &members, &mut found);
    }
    found
}

/// Makes a family of these members: those that grow, and reclaimable ones as far as others pin them.
fn form_family(candidates: &[FamilyCandidate<'_>], members: &[usize], found: &mut [Option<usize>]) {
    let all = || members.iter().filter_map(|&at| Some((at, candidates.get(at)?)));
    let pins = all().filter(|(_, c)| c.pins && c.leads()).map(|(_, c)| c.old).max().unwrap_or(0);
    // A file pins its inode and its dentry; one call site may allocate those of two kinds.
    let is_pinned = |c: &FamilyCandidate<'_>| c.old <= pins.saturating_mul(2);
    let belongs = |c: &FamilyCandidate<'_>| c.grows() || c.may_be_pinned() && is_pinned(c);
    let growing: Vec<(usize, family_leader::FamilySite<'_>)> = all()
        .filter(|(_, c)| c.grows())
        .map(|(at, c)| {
            let site = family_leader::FamilySite {
                function: c.function,
                old: c.old,
                old_births: c.old_births,
                old_amount: c.old_amount,
            };
            (at, site)
        })
        .collect();
    let Some(leader) = family_leader::leading_site(&growing) else { return };
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
