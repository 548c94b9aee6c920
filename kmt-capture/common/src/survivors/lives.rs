//! The decision on a life: whether it is folded.

use super::nodes::Node;
use super::pending::NONE;
use super::plan::Plan;
use super::sums::FoldedLife;
use super::{Survivors, Way};

impl Survivors {
    /// Folds the life of a node that waits, which the event `node` with `record` ends, if it is plain. True if it is folded.
    pub(super) fn fold(
        &mut self,
        alloc: u32,
        node: &Node,
        plan: &Plan,
        record: &[u8],
        is_plain: impl Fn(&Node) -> bool,
    ) -> bool {
        let Some(&born) = self.nodes.get(alloc) else { return false };
        let Some(length) = node.time.checked_sub(born.time) else { return false };
        let is_foldable = length <= self.options.threshold
            && !born.keep
            && !node.keep
            && !self.losses.touch(&born)
            && self.intervals.contain(born.time)
            && self.intervals.contain(node.time)
            && is_plain(&born);
        let alloc_record = self.nodes.record(alloc);
        let Some(alloc_plan) = self.plans.known(alloc_record, self.options.order).filter(|_| is_foldable)
        else {
            return false;
        };
        let cross_cpu = born.cpu != node.cpu;
        let life = FoldedLife {
            records: [alloc_record, record],
            plans: [alloc_plan, plan],
            length,
            cross_cpu,
            elsewhere: cross_cpu || born.task != node.task,
            millisecond: self.options.millisecond,
        };
        if !self.intervals.sums.add(&life) {
            return false;
        }
        self.leave_out(alloc, &born);
        true
    }

    /// Removes the allocation of a life that is folded, with its stack.
    fn leave_out(&mut self, alloc: u32, born: &Node) {
        let mut events = 1;
        if born.stack != NONE {
            self.nodes.remove(born.stack);
            events += 1;
        }
        self.nodes.remove(alloc);
        self.count_folded(born.cpu, events);
        // Its stack may still come.
        if let Some(owner) = self.owner(born.cpu, born.task) {
            if owner.node == Some((alloc, born.seq)) {
                owner.way = Way::Folded;
            }
        }
    }

    /// Decides that a node is written.
    pub(super) fn keep(&mut self, index: u32) {
        if let Some(node) = self.nodes.get_mut(index) {
            node.keep = true;
        }
    }
}
