//! The rules of verdicts: one table, in which the first rule that holds decides.
//!
//! A rule knows the course of one survival over time, and facts on its objects or pages. Then rows are compared with each other:
//! [`slab`](super::slab) marks what goes with reclaimable objects and with tasks, [`families`](super::families) finds families.
//! Thresholds stand beside the numbers, in [`evidence`](super::evidence). Growth behind a first burst (a cache that filled, a
//! pool), or of one task among others at the same call site, is judged by itself where all of it together does not grow.

use std::cmp::Reverse;

use kmt_common::unseen_frees::is_freed_in_bulk;

use super::evidence::{
    Evidence, SURVIVORS_MIN, YOUNG_STEPS, comes_in_batches, frees_lack_events, has_even_batches, is_even,
    old_age, old_steps, usual_age,
};
use super::kernel_names::{FREED_BY_RCU, LAZY, METADATA};
use super::verdict::{JudgedPart, Verdict};
use crate::collect::growth::{Numbers, STEPS, SurvivorSums};

/// Facts on objects or pages besides their course.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'f> {
    /// Cache with most of the objects.
    pub cache: &'f str,
    /// Function of the call site.
    pub function: &'f str,
    /// Most live objects by the kernel's own counts, where the recording has them.
    pub live_max: Option<u64>,
    /// Pages of slabs: the objects on them have rows of their own.
    pub is_slab_page: bool,
    /// Pages of tasks that started and still run, or their page tables.
    pub is_of_tasks: bool,
    /// Pages of processes, tmpfs or files that swap can take, or that are no growth by the kernel's own counts.
    pub is_user_memory: bool,
    /// The kernel reclaims or moves it when memory is short: a marked cache, page cache.
    pub is_reclaimable: bool,
}

