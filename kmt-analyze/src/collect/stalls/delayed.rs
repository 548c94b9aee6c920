//! Stalls of each task, until the allocation that waited for them.

use std::collections::HashMap;

use super::StallSums;
use super::kinds::{Delayed, Stall};
use crate::int_hash::IntHash;
use crate::ledger::PageEvent;
use crate::stream::{Op, Origin};

/// Stalls of each task, until its allocation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    stalls: HashMap<i32, Vec<(Stall, u64)>, IntHash>,
    /// Stalls beyond the limit of undecided ones.
    dropped: u64,
}

/// Largest number of undecided stalls of one task: page allocations may not be recorded.
const WAITING_MAX: usize = 64;

impl Waiting {
    /// Adds a stall of a task.
    pub(super) fn add(&mut self, pid: i32, stall: Stall, length: u64) {
        let stalls = self.stalls.entry(pid).or_default();
        if stalls.len() < WAITING_MAX { stalls.push((stall, length)) } else { self.dropped += 1 }
    }

    /// Number of stalls without an allocation after them.
    pub(super) fn count(&self) -> u64 {
        self.stalls.values().map(Vec::len).sum::<usize>() as u64 + self.dropped
    }
}

impl StallSums {
    /// Adds a page allocation, or its failure: the task may have waited for it.
    pub(super) fn delayed_pages(&mut self, event: &PageEvent) {
        let pid = event.origin.pid;
        self.compacting.remove(&pid);
        let before = self.answered.remove(pid).unwrap_or_default();
        self.count_delayed(before);
        let Some(waiting) = self.waiting.stalls.get_mut(&pid).filter(|w| !w.is_empty()) else { return };
        let (page_site, failed) = (event.op.code.number(), event.failed);
        let delayed = |(stall, length)| (Delayed { stall, page_site, slab_site: None, failed }, length);
        let answered = waiting.drain(..).map(delayed).collect();
        if failed || event.site.is_movable() {
            self.count_delayed(answered);
        } else {
            self.answered.insert(pid, answered, Some(event));
        }
    }

    /// Adds a slab allocation.
    pub(super) fn delayed_slab(&mut self, op: &Op, origin: Origin) {
        if let Some((mut answered, is_its)) = self.answered.remove_for(op, origin) {
            if is_its {
                answered.iter_mut().for_each(|(delayed, _)| delayed.slab_site = Some(op.code.number()));
            }
            self.count_delayed(answered);
        }
    }

    pub(super) fn count_delayed(&mut self, answered: Vec<(Delayed, u64)>) {
        for (delayed, length) in answered {
            self.delayed.entry(delayed).or_default().add(length);
        }
    }
}
