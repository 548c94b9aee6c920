//! Lives and frees that should not be so, or look so: objects freed by another interface, frees of nothing, frees logged late.

use std::collections::BTreeMap;

use super::collector::{Collector, Share};
use super::sums::{Sums, merged};
use crate::ledger::lives::{End, Free, NoLife, Replacement};
use crate::ledger::{Closed, Interests, Receiver};

/// Lives and frees that should not be so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anomalies;

impl Collector for Anomalies {
    type Part = AnomalySums;
    type Output = AnomalySums;

    fn interests(&self) -> Interests {
        Interests { lives: true, unmatched: true, ..Interests::default() }
    }

    fn partition(&self, _: &Share) -> AnomalySums {
        AnomalySums::default()
    }

    fn merge(&self, first: AnomalySums, others: Vec<AnomalySums>) -> AnomalySums {
        merged(first, others)
    }
}

/// Anomalies, counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AnomalySums {
    /// Objects freed by the other interface, by call site and freeing site.
    pub mixed: BTreeMap<(u32, u32), (u64, u64)>,
    /// Frees that were logged after the address or its page had another use, by freeing site.
    pub late: BTreeMap<u32, LateFrees>,
    /// Lives whose free could be one of two, by call site.
    pub ambiguous: BTreeMap<u32, u64>,
    /// Lives that ended unseen, by call site: replaced by an object, by a page event, and of these with a free behind.
    pub unseen: BTreeMap<u32, [u64; 3]>,
    /// Frees that ended no life, by freeing site: of objects older than the trace, on pages of the trace, at addresses
    /// that are known.
    pub unmatched: BTreeMap<u32, [u64; 3]>,
    /// Lives that end before they begin, by call site: the clock of two CPUs disagrees.
    pub inverted: BTreeMap<u32, u64>,
}

/// Frees that were logged late.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LateFrees {
    /// How many.
    pub frees: u64,
    /// Longest delay in the clock's unit.
    pub delay_max: u64,
}

impl Sums for LateFrees {
    fn absorb(&mut self, other: Self) {
        self.frees.absorb(other.frees);
        self.delay_max = self.delay_max.max(other.delay_max);
    }
}

impl Sums for AnomalySums {
    fn absorb(&mut self, other: Self) {
        self.mixed.absorb(other.mixed);
        self.late.absorb(other.late);
        self.ambiguous.absorb(other.ambiguous);
        self.unseen.absorb(other.unseen);
        self.unmatched.absorb(other.unmatched);
        self.inverted.absorb(other.inverted);
    }
}

impl Receiver for AnomalySums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        match closed.end {
            End::Freed { free, end, late } if closed.is_freed => {
                // Mixing is rare, so the branch is cheap; the interface of the life is its call site's.
                if late.is_some() {
                    let entry = self.late.entry(free.site).or_default();
                    entry.frees += 1;
                    entry.delay_max = entry.delay_max.max(free.time.saturating_sub(end));
                }
                if end < closed.life.born {
                    *self.inverted.entry(closed.caller).or_default() += 1;
                }
                if closed.api != free.api {
                    let entry = self.mixed.entry((closed.caller, free.site)).or_default();
                    *entry = (entry.0 + 1, entry.1.saturating_add(closed.bytes_alloc));
                }
            }
            End::Unseen { ambiguous, by, .. } if closed.is_unseen => {
                if ambiguous {
                    *self.ambiguous.entry(closed.caller).or_default() += 1;
                }
                let slot = match by {
                    Replacement::Object => 0,
                    Replacement::Page => 1,
                    Replacement::PageThenFree => 2,
                };
                self.unseen.entry(closed.caller).or_default()[slot] += 1;
            }
            End::Freed { .. } | End::Unseen { .. } | End::Live => {}
        }
    }

    fn unmatched(&mut self, free: &Free, no_life: NoLife) {
        let slot = match no_life {
            NoLife::Before => 0,
            NoLife::NewPage => 1,
            NoLife::UsedAddress => 2,
        };
        self.unmatched.entry(free.site).or_default()[slot] += 1;
    }
}
