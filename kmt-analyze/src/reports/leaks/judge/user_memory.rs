//! Memory of processes: which process grows, in anonymous memory or in files of tmpfs.
//!
//! All processes share one kind of pages, and one call site. Sums of all of them are turnover: each start is a burst, each end frees
//! pages that are older than the recording. So each task is judged alone, by the steps in which it allocated the pages that it still
//! has, and by the older pages that it freed (ledger, frees without a recorded allocation). The kernel's own count (AnonPages or
//! Shmem in /proc/meminfo, before and after) has to agree: of anonymous memory with what other tasks freed added to it, since frees do
//! not distinguish the two.

use std::collections::HashMap;

use kmt_format::read::Metadata;

use super::evidence::{Evidence, YOUNG_STEPS};
use super::kernel_names::ANONYMOUS_MEMORY;
use super::rules::{TASKS_MAX, steady_from};
use super::survivors::PageSurvivals;
use super::verdict::JudgedPart;
use crate::collect::growth::{STEPS, StepCounts, SurvivorSums};
use crate::pass::Analysis;
use crate::reports::common::ReportContext;
use crate::sort_rows::SortRows;
use crate::trace::meminfo;

/// Memory of tasks in pages, and what the kernel counts.
pub struct UserMemory {
    /// Live movable pages that each task allocated.
    live: HashMap<i32, u64>,
    /// Pages that each task freed, and that were allocated before the recording.
    older_freed: HashMap<i32, u64>,
    /// Pages by which anonymous memory grew, by the kernel's count; `None`: unknown, or swap can take it.
    anonymous: Option<i64>,
    /// The same of shared memory and tmpfs.
    shared: Option<i64>,
    /// False if the selection leaves out what other tasks freed: then only a task's own frees count.
    has_all_tasks: bool,
    /// Fewer old pages than this are ordinary turnover of heaps.
    old_min: u64,
}

/// Which memory grows: the kernel counts each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    Anonymous,
    /// Files of tmpfs, and shared memory. Pages that processes copied have their flags.
    Shared,
}

/// Growth that is judged, as 1/N of MemTotal. Programs whose heaps grew by 184 KiB to 1.1 MiB in 20 s, of 24 GiB, leaked nothing (an
/// interpreter, a recorder at 1.2 million events a second).
const SHARE_MIN: u64 = 16_384;

impl UserMemory {
    /// For the pages of a recording.
    pub fn new(context: &ReportContext<'_, '_>, pages: &PageSurvivals) -> Self {
        let analysis = context.analysis;
        let metadata = context.session.trace.metadata();
        let page_size = analysis.page_size.0.max(1);
        let total = meminfo::twice(metadata, "MemTotal").map_or(0, |(_, last)| last / page_size);
        Self {
            live: live_by_task(analysis, pages),
            older_freed: older_freed_by_task(analysis),
            anonymous: growth_without_swap(metadata, "AnonPages", page_size),
            shared: growth_without_swap(metadata, "Shmem", page_size),
            has_all_tasks: context.selection.is_all(),
            old_min: total / SHARE_MIN,
        }
    }

    /// True if most of these pages are of tasks that have at least as many pages of memory.
    pub fn holds(&self, survival: &SurvivorSums) -> bool {
        let of_memory =
            |(pid, steps): (i32, &StepCounts)| steps.sum().min(self.live.get(&pid).copied().unwrap_or(0));
        let sum: u64 = survival.tasks().map(of_memory).sum();
        sum.saturating_mul(2) >= survival.survivors.sum()
    }

    /// Evidence of the task whose memory grows most at a steady pace; `None`: none does. Its verdict is not set.
    pub fn growing_task(&self, memory: Memory, survival: &SurvivorSums, step: u64) -> Option<Evidence> {
        let mut tasks: Vec<(i32, &StepCounts)> = survival.tasks().collect();
        tasks.sort_rows_by_key(|(pid, steps)| (std::cmp::Reverse(steps.sum()), *pid));
        let of_task = |(pid, steps): &(i32, &StepCounts)| {
            let steps = steps.all();
            let (from, to) = (steady_from(steps.get(..STEPS - YOUNG_STEPS)?)?, STEPS - YOUNG_STEPS);
            let part = JudgedPart { from, to, task: Some(*pid) };
            let evidence = Evidence::of_part(survival, step, part);
            let began = evidence.begin_of_growth().or(Some(from).filter(|from| *from > 0));
            let evidence = Evidence { began, ..evidence };
            (evidence.has_like_halves() && self.agrees(memory, *pid, evidence.old)).then_some(evidence)
        };
        let growing = tasks.iter().take(TASKS_MAX).filter_map(of_task);
        growing.max_by_key(|evidence| evidence.old)
    }

    /// True if `old` pages of a task are growth by what it freed itself, and by the kernel's count.
    fn agrees(&self, memory: Memory, pid: i32, old: u64) -> bool {
        let own = pages_of(&self.live, pid).saturating_sub(pages_of(&self.older_freed, pid));
        let all = match memory {
            Memory::Anonymous => {
                self.anonymous.map(|grown| grown.saturating_add_unsigned(self.freed_by_others(pid)))
            }
            // By a quarter more than the kernel counts: some of them are copies.
            Memory::Shared => self.shared.filter(|grown| old / 5 * 4 <= grown.max(&0).unsigned_abs()),
        };
        let Some(all) = all.map(|all| all.max(0).unsigned_abs()) else { return false };
        old >= self.old_min.max(1) && is_most(own, old) && (!self.has_all_tasks || is_most(all, old))
    }

