//! What grows behind a first burst (a cache that filled, a pool), or of one task among others that fill the same call site
//! or keep its objects for long. Such a part is judged by itself where all of it together does not grow.

use std::cmp::Reverse;

use crate::collect::growth::{Numbers, STEPS, SurvivorSums};

use super::evidence::{
    SURVIVORS_MIN, YOUNG_STEPS, comes_in_batches, frees_lack_events, has_even_batches, is_even, old_age,
    old_steps, usual_age,
};
use super::judged_part::JudgedPart;

/// Largest number of tasks that are judged alone, those with most survivors first.
const TASKS_MAX: usize = 16;

/// The part that grows: all of it behind a first burst, or what one task allocated, steadily or in batches. `step` is the length of a
/// step.
pub fn steady_part(survival: &SurvivorSums, step: u64) -> Option<JudgedPart> {
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
        let is_so = frees_lack_events(survival.lifetimes.count(), survival.implied_frees) && is_enough(old);
        (is_so && is_even(old)).then_some(JudgedPart { from: 0, to, task: None })
    };
    tasks.iter().find_map(alone).or_else(|| tasks.iter().find_map(in_batches)).or_else(of_all)
}

/// The first step, in the first quarter, from which on objects are left at a steady pace.
fn steady_from(old: &[u64]) -> Option<usize> {
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
