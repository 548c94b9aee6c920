//! kmalloc by one task, by call site.

use super::collector::{Collector, Share};
use super::sums::{Sums, grown, merged, sums};
use crate::ledger::{Closed, Interests, Receiver};
use crate::stream::Api;

/// Collects what one task allocates by kmalloc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskKmalloc(pub i32);

impl Collector for TaskKmalloc {
    type Part = TaskKmallocSums;
    type Output = Vec<Kmalloc>;

    fn interests(&self) -> Interests {
        Interests::LIVES
    }

    fn partition(&self, _: &Share) -> TaskKmallocSums {
        TaskKmallocSums { pid: self.0, callers: Vec::new() }
    }

    /// By number of the call site and interface.
    fn merge(&self, first: TaskKmallocSums, others: Vec<TaskKmallocSums>) -> Vec<Kmalloc> {
        merged(first.callers, others.into_iter().map(|part| part.callers).collect())
    }
}

/// Sums of one task.
#[derive(Debug)]
pub struct TaskKmallocSums {
    pid: i32,
    callers: Vec<Kmalloc>,
}

/// Bytes of kmalloc.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kmalloc {
    /// Bytes allocated.
    pub alloc: u64,
    /// Bytes allocated beyond the requested ones.
    pub wasted: u64,
}

impl Receiver for TaskKmallocSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        if closed.is_born && closed.born_at.pid == self.pid && closed.api == Api::Kmalloc {
            let wasted = closed.bytes_alloc.saturating_sub(closed.bytes_req);
            grown(&mut self.callers, closed.caller).absorb(Kmalloc { alloc: closed.bytes_alloc, wasted });
        }
    }
}

sums!(Kmalloc: alloc, wasted);
