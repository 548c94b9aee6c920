//! Base of the kernel's direct map, found by votes from the trace (rule R8 of the ledger).

use std::collections::HashMap;

use crate::int_hash::IntHash;
use crate::ledger::lives::ADDRESS_BITS;
use crate::stream::op::{Kind, Op};
use crate::stream::{Origin, PageSite};

/// Base of the direct map, and its votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectMap {
    /// Address of page frame 0, in the low 56 bits.
    pub base: u64,
    /// Address of page frame 0 with the upper byte of the kernel's pointers.
    pub base_address: u64,
    /// Votes for it.
    pub votes: u64,
    /// All votes; 0: the recorder read it from the kernel.
    pub votes_all: u64,
}

impl DirectMap {
    /// The base that a recorder read, at that address.
    pub fn recorded(base_address: u64) -> Self {
        Self { base: base_address & ADDRESS_BITS, base_address, votes: 0, votes_all: 0 }
    }

    /// True if the recorder read it from the kernel.
    pub fn is_recorded(&self) -> bool {
        self.votes_all == 0
    }

    /// The frame that holds an address.
    #[inline]
    pub fn frame(&self, address: u64, page_shift: u32) -> u64 {
        (address.wrapping_sub(self.base) & ADDRESS_BITS) >> page_shift
    }

    /// Share of the votes in percent.
    pub fn share_percent(&self) -> f64 {
        if self.is_recorded() {
            return 100.0;
        }
        100.0 * self.votes as f64 / self.votes_all.max(1) as f64
    }
}

/// Collects votes: the last page allocation that is not MOVABLE is probably the slab page of the next slab allocation
/// of the same task on the same CPU.
#[derive(Debug, Default)]
pub struct Election {
    /// Votes by base, and the base with the upper byte of the pointers that voted.
    votes: HashMap<u64, (u64, u64)>,
    votes_all: u64,
    /// Last page allocation of each CPU since its last slab event: task, page frame, order.
    pending: HashMap<u32, (i32, u64, u8), IntHash>,
    page_shift: u32,
}

/// Alignment of bases.
const BASE_STEP: u64 = 2 << 20;
/// Smallest number of votes for a decision.
const VOTES_MIN: u64 = 5;
/// Votes for a base without a majority, as a multiple of those for any other.
const LEAD: u64 = 4;

impl Election {
    /// An election for a target with pages of 2^`page_shift` bytes.
    pub fn new(page_shift: u32) -> Self {
        Self { page_shift, ..Self::default() }
    }

