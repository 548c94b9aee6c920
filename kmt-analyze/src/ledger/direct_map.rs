//! Base of the kernel's direct map, found by votes from the trace (rule R8 of the ledger).
//!
//! The votes are those of `kmt_common::direct_map`, which the recorder uses too; an `Election` takes them from
//! operations. A pass uses a recorded base where the file has one, else that of a sample. The ledger and the collectors
//! find the page frame of an object with it.

use kmt_common::direct_map::{ElectedBase, Votes};

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

/// Collects votes of a stream of operations.
#[derive(Debug, Default)]
pub struct Election(Votes);

impl Election {
    /// An election for a target with pages of 2^`page_shift` bytes.
    pub fn new(page_shift: u32) -> Self {
        Self(Votes::new(page_shift))
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
        let votes = &mut self.0;
        for op in ops {
            if op.code.is_slab() && !votes.is_waiting() || op.time > last {
                continue;
            }
            match op.code.kind() {
                Kind::Alloc => {
                    let Origin { cpu, pid, .. } = origin(op.origin);
                    votes.slab_event(cpu, pid, Some(op.value).filter(|&ptr| ptr != 0));
                }
                Kind::Kfree | Kind::CacheFree => {
                    let Origin { cpu, pid, .. } = origin(op.origin);
                    votes.slab_event(cpu, pid, None);
                }
                Kind::PageAlloc if op.value != no_frame => {
                    let site = page_site(op.code.number());
                    if !site.is_movable() {
                        let Origin { cpu, pid, .. } = origin(op.origin);
                        votes.page_alloc(cpu, pid, op.value, site.order);
                    }
                }
                _ => {}
            }
        }
    }

    /// Discards pending page allocations: the next event does not follow the last one.
    pub fn forget_waiting(&mut self) {
        self.0.forget_waiting();
    }

    /// Votes so far.
    pub fn votes(&self) -> u64 {
        self.0.count()
    }

    /// The base that wins: [`Votes::result`].
    pub fn result(&self) -> Option<DirectMap> {
        let ElectedBase { base, base_address, votes, votes_all } = self.0.result()?;
        Some(DirectMap { base, base_address, votes, votes_all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_tells_the_frame_of_an_address() {
        let map = DirectMap::recorded(0xffff_9d4a_c000_0000);
        assert_eq!(map.frame(map.base + 0x5008, 12), 5);
        assert!(map.is_recorded());
    }
}
