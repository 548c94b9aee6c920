//! Bytes by what showed that their life was over, where that was no plain free.

use crate::ledger::Closed;
use crate::ledger::lives::{End, Replacement};

/// Objects and bytes.
pub type Amount = (u64, u64);

/// What sets the exact ledger apart from tools that only pair pointers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reasons {
    /// Freed unseen: the address was allocated again.
    pub replaced: Amount,
    /// Freed unseen: the page was freed or allocated.
    pub page_gone: Amount,
    /// The same, and a free of the address came too late to be its own.
    pub page_gone_then_freed: Amount,
    /// Freed, but logged after the address was allocated again.
    pub late: Amount,
}

impl Reasons {
    /// A life is added up.
    pub fn closed(&mut self, closed: &Closed) {
        let amount = match closed.end {
            End::Unseen { by: Replacement::Object, .. } => &mut self.replaced,
            End::Unseen { by: Replacement::Page, .. } => &mut self.page_gone,
            End::Unseen { by: Replacement::PageThenFree, .. } => &mut self.page_gone_then_freed,
            End::Freed { late: Some(Replacement::Object), .. } => &mut self.late,
            End::Freed { .. } | End::Live => return,
        };
        *amount = (amount.0 + 1, amount.1 + closed.bytes_alloc);
    }
}
