//! Objects freed on another CPU than the allocation (rule R11).

use std::collections::BTreeMap;

use super::collector::{Collector, Share};
use super::counts::Counts;
use super::histogram::Histogram;
use super::sums::{Sums, grown, merged};
use crate::ledger::lives::End;
use crate::ledger::{Closed, Interests, Receiver};

/// Collects frees by the CPU of the allocation and the CPU of the free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrossCpu;

impl Collector for CrossCpu {
    type Part = CrossCpuSums;
    type Output = CrossCpuSums;

    fn interests(&self) -> Interests {
        Interests::LIVES
    }

    fn partition(&self, _: &Share) -> CrossCpuSums {
        CrossCpuSums::default()
    }

    fn merge(&self, first: CrossCpuSums, others: Vec<CrossCpuSums>) -> CrossCpuSums {
        let mut out = merged(first, others);
        out.callers.iter_mut().for_each(|caller| caller.freed_by.sort());
        out
    }
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
    pub delay: Histogram,
    /// Bytes of those.
    pub bytes: u64,
    /// Objects by number of the freeing site.
    pub freed_by: Counts<u64>,
}

impl Sums for CrossCpuSums {
    fn absorb(&mut self, other: Self) {
        self.matrix.absorb(other.matrix);
        self.callers.absorb(other.callers);
    }
}

impl Sums for CallerCrossCpu {
    fn absorb(&mut self, other: Self) {
        self.freed.absorb(other.freed);
        Sums::absorb(&mut self.delay, other.delay);
        self.bytes.absorb(other.bytes);
        self.freed_by.absorb(other.freed_by);
    }
}

impl Receiver for CrossCpuSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        let (End::Freed { free, end, .. }, Some(place), true) =
            (closed.end, closed.freed_at, closed.is_freed)
        else {
            return;
        };
        let cell = self.matrix.entry((closed.born_at.cpu, place.cpu)).or_default();
        *cell = (cell.0 + 1, cell.1.saturating_add(closed.bytes_alloc));
        let caller = grown(&mut self.callers, closed.caller);
        caller.freed += 1;
        if closed.born_at.cpu == place.cpu {
            return;
        }
        caller.delay.add(end.saturating_sub(closed.life.born));
        caller.bytes = caller.bytes.saturating_add(closed.bytes_alloc);
        *caller.freed_by.of(free.site) += 1;
    }
}
