//! Page allocations that were served from pageblocks of another migrate type, and for whom.

use std::collections::HashMap;

use super::{Noted, PageEvent};
use crate::analysis::int_hash::IntHash;
use crate::stream::{NoteKind, Op, Origin};

/// What fallbacks have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fallback {
    /// Migrate type that was asked for.
    pub alloc_migratetype: i32,
    /// Type of the pages that were taken.
    pub fallback_migratetype: i32,
    /// Order that was asked for.
    pub alloc_order: u32,
    /// Order of the pages that were taken.
    pub fallback_order: u32,
    /// Whether the pageblock then has the type that was asked for.
    pub change_ownership: bool,
    /// Task.
    pub pid: i32,
    /// Number of the page allocation's kind, where it followed.
    pub page_site: Option<u32>,
    /// Number of the site of the slab object that the page was for.
    pub slab_site: Option<u32>,
}

/// Fallbacks, counted.
#[derive(Debug, Default)]
pub struct Fallbacks {
    /// By what they have in common.
    pub counts: HashMap<Fallback, u64>,
    /// For each task one whose page allocation, or slab allocation behind it, may still come; and its first frame.
    open: HashMap<i32, (Fallback, u64), IntHash>,
}

impl Fallbacks {
    fn settle(&mut self, pid: i32) {
        if let Some((fallback, _)) = self.open.remove(&pid) {
            *self.counts.entry(fallback).or_default() += 1;
        }
    }

    /// Another event of the page allocator.
    pub fn note(&mut self, noted: &Noted) {
        if noted.kind != NoteKind::Fallback {
            return;
        }
        let pid = noted.place.pid;
        self.settle(pid);
        let [pfn, alloc_order, fallback_order, alloc_type, fallback_type, change_ownership] = noted.numbers;
        let fallback = Fallback {
            alloc_migratetype: alloc_type as i32,
            fallback_migratetype: fallback_type as i32,
            alloc_order: alloc_order as u32,
            fallback_order: fallback_order as u32,
            change_ownership: change_ownership != 0,
            pid,
            page_site: None,
            slab_site: None,
        };
        self.open.insert(pid, (fallback, pfn));
    }

    /// Pages were allocated: the fallback's, or others and it only filled a per-CPU list.
    pub fn page_alloc(&mut self, event: &PageEvent<'_>) {
        let pid = event.place.pid;
        let Some((fallback, pfn)) = self.open.get_mut(&pid) else { return };
        let frames = 1u64 << fallback.fallback_order.min(32);
        let is_of_it = (*pfn..pfn.saturating_add(frames)).contains(&event.op.value);
        if fallback.page_site.is_none() && is_of_it {
            fallback.page_site = Some(event.op.what.number());
        } else {
            self.settle(pid);
        }
    }

    /// A slab object was allocated: the first one behind a new slab page is what that was for.
    pub fn slab_alloc(&mut self, op: &Op, place: Origin) {
        if self.open.is_empty() {
            return;
        }
        if let Some((fallback, _)) = self.open.get_mut(&place.pid) {
            fallback.slab_site = fallback.page_site.map(|_| op.what.number());
            self.settle(place.pid);
        }
    }

    /// Counts what is still open.
    pub fn finish(&mut self) {
        let open: Vec<i32> = self.open.keys().copied().collect();
        open.into_iter().for_each(|pid| self.settle(pid));
    }
}
