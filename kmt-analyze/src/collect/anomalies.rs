//! Lives and frees that are wrong or look wrong: mixed API, frees without a life, late free events.
//!
//! The ledger decides the causes (rules R6, R7, R9 and R10); this collector counts them by site and, for frees, by
//! their call site. `reports/anomalies` makes rows of the counts, with what each kind can mean.

use std::collections::BTreeMap;

use super::collector::StateCollector;
use crate::ledger::lives::{End, Free, NoLife, Replacement};
use crate::ledger::{Closed, FreedPlain, Interests, PlainLife, Receiver};

/// Collects lives and frees that are wrong or look wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anomalies;

impl StateCollector for Anomalies {
    type State = AnomalySums;

    const INTERESTS: Interests = Interests::PLAIN_LIVES.union(Interests::UNMATCHED);
}

/// Counts of anomalies.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AnomalySums {
    /// Objects freed through the other API, by call site and freeing site.
    pub mixed: BTreeMap<(u32, u32), (u64, u64)>,
    /// Late free events, logged after the address or its page was reused, by freeing site.
    pub late: BTreeMap<u32, LateFrees>,
    /// Lives with an ambiguous free, by call site.
    pub ambiguous: BTreeMap<u32, u64>,
    /// Implied frees by call site: by an object, by a page event, and by a page event with a later free.
    pub implied_frees: BTreeMap<u32, [u64; 3]>,
    /// Frees without a life, by freeing site.
    pub unmatched: BTreeMap<u32, UnmatchedFrees>,
    /// Lives that end before their birth, by call site: the clocks of two CPUs differ.
    pub inverted: BTreeMap<u32, u64>,
}

/// Frees without a life, by cause: see [`NoLife`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnmatchedFrees {
    /// Of objects allocated before the trace.
    pub before: u64,
    /// On pages allocated in the trace, after the last event of the address.
    pub new_page: u64,
    /// After a free that ended an object of the trace.
    pub again_seen: u64,
    /// After a free that ended none.
    pub again_unseen: u64,
    /// At addresses with events, where events may be lost since the last one.
    pub again_lost: u64,
    /// Time and address of the first of those at addresses with events and without a loss.
    pub again_first: Option<(u64, u64)>,
}

/// Late free events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LateFrees {
    /// Number of frees.
    pub frees: u64,
    /// Longest delay in the clock's unit.
    pub delay_max: u64,
}

/// Position of implied frees by an object in [`AnomalySums::implied_frees`].
const BY_OBJECT: usize = 0;

impl AnomalySums {
    /// Adds a life that ended by a free in the window, at `end`.
    #[inline]
    fn freed(&mut self, life: &PlainLife, free: &Free, end: u64) {
        if end < life.life.born {
            *self.inverted.entry(life.caller).or_default() += 1;
        }
        // Mixed API is rare, so the branch is cheap; the API of the life is that of its call site.
        if life.api != free.api {
            let entry = self.mixed.entry((life.caller, free.site)).or_default();
            *entry = (entry.0 + 1, entry.1.saturating_add(life.bytes_alloc));
        }
    }
}

impl Receiver for AnomalySums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        match closed.end {
            End::Freed { free, end, late } if closed.is_freed => {
                if late.is_some() {
                    let entry = self.late.entry(free.site).or_default();
                    entry.frees += 1;
                    entry.delay_max = entry.delay_max.max(free.time.saturating_sub(end));
                }
                self.freed(&PlainLife::of(closed), &free, end);
            }
            End::ImpliedFree { ambiguous, by, .. } if closed.is_implied_free => {
                if ambiguous {
                    *self.ambiguous.entry(closed.caller).or_default() += 1;
                }
                let slot = match by {
                    Replacement::Object => BY_OBJECT,
                    Replacement::Page => 1,
                    Replacement::PageThenFree => 2,
                };
                self.implied_frees.entry(closed.caller).or_default()[slot] += 1;
            }
            End::Freed { .. } | End::ImpliedFree { .. } | End::Live => {}
        }
    }

    #[inline]
    fn freed_plain(&mut self, freed: &FreedPlain) {
        self.freed(&freed.plain, &freed.free(), freed.op.time);
    }

    fn implied_free_plain(&mut self, plain: &PlainLife, _: u64) {
        self.implied_frees.entry(plain.caller).or_default()[BY_OBJECT] += 1;
    }

    fn unmatched(&mut self, address: u64, free: &Free, no_life: NoLife) {
        let frees = self.unmatched.entry(free.site).or_default();
        if matches!(no_life, NoLife::AgainSeen | NoLife::AgainUnseen) {
            frees.again_first.get_or_insert((free.time, address));
        }
        let count = match no_life {
            NoLife::Before => &mut frees.before,
            NoLife::NewPage => &mut frees.new_page,
            NoLife::AgainSeen => &mut frees.again_seen,
            NoLife::AgainUnseen => &mut frees.again_unseen,
            NoLife::AgainLost => &mut frees.again_lost,
        };
        *count += 1;
    }
}
