//! Survivors over time: distributions compared, and live pages by kind and by call site with the tasks that allocated them.
//!
//! Numbers of survivors by step of allocation come from the collector `Growth`.

use std::collections::BTreeMap;
use std::ops::Range;

use super::kernel_names::{KEPT_CALLERS, PAGE_CACHE, SLAB_PAGES};
use crate::collect::growth::{GrowthSums, Numbers, StepCounts, SurvivorSums};
use crate::collect::sums::Sums;
use crate::pass::Analysis;
use crate::pass::selection::recorder_threads;
use crate::reports::common::ReportContext;
use crate::reports::common::page_sums::caller;
use crate::sort_rows::SortRows;

/// Distance between the distributions of survivors over time, from 0 to 2; `None`: one has no survivors.
pub fn curve_distance(one: &Numbers, other: &Numbers, steps: Range<usize>) -> Option<f64> {
    let (one, other) = (one.get(steps.clone())?, other.get(steps)?);
    let (a, b) = (one.iter().sum::<u64>(), other.iter().sum::<u64>());
    if a == 0 || b == 0 {
        return None;
    }
    let both = one.iter().zip(other);
    Some(both.map(|(&x, &y)| (x as f64 / a as f64 - y as f64 / b as f64).abs()).sum())
}

/// Largest distance of what grows together.
const TOGETHER_MAX: f64 = 0.12;
/// Distance that is added for one object: of few objects chance decides the step.
const CHANCE: f64 = 0.6;
/// Steps that are left out: a task allocates more when it starts, and what it has done last may be free soon.
const LEFT_OUT: usize = 2;

/// True if objects are left at the same pace: the largest distance between their cumulative distributions is small, with
/// all steps, or without the two that differ most. Arrays that grow in batches go with the objects in them. `None`: one
/// has no survivors.
pub fn grow_together(one: &Numbers, other: &Numbers, steps: Range<usize>) -> Option<bool> {
    let (one, other) = (one.get(steps.clone())?, other.get(steps)?);
    let steps = one.len();
    let (a, b) = (one.iter().sum::<u64>(), other.iter().sum::<u64>());
    if a == 0 || b == 0 {
        return None;
    }
    let share =
        |numbers: &[u64], at: usize, all: u64| numbers.get(at).copied().unwrap_or(0) as f64 / all as f64;
    let difference = |at: usize| (share(one, at, a) - share(other, at, b)).abs();
    let mut kept: Vec<usize> = (0..steps).collect();
    kept.sort_rows_by(|&x, &y| difference(x).total_cmp(&difference(y)).then(x.cmp(&y)));
    kept.truncate(steps.saturating_sub(LEFT_OUT));
    kept.sort_unstable();
    let of =
        |numbers: &[u64]| -> Vec<u64> { kept.iter().filter_map(|&at| numbers.get(at).copied()).collect() };
    let (x, y) = (of(one), of(other));
    // What is left has to speak for all.
    let speaks = |part: &[u64], all: u64| part.iter().sum::<u64>().saturating_mul(2) >= all;
    Some(is_same_pace(one, other) || speaks(&x, a) && speaks(&y, b) && is_same_pace(&x, &y))
}

fn is_same_pace(one: &[u64], other: &[u64]) -> bool {
    let (a, b) = (one.iter().sum::<u64>(), other.iter().sum::<u64>());
    if a == 0 || b == 0 {
        return false;
    }
    let (mut sum_a, mut sum_b, mut most) = (0, 0, 0.0f64);
    for (x, y) in one.iter().zip(other) {
        (sum_a, sum_b) = (sum_a + x, sum_b + y);
        most = most.max((sum_a as f64 / a as f64 - sum_b as f64 / b as f64).abs());
    }
    most <= TOGETHER_MAX + CHANCE / (a.min(b) as f64).sqrt()
}

/// Live pages, without those of the recorder.
pub struct PageSurvivals {
    /// By number of their kind.
    pub kinds: Vec<(u32, SurvivorSums)>,
    /// By the first function in their stacks outside the allocator, slabs apart.
    pub callers: BTreeMap<(u64, bool), SurvivorSums>,
}

