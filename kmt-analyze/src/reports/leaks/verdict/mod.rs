//! Verdicts: steady growth, or one of the reasons why memory is still allocated without a leak.
//!
//! An object that is live at the end of a trace is no leak by itself: most are young, or belong to a cache that fills,
//! or were freed without an event. A leak leaves objects that are older than others of their kind ever get, that were
//! allocated all through the window, and as many late in it as early. Each of these is a number here, and the verdict
//! follows from them by fixed rules; so it can be checked, and be wrong for a reason.

pub mod course;
pub mod families;
mod kind;
pub mod makers;
pub mod tasks;
mod telling;

pub use kind::Verdict;

use crate::collect::growth::{Numbers, STEPS, Steps, Survival};

/// Numbers that a verdict rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    pub verdict: Verdict,
    /// Objects, or pages, that are live at the end.
    pub survivors: u64,
    /// Bytes, or pages, of them.
    pub amount: u64,
    /// Those of them that are older than `old_age`.
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
    /// Frees with an event, and implied frees, in the window.
    pub freed: (u64, u64),
    /// Step with the first old survivors, where growth began within the window.
    pub began: Option<usize>,
    /// Number of batches of steps with old survivors.
    pub batches: usize,
    /// True if nearly all steps have about as many old survivors.
    pub is_even: bool,
}

/// Smallest number of survivors for a verdict.
const SURVIVORS_MIN: u64 = 16;
/// Smallest number of ends that show how long objects live, and whether their frees have events.
const ENDS_MIN: u64 = 16;
/// Share of implied frees from which frees count as without events, in percent.
const UNSEEN_PERCENT: u64 = 5;
/// Share of their births that old survivors have to be, in percent, where frees have no event.
const UNSEEN_OLD_PERCENT_MIN: u64 = 5;
/// Last steps of a window: objects allocated in them are young by any measure.
const YOUNG_STEPS: usize = STEPS / 8;
/// An old object is older than the 99th percentile of the lifetimes by this factor.
const AGE_FACTOR: u64 = 3;

/// Verdict on one survival; `step` is the length of a step. Reclaimable caches are not considered here.
pub fn judge(survival: &Survival, step: u64) -> Evidence {
    let step = step.max(1);
    let (survivors, amount) = (survival.survivors.sum(), survival.survivor_amount.sum());
    let (of_survivors, of_amount, of_births) =
        (survival.survivors.all(), survival.survivor_amount.all(), survival.births.all());
    let freed = survival.lifetimes.count();
    let usual = survival.lifetimes.quantile(990).filter(|_| freed > 0).unwrap_or(0);
    // A free without an event is detected when the memory is used again: younger objects may be free already.
    let found_out =
        survival.implied_free_ages.quantile(990).filter(|_| frees_lack_events(freed, survival.implied_frees));
    let usual = usual.max(found_out.unwrap_or(0));
    // The steps at the end that cover this age are left out.
    let young = (usual.saturating_mul(AGE_FACTOR) / step).saturating_add(1).max(YOUNG_STEPS as u64);
    let old_steps = STEPS.saturating_sub(usize::try_from(young).unwrap_or(STEPS));
    let old_part = of_survivors.get(..old_steps).unwrap_or_default();
    let half = |range: &[u64]| range.iter().sum::<u64>();
    let halves = old_part.split_at(old_steps / 2);
    let mut evidence = Evidence {
        verdict: Verdict::Few,
        survivors,
        amount,
        old: half(old_part),
        old_amount: half(of_amount.get(..old_steps).unwrap_or_default()),
        old_births: half(of_births.get(..old_steps).unwrap_or_default()),
        steps: (old_part.iter().filter(|&&n| n > 0).count(), old_steps),
        halves: (half(halves.0), half(halves.1)),
        old_age: young.saturating_mul(step),
        freed: (freed, survival.implied_frees),
        began: None,
        batches: batches(old_part).len(),
        is_even: is_even(old_part),
    };
    evidence.verdict = verdict(&evidence, survival.uncertain);
    if evidence.verdict == Verdict::Burst {
        if let Some(began) = began(old_part) {
            (evidence.verdict, evidence.began) = (Verdict::Grows, Some(began));
        } else if comes_in_batches(old_part) {
            evidence.verdict = Verdict::Batches;
        }
    }
    evidence
}

