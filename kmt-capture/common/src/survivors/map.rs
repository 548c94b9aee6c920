//! The direct map, with which a slab object is placed on its page: known, not needed, or learned from events.

use kmt_format::kernel::ByteOrder;

use super::nodes::Node;
use super::plan::{Kind, Plan};
use crate::direct_map::{ADDRESS_BITS, ElectedBase, Votes};

/// Key of the base of the direct map that was learned from events, where folding has not kept all of them: the base, the votes
/// for it, and all votes.
pub const LEARNED_KEY: &str = "record.direct_map";
/// Value of [`LEARNED_KEY`] where no base was found.
pub const NO_MAP: &str = "none";
/// Votes for a base from which it is taken as known.
const VOTES_MIN: u64 = 32;
/// Page allocations by which the direct map is found, or never.
const PAGES_MAX: u32 = 4_096;

/// The direct map, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownMap {
    /// Base of the direct map.
    Base(u64),
    /// Objects are not placed on pages: no rule needs the direct map.
    None,
    /// It is to be learned from events: once pages are allocated, nothing is folded until then.
    Learning,
}

/// Value of [`LEARNED_KEY`].
pub fn learned(map: Option<ElectedBase>) -> String {
    map.map_or_else(
        || NO_MAP.to_owned(),
        |map| format!("{:#x} {} {}", map.base_address, map.votes, map.votes_all),
    )
}

/// The direct map, and the votes for it.
#[derive(Debug)]
pub struct DirectMap {
    known: KnownMap,
    /// `None` if it was known at the begin.
    votes: Option<Votes>,
    pages_seen: u32,
    page_shift: u32,
}

impl DirectMap {
    /// Of a target with pages of 2^`page_shift` bytes.
    pub fn new(known: KnownMap, page_shift: u32) -> Self {
        let votes = (known == KnownMap::Learning).then(|| Votes::new(page_shift));
        Self { known, votes, pages_seen: 0, page_shift }
    }

    /// The direct map, as far as it is known.
    #[inline]
    pub fn known(&self) -> KnownMap {
        self.known
    }

    /// True while nothing may be folded, because a page may be that of an object.
    #[inline]
    pub fn is_undecided(&self) -> bool {
        self.pages_seen > 0 && self.known == KnownMap::Learning
    }

    /// The frame of an address; `None` if no rule asks for it.
    #[inline]
    pub fn frame(&self, address: u64) -> Option<u64> {
        let KnownMap::Base(base) = self.known else { return None };
        Some((address.wrapping_sub(base) & ADDRESS_BITS) >> self.page_shift)
    }

    /// Adds an event to the votes, but a page allocation that failed. True if it ends the learning: what waits may have had
    /// events of its page.
    #[inline]
    pub fn learn(&mut self, cpu: u32, node: &Node, plan: &Plan, record: &[u8], order: ByteOrder) -> bool {
        let Some(votes) = &mut self.votes else { return false };
        let pid = node.task.pid as i32;
        match node.kind {
            Kind::Alloc if votes.is_waiting() => {
                votes.slab_event(cpu, pid, Some(node.value).filter(|&ptr| ptr != 0));
            }
            Kind::Free if votes.is_waiting() => votes.slab_event(cpu, pid, None),
            Kind::PageAlloc => {
                if !plan.is_movable(record, order) {
                    votes.page_alloc(cpu, pid, node.value, node.order);
                }
                self.pages_seen = self.pages_seen.saturating_add(1);
            }
            _ => return false,
        }
        if self.known != KnownMap::Learning {
            return false;
        }
        let won = votes.result();
        let is_sure = won.is_some_and(|won| won.votes >= VOTES_MIN);
        if !is_sure && self.pages_seen < PAGES_MAX {
            return false;
        }
        self.known = won.map_or(KnownMap::None, |won| KnownMap::Base(won.base_address));
        true
    }

    /// Value of [`LEARNED_KEY`]; `None` if the map was known at the begin.
    pub fn learned(&self) -> Option<String> {
        let map = self.votes.as_ref()?.result();
        Some(learned(map.filter(|_| matches!(self.known, KnownMap::Base(_)))))
    }
}
