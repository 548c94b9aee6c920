//! Evidence for a verdict: numbers of one survival.
//!
//! An object that is live at the end of a trace is not a leak by itself: most are young, or belong to a cache that fills,
//! or were freed without an event. A leak leaves objects that are older than others of their kind ever get, that were
//! allocated all through the window, and as many late in it as early. Each of these is a number here, and the verdict
//! follows from them by fixed rules ([`rules`](super::rules)); so it can be checked, and be wrong for a reason.

use super::verdict::{JudgedPart, Verdict};
use crate::collect::growth::{Numbers, STEPS, StepCounts, SurvivorSums};
use crate::collect::histogram::Histogram;

/// Numbers that a verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    pub verdict: Verdict,
    /// Objects, or pages, that are live at the end.
    pub survivors: u64,
    /// Bytes, or pages, of them.
    pub amount: u64,
    /// Survivors that are older than `old_age`.
    pub old: u64,
    /// Bytes, or pages, of the old ones.
    pub old_amount: u64,
    /// Allocations in the steps that the old ones come from.
    pub old_births: u64,
    /// Steps with old survivors, and steps that can have some.
    pub steps: (usize, usize),
    /// Old survivors of the first half of those steps, and of the second.
    pub halves: (u64, u64),
    /// The age beyond which an object counts as old, in the clock's unit.
    pub old_age: u64,
    /// Length of a window that can judge, in the clock's unit.
    pub window_needed: u64,
    /// Frees with an event, and implied frees, of objects that were allocated in the window.
    pub freed: (u64, u64),
    /// Survivors that cross a loss.
    pub uncertain: u64,
    /// Step in which steady growth began, that of the first old survivors; `None`: at the start, or no such growth.
    pub began: Option<usize>,
    /// The survivors that count as old: their steps, and the only task.
    pub part: JudgedPart,
    /// Number of batches of steps with old survivors.
    pub batches: usize,
    /// Of batches: steps from the first to the last, and old objects without those of the last.
    pub paced: Option<(usize, u64)>,
    /// True for three or more batches of similar size, the last one recent.
    pub comes_in_batches: bool,
    /// True if nearly all steps, or all batches, have about as many old survivors.
    pub is_even: bool,
}

/// Smallest number of survivors for a verdict.
pub const SURVIVORS_MIN: u64 = 16;
/// Smallest number of ends that show how long objects live, and whether their frees have events.
const ENDS_MIN: u64 = 16;
/// Share of implied frees from which frees count as without events, in percent.
const UNSEEN_PERCENT: u64 = 5;
/// Share of their births that old survivors have to be, in percent, where frees have no event.
const UNSEEN_OLD_PERCENT_MIN: u64 = 5;
/// Share of objects with a free event up to which they count as handed to kfree_rcu, in percent: where it has no page for a
/// batch, it frees object by object (mm/slab_common.c; 6 of 4,470 on a loaded 6.18).
const RCU_EVENTS_PERCENT_MAX: u64 = 5;
/// Fewest objects that show whether steps have about as many: 21 in ten steps look so by chance.
const EVEN_MIN: u64 = 32;
/// An old object is older than the 99th percentile of the lifetimes by this factor.
const AGE_FACTOR: u64 = 3;
/// Part of a known lifetime by which the kernel may be late.
const LATE_PART: u64 = 8;
/// Last steps of a window: objects allocated in them are young by any measure.
pub const YOUNG_STEPS: usize = STEPS / 8;

impl Evidence {
    /// Numbers of a survival, without a verdict; `step` is the length of a step, `known_life` how long the kernel is
    /// known to keep such objects, or 0.
    pub fn of(survival: &SurvivorSums, step: u64, known_life: u64) -> Self {
        let age = old_age(survival, known_life);
        let part = JudgedPart { to: old_steps(age, step), ..JudgedPart::default() };
        Self { window_needed: window_needed(age), ..Self::of_part(survival, step, part) }
    }

