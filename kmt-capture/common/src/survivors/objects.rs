//! Events of slab objects: allocations, frees, and objects that are given up.

use super::nodes::Node;
use super::plan::Plan;
use super::written::Open;
use super::{Survivors, Way};
use crate::direct_map::ADDRESS_BITS;

/// Highest address that is none of an object (rule R3).
const ZERO_SIZE_PTR: u64 = 16;

impl Survivors {
    /// Enters an allocation.
    pub(super) fn alloc(&mut self, node: &mut Node) {
        let address = node.value & ADDRESS_BITS;
        node.value = address;
        if address == 0 {
            node.keep = true;
            return;
        }
        if let Some(frame) = self.map.frame(address) {
            node.keep = self.frames.enter_object(frame, node.keep);
        }
        let open = match self.objects.remove(address) {
            Some(before) => {
                self.keep(before);
                Some(Open::LiveTangled)
            }
            None => match self.written.get(address) {
                None => None,
                Some(Open::Live | Open::LiveTangled) => Some(Open::LiveTangled),
                Some(Open::Tangled) => Some(Open::Live),
                Some(Open::Unknown) => Some(Open::Unknown),
            },
        };
        node.keep |= open.is_some();
        if node.keep {
            self.written.set(address, Some(open.unwrap_or(Open::Live)));
        }
    }

    /// Enters a free. It is folded with the life that it ends, or left out if it ends none of a narrowed recording.
    pub(super) fn free(&mut self, node: &mut Node, plan: &Plan, record: &[u8]) -> Way {
        let address = node.value & ADDRESS_BITS;
        node.value = address;
        if address <= ZERO_SIZE_PTR {
            node.keep |= address != 0 || self.losses.are_open();
            let is_folded = !node.keep && self.intervals.sums.add_null(record, plan);
            node.keep = true;
            return if is_folded { Way::Folded } else { Way::Written };
        }
        let Some(alloc) = self.objects.remove(address) else {
            let was_kept = std::mem::replace(&mut node.keep, true);
            let open = match self.written.get(address) {
                // Nothing in the file waits for it.
                None if self.options.narrowed.objects && !was_kept => return Way::LeftOut,
                None | Some(Open::Live) => None,
                Some(Open::LiveTangled | Open::Tangled) => Some(Open::Tangled),
                Some(Open::Unknown) => return Way::Written,
            };
            self.written.set(address, open);
            return Way::Written;
        };
        // Number of the last event of its page: between the two it makes the free a late or an implied one.
        let page_event = self.map.frame(address).map_or(0, |frame| self.frames.stamp(frame));
        let is_plain = |born: &Node| born.of_caches == node.of_caches && page_event < born.seq;
        if self.fold(alloc, node, plan, record, is_plain) {
            return Way::Folded;
        }
        self.keep(alloc);
        node.keep = true;
        let is_tangled = self.nodes.get(alloc).is_some_and(|born| page_event >= born.seq);
        self.written.set(address, is_tangled.then_some(Open::Tangled));
        Way::Written
    }

    /// An object is given up: its life ends, and its free may still be seen.
    pub(super) fn free_rcu(&mut self, node: &mut Node) {
        node.keep = true;
        let address = node.value & ADDRESS_BITS;
        if let Some(alloc) = self.objects.remove(address) {
            self.keep(alloc);
            self.written.set(address, Some(Open::Tangled));
        } else if !matches!(self.written.get(address), None | Some(Open::Unknown)) {
            self.written.set(address, Some(Open::Tangled));
        }
    }
}