    /// Older pages that other tasks freed, beyond those that they allocated since.
    fn freed_by_others(&self, pid: i32) -> u64 {
        let others = self.older_freed.iter().filter(|(task, _)| **task != pid);
        others
            .map(|(task, freed)| freed.saturating_sub(pages_of(&self.live, *task)))
            .fold(0, u64::saturating_add)
    }

    /// True for a function that allocates anonymous memory.
    pub fn is_made_at(name: &str) -> bool {
        ANONYMOUS_MEMORY.iter().any(|start| name.starts_with(start))
    }
}

fn pages_of(tasks: &HashMap<i32, u64>, pid: i32) -> u64 {
    tasks.get(&pid).copied().unwrap_or(0)
}

/// True if growth is at least half of `old` pages.
pub fn is_most(grown: u64, old: u64) -> bool {
    grown > 0 && grown.saturating_mul(2) >= old
}

/// Pages by which a number of /proc/meminfo grew; `None`: unknown, or swap can take such memory.
pub fn growth_without_swap(metadata: &Metadata<'_>, key: &str, page_size: u64) -> Option<i64> {
    let has_no_swap = meminfo::has_swap(metadata) == Some(false);
    let (first, last) = meminfo::twice(metadata, key).filter(|_| has_no_swap)?;
    let grown = i128::from(last) - i128::from(first);
    i64::try_from(grown / i128::from(page_size.max(1))).ok()
}

fn live_by_task(analysis: &Analysis, pages: &PageSurvivals) -> HashMap<i32, u64> {
    let mut live: HashMap<i32, u64> = HashMap::new();
    let is_movable = |number: u32| analysis.interner.pages.get(number).is_some_and(|site| site.is_movable());
    for (_, survival) in pages.kinds.iter().filter(|(number, _)| is_movable(*number)) {
        for (pid, steps) in survival.tasks() {
            *live.entry(pid).or_default() += steps.sum();
        }
    }
    live
}

fn older_freed_by_task(analysis: &Analysis) -> HashMap<i32, u64> {
    let mut freed: HashMap<i32, u64> = HashMap::new();
    let by_origin = (0u32..).zip(&analysis.balance.frames.older_freed);
    for (number, pages) in by_origin.filter(|(_, pages)| **pages > 0) {
        if let Some(origin) = analysis.interner.origins.get(number) {
            *freed.entry(origin.pid).or_default() += pages;
        }
    }
    freed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(older_freed: &[(i32, u64)], counted: i64) -> UserMemory {
        UserMemory {
            live: HashMap::from([(7, 2_000), (8, 2_000)]),
            older_freed: older_freed.iter().copied().collect(),
            anonymous: Some(counted),
            shared: None,
            has_all_tasks: true,
            old_min: 16,
        }
    }

    type Steps = fn(usize) -> u64;

    fn survival(of: &[(i32, Steps)]) -> SurvivorSums {
        let mut sums = SurvivorSums::default();
        for &(pid, steps) in of {
            for step in 0..STEPS {
                sums.survivors.add(step, steps(step));
                sums.survivor_amount.add(step, steps(step));
                sums.of_task(pid).add(step, steps(step));
            }
        }
        sums
    }

    /// One process grows, another took more of it once.
    #[test]
    fn the_task_that_grows_is_judged_alone() {
        let both = survival(&[(7, |_| 50), (8, |step| if step == 7 { 2_000 } else { 1 })]);
        let found = memory(&[], 4_000).growing_task(Memory::Anonymous, &both, 1_000).unwrap();
        assert_eq!((found.part.task, found.old, found.began), (Some(7), 50 * 28, None));
        assert_eq!(
            memory(&[], 4_000).growing_task(
                Memory::Anonymous,
                &survival(&[(8, |step| u64::from(step < 4) * 500)]),
                1
            ),
            None
        );
        let late = survival(&[(7, |step| if step < 5 { 0 } else { 50 })]);
        assert_eq!(memory(&[], 4_000).growing_task(Memory::Anonymous, &late, 1_000).unwrap().began, Some(5));
    }

    #[test]
    fn what_the_task_freed_counts_against_it_and_what_others_freed_for_it() {
        let grows = survival(&[(7, |_| 50)]);
        let is_found = |freed: &[(i32, u64)], counted: i64| {
            memory(freed, counted).growing_task(Memory::Anonymous, &grows, 1_000).is_some()
        };
        assert!(is_found(&[], 1_600));
        assert!(!is_found(&[], 0), "the kernel counts none");
        assert!(is_found(&[(11, 5_000)], -3_400), "a process ended");
        assert!(!is_found(&[(7, 1_900)], 1_600), "turnover");
        assert!(!is_found(&[(8, 1_900)], 0), "turnover of another task");
        let alone = UserMemory { has_all_tasks: false, ..memory(&[], -3_400) };
        assert!(alone.growing_task(Memory::Anonymous, &grows, 1_000).is_some(), "a selected task");
        let with_swap = UserMemory { anonymous: None, ..memory(&[], 0) };
        assert!(with_swap.growing_task(Memory::Anonymous, &grows, 1_000).is_none());
    }

    /// A process fills tmpfs, another one that started late copies its memory: their pages have the same flags.
    #[test]
    fn files_of_tmpfs_are_those_of_a_task_that_the_kernel_counts() {
        let both = survival(&[(7, |_| 50), (8, |step| if step < 20 { 0 } else { 100 })]);
        let found = |shared| {
            let memory = UserMemory { shared, ..memory(&[], 0) };
            memory.growing_task(Memory::Shared, &both, 1_000).map(|evidence| evidence.old)
        };
        assert_eq!(found(Some(1_600)), Some(50 * 28));
        assert_eq!(found(Some(1_000)), None, "less than the task has, and the other is young");
        assert_eq!(found(Some(0)), None);
        assert_eq!(found(None), None, "swap");
    }
}