    /// True for old objects from three quarters of the steps, about as many early as late.
    pub fn has_steady_pace(&self) -> bool {
        self.steps.0 * 4 >= self.steps.1 * 3 && self.has_like_halves()
    }

    /// True for about as many old objects early as late.
    pub fn has_like_halves(&self) -> bool {
        let (first, second) = self.halves;
        second.saturating_mul(2) >= first && first.saturating_mul(2) >= second
    }

    /// Step in which growth began, where old objects are left only from then on, and not by chance.
    pub fn begin_of_growth(&self) -> Option<usize> {
        let is_late = |first: &usize| self.is_burst() || is_no_chance(*first, self.old, self.steps.1);
        self.began.filter(is_late)
    }

    /// Numbers of a part of the survivors, without a verdict.
    pub fn of_part(survival: &SurvivorSums, step: u64, part: JudgedPart) -> Self {
        let (survivors, amount) = (survival.survivors.sum(), survival.survivor_amount.sum());
        let old_survivors =
            part.task.map_or(&survival.survivors, |pid| survival.task(pid).unwrap_or(&survival.survivors));
        let (of_survivors, of_amount, of_births) =
            (old_survivors.all(), survival.survivor_amount.all(), survival.births.all());
        let range = part.from..part.to;
        let old_part = of_survivors.get(range.clone()).unwrap_or_default();
        let sum = |numbers: &[u64]| numbers.iter().sum::<u64>();
        let halves = old_part.split_at(old_part.len() / 2);
        let old = sum(old_part);
        // Of one task: its share, step by step.
        let amount_of = |at: usize| {
            let all = survival.survivors.get(at as u32).copied().unwrap_or(0).max(1);
            u64::try_from(u128::from(of_amount[at]) * u128::from(of_survivors[at]) / u128::from(all))
                .unwrap_or(u64::MAX)
        };
        Self {
            verdict: Verdict::Few,
            survivors,
            amount,
            old,
            old_amount: range.clone().map(amount_of).fold(0, u64::saturating_add),
            old_births: sum(of_births.get(range).unwrap_or_default()),
            steps: (old_part.iter().filter(|&&n| n > 0).count(), old_part.len()),
            halves: (sum(halves.0), sum(halves.1)),
            old_age: ((STEPS - part.to) as u64).saturating_mul(step.max(1)),
            window_needed: 0,
            freed: (survival.freed(), survival.implied_frees),
            uncertain: survival.uncertain,
            began: began(old_part),
            part,
            batches: batches(old_part).len(),
            paced: paced(old_part),
            comes_in_batches: comes_in_batches(old_part),
            is_even: is_even(old_part) || has_even_batches(old_part),
        }
    }

    /// True if hardly any free of this kind has an event, or of few ends some have none: objects that are free already may not
    /// be reused for long. Nine tenths of the births are more than that leaves, and so are as many in each step. What grows
    /// at the pace of another leak of the same tasks is part of it.
    pub fn is_unsure(&self) -> bool {
        let (freed, implied_frees) = self.freed;
        let lack_events = match freed + implied_frees < ENDS_MIN {
            true => exceeds_unseen_share(freed, implied_frees),
            false => implied_frees >= ENDS_MIN && freed * 10 < implied_frees,
        };
        lack_events && !self.is_even && self.old * 10 < self.old_births * 9
    }

    /// True if frees without an event, which may be detected late or never, can explain these survivors.
    pub fn may_be_implied_frees(&self) -> bool {
        self.old * 100 < self.old_births * UNSEEN_OLD_PERCENT_MIN
    }

    /// True if hardly any object of this kind ended by a free with an event.
    pub fn is_hardly_freed_by_event(&self) -> bool {
        let (freed, implied_frees) = self.freed;
        let all = freed.saturating_add(implied_frees).saturating_add(self.survivors);
        freed.saturating_mul(100) <= all.saturating_mul(RCU_EVENTS_PERCENT_MAX)
    }