/// A rule: its verdict, whether it holds, and the evidence in words, as the guide has them.
#[cfg_attr(not(test), expect(dead_code, reason = "the words are for the guide, whose test compares them"))]
struct Rule(Verdict, fn(&Evidence, &Facts<'_>) -> bool, &'static str);

/// The rules, those without evidence first, then what explains growth, then growth.
const RULES: [Rule; 19] = [
    Rule(Verdict::Few, |e, _| e.survivors < SURVIVORS_MIN, "fewer than 16 are live"),
    Rule(
        Verdict::Uncertain,
        |e, _| e.uncertain * 2 > e.survivors,
        "events were lost since the allocation of most",
    ),
    Rule(
        Verdict::ImpliedFrees,
        |e, _| e.steps.1 < STEPS / 4 && e.frees_lack_events(),
        "one in twenty ends has no event, and is found late for the window",
    ),
    Rule(
        Verdict::TooShort,
        |e, _| e.steps.1 < STEPS / 4,
        "less than a quarter of the window can have old ones",
    ),
    Rule(Verdict::Young, |e, _| e.old < SURVIVORS_MIN, "fewer than 16 are old"),
    Rule(
        Verdict::ImpliedFrees,
        |e, _| e.frees_lack_events() && e.may_be_implied_frees(),
        "one in twenty ends has no event, and fewer than one in twenty births is left",
    ),
    Rule(
        Verdict::ImpliedFrees,
        |e, _| e.is_unsure(),
        "hardly any end has an event, less than nine tenths of the births are left, and some steps have far more of them",
    ),
    Rule(
        Verdict::WithSlabs,
        |_, f| f.is_slab_page,
        "pages of slabs: the objects on them have rows of their own",
    ),
    Rule(
        Verdict::Burst,
        |e, _| e.is_burst() && e.began.is_none() && !e.comes_in_batches,
        "old ones are from few steps",
    ),
    Rule(
        Verdict::Warming,
        |e, _| e.saturates() && !e.is_burst(),
        "the second half of the old ones is less than half of the first, and they are not in batches of like size",
    ),
    Rule(
        Verdict::ImpliedFrees,
        |e, f| f.live_max.is_some_and(|most| most * 2 < e.survivors),
        "by the kernel's own count most are free",
    ),
    Rule(
        Verdict::ImpliedFrees,
        |e, f| is_freed_in_bulk(f.cache) && e.may_be_implied_frees(),
        "the kernel frees objects of the cache in bulk, without events",
    ),
    Rule(
        Verdict::ImpliedFrees,
        |e, f| e.is_hardly_freed_by_event() && FREED_BY_RCU.contains(&f.function),
        "the kernel frees objects of the function by kfree_rcu, without events",
    ),
    Rule(
        Verdict::WithTasks,
        |_, f| f.is_of_tasks,
        "pages, or page tables, of tasks that started and still run",
    ),
    Rule(
        Verdict::UserMemory,
        |_, f| f.is_user_memory,
        "pages of processes, tmpfs or files that are no growth by the kernel's own counts, or that swap can take",
    ),
    Rule(Verdict::Reclaimable, |_, f| f.is_reclaimable, "the kernel takes it back when memory is short"),
    Rule(
        Verdict::Lazy,
        |_, f| LAZY.contains(&f.function),
        "the kernel frees objects of the function late, many at once",
    ),
    Rule(
        Verdict::WithSlabs,
        |_, f| METADATA.contains(&f.function),
        "metadata of slabs, of kmemleak or of page_owner",
    ),
    Rule(
        Verdict::Batches,
        |e, _| e.is_burst() && e.began.is_none(),
        "old ones are from three or more batches of like size, the last one recent",
    ),
];

/// Verdict on live memory: growth where no rule explains it.
pub fn verdict(evidence: &Evidence, facts: &Facts<'_>) -> Verdict {
    let rule = RULES.iter().find(|Rule(_, holds, _)| holds(evidence, facts));
    rule.map_or(Verdict::Grows, |Rule(verdict, ..)| *verdict)
}

/// Verdict by the course of one survival; `step` is the length of a step.
pub fn judge(survival: &SurvivorSums, step: u64) -> Evidence {
    judge_known(survival, step, 0)
}

/// Verdict on objects that the kernel is known to keep for `known_life`, or 0. Where all of them do not grow, a part
/// may.
pub fn judge_known(survival: &SurvivorSums, step: u64, known_life: u64) -> Evidence {
    let evidence = Evidence::of(survival, step, known_life);
    let by_course = verdict(&evidence, &Facts::default());
    let is_found_late = by_course == Verdict::ImpliedFrees && evidence.steps.1 < STEPS / 4;
    let may_grow =
        matches!(by_course, Verdict::Warming | Verdict::Burst | Verdict::TooShort) || is_found_late;
    if known_life == 0 && may_grow {
        if let Some(part) = steady_part(survival, step) {
            let began = Some(part.from).filter(|&from| from > 0);
            let part = Evidence { began, ..Evidence::of_part(survival, step, part) };
            let of_part = verdict(&part, &Facts::default());
            if of_part.is_growth() {
                return Evidence { verdict: of_part, ..part };
            }
        }
    }
    let began = evidence.begin_of_growth().filter(|_| by_course == Verdict::Grows);
    Evidence { verdict: by_course, began, ..evidence }
}

/// Largest number of tasks that are judged alone, those with most survivors first.
pub const TASKS_MAX: usize = 16;

/// The part that grows: all of it behind a first burst, or what one task allocated, steadily or in batches. `step` is the length of a
/// step.
fn steady_part(survival: &SurvivorSums, step: u64) -> Option<JudgedPart> {
    let to = old_steps(old_age(survival, 0), step);
    let all = survival.survivors.all();
    if let Some(from) = steady_from(all.get(..to)?) {
        return Some(JudgedPart { from, to, task: None });
    }
    let mut tasks: Vec<(Reverse<u64>, i32)> =
        survival.tasks().map(|(pid, steps)| (Reverse(steps.sum()), pid)).collect();
    tasks.retain(|(Reverse(survivors), _)| *survivors >= SURVIVORS_MIN);
    tasks.sort_unstable();
    let steps = |(_, pid): &(Reverse<u64>, i32)| Some((*pid, survival.task(*pid)?.all()));
    let tasks: Vec<(i32, Numbers)> = tasks.iter().take(TASKS_MAX).filter_map(steps).collect();
    let alone = |(pid, steps): &(i32, Numbers)| {
        let old = steps.get(..to)?;
        let is_enough = || old.iter().sum::<u64>() >= SURVIVORS_MIN;
        let in_batches = || (is_enough() && comes_in_batches(old)).then_some(0);
        Some(JudgedPart { from: steady_from(old).or_else(in_batches)?, to, task: Some(*pid) })
    };
    tasks.iter().find_map(alone).or_else(|| without_ends(survival, step, &tasks))
}

/// What does not end, as far as the window shows, although others of its kind live long, or are found free late: of those that
/// are older than any of the others became, as many are left as of younger ones, or in each batch (of one task); or, where
/// frees are found late, in each step (of all).
fn without_ends(survival: &SurvivorSums, step: u64, tasks: &[(i32, Numbers)]) -> Option<JudgedPart> {
    let to = old_steps(usual_age(survival, |ages| ages.max()), step);
    let is_enough = |old: &[u64]| old.len() >= STEPS / 4 && old.iter().sum::<u64>() >= SURVIVORS_MIN;
    let alone = |(pid, steps): &(i32, Numbers)| {
        let from = steady_from(steps.get(..STEPS - YOUNG_STEPS)?)?;
        is_enough(steps.get(from..to)?).then_some(JudgedPart { from, to, task: Some(*pid) })
    };
    let in_batches = |(pid, steps): &(i32, Numbers)| {
        let old = steps.get(..to)?;
        (is_enough(old) && has_even_batches(old)).then_some(JudgedPart { from: 0, to, task: Some(*pid) })
    };
    let of_all = || {
        let all = survival.survivors.all();
        let old = all.get(..to)?;
        let is_so = frees_lack_events(survival.freed(), survival.implied_frees) && is_enough(old);
        (is_so && is_even(old)).then_some(JudgedPart { from: 0, to, task: None })
    };
    tasks.iter().find_map(alone).or_else(|| tasks.iter().find_map(in_batches)).or_else(of_all)
}

/// The first step, in the first quarter, from which on objects are left at a steady pace.
pub fn steady_from(old: &[u64]) -> Option<usize> {
    (0..=old.len() / 4).find(|&from| old.get(from..).is_some_and(is_steady))
}

/// True if objects are left in most steps, and as many late as early, but for what chance makes of their number.
fn is_steady(steps: &[u64]) -> bool {
    let all: u64 = steps.iter().sum();
    let busy = steps.iter().filter(|&&count| count > 0).count();
    let half = steps.len() / 2;
    let (early, late) = (steps.iter().take(half).sum::<u64>(), steps.iter().rev().take(half).sum::<u64>());
    let chance = (all as f64).sqrt();
    let most = steps.iter().max().copied().unwrap_or(0);
    steps.len() >= STEPS / 4
        && all >= SURVIVORS_MIN
        && busy * 4 >= steps.len() * 3
        && early as f64 - late as f64 <= chance
        && late <= early.saturating_mul(3)
        && most.saturating_mul(4) <= all
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
        let of =
            |function| verdict(&evidence, &Facts { cache: "kmemleak_object", function, ..Facts::default() });
        assert_eq!([of("__alloc_object"), of("do_inotify_init")], [Verdict::WithSlabs, Verdict::Grows]);
    }

    #[test]
    fn steady_growth_differs_from_filling_and_turnover() {
        let by_course = |c: &SurvivorSums| judge(c, 1000).verdict;
        assert_eq!(by_course(&survival(|_| 5, 100, 3200)), Verdict::Grows);
        assert_eq!(by_course(&survival(|_| 5, 100, 0)), Verdict::Grows);
        assert_eq!(by_course(&survival(|s| 64 >> (s / 2).min(10), 100, 3200)), Verdict::Warming);
        assert_eq!(by_course(&survival(|s| if s == 20 { 500 } else { 0 }, 100, 3200)), Verdict::Burst);
        assert_eq!(by_course(&survival(|s| if s == 0 { 500 } else { 0 }, 100, 3200)), Verdict::Burst);
        assert_eq!(by_course(&survival(|s| if s > 29 { 500 } else { 0 }, 100, 3200)), Verdict::Young);
        assert_eq!(by_course(&survival(|_| 5, 20_000, 3200)), Verdict::TooShort);
        assert_eq!(by_course(&survival(|s| u64::from(s < 10), 100, 3200)), Verdict::Few);
        assert_eq!(by_course(&survival(|s| if s > 19 { 9 } else { 0 }, 100, 3200)), Verdict::Grows);
        assert_eq!(judge(&survival(|s| if s > 19 { 9 } else { 0 }, 100, 3200), 1000).began, Some(20));
        let late = |from: usize, each: u64| {
            judge(&survival(|s| if s >= from { each } else { 0 }, 100, 3200), 1000).began
        };
        assert_eq!((late(5, 2), late(3, 1)), (Some(5), None), "three empty steps may be chance");
        let four = survival(|s| if s % 7 == 2 { 60 } else { 0 }, 100, 3200);
        assert_eq!((by_course(&four), judge(&four, 1000).batches), (Verdict::Batches, 4));
        // Some ends are implied frees, found by an age of 200, or of half the window.
        let mut implied_frees = survival(|_| 6, 100, 3200);
        implied_frees.implied_frees = 400;
        (0..400).for_each(|_| implied_frees.implied_free_ages.add(200));
        assert_eq!(by_course(&implied_frees), Verdict::Grows);
        let few = SurvivorSums { births: StepCounts::from(&[1_000; STEPS]), ..implied_frees.clone() };
        assert_eq!(by_course(&few), Verdict::ImpliedFrees, "less than one in a hundred, as may be chance");
        (0..400).for_each(|_| implied_frees.implied_free_ages.add(16_000));
        assert_eq!(by_course(&implied_frees), Verdict::Grows, "what is left at random is not as even");
        let at_random = StepCounts::from(&std::array::from_fn(|step| [9, 0, 14, 1][step % 4]));
        let at_random = SurvivorSums { survivors: at_random, ..implied_frees.clone() };
        assert_eq!(by_course(&at_random), Verdict::ImpliedFrees);
        // No free has an event, and a fifth of the objects is not known to be free.
        let by_rcu = |survivors: &dyn Fn(usize) -> u64| {
            let mut by_rcu =
                SurvivorSums { births: StepCounts::from(&[25; STEPS]), ..survival(survivors, 100, 0) };
            by_rcu.implied_frees = 600;
            (0..600).for_each(|_| by_rcu.implied_free_ages.add(200));
            by_course(&by_rcu)
        };
        assert_eq!(by_rcu(&|step| [9, 3, 0, 2, 7, 5, 0, 4][step % 8]), Verdict::ImpliedFrees);
        assert_eq!(by_rcu(&|_| 5), Verdict::Grows, "chance is not as even");
        // No free has an event, as far as a few ends show; nearly all are left, or only most.
        let left = |step: usize| [6, 1, 3, 0, 7, 2][step % 6];
        let unknown = SurvivorSums { implied_frees: 15, ..survival(left, 100, 0) };
        assert_eq!(by_course(&unknown), Verdict::Grows);
        let births = StepCounts::from(&std::array::from_fn(|step| left(step) + u64::from(step % 2 == 0)));
        assert_eq!(by_course(&SurvivorSums { births, ..unknown }), Verdict::ImpliedFrees);
        let mut lost = survival(|_| 5, 100, 3200);
        lost.uncertain = 100;
        assert_eq!(by_course(&lost), Verdict::Uncertain);
    }

    /// As timers beside tasks: all ends are implied frees, found by half of the window.
    #[test]
    fn what_is_left_beside_frees_that_are_found_late() {
        let found_late = |survivors: &dyn Fn(usize) -> u64, births: u64| {
            let births = StepCounts::from(&std::array::from_fn(|step| survivors(step) + births));
            let mut sums = SurvivorSums { births, implied_frees: 975, ..survival(survivors, 100, 0) };
            sums.implied_free_ages.add(12_500);
            (0..974).for_each(|_| sums.implied_free_ages.add(12_000));
            judge(&sums, 1000)
        };
        // Young ones may be free already.
        let rules =
            |step: usize| if step < 24 { [9, 10, 10, 8][step % 4] } else { 10 + 5 * (step as u64 - 23) };
        assert_eq!(found_late(&rules, 40).verdict, Verdict::Grows);
        let at_random = |step: usize| if step < 24 { [9, 1, 14, 0][step % 4] } else { 60 };
        assert_eq!(found_late(&at_random, 40).verdict, Verdict::ImpliedFrees);
        let batches = |step: usize| {
            [(0, 60), (6, 60), (13, 66), (19, 60), (25, 279)].iter().find(|b| b.0 == step).map_or(0, |b| b.1)
        };
        let found = found_late(&batches, 30);
        assert_eq!(
            (found.verdict, found.old, found.part.task),
            (Verdict::ImpliedFrees, 0, None),
            "of no known task"
        );
        let mut of_one = SurvivorSums { implied_frees: 975, ..survival(batches, 100, 0) };
        of_one.births = StepCounts::from(&std::array::from_fn(|step| batches(step) + 30));
        (0..975).for_each(|_| of_one.implied_free_ages.add(12_000));
        *of_one.of_task(7) = StepCounts::from(&std::array::from_fn(batches));
        let found = judge(&of_one, 1000);
        assert_eq!((found.verdict, found.old, found.part.task), (Verdict::Batches, 186, Some(7)));
    }

    /// As files beside some that live for 5 s: of three old batches two are in the first half.
    #[test]
    fn three_batches_are_no_warming() {
        let batches = |step: usize| match step {
            0 => 134,
            6 | 13 | 19 | 25 => 100,
            _ => 0,
        };
        let found = judge(&survival(batches, 4_200, 15_658), 1000);
        assert_eq!((found.steps, found.halves, found.verdict), ((3, 19), (234, 100), Verdict::Batches));
        let filled = |step: usize| [134, 100, 60].get(step).copied().unwrap_or(0);
        assert_eq!(judge(&survival(filled, 4_200, 15_658), 1000).verdict, Verdict::Warming);
    }

    /// The guide has the rules in their order. `KMT_WRITE=1` writes them.
    #[test]
    fn the_guide_has_the_rules() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/growth.md");
        let guide = std::fs::read_to_string(&path).unwrap();
        const BEGIN: &str = "| evidence | verdict |\n|---|---|\n";
        let (before, rest) = guide.split_once(BEGIN).unwrap();
        let end = rest.find("\n\n").unwrap() + 1;
        let row = |because: &str, verdict: Verdict| format!("| {because} | {} |\n", verdict.words());
        let rows: String = RULES.iter().map(|Rule(verdict, _, because)| row(because, *verdict)).collect();
        let rows = rows + &row("none of these", Verdict::Grows);
        if std::env::var_os("KMT_WRITE").is_some() {
            std::fs::write(&path, [before, BEGIN, &rows, &rest[end..]].concat()).unwrap();
        } else {
            assert_eq!(&rest[..end], rows, "KMT_WRITE=1 writes the table again");
        }
    }

    #[test]
    fn a_part_is_steady_behind_a_burst_not_at_the_slow_end_of_one() {
        let from = |of: &dyn Fn(usize) -> u64| steady_from(&std::array::from_fn::<u64, 28, _>(of));
        assert_eq!(from(&|_| 1), Some(0));
        assert_eq!(from(&|step| if step == 0 { 2_000 } else { 5 }), Some(1));
        assert_eq!(from(&|step| [900, 400, 90].get(step).copied().unwrap_or(2)), Some(3));
        assert_eq!(from(&|step| 1_000 / (step as u64 + 1)), None, "ever slower");
        assert_eq!(from(&|step| if step < 9 { 90 } else { 3 }), None, "longer than a first burst");
        assert_eq!(from(&|step| if step % 9 == 0 { 90 } else { 0 }), None, "batches");
        assert_eq!(from(&|step| u64::from(step % 3 == 0)), None, "too few");
    }
}