impl PageSurvivals {
    /// From the results of a pass.
    pub fn new(context: &ReportContext<'_, '_>, growth: &GrowthSums) -> Self {
        let result = context.analysis;
        let recorder = recorder_threads(context.session);
        let with_tasks = |survival: &SurvivorSums| with_tasks(survival, result, &recorder);
        let kinds = (0u32..).zip(&growth.pages).map(|(number, survival)| (number, with_tasks(survival)));
        let callers = by_caller(context, growth);
        Self {
            kinds: kinds.filter(|(_, survival)| survival.survivors.sum() > 0).collect(),
            callers: callers.iter().map(|(key, survival)| (*key, with_tasks(survival))).collect(),
        }
    }
}

/// Survivors by the task that allocated them, without those of the recorder.
fn with_tasks(survival: &SurvivorSums, result: &Analysis, recorder: &[i32]) -> SurvivorSums {
    let mut out = SurvivorSums { page_holders: Default::default(), ..survival.clone() };
    let (mut left, mut left_amount) = (survival.survivors.all(), survival.survivor_amount.all());
    for (origin, steps) in survival.page_holders.iter() {
        let pid = result.interner.origins.get(origin).map_or(0, |origin| origin.pid);
        if recorder.binary_search(&pid).is_err() {
            out.of_task(pid).absorb(steps.clone());
            continue;
        }
        for (own, (left, amount)) in steps.all().iter().zip(left.iter_mut().zip(&mut left_amount)) {
            (*left, *amount) = (left.saturating_sub(*own), amount.saturating_sub(*own));
        }
    }
    (out.survivors, out.survivor_amount) = (StepCounts::from(&left), StepCounts::from(&left_amount));
    out
}

/// Pages by the first function in their stacks outside the allocator; if that is of the page cache, by that of a file
/// system in memory behind it. True: of slabs.
fn by_caller(context: &ReportContext<'_, '_>, growth: &GrowthSums) -> BTreeMap<(u64, bool), SurvivorSums> {
    let result = context.analysis;
    let symbols = context.symbols();
    let is_of = |address: u64, functions: &[&str]| {
        let name = symbols.raw(address);
        functions.iter().any(|start| name.starts_with(start.as_bytes()))
    };
    let is_slab = |address: u64| is_of(address, &SLAB_PAGES);
    let mut out: BTreeMap<(u64, bool), SurvivorSums> = BTreeMap::new();
    for (stack, survival) in &growth.page_stacks {
        let addresses = result.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
        let caller = caller(addresses, symbols).unwrap_or(0);
        let kept = addresses.iter().copied().find(|&address| is_of(address, &KEPT_CALLERS));
        let caller = kept.filter(|_| is_of(caller, &PAGE_CACHE)).unwrap_or(caller);
        let is_slab = addresses.iter().any(|&address| is_slab(address));
        out.entry((caller, is_slab)).or_default().absorb(survival.clone());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::growth::STEPS;

    fn numbers(of: impl Fn(usize) -> u64) -> Numbers {
        std::array::from_fn(of)
    }

    #[test]
    fn the_same_pace_is_together_in_pairs_in_batches_and_after_a_start() {
        let steady = numbers(|_| 19);
        let together = |other: Numbers| grow_together(&steady, &other, 0..STEPS).unwrap();
        assert!(together(numbers(|_| 3)));
        assert!(together(numbers(|s| if s == 0 { 31 } else { 3 })), "a task that starts opens files");
        assert!(together(numbers(|s| if s % 4 == 1 { 11 } else { 0 })), "an array that grows");
        let shrinkers = numbers(|s| if [5, 8, 12, 15, 18, 22, 25].contains(&s) { 11 } else { 0 });
        assert_eq!(grow_together(&steady, &shrinkers, 0..28), Some(true));
        assert!(together(numbers(|s| [1, 2, 3, 1, 0, 4, 2][s % 7])), "few objects");
        assert!(!together(numbers(|s| if s > 15 { 19 } else { 0 })), "from the middle");
        assert!(!together(numbers(|s| 64 >> s.min(10))), "a cache that fills");
        assert!(!together(numbers(|s| if s == 9 { 500 } else { 1 })), "a burst");
        assert_eq!(grow_together(&steady, &numbers(|_| 0), 0..STEPS), None);
    }
}