    /// True if the share of frees without an event is large enough to explain survivors.
    pub fn frees_lack_events(&self) -> bool {
        frees_lack_events(self.freed.0, self.freed.1)
    }

    /// True if the second half has less than half of the first, and not because it has one batch of three.
    pub fn saturates(&self) -> bool {
        self.halves.1 * 2 < self.halves.0 && !self.comes_in_batches
    }

    /// True for old survivors in few steps.
    pub fn is_burst(&self) -> bool {
        if self.saturates() { self.steps.0 < 3 } else { self.steps.0 * 2 < self.steps.1 }
    }
}

/// Age from which an object is old. A known lifetime needs no factor, only room for late timers, unless others live longer.
pub fn old_age(survival: &SurvivorSums, known_life: u64) -> u64 {
    let usual = usual_age(survival, |ages| ages.quantile(990));
    let known = known_life.saturating_add(known_life / LATE_PART);
    if known_life > 0 && usual <= known { known } else { usual.saturating_mul(AGE_FACTOR) }
}

/// An age that others of the kind get. A free without an event is detected when the memory is used again: younger objects
/// may be free already.
pub fn usual_age(survival: &SurvivorSums, of: impl Fn(&Histogram) -> Option<u64>) -> u64 {
    let found_out = of(&survival.implied_free_ages)
        .filter(|_| frees_lack_events(survival.freed(), survival.implied_frees));
    of(&survival.lifetimes).max(found_out).unwrap_or(0)
}

/// Steps whose objects are older than that: those at the end that cover the age are left out.
pub fn old_steps(age: u64, step: u64) -> usize {
    let young = (age / step.max(1)).saturating_add(1).max(YOUNG_STEPS as u64);
    STEPS.saturating_sub(usize::try_from(young).unwrap_or(STEPS))
}

/// Length of a window in which a quarter of the steps is older than that.
fn window_needed(age: u64) -> u64 {
    let young = (STEPS - STEPS / 4 - 1) as u128;
    u64::try_from(u128::from(age) * STEPS as u128 / young).unwrap_or(u64::MAX)
}

/// True if each step has about as many: memory that is free and not reused is left at random. Two steps may have more, and
/// one in sixteen, with one more, fewer.
pub fn is_even(old: &[u64]) -> bool {
    let mut sorted = old.to_vec();
    sorted.sort_unstable();
    let of = |at: usize| sorted.get(at).copied().unwrap_or(0);
    let (least, median) = (of(1 + sorted.len() / 16), of(sorted.len() / 2));
    let most = sorted.iter().rev().nth(2).copied().unwrap_or(0);
    let is_enough = sorted.iter().fold(0, |sum: u64, count| sum.saturating_add(*count)) >= EVEN_MIN;
    is_enough && least.saturating_mul(2) >= median && most <= median.saturating_mul(2)
}

/// True if each of several batches has about as many: what is free and not reused is left of the last ones, at random.
pub fn has_even_batches(old: &[u64]) -> bool {
    let sums: Vec<u64> = batches(old).into_iter().map(|(_, sum)| sum).collect();
    let (least, most) = (sums.iter().min().copied().unwrap_or(0), sums.iter().max().copied().unwrap_or(0));
    comes_in_batches(old) && least >= EVEN_MIN && most.saturating_mul(2) <= least.saturating_mul(3)
}

/// True if the share of frees without an event is large enough to explain survivors.
pub fn frees_lack_events(freed: u64, unseen: u64) -> bool {
    unseen >= SURVIVORS_MIN && exceeds_unseen_share(freed, unseen)
}

fn exceeds_unseen_share(freed: u64, unseen: u64) -> bool {
    unseen * 100 > (freed + unseen) * UNSEEN_PERCENT
}

