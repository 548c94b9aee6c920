//! The rules of verdicts: tables in which the first rule that holds decides.
//!
//! [`COURSE`] knows the numbers of one survival alone. What grows by it is looked at again: as slab objects by [`SLAB`],
//! as pages by [`PAGES`]. Then rows are compared with each other: [`reclaimable`](super::reclaimable) marks what goes
//! with reclaimable objects, [`slab`](super::slab) what goes with tasks, [`together`](super::together) finds families.

use kmt_common::unseen_frees::is_freed_in_bulk;

use super::evidence::{Evidence, SURVIVORS_MIN};
use super::kernel_names::{FREED_BY_RCU, LAZY, METADATA};
use super::steady::steady_part;
use super::verdict::Verdict;
use crate::collect::growth::{STEPS, SurvivorSums};

/// A rule: its verdict, and whether it holds.
type Rule<E> = (Verdict, fn(&E) -> bool);

/// A rule on slab objects.
type SlabRule = (Verdict, fn(&SlabCase<'_>) -> bool);

/// Rules on the course of live objects over time.
const COURSE: [Rule<Evidence>; 13] = [
    (Verdict::Few, |e| e.survivors < SURVIVORS_MIN),
    (Verdict::Uncertain, |e| e.uncertain * 2 > e.survivors),
    // Less than a quarter of the window can have old survivors.
    (Verdict::ImpliedFrees, |e| e.steps.1 < STEPS / 4 && e.frees_lack_events()),
    (Verdict::TooShort, |e| e.steps.1 < STEPS / 4),
    (Verdict::Young, |e| e.old < SURVIVORS_MIN),
    // One in a hundred implied frees is detected later than the age of old ones.
    (Verdict::ImpliedFrees, |e| e.frees_lack_events() && e.may_be_implied_frees()),
    (Verdict::ImpliedFrees, Evidence::is_unsure),
    (Verdict::ImpliedFrees, Evidence::has_few_ends_and_some_unseen),
    // Steady growth from some step on.
    (Verdict::Grows, |e| e.is_burst() && e.began.is_some()),
    (Verdict::Batches, |e| e.is_burst() && e.comes_in_batches),
    (Verdict::Burst, Evidence::is_burst),
    (Verdict::Warming, Evidence::saturates),
    (Verdict::Grows, |_| true),
];

/// Slab objects of a call site, for the rules.
pub struct SlabCase<'r> {
    pub evidence: Evidence,
    /// Cache with most of the objects.
    pub cache: &'r str,
    /// Function of the call site.
    pub function: &'r str,
    /// The kernel reclaims objects of the cache when memory is short.
    pub is_reclaimable: bool,
    /// Most live objects by the kernel's own counts, where the recording has them.
    pub live_max: Option<u64>,
}

/// Why slab objects that seem to grow do not, as far as the kernel's counts and its code show.
const SLAB: [SlabRule; 6] = [
    // By the kernel's own count most of these objects are free already.
    (Verdict::ImpliedFrees, |c| c.live_max.is_some_and(|most| most * 2 < c.evidence.survivors)),
    (Verdict::ImpliedFrees, |c| is_freed_in_bulk(c.cache) && c.evidence.may_be_implied_frees()),
    (Verdict::ImpliedFrees, |c| c.evidence.is_hardly_freed_by_event() && FREED_BY_RCU.contains(&c.function)),
    (Verdict::Reclaimable, |c| c.is_reclaimable),
    (Verdict::Lazy, |c| LAZY.contains(&c.function)),
    (Verdict::WithSlabs, |c| METADATA.contains(&c.function)),
];

/// Pages of a kind or of a call site, for the rules.
#[derive(Default)]
pub struct PageCase {
    /// Verdict by their course.
    pub verdict: Verdict,
    /// Of slabs: the objects on them have rows of their own.
    pub is_slab: bool,
    /// Allocated when tasks started that still run.
    pub is_of_tasks: bool,
    /// Memory of processes and page cache: the kernel moves or reclaims it.
    pub is_movable: bool,
    /// Page tables of tasks that have as many pages of memory.
    pub is_page_table: bool,
    /// Page cache that is not movable.
    pub is_page_cache: bool,
}

/// Why pages that seem to grow do not.
const PAGES: [Rule<PageCase>; 5] = [
    (Verdict::WithSlabs, |c| {
        c.is_slab && (c.verdict.is_growth() || matches!(c.verdict, Verdict::Warming | Verdict::Burst))
    }),
    (Verdict::WithTasks, |c| c.verdict.is_growth() && c.is_of_tasks),
    (Verdict::Reclaimable, |c| c.verdict.is_growth() && c.is_movable),
    (Verdict::WithTasks, |c| c.verdict.is_growth() && c.is_page_table),
    (Verdict::Reclaimable, |c| c.verdict.is_growth() && c.is_page_cache),
];

fn first<E>(rules: &[Rule<E>], evidence: &E) -> Option<Verdict> {
    rules.iter().find(|(_, holds)| holds(evidence)).map(|(verdict, _)| *verdict)
}

/// Verdict by the course of one survival; `step` is the length of a step.
pub fn judge(survival: &SurvivorSums, step: u64) -> Evidence {
    judge_kept(survival, step, 0)
}

/// The same of what the kernel is known to keep for this long, or 0.
pub fn judge_kept(survival: &SurvivorSums, step: u64, kept: u64) -> Evidence {
    let evidence = Evidence::of(survival, step, kept);
    let verdict = first(&COURSE, &evidence).unwrap_or_default();
    if kept == 0 && matches!(verdict, Verdict::Warming | Verdict::Burst | Verdict::TooShort) {
        if let Some(part) = steady_part(survival, step) {
            let began = Some(part.from).filter(|&from| from > 0);
            return Evidence { verdict: Verdict::Grows, began, ..Evidence::of_part(survival, step, part) };
        }
    }
    let began = evidence.began.filter(|_| verdict == Verdict::Grows && evidence.is_burst());
    Evidence { verdict, began, ..evidence }
}

/// Verdict on slab objects.
pub fn judge_slab(case: &SlabCase<'_>) -> Verdict {
    let by_course = case.evidence.verdict;
    let rule = SLAB.iter().find(|(_, holds)| by_course.is_growth() && holds(case));
    rule.map_or(by_course, |(verdict, _)| *verdict)
}

/// Verdict on pages.
pub fn judge_pages(case: &PageCase) -> Verdict {
    first(&PAGES, case).unwrap_or(case.verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::growth::StepCounts;

    fn survival(survivors: impl Fn(usize) -> u64, lifetime: u64, freed: u64) -> SurvivorSums {
        let mut survival = SurvivorSums::default();
        for step in 0..STEPS {
            survival.survivors.add(step, survivors(step));
            survival.survivor_amount.add(step, survivors(step) * 64);
            survival.births.add(step, survivors(step) + freed / STEPS as u64);
        }
        (0..freed).for_each(|_| survival.lifetimes.add(lifetime));
        survival
    }

    #[test]
    fn lives_as_long_as_the_clock_make_all_of_it_young() {
        let found = judge(&survival(|_| 5, u64::MAX, 3200), 1);
        assert_eq!((found.verdict, found.old), (Verdict::TooShort, 0));
    }

    #[test]
    fn records_of_kmemleak_are_metadata() {
        let evidence = judge(&survival(|_| 5, 100, 0), 1000);
        let of = |function| {
            judge_slab(&SlabCase {
                evidence,
                cache: "kmemleak_object",
                function,
                is_reclaimable: false,
                live_max: None,
            })
        };
        assert_eq!([of("__alloc_object"), of("do_inotify_init")], [Verdict::WithSlabs, Verdict::Grows]);
    }

    #[test]
    fn steady_growth_differs_from_filling_and_turnover() {
        let verdict = |c: &SurvivorSums| judge(c, 1000).verdict;
        assert_eq!(verdict(&survival(|_| 5, 100, 3200)), Verdict::Grows);
        assert_eq!(verdict(&survival(|_| 5, 100, 0)), Verdict::Grows);
        assert_eq!(verdict(&survival(|s| 64 >> (s / 2).min(10), 100, 3200)), Verdict::Warming);
        assert_eq!(verdict(&survival(|s| if s == 20 { 500 } else { 0 }, 100, 3200)), Verdict::Burst);
        assert_eq!(verdict(&survival(|s| if s == 0 { 500 } else { 0 }, 100, 3200)), Verdict::Burst);
        assert_eq!(verdict(&survival(|s| if s > 29 { 500 } else { 0 }, 100, 3200)), Verdict::Young);
        assert_eq!(verdict(&survival(|_| 5, 20_000, 3200)), Verdict::TooShort);
        assert_eq!(verdict(&survival(|s| u64::from(s < 10), 100, 3200)), Verdict::Few);
        assert_eq!(verdict(&survival(|s| if s > 19 { 9 } else { 0 }, 100, 3200)), Verdict::Grows);
        assert_eq!(judge(&survival(|s| if s > 19 { 9 } else { 0 }, 100, 3200), 1000).began, Some(20));
        let four = survival(|s| if s % 7 == 2 { 60 } else { 0 }, 100, 3200);
        assert_eq!((verdict(&four), judge(&four, 1000).batches), (Verdict::Batches, 4));
        // Some ends are implied frees, found by an age of 200, or of half the window.
        let mut implied_frees = survival(|_| 6, 100, 3200);
        implied_frees.implied_frees = 400;
        (0..400).for_each(|_| implied_frees.implied_free_ages.add(200));
        assert_eq!(verdict(&implied_frees), Verdict::Grows);
        let few = SurvivorSums { births: StepCounts::from(&[1_000; STEPS]), ..implied_frees.clone() };
        assert_eq!(verdict(&few), Verdict::ImpliedFrees, "less than one in a hundred, as may be chance");
        (0..400).for_each(|_| implied_frees.implied_free_ages.add(16_000));
        assert_eq!(verdict(&implied_frees), Verdict::ImpliedFrees);
        // No free has an event, and a fifth of the objects is not known to be free.
        let by_rcu = |survivors: &dyn Fn(usize) -> u64| {
            let mut by_rcu =
                SurvivorSums { births: StepCounts::from(&[25; STEPS]), ..survival(survivors, 100, 0) };
            by_rcu.implied_frees = 600;
            (0..600).for_each(|_| by_rcu.implied_free_ages.add(200));
            verdict(&by_rcu)
        };
        assert_eq!(by_rcu(&|step| [9, 3, 0, 2, 7, 5, 0, 4][step % 8]), Verdict::ImpliedFrees);
        assert_eq!(by_rcu(&|_| 5), Verdict::Grows, "chance is not as even");
        // No free has an event, as far as a few ends show; nearly all are left, or only most.
        let births = |step: usize| 3 + u64::from(step % 2 == 0);
        let unknown = SurvivorSums { implied_frees: 15, ..survival(|_| 3, 100, 0) };
        assert_eq!(verdict(&unknown), Verdict::Grows);
        let births = StepCounts::from(&std::array::from_fn(births));
        assert_eq!(verdict(&SurvivorSums { births, ..unknown }), Verdict::ImpliedFrees);
        let mut lost = survival(|_| 5, 100, 3200);
        lost.uncertain = 100;
        assert_eq!(verdict(&lost), Verdict::Uncertain);
    }
}
