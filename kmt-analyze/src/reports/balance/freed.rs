//! Task that freed most memory from before the recording, where anonymous memory gave back some: a process that ended, mostly.
//!
//! Page frees do not have a use. So a task is named only if page cache and tmpfs hardly gave back memory beside its frees, and if it
//! has a good part of the amount. Kernel threads have no anonymous memory: they reclaim page cache, and free for others.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::rows::BalanceRows;
use crate::pass::selection::recorder_threads;
use crate::reports::common::ReportContext;
use crate::trace::accounts::{ANONYMOUS, PAGE_CACHE};

/// Share of the amount, as 1/N, from which a task is named.
const NAMED: u64 = 4;

/// Share of the task's frees, as 1/N, that other accounts of user memory may have given back.
const OTHERS: u64 = 4;

/// Beginnings of names of kernel threads that free pages.
const KERNEL_THREADS: [&str; 7] =
    ["kswapd", "kworker/", "ksoftirqd/", "kcompactd", "khugepaged", "rcu", "swapper/"];

/// Memory that a task freed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreedPart {
    /// The task, with its id.
    pub task: String,
    /// Bytes of pages allocated before the recording that it freed.
    pub bytes: u64,
}

impl FreedPart {
    /// The task that freed most of what anonymous memory gave back; `None`: it did not give back memory, no task has a quarter of
    /// it, or that is unknown.
    pub fn of(context: &ReportContext<'_, '_>, rows: &BalanceRows) -> Option<Self> {
        let (analysis, labels, basis) = (context.analysis, context.labels(), context.basis());
        let change = |account: &str| rows.account(account).map_or(0, |row| row.change());
        let amount = change(ANONYMOUS);
        // A free whose allocation was lost looks like one of older memory.
        let is_known = basis.page_allocs && basis.page_ends() && !context.session.losses.any();
        if amount >= 0 || !is_known {
            return None;
        }
        let recorder = recorder_threads(context.session);
        let mut pids: BTreeMap<i32, u64> = BTreeMap::new();
        for (number, frames) in (0u32..).zip(&analysis.balance.frames.older_freed) {
            let pid = analysis.interner.origins.get(number).map_or(0, |origin| origin.pid);
            if *frames > 0 && pid > 0 && recorder.binary_search(&pid).is_err() {
                let sum = pids.entry(pid).or_default();
                *sum = sum.saturating_add(*frames);
            }
        }
        let is_process = |pid: i32| !KERNEL_THREADS.iter().any(|start| labels.name(pid).starts_with(start));
        let tasks = pids.into_iter().filter(|(pid, _)| is_process(*pid));
        let (pid, frames) = tasks.max_by_key(|(pid, frames)| (*frames, Reverse(*pid)))?;
        let bytes = frames.saturating_mul(analysis.page_size.0);
        let amount = amount.unsigned_abs();
        let fell = |account: &str| change(account).min(0).unsigned_abs();
        let others = fell(PAGE_CACHE).saturating_add(fell("shmem"));
        let is_of_it = bytes <= amount && bytes.saturating_mul(NAMED) >= amount;
        (is_of_it && others.saturating_mul(OTHERS) <= bytes).then(|| Self { task: labels.task(pid), bytes })
    }
}