    /// Adds operations in their order but those after `last`: whether they are read depends on what is wanted. `no_frame` is
    /// the frame number of a failure.
    #[inline(never)]
    pub fn add(
        &mut self,
        ops: &[Op],
        last: u64,
        no_frame: u64,
        origin: impl Fn(u32) -> Origin,
        page_site: impl Fn(u32) -> PageSite,
    ) {
        for op in ops {
            if op.code.is_slab() && self.pending.is_empty() || op.time > last {
                continue;
            }
            match op.code.kind() {
                Kind::Alloc => self.slab_event(Some(op.value).filter(|&p| p != 0), origin(op.origin)),
                Kind::Kfree | Kind::CacheFree => self.slab_event(None, origin(op.origin)),
                Kind::PageAlloc if op.value != no_frame => {
                    let site = page_site(op.code.number());
                    if !site.is_movable() {
                        self.page_alloc(op.value, site.order, origin(op.origin));
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds a page allocation that is not MOVABLE and did not fail.
    fn page_alloc(&mut self, pfn: u64, order: u8, origin: Origin) {
        // Only the last of several can be the slab page.
        self.pending.insert(origin.cpu, (origin.pid, pfn, order));
    }

    /// Adds the next slab event; `ptr` is the address of a successful allocation.
    fn slab_event(&mut self, ptr: Option<u64>, origin: Origin) {
        let Some((pid, pfn, order)) = self.pending.remove(&origin.cpu) else { return };
        let Some(ptr) = ptr.filter(|_| pid == origin.pid) else { return };
        let block = 1u64 << (self.page_shift + u32::from(order)).min(63);
        let base_address = (ptr & !(block - 1)).wrapping_sub(pfn << self.page_shift);
        let base = base_address & ADDRESS_BITS;
        if base % BASE_STEP == 0 {
            self.votes_all += 1;
            self.votes.entry(base).or_insert((0, base_address)).0 += 1;
        }
    }

    /// Discards pending page allocations: the next event does not follow the last one.
    pub fn forget_waiting(&mut self) {
        self.pending.clear();
    }

    /// Votes so far.
    pub fn votes(&self) -> u64 {
        self.votes_all
    }

    /// The base with more than half of at least five votes; or with at least five votes, and four times as many as any
    /// other: wrong votes are for bases all over memory.
    pub fn result(&self) -> Option<DirectMap> {
        let best = self.votes.iter().max_by_key(|&(&base, &(votes, _))| (votes, std::cmp::Reverse(base)))?;
        let (&base, &(votes, base_address)) = best;
        let others = self.votes.iter().filter(|(other, _)| **other != base);
        let second = others.map(|(_, (votes, _))| *votes).max().unwrap_or(0);
        let leads = votes >= VOTES_MIN && votes >= second.saturating_mul(LEAD);
        let wins = leads || self.votes_all >= VOTES_MIN && votes * 2 > self.votes_all;
        wins.then_some(DirectMap { base, base_address, votes, votes_all: self.votes_all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn majority_of_five_wins() {
        let mut election = Election::new(12);
        let base_address = 0xffff_9d4a_c000_0000u64;
        let base = 0x00ff_9d4a_c000_0000u64;
        let at = |cpu, pid| Origin { cpu, pid, ..Origin::default() };
        for i in 0..5u64 {
            election.page_alloc(1000 + i, 0, at(0, 7));
            election.slab_event(Some(base_address), at(1, 7));
            election.slab_event(Some(base_address + ((1000 + i) << 12) + 64), at(0, 7));
            assert_eq!(election.result().is_some(), i == 4);
        }
        // Another task's allocation, a free, or an unaligned distance gives no vote.
        election.page_alloc(1, 0, at(0, 7));
        election.slab_event(Some(base_address), at(0, 8));
        election.page_alloc(1, 0, at(0, 7));
        election.slab_event(None, at(0, 7));
        election.page_alloc(1, 0, at(0, 7));
        election.slab_event(Some(base_address + (5 << 12)), at(0, 7));
        // Of two page allocations the last one votes.
        election.page_alloc(2, 0, at(0, 7));
        election.page_alloc(3, 0, at(0, 8));
        election.slab_event(Some(base_address + (2 << 12)), at(0, 7));
        assert_eq!(election.result(), Some(DirectMap { base, base_address, votes: 5, votes_all: 5 }));
        assert_eq!(election.result().unwrap().frame(base + 0x5008, 12), 5);
    }

    #[test]
    fn a_base_far_ahead_of_all_others_needs_no_majority() {
        let origin = Origin { cpu: 0, pid: 7, ..Origin::default() };
        let mut election = Election::new(12);
        let mut vote = |base: u64| {
            election.page_alloc(1000, 0, origin);
            election.slab_event(Some(base + (1000 << 12)), origin);
            election.result().map(|map| map.base_address)
        };
        let (base, others) = (0xffff_8880_0000_0000, 0xffff_9000_0000_0000);
        (0..9).for_each(|other| assert_eq!(vote(others + (other << 30)), None));
        (0..4).for_each(|_| assert_eq!(vote(base), None));
        assert_eq!(vote(base), Some(base), "5 of 14, others have one each");
        (0..2).for_each(|_| assert_ne!(vote(others), Some(others)));
        assert_eq!(vote(others), None, "5 of 17, another has four");
    }
}
