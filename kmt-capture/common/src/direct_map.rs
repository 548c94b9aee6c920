//! Base of the kernel's direct map, by votes of a trace (rule R8 of the ledger).
//!
//! The last page allocation of a CPU that is not MOVABLE is probably the slab page of its next slab event, if that is an
//! allocation of the same task. The ledger of the analyzer votes with it, and a recorder that folds lives.

use std::collections::HashMap;

/// Addresses are compared by their low 56 bits (rule R1).
pub const ADDRESS_BITS: u64 = (1 << 56) - 1;
/// Alignment of bases.
const BASE_STEP: u64 = 2 << 20;
/// Smallest number of votes for a decision.
const VOTES_MIN: u64 = 5;
/// Votes for a base without a majority, as a multiple of those for any other.
const LEAD: u64 = 4;

/// The base that won, and its votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElectedBase {
    /// Address of page frame 0, in the low 56 bits.
    pub base: u64,
    /// Address of page frame 0 with the upper byte of the kernel's pointers.
    pub base_address: u64,
    /// Votes for it.
    pub votes: u64,
    /// All votes.
    pub votes_all: u64,
}

/// Votes, and page allocations that wait for a slab event.
#[derive(Debug, Default)]
pub struct Votes {
    /// Votes by base, and the base with the upper byte of the pointers that voted.
    votes: HashMap<u64, (u64, u64)>,
    votes_all: u64,
    /// Last page allocation of each CPU since its last slab event: task, page frame, order.
    waiting: HashMap<u32, (i32, u64, u8)>,
    page_shift: u32,
}

impl Votes {
    /// Of a target with pages of 2^`page_shift` bytes.
    pub fn new(page_shift: u32) -> Self {
        Self { page_shift, ..Self::default() }
    }

    /// True if a slab event can vote.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Adds a page allocation that is not MOVABLE and did not fail. Only the last of several can be the slab page.
    pub fn page_alloc(&mut self, cpu: u32, pid: i32, pfn: u64, order: u8) {
        self.waiting.insert(cpu, (pid, pfn, order));
    }

    /// Adds the next slab event; `ptr` is the address of a successful allocation.
    pub fn slab_event(&mut self, cpu: u32, pid: i32, ptr: Option<u64>) {
        let Some((of, pfn, order)) = self.waiting.remove(&cpu) else { return };
        let Some(ptr) = ptr.filter(|_| of == pid) else { return };
        let block = 1u64 << (self.page_shift + u32::from(order)).min(63);
        let base_address = (ptr & !(block - 1)).wrapping_sub(pfn << self.page_shift);
        let base = base_address & ADDRESS_BITS;
        if base % BASE_STEP == 0 {
            self.votes_all += 1;
            self.votes.entry(base).or_insert((0, base_address)).0 += 1;
        }
    }

    /// Discards page allocations that wait: the next event does not follow the last one.
    pub fn forget_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Votes so far.
    pub fn count(&self) -> u64 {
        self.votes_all
    }

    /// The base with more than half of at least five votes; or with at least five votes, and four times as many as any
    /// other: wrong votes are for bases all over memory.
    pub fn result(&self) -> Option<ElectedBase> {
        let best = self.votes.iter().max_by_key(|&(&base, &(votes, _))| (votes, std::cmp::Reverse(base)))?;
        let (&base, &(votes, base_address)) = best;
        let others = self.votes.iter().filter(|(other, _)| **other != base);
        let second = others.map(|(_, (votes, _))| *votes).max().unwrap_or(0);
        let leads = votes >= VOTES_MIN && votes >= second.saturating_mul(LEAD);
        let wins = leads || self.votes_all >= VOTES_MIN && votes * 2 > self.votes_all;
        wins.then_some(ElectedBase { base, base_address, votes, votes_all: self.votes_all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn majority_of_five_wins() {
        let mut votes = Votes::new(12);
        let base_address = 0xffff_9d4a_c000_0000u64;
        let base = 0x00ff_9d4a_c000_0000u64;
        for i in 0..5u64 {
            votes.page_alloc(0, 7, 1000 + i, 0);
            votes.slab_event(1, 7, Some(base_address));
            votes.slab_event(0, 7, Some(base_address + ((1000 + i) << 12) + 64));
            assert_eq!(votes.result().is_some(), i == 4);
        }
        // Another task's allocation, a free, or an unaligned distance gives no vote.
        votes.page_alloc(0, 7, 1, 0);
        votes.slab_event(0, 8, Some(base_address));
        votes.page_alloc(0, 7, 1, 0);
        votes.slab_event(0, 7, None);
        votes.page_alloc(0, 7, 1, 0);
        votes.slab_event(0, 7, Some(base_address + (5 << 12)));
        // Of two page allocations the last one votes.
        votes.page_alloc(0, 7, 2, 0);
        votes.page_alloc(0, 8, 3, 0);
        votes.slab_event(0, 7, Some(base_address + (2 << 12)));
        assert_eq!(votes.result(), Some(ElectedBase { base, base_address, votes: 5, votes_all: 5 }));
    }

    #[test]
    fn a_base_far_ahead_of_all_others_needs_no_majority() {
        let mut votes = Votes::new(12);
        let mut vote = |base: u64| {
            votes.page_alloc(0, 7, 1000, 0);
            votes.slab_event(0, 7, Some(base + (1000 << 12)));
            votes.result().map(|map| map.base_address)
        };
        let (base, others) = (0xffff_8880_0000_0000, 0xffff_9000_0000_0000);
        (0..9).for_each(|other| assert_eq!(vote(others + (other << 30)), None));
        (0..4).for_each(|_| assert_eq!(vote(base), None));
        assert_eq!(vote(base), Some(base), "5 of 14, others have one each");
        (0..2).for_each(|_| assert_ne!(vote(others), Some(others)));
        assert_eq!(vote(others), None, "5 of 17, another has four");
    }
}
