//! Ends of lives other than by a plain free, by evidence.

use super::collector::StateCollector;
use crate::ledger::lives::{End, Replacement};
use crate::ledger::{Closed, Interests, Receiver};

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
