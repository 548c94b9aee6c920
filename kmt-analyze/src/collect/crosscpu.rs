//! Objects freed on another CPU than the allocation (rule R11).

use std::collections::BTreeMap;

use super::collector::StateCollector;
use super::histogram::RareHistogram;
use super::sorted::Sorted;
use super::sums::grown;
use crate::ledger::lives::End;
use crate::ledger::{Closed, Interests, Receiver};

/// Collects frees by the CPU of the allocation and the CPU of the free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrossCpu;

impl StateCollector for CrossCpu {
    type State = CrossCpuSums;

    const INTERESTS: Interests = Interests::LIVES;
}

/// Sums by CPU and by call site.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CrossCpuSums {
    /// Objects and bytes by CPU of the allocation and CPU of the free, which may be the same.
    pub matrix: BTreeMap<(u32, u32), (u64, u64)>,
    /// By number of the call site and interface.
    pub callers: Vec<CallerCrossCpu>,
}

/// Frees of objects of one call site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerCrossCpu {
    /// Objects freed on any CPU.
    pub freed: u64,
    /// Lifetimes of those freed on another CPU.
    pub delay: RareHistogram,
    /// Bytes of objects freed on another CPU.
    pub bytes: u64,
    /// Objects by number of the freeing site.
    pub freed_by: Sorted<u64>,
}

impl Receiver for CrossCpuSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        let (End::Freed { free, end, .. }, Some(freed_at), true) =
            (closed.end, closed.freed_at, closed.is_freed)
        else {
            return;
        };
        let cell = self.matrix.entry((closed.born_at.cpu, freed_at.cpu)).or_default();
        *cell = (cell.0 + 1, cell.1.saturating_add(closed.bytes_alloc));
        let caller = grown(&mut self.callers, closed.caller);
        caller.freed += 1;
        if closed.born_at.cpu == freed_at.cpu {
            return;
        }
        caller.delay.add(end.saturating_sub(closed.life.born));
        caller.bytes = caller.bytes.saturating_add(closed.bytes_alloc);
        *caller.freed_by.of(free.site) += 1;
    }
}
