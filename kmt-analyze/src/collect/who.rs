//! Every life of one address, and of those around it.

use super::collector::{Collector, Share};
use crate::ledger::lives::ADDRESS_BITS;
use crate::ledger::{Closed, Interests, Receiver};

/// How far away neighbours are looked for: two pages of 4 KiB, as lives there are kept.
const REACH: u64 = 8 << 10;

/// Lives near an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who {
    /// The address; of it the low 56 bits count.
    pub address: u64,
}

impl Collector for Who {
    type Part = WhoLives;
    type Output = Vec<Closed>;

    fn interests(&self) -> Interests {
        Interests { lives: true, ..Interests::default() }
    }

    fn partition(&self, _: &Share) -> WhoLives {
        WhoLives { address: self.address & ADDRESS_BITS, lives: Vec::new() }
    }

    /// By time of birth, then by address.
    fn merge(&self, first: WhoLives, others: Vec<WhoLives>) -> Vec<Closed> {
        let mut lives = first.lives;
        others.into_iter().for_each(|other| lives.extend(other.lives));
        lives.sort_by_key(|c| (c.life.born, c.address));
        lives
    }
}

/// Lives near an address, as they are added up.
#[derive(Debug)]
pub struct WhoLives {
    address: u64,
    /// Lives at addresses within reach.
    lives: Vec<Closed>,
}

impl Receiver for WhoLives {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        if closed.address.abs_diff(self.address) < REACH {
            self.lives.push(*closed);
        }
    }
}