fn verdict(e: &Evidence, uncertain: u64) -> Verdict {
    let (freed, implied_frees) = e.freed;
    if e.survivors < SURVIVORS_MIN {
        return Verdict::Few;
    }
    if uncertain * 2 > e.survivors {
        return Verdict::Uncertain;
    }
    // Less than a quarter of the window can have old survivors.
    if e.steps.1 < STEPS / 4 {
        return if frees_lack_events(freed, implied_frees) {
            Verdict::ImpliedFrees
        } else {
            Verdict::TooShort
        };
    }
    if e.old < SURVIVORS_MIN {
        return Verdict::Young;
    }
    // One in a hundred implied frees is detected later than that age.
    if frees_lack_events(freed, implied_frees) && may_be_implied_frees(e) {
        return Verdict::ImpliedFrees;
    }
    if is_unsure(e) {
        return Verdict::ImpliedFrees;
    }
    // Of too few ends to know how long others live some have no event.
    if freed + implied_frees < ENDS_MIN && exceeds_unseen_share(freed, implied_frees) {
        return Verdict::ImpliedFrees;
    }
    // The second half has less than half of the first: it saturates.
    if e.halves.1 * 2 < e.halves.0 {
        return if e.steps.0 < 3 { Verdict::Burst } else { Verdict::Warming };
    }
    if e.steps.0 * 2 < e.steps.1 {
        return Verdict::Burst;
    }
    Verdict::Grows
}

/// True if hardly any free of this kind has an event: objects that are free already may not be reused for long. What
/// grows at the pace of another leak of the same tasks is part of it.
pub fn is_unsure(e: &Evidence) -> bool {
    let (freed, implied_frees) = e.freed;
    let lack_events = implied_frees >= ENDS_MIN && freed * 10 < implied_frees;
    lack_events && !e.is_even && e.old * 10 < e.old_births * 9
}

/// True if each step has about as many: memory that is free and not reused is left at random. Two steps may have more.
fn is_even(old: &[u64]) -> bool {
    let mut sorted = old.to_vec();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    let most = sorted.iter().rev().nth(2).copied().unwrap_or(0);
    let empty = sorted.iter().filter(|&&count| count == 0).count();
    empty <= 1 + old.len() / 16 && most <= median.saturating_mul(2)
}

/// True if frees without an event, which may be detected late or never, can explain these survivors.
pub fn may_be_implied_frees(e: &Evidence) -> bool {
    e.old * 100 < e.old_births * UNSEEN_OLD_PERCENT_MIN
}

/// True if the share of frees without an event is large enough to explain survivors.
fn frees_lack_events(freed: u64, unseen: u64) -> bool {
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

/// True for three or more batches of similar size, the last one recent.
fn comes_in_batches(old: &[u64]) -> bool {
    let batches = batches(old);
    let most = batches.iter().map(|b| b.1).max().unwrap_or(0);
    let like = batches.iter().filter(|b| b.1 * 3 >= most).count();
    let is_recent = batches.last().is_some_and(|(step, _)| *step * 3 >= old.len() * 2);
    batches.len() >= 3 && like == batches.len() && is_recent
}

/// Survival without these survivors, step by step.
pub fn without(survival: &Survival, other: &Numbers) -> Survival {
    let mut left = survival.survivors.all();
    left.iter_mut().zip(other).for_each(|(left, &gone)| *left = left.saturating_sub(gone));
    Survival { survivors: Steps::from(&left), ..survival.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survival(survivors: impl Fn(usize) -> u64, lifetime: u64, freed: u64) -> Survival {
        let mut survival = Survival::default();
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
    fn steady_growth_differs_from_filling_and_turnover() {
        let verdict = |c: &Survival| judge(c, 1000).verdict;
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
        let few = Survival { births: Steps::from(&[1_000; STEPS]), ..implied_frees.clone() };
        assert_eq!(verdict(&few), Verdict::ImpliedFrees, "less than one in a hundred, as may be chance");
        (0..400).for_each(|_| implied_frees.implied_free_ages.add(16_000));
        assert_eq!(verdict(&implied_frees), Verdict::ImpliedFrees);
        // No free has an event, and a fifth of the objects is not known to be free.
        let by_rcu = |survivors: &dyn Fn(usize) -> u64| {
            let mut by_rcu = Survival { births: Steps::from(&[25; STEPS]), ..survival(survivors, 100, 0) };
            by_rcu.implied_frees = 600;
            (0..600).for_each(|_| by_rcu.implied_free_ages.add(200));
            verdict(&by_rcu)
        };
        assert_eq!(by_rcu(&|step| [9, 3, 0, 2, 7, 5, 0, 4][step % 8]), Verdict::ImpliedFrees);
        assert_eq!(by_rcu(&|_| 5), Verdict::Grows, "chance is not as even");
        // No free has an event, as far as a few ends show.
        let mut unknown = survival(|_| 5, 100, 0);
        unknown.implied_frees = 15;
        assert_eq!(verdict(&unknown), Verdict::ImpliedFrees);
        let mut lost = survival(|_| 5, 100, 3200);
        lost.uncertain = 100;
        assert_eq!(verdict(&lost), Verdict::Uncertain);
    }
}
