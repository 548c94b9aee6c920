//! The filter of --pid in user space, where its text is too long for the kernel.

use std::collections::{BTreeSet, HashMap, HashSet};

use kmt_format::kernel::{ByteOrder, EventFormat, Field};

use super::plan::Plan;
use crate::tracefs::TraceDir;

/// Bits of common_flags that tell the level of an event: hard interrupt, softirq, NMI (TRACE_FLAG_HARDIRQ,
/// TRACE_FLAG_SOFTIRQ, TRACE_FLAG_NMI, include/linux/trace_events.h, 4.4 to 7.2).
const LEVEL_FLAGS: u64 = 0x08 | 0x10 | 0x40;

/// Leaves out allocations of other tasks, and their stacks. Frees stay.
#[derive(Debug, Default)]
pub struct TaskFilter {
    order: Option<ByteOrder>,
    /// Ids of the allocation events.
    allocations: HashSet<u64>,
    /// Id of `kernel_stack`.
    stack: Option<u64>,
    pid: Option<(usize, usize)>,
    flags: Option<(usize, usize)>,
    pids: BTreeSet<i32>,
    /// True if the last event of a CPU and level was left out: then its stack is.
    left_out: HashMap<(u32, u64), bool>,
    /// Events that were left out, with their stacks.
    pub filtered: u64,
}

impl TaskFilter {
    /// The filter of a plan; one that keeps everything, where the kernel filters.
    pub fn new(plan: &Plan, dir: &TraceDir, order: ByteOrder, long_size: usize) -> Self {
        let mut filter = Self::default();
        filter.follow(plan, dir, order, long_size);
        filter
    }

    /// Takes over the tasks of a plan.
    pub fn follow(&mut self, plan: &Plan, dir: &TraceDir, order: ByteOrder, long_size: usize) {
        if !plan.in_user_space {
            return;
        }
        self.pids.clone_from(&plan.pids);
        if self.order.is_some() {
            return;
        }
        let format =
            |name: &str| EventFormat::parse(&dir.read(&format!("events/{name}/format"))?, long_size).ok();
        let place = |field: &Field| (field.offset as usize, field.size as usize);
        for event in plan.allocations() {
            let Some(format) = format(&format!("{}/{}", event.system, event.name)) else { continue };
            let find = |name: &str| format.fields.iter().find(|field| field.name == name).map(place);
            (self.pid, self.flags) = (find("common_pid"), find("common_flags"));
            self.allocations.insert(u64::from(format.id));
        }
        self.stack = format("ftrace/kernel_stack").map(|format| u64::from(format.id));
        self.order = Some(order);
    }

    /// True if an event of a CPU gets into the file.
    #[inline]
    pub fn keeps(&mut self, cpu: u32, record: &[u8]) -> bool {
        self.order.is_none_or(|order| self.keeps_one(order, cpu, record))
    }

    fn keeps_one(&mut self, order: ByteOrder, cpu: u32, record: &[u8]) -> bool {
        let number =
            |place: Option<(usize, usize)>| place.and_then(|(at, len)| order.uint_at(record, at, len));
        let id = order.uint_at(record, 0, 2).unwrap_or(0);
        let level = (cpu, number(self.flags).unwrap_or(0) & LEVEL_FLAGS);
        let is_left_out = if Some(id) == self.stack {
            self.left_out.get(&level).copied().unwrap_or(false)
        } else {
            let is_of_others = || number(self.pid).is_some_and(|pid| !self.pids.contains(&(pid as i32)));
            let is_left_out = self.allocations.contains(&id) && is_of_others();
            self.left_out.insert(level, is_left_out);
            is_left_out
        };
        self.filtered += u64::from(is_left_out);
        !is_left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u16, flags: u8, pid: i32) -> Vec<u8> {
        let mut record = id.to_le_bytes().to_vec();
        record.extend([flags, 0]);
        record.extend(pid.to_le_bytes());
        record
    }

    #[test]
    fn allocations_of_others_are_left_out_with_their_stacks() {
        let mut filter = TaskFilter {
            order: Some(ByteOrder::Little),
            allocations: HashSet::from([7]),
            stack: Some(5),
            pid: Some((4, 4)),
            flags: Some((2, 1)),
            pids: BTreeSet::from([100, 101]),
            ..TaskFilter::default()
        };
        let mut keeps = |cpu, id, flags, pid| filter.keeps(cpu, &record(id, flags, pid));
        assert!(keeps(0, 7, 0, 100) && keeps(0, 5, 0, 100), "ours, with its stack");
        assert!(!keeps(0, 7, 0, 9), "another task's");
        assert!(keeps(1, 7, 0, 101) && keeps(1, 5, 0, 101), "another CPU between");
        assert!(
            keeps(0, 8, 0x10, 9) && keeps(0, 5, 0x10, 9),
            "a free in an interrupt between, with its stack"
        );
        assert!(!keeps(0, 5, 0, 9), "the stack of what was left out");
        assert!(keeps(0, 8, 0, 9) && keeps(0, 5, 0, 9), "a free of another task");
        assert_eq!(filter.filtered, 2);
        assert!(TaskFilter::default().keeps(0, &record(7, 0, 9)), "the kernel filters");
    }
}
