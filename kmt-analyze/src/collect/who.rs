//! Every life of one address, and of those around it.

use crate::ledger::Closed;
use crate::ledger::lives::ADDRESS_BITS;

/// How far away neighbours are looked for: two pages of 4 KiB, as lives there are kept.
const REACH: u64 = 8 << 10;

/// Collects lives near an address.
#[derive(Debug)]
pub struct Who {
    /// The address, low 56 bits.
    pub address: u64,
    /// Lives at addresses within reach.
    pub lives: Vec<Closed>,
}

impl Who {
    /// Near that address.
    pub fn new(address: u64) -> Self {
        Self { address: address & ADDRESS_BITS, lives: Vec::new() }
    }

    /// A life is added up.
    #[inline]
    pub fn closed(&mut self, closed: &Closed) {
        if closed.address.abs_diff(self.address) < REACH {
            self.lives.push(*closed);
        }
    }
}
