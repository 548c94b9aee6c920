//! Growth of caches that no event shows, with tasks that may have caused it.

use kmt_common::unseen_allocs::unseen_allocs;
use serde::Serialize;

use crate::collect::growth::GrowthSums;
use crate::reports::common::{ReportContext, View};
use crate::reports::slabinfo::{UnseenGrowth, unseen_growth};

/// Tasks of a cache that are named.
const TASKS_MAX: usize = 3;

/// A cache that grew without allocation events.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnseenRow {
    /// The growth.
    #[serde(flatten)]
    pub growth: UnseenGrowth,
    /// Tasks that hold other objects of the part of the kernel that uses the cache, those with most of them first; three
    /// at most. Of io_uring only.
    pub tasks: Vec<String>,
}

impl UnseenRow {
    /// The growth, its tasks, and the recording that shows the caller.
    pub fn sentence(&self, view: &View) -> String {
        self.growth.sentence(&self.tasks, view)
    }
}

/// Growth over the recording, the largest first.
pub fn compute(context: &ReportContext<'_, '_>, growth: &GrowthSums, unmatched: &[u64]) -> Vec<UnseenRow> {
    let row = |found: UnseenGrowth| {
        let functions = unseen_allocs(&found.cache).map_or(&[][..], |known| known.functions);
        UnseenRow { growth: found, tasks: tasks_at(context, growth, functions) }
    };
    unseen_growth(context, unmatched).into_iter().map(row).collect()
}

/// Tasks with live objects of functions whose names begin so.
fn tasks_at(context: &ReportContext<'_, '_>, growth: &GrowthSums, functions: &[&str]) -> Vec<String> {
    if functions.is_empty() {
        return Vec::new();
    }
    let labels = context.labels();
    let mut found: std::collections::BTreeMap<i32, u64> = std::collections::BTreeMap::new();
    for (number, survival) in (0u32..).zip(&growth.callers) {
        let (.., symbol) = labels.caller(context.analysis, number);
        if functions.iter().any(|start| symbol.starts_with(start)) {
            for (pid, steps) in survival.tasks() {
                *found.entry(pid).or_default() += steps.sum();
            }
        }
    }
    let mut tasks: Vec<(i32, u64)> = found.into_iter().collect();
    tasks.sort_by_key(|&(pid, objects)| (std::cmp::Reverse(objects), pid));
    tasks.iter().take(TASKS_MAX).map(|&(pid, _)| labels.task(pid)).collect()
}
