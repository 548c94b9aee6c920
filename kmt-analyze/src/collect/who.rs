//! Lives of one address and of its neighbours.

use super::collector::{Collector, PassFacts};
use crate::ledger::lives::ADDRESS_BITS;
use crate::ledger::{Closed, Interests, Receiver};

/// Distance of the search for neighbours: two pages of 4 KiB of the life table.
const REACH: u64 = 8 << 10;

/// Collects lives near an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who {
    /// The address; its low 56 bits are used.
    pub address: u64,
}

impl Collector for Who {
    type State = WhoLives;
    type Output = Vec<Closed>;

    const INTERESTS: Interests = Interests::LIVES;

    fn begin(&self, _: &PassFacts) -> WhoLives {
        WhoLives { address: self.address & ADDRESS_BITS, lives: Vec::new() }
    }

    /// By time of birth, then by address; lives of one address that begin at the same time by their ends.
    fn finish(WhoLives { mut lives, .. }: WhoLives) -> Vec<Closed> {
        lives.sort_by_key(|c| {
            let end = c.end.time().unwrap_or(u64::MAX);
            (c.life.born, c.address, end, c.life.site, c.life.origin)
        });
        lives
    }
}

/// Lives near an address, when they are added up.
#[derive(Debug)]
pub struct WhoLives {
    address: u64,
    /// Lives at addresses in reach.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::lives::{End, Life, Replacement};
    use crate::stream::{Api, Origin};

    #[test]
    fn lives_that_begin_together_are_in_one_order() {
        let life = |end| Closed {
            address: 64,
            life: Life { born: 460, site: 0, origin: 0 },
            end: End::ImpliedFree { end, ambiguous: false, by: Replacement::Object },
            cache: None,
            stack: None,
            caller: 0,
            api: Api::Cache,
            bytes_req: 8,
            bytes_alloc: 8,
            born_at: Origin::default(),
            freed_at: None,
            is_born: true,
            is_freed: false,
            is_implied_free: true,
            is_live: false,
            is_waiting: false,
            uncertain: false,
            lost_at: None,
        };
        let sorted = |ends: [u64; 2]| Who::finish(WhoLives { address: 64, lives: ends.map(life).into() });
        assert_eq!(sorted([2767, 460]), sorted([460, 2767]));
        assert_eq!(sorted([2767, 460])[0].end.time(), Some(460));
    }
}
