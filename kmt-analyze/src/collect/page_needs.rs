//! Page allocations of tasks that may be for a slab object: the first object on a new page is what the page was for.

use std::collections::HashMap;
use std::ops::Range;

use crate::int_hash::IntHash;
use crate::ledger::direct_map::DirectMap;
use crate::ledger::{PageEvent, Rules};
use crate::stream::{Op, Origin};

/// The last page allocation of each task, until its slab allocation is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PageNeeds<T> {
    /// By task, with its frames.
    open: HashMap<i32, (T, Range<u64>), IntHash>,
    /// Base of the direct map, and log2 of the page size.
    map: Option<(DirectMap, u32)>,
}

impl<T> PageNeeds<T> {
    /// None yet.
    pub fn new(rules: &Rules) -> Self {
        let map = rules.direct_map.map(|map| (map, rules.page_size.trailing_zeros()));
        Self { open: HashMap::default(), map }
    }

    /// Adds something of a task, with the page allocation that it is about, if that is known.
    pub fn insert(&mut self, pid: i32, item: T, allocation: Option<&PageEvent>) {
        let frames = allocation.map_or(0..0, |event| {
            let pfn = event.op.value;
            pfn..pfn.saturating_add(1 << event.site.order.min(32))
        });
        self.open.insert(pid, (item, frames));
    }

    /// Removes that of a task.
    pub fn remove(&mut self, pid: i32) -> Option<T> {
        self.open.remove(&pid).map(|(item, _)| item)
    }

    /// Removes that of the task of a slab allocation; true if the object is on its page, or may be.
    pub fn remove_for(&mut self, op: &Op, origin: Origin) -> Option<(T, bool)> {
        if self.open.is_empty() {
            return None;
        }
        let (item, frames) = self.open.remove(&origin.pid)?;
        Some((item, self.map.is_none_or(|(map, shift)| frames.contains(&map.frame(op.value, shift)))))
    }

    /// Removes all.
    pub fn drain(&mut self) -> Vec<T> {
        self.open.drain().map(|(_, (item, _))| item).collect()
    }
}
