//! Events of the page allocator: blocks of 2^order frames.

use super::map::KnownMap;
use super::nodes::Node;
use super::plan::Plan;
use super::{Survivors, Way};

/// Largest order of blocks whose frames are followed: MAX_PAGE_ORDER is 10, or 13 with pages of 64 KiB.
const PAGE_ORDER_MAX: u8 = 14;

impl Survivors {
    /// Enters an allocation of pages that did not fail.
    pub(super) fn page_alloc(&mut self, node: &mut Node) {
        let (first, count) = (node.value, 1u64 << node.order);
        self.frames.set_stamps(first, node.order, self.seq);
        // Blocks of the buddy allocator are aligned. What is not is none of its, and may overlap any other.
        if node.order > PAGE_ORDER_MAX || first % count != 0 {
            self.may_fold_pages = false;
            node.keep = true;
            return;
        }
        let is_new = !self.frames.are_any_live(first, count) && self.are_clean(first, count);
        if !is_new || !self.may_fold_pages {
            self.keep_pages(first, count);
            node.keep = true;
        }
        self.frames.enter_pages(first, count, true, self.has_objects_on_pages());
    }

    /// Enters a free of pages. It is folded with the life of the pages, or left out if it ends none of a narrowed recording.
    pub(super) fn page_free(&mut self, node: &mut Node, plan: &Plan, record: &[u8]) -> Way {
        let (first, count) = (node.value, 1u64 << node.order);
        self.frames.set_stamps(first, node.order, self.seq);
        if node.order > PAGE_ORDER_MAX {
            self.may_fold_pages = false;
            node.keep = true;
            return Way::Written;
        }
        let is_clean = self.are_clean(first, count);
        let is_plain = |born: &Node| born.order == node.order && is_clean;
        let alloc = self.pages.get(first).filter(|_| self.may_fold_pages);
        let folded = alloc.is_some_and(|alloc| self.fold(alloc, node, plan, record, is_plain));
        let is_unknown = || !node.keep && self.may_fold_pages && self.frames.are_untouched(first, count);
        let way = match folded {
            true => Way::Folded,
            false if self.options.narrowed.pages && is_unknown() => Way::LeftOut,
            false => Way::Written,
        };
        if folded {
            self.pages.remove(first);
        } else if way == Way::Written {
            self.keep_pages(first, count);
            node.keep = true;
        }
        self.frames.enter_pages(first, count, false, self.has_objects_on_pages());
        way
    }

    /// True if no object of a slab can be on frames whose page event would end it.
    fn are_clean(&self, first: u64, count: u64) -> bool {
        match self.map.known() {
            KnownMap::Base(_) => self.frames.are_all_clean(first, count),
            KnownMap::None => true,
            KnownMap::Learning => false,
        }
    }

    /// True if slab objects are placed on pages.
    fn has_objects_on_pages(&self) -> bool {
        matches!(self.map.known(), KnownMap::Base(_))
    }

    /// Decides that waiting allocations with frames of a block are written.
    fn keep_pages(&mut self, first: u64, count: u64) {
        for order in 0..=u32::from(PAGE_ORDER_MAX) {
            let start = first & !((1 << order) - 1);
            let reaches = |node: &Node| start + (1 << node.order) > first;
            if let Some(page) =
                self.pages.get(start).filter(|&page| self.nodes.get(page).is_some_and(reaches))
            {
                self.keep(page);
                self.pages.remove(start);
            }
        }
        for start in first..first.saturating_add(count) {
            if let Some(page) = self.pages.remove(start) {
                self.keep(page);
            }
        }
    }
}
