//! A call site, or a kind of pages, with the verdict on its live memory.

use std::borrow::Cow;

use kmt_common::unseen_frees::is_freed_in_bulk;

use super::caches::CacheShare;
use super::evidence::{Evidence, SURVIVORS_MIN};
use super::kernel_names::FREED_BY_RCU;
use super::stacks::RowStack;
use super::verdict::Verdict;
use crate::collect::growth::SurvivorSums;
use crate::stream::Api;

/// Share of the old objects from which they are of one task, in percent.
const ONE_TASK_PERCENT: u64 = 90;

/// A call site, or a kind of pages, with the verdict on its live memory.
pub struct Judged<'r> {
    pub api: Option<Api>,
    pub address: u64,
    pub name: String,
    /// Cache or size class with most of it, and the number of others.
    pub cache: String,
    /// Caches with live objects, those with most first; none for pages.
    pub caches: Vec<CacheShare>,
    pub evidence: Evidence,
    /// The kernel reclaims objects of its cache when memory is short.
    pub is_reclaimable: bool,
    /// Of tasks that started in the window, whose number grows.
    pub is_of_tasks: bool,
    /// Stacks with most live objects, where stacks were recorded.
    pub stacks: Vec<RowStack>,
    pub survival: &'r SurvivorSums,
    /// The survivors that the verdict is about: the old ones, if there are enough; of a part alone if only that grows.
    pub growing: Cow<'r, SurvivorSums>,
    /// Number of the row that leads its family.
    pub leader: Option<usize>,
    /// Pages for the percpu allocator, which a kernel worker may allocate for others.
    pub is_percpu: bool,
    /// Pages that hold data of files and devices.
    pub is_page_cache: bool,
    /// Of pages: number of the family that they grow with.
    pub grows_with: Option<usize>,
}

impl Judged<'_> {
    /// Function of the call site.
    pub fn function(&self) -> &str {
        function(&self.name)
    }

    /// True where one task's objects grow at a steady pace, and no free of them has an event: they may be freed already.
    pub fn may_grow(&self) -> bool {
        let (evidence, old) = (&self.evidence, self.evidence.old);
        let most = self.growing.tasks().map(|(_, steps)| steps.sum()).max().unwrap_or(0);
        let is_bulk = self.caches.first().is_some_and(|share| is_freed_in_bulk(&share.cache));
        evidence.verdict == Verdict::ImpliedFrees
            && old >= SURVIVORS_MIN
            && evidence.freed.0 == 0
            && evidence.has_steady_pace()
            && most.saturating_mul(100) >= old.saturating_mul(ONE_TASK_PERCENT)
            && !is_bulk
            && !FREED_BY_RCU.contains(&self.function())
    }

    /// True for page cache that grows, and that the kernel can reclaim.
    pub fn is_growth_of_page_cache(&self) -> bool {
        self.is_page_cache && self.evidence.verdict == Verdict::Reclaimable
    }

    /// True for the kernel's structure of a task.
    pub fn is_task(&self) -> bool {
        self.caches.first().is_some_and(|share| share.cache == "task_struct")
    }
}

/// The survivors that a verdict is about.
pub fn growing<'r>(evidence: &Evidence, survival: &'r SurvivorSums) -> Cow<'r, SurvivorSums> {
    if evidence.old < SURVIVORS_MIN {
        Cow::Borrowed(survival)
    } else {
        Cow::Owned(evidence.part.of(survival))
    }
}

/// Function of a call site.
pub fn function(name: &str) -> &str {
    name.split_once("+0x").map_or(name, |(function, _)| function)
}

/// Sorts by verdict, then by old bytes.
pub fn sort(rows: &mut [Judged<'_>]) {
    rows.sort_by(|a, b| {
        (a.evidence.verdict, b.evidence.old_amount, &a.name).cmp(&(
            b.evidence.verdict,
            a.evidence.old_amount,
            &b.name,
        ))
    });
}
