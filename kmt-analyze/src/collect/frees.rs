//! Frees other than plain ones: on another CPU, by evidence, without an allocation.
//!
//! `CrossCpu` counts objects freed on another CPU than the allocation (rule R11), `Reasons` ends of lives by their evidence,
//! `Unmatched` frees without a life in the trace by their sites.

use super::collector::{PassFacts, StateCollector};
use super::histogram::RareHistogram;
use super::sorted::Sorted;
use super::sums::grown;
use crate::ledger::lives::{End, Free, NoLife, Replacement};
use crate::ledger::{Closed, FreedPlain, Interests, PlainLife, Receiver};
use crate::trace::ages::Ages;

/// Collects frees by the CPU of the allocation and the CPU of the free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrossCpu;

impl StateCollector for CrossCpu {
    type State = CrossCpuSums;

    const INTERESTS: Interests = Interests::PLAIN_LIVES;

    fn begin(&self, facts: &PassFacts) -> CrossCpuSums {
        CrossCpuSums { ages: facts.rules.ages, ..CrossCpuSums::default() }
    }
}

/// Sums by CPU and by call site.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CrossCpuSums {
    /// Objects and bytes by CPU of the allocation, and by CPU of the free, which may be the same.
    matrix: Sorted<Sorted<(u64, u64)>>,
    /// By number of the call site and interface.
    pub callers: Vec<CallerCrossCpu>,
    ages: Ages,
}

/// Frees of objects of one call site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerCrossCpu {
    /// Objects freed on any CPU.
    pub freed: u64,
    /// Objects freed on another CPU.
    pub crossed: u64,
    /// Lifetimes of those, where known.
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
        self.freed(&PlainLife::of(closed), &free, end, freed_at.cpu);
    }

    #[inline]
    fn freed_plain(&mut self, freed: &FreedPlain) {
        self.freed(&freed.plain, &freed.free(), freed.op.time, freed.cpu);
    }
}

impl CrossCpuSums {
    /// Objects and bytes by CPU of the allocation and CPU of the free.
    pub fn pairs(&self) -> impl Iterator<Item = ((u32, u32), (u64, u64))> {
        let row = |(from, row): (u32, _)| Sorted::iter(row).map(move |(to, sums)| ((from, to), *sums));
        self.matrix.iter().flat_map(row)
    }

    /// Adds a life that ended by a free in the window, at `end`.
    #[inline]
    fn freed(&mut self, life: &PlainLife, free: &Free, end: u64, cpu: u32) {
        let cell = self.matrix.of(life.cpu).of(cpu);
        *cell = (cell.0 + 1, cell.1.saturating_add(life.bytes_alloc));
        let caller = grown(&mut self.callers, life.caller);
        caller.freed += 1;
        if life.cpu == cpu {
            return;
        }
        caller.crossed += 1;
        self.ages.length(life.life.born, end).into_iter().for_each(|length| caller.delay.add(length));
        caller.bytes = caller.bytes.saturating_add(life.bytes_alloc);
        *caller.freed_by.of(free.site) += 1;
    }
}

/// Objects and bytes.
pub type ReasonSum = (u64, u64);

/// Collects ends that tools which only pair pointers report differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reasons;

impl StateCollector for Reasons {
    type State = ReasonSums;

    const INTERESTS: Interests = Interests::LIVES;
}

/// Objects and bytes by evidence of their end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReasonSums {
    /// Implied frees: the address was reused.
    pub replaced: ReasonSum,
    /// Implied frees: the page was freed or allocated.
    pub page_gone: ReasonSum,
    /// Implied frees by the page, then a free of the address that is too late to be the object's own.
    pub page_gone_then_freed: ReasonSum,
    /// Frees logged after the address was reused.
    pub late: ReasonSum,
}

impl Receiver for ReasonSums {
    fn closed(&mut self, closed: &Closed) {
        let amount = match closed.end {
            End::ImpliedFree { by: Replacement::Object, .. } => &mut self.replaced,
            End::ImpliedFree { by: Replacement::Page, .. } => &mut self.page_gone,
            End::ImpliedFree { by: Replacement::PageThenFree, .. } => &mut self.page_gone_then_freed,
            End::Freed { late: Some(Replacement::Object), .. } => &mut self.late,
            End::Freed { .. } | End::Live => return,
        };
        *amount = (amount.0 + 1, amount.1 + closed.bytes_alloc);
    }
}

/// Collects frees without a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unmatched;

impl StateCollector for Unmatched {
    type State = UnmatchedSums;

    const INTERESTS: Interests = Interests::UNMATCHED;
}

/// Number of frees by number of the free's site.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UnmatchedSums(pub Vec<u64>);

impl Receiver for UnmatchedSums {
    fn unmatched(&mut self, _: u64, free: &Free, _: NoLife) {
        *grown(&mut self.0, free.site) += 1;
    }
}
