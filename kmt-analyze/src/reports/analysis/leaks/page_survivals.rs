//! Live pages by kind and by call site, with the tasks that allocated them.

use std::collections::BTreeMap;

use super::kernel_names::{KEPT_CALLERS, PAGE_CACHE, SLAB_PAGES};
use crate::collect::growth::{GrowthSums, StepCounts, SurvivorSums};
use crate::collect::sums::Sums;
use crate::pass::Analysis;
use crate::pass::selection::recorder_threads;
use crate::reports::common::ReportContext;
use crate::reports::common::page_sums::caller;

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
