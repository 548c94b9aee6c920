//! kmalloc by one task, by call site.

use super::collector::{PassFacts, StateCollector};
use super::sums::{Sums, grown, sums};
use crate::ledger::{Closed, Interests, Receiver};
use crate::stream::Api;

/// Collects what one task allocates by kmalloc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskKmalloc(pub i32);

impl StateCollector for TaskKmalloc {
    type State = TaskKmallocSums;

    const INTERESTS: Interests = Interests::LIVES;

    fn begin(&self, _: &PassFacts) -> TaskKmallocSums {
        TaskKmallocSums { pid: self.0, callers: Vec::new() }
    }
}

/// Sums of one task.
#[derive(Debug, Default)]
pub struct TaskKmallocSums {
    pid: i32,
    /// By number of the call site and interface.
    pub callers: Vec<Kmalloc>,
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