/// Runs of steps with old survivors, each with its number of survivors; one empty step does not end a run.
fn batches(old: &[u64]) -> Vec<(usize, u64)> {
    let mut out: Vec<(usize, usize, u64)> = Vec::new();
    for (step, &count) in old.iter().enumerate().filter(|(_, count)| **count > 0) {
        match out.last_mut() {
            Some((_, last, sum)) if step - *last <= 2 => (*last, *sum) = (step, *sum + count),
            _ => out.push((step, step, count)),
        }
    }
    out.into_iter().map(|(first, _, sum)| (first, sum)).collect()
}

/// Steps from the first batch to the last, and objects of all but the last: whole periods.
fn paced(old: &[u64]) -> Option<(usize, u64)> {
    let batches = batches(old);
    let (first, last) = (batches.first()?, batches.last()?);
    let before_last = batches.iter().rev().skip(1).fold(0u64, |sum, batch| sum.saturating_add(batch.1));
    (last.0 > first.0).then_some((last.0 - first.0, before_last))
}

/// Step in which steady growth began that continued to the last old step.
fn began(old: &[u64]) -> Option<usize> {
    let first = old.iter().position(|&count| count > 0)?;
    let tail = old.get(first..)?;
    let busy = tail.iter().filter(|&&count| count > 0).count();
    let (early, late) = tail.split_at(tail.len() / 2);
    let (early, late) = (early.iter().sum::<u64>(), late.iter().sum::<u64>());
    let is_steady = busy * 4 >= tail.len() * 3 && late * 2 >= early && early * 3 >= late;
    (first > 0 && tail.len() >= STEPS / 6 && is_steady).then_some(first)
}

/// True if steps at the start are not empty by chance: at the pace of the others they would have that many objects.
fn is_no_chance(empty: usize, old: u64, steps: usize) -> bool {
    const EXPECTED_MIN: u64 = 5;
    let others = steps.saturating_sub(empty) as u64;
    empty > 1 && old.saturating_mul(empty as u64) >= others.saturating_mul(EXPECTED_MIN)
}

/// True for three or more batches of similar size, the last one recent.
pub fn comes_in_batches(old: &[u64]) -> bool {
    let batches = batches(old);
    let most = batches.iter().map(|b| b.1).max().unwrap_or(0);
    let like = batches.iter().filter(|b| b.1 * 3 >= most).count();
    let is_recent = batches.last().is_some_and(|(step, _)| *step * 3 >= old.len() * 2);
    batches.len() >= 3 && like == batches.len() && is_recent
}

/// Survivors without these survivors, step by step.
pub fn without(survival: &SurvivorSums, other: &Numbers) -> SurvivorSums {
    let mut left = survival.survivors.all();
    left.iter_mut().zip(other).for_each(|(left, &gone)| *left = left.saturating_sub(gone));
    SurvivorSums { survivors: StepCounts::from(&left), ..survival.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_steps_have_about_as_many() {
        assert!(is_even(&[5; 28]) && is_even(&[0, 1, 5, 5, 5, 9, 5, 5, 4, 30, 40, 5, 6, 5, 5, 5]));
        assert!(!is_even(&[3, 2, 2, 2, 2, 3, 2, 2, 2, 1]), "21 objects");
        assert!(!is_even(&[2, 44, 50, 41, 3, 60, 82, 48, 5, 45, 41, 7]), "2 to 82");
        assert!(!is_even(&[]) && !is_even(&[0; 28]));
    }

    #[test]
    fn batches_have_whole_periods_from_the_first_to_the_last() {
        assert_eq!(paced(&[40, 0, 0, 0, 40, 0, 0, 0, 40]), Some((8, 80)));
        assert_eq!(paced(&[0, 40, 2, 0, 0, 0, 30]), Some((5, 42)));
        assert_eq!((paced(&[7, 7]), paced(&[0; 28]), paced(&[])), (None, None, None));
    }
}
