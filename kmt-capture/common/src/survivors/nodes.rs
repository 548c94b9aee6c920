//! Events that wait until it is known whether they are written: a list for each CPU, in its order.
//!
//! A node that is folded leaves its list from the middle. Records lie in blocks of whole units, and blocks are used again, so
//! that memory follows what waits.

use kmt_format::Loss;
use kmt_format::kernel::ByteOrder;

use super::pending::NONE;
use super::plan::{Kind, Plan, Task};

/// An event that waits: a cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub struct Node {
    /// Number among all events, in merged order.
    pub seq: u64,
    /// Time.
    pub time: u64,
    /// Address of the object, or first frame.
    pub value: u64,
    /// Index of the CPU.
    pub cpu: u32,
    prev: u32,
    next: u32,
    /// The node of its stack.
    pub stack: u32,
    record_at: u32,
    record_len: u32,
    /// What it does.
    pub kind: Kind,
    /// log2 of the number of pages.
    pub order: u8,
    /// True once it is sure to be written.
    pub keep: bool,
    /// True if it is of a cache, not of kmalloc.
    pub of_caches: bool,
    /// Task and level.
    pub task: Task,
    /// True for the loss of [`Nodes::loss`] in place of an event.
    is_loss: bool,
}

const FREE: Node = Node {
    seq: 0,
    time: 0,
    value: 0,
    cpu: 0,
    prev: NONE,
    next: NONE,
    stack: NONE,
    record_at: 0,
    record_len: 0,
    kind: Kind::Other,
    order: 0,
    keep: true,
    of_caches: false,
    task: Task { pid: 0, level: 0 },
    is_loss: false,
};

impl Node {
    /// An event of a CPU.
    pub fn new(seq: u64, time: u64, cpu: u32) -> Self {
        Self { seq, time, cpu, ..FREE }
    }

    /// Reads the fields that its record has.
    #[inline]
    pub fn read(&mut self, plan: &Plan, record: &[u8], order: ByteOrder) {
        self.kind = plan.kind;
        self.task = plan.task(record, order);
        self.value = plan.value(record, order);
        self.order = plan.page_order(record, order);
        self.of_caches = plan.of_caches;
    }
}

/// Bytes of a unit of records.
const UNIT: usize = 32;

/// The waiting events of all CPUs.
#[derive(Debug, Default)]
pub struct Nodes {
    nodes: Vec<Node>,
    unused: Vec<u32>,
    records: Vec<u8>,
    /// Blocks that are not used, by their number of units.
    blocks: Vec<Vec<u32>>,
    /// First and last node of each CPU.
    ends: Vec<(u32, u32)>,
    losses: Vec<(u32, Loss)>,
    used: usize,
}

impl Nodes {
    /// The node.
    #[inline]
    pub fn get(&self, node: u32) -> Option<&Node> {
        self.nodes.get(node as usize)
    }

    /// The node, to be changed.
    #[inline]
    pub fn get_mut(&mut self, node: u32) -> Option<&mut Node> {
        self.nodes.get_mut(node as usize)
    }

    /// The record of a node.
    #[inline]
    pub fn record(&self, node: u32) -> &[u8] {
        let Some(node) = self.get(node) else { return &[] };
        let start = node.record_at as usize * UNIT;
        self.records.get(start..start + node.record_len as usize).unwrap_or_default()
    }

    /// First node of a CPU.
    #[inline]
    pub fn first(&self, cpu: u32) -> Option<u32> {
        self.ends.get(cpu as usize).map(|ends| ends.0).filter(|&node| node != NONE)
    }

    /// Memory of what waits, in bytes.
    pub fn memory(&self) -> usize {
        self.used
    }

    /// Appends an event to the list of its CPU.
    pub fn push(&mut self, mut node: Node, record: &[u8]) -> u32 {
        let units = record.len().div_ceil(UNIT);
        let at = self.block(units);
        let start = at as usize * UNIT;
        if let Some(place) = self.records.get_mut(start..start + record.len()) {
            place.copy_from_slice(record);
        }
        (node.record_at, node.record_len) = (at, record.len() as u32);
        self.append(node)
    }

    /// Appends a loss to the list of a CPU.
    pub fn push_loss(&mut self, seq: u64, cpu: u32, loss: Loss) {
        let node = self.append(Node { is_loss: true, ..Node::new(seq, 0, cpu) });
        self.losses.push((node, loss));
    }

    /// The loss of a node, which is taken; `None`: it is an event.
    pub fn take_loss(&mut self, node: u32) -> Option<Loss> {
        if !self.get(node)?.is_loss {
            return None;
        }
        let at = self.losses.iter().position(|loss| loss.0 == node)?;
        Some(self.losses.swap_remove(at).1)
    }

    fn block(&mut self, units: usize) -> u32 {
        if units == 0 {
            return 0;
        }
        self.used += units * UNIT + size_of::<Node>();
        if let Some(at) = self.blocks.get_mut(units).and_then(Vec::pop) {
            return at;
        }
        let at = self.records.len() / UNIT;
        self.records.resize((at + units) * UNIT, 0);
        at as u32
    }

    fn append(&mut self, mut node: Node) -> u32 {
        let cpu = node.cpu as usize;
        if self.ends.len() <= cpu {
            self.ends.resize(cpu + 1, (NONE, NONE));
        }
        let last = self.ends.get(cpu).map_or(NONE, |ends| ends.1);
        (node.prev, node.next) = (last, NONE);
        let index = match self.unused.pop() {
            Some(index) => {
                if let Some(place) = self.nodes.get_mut(index as usize) {
                    *place = node;
                }
                index
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        match self.get_mut(last) {
            Some(last) => last.next = index,
            None => {
                if let Some(ends) = self.ends.get_mut(cpu) {
                    ends.0 = index;
                }
            }
        }
        if let Some(ends) = self.ends.get_mut(cpu) {
            ends.1 = index;
        }
        index
    }

    /// Removes a node from its list.
    pub fn remove(&mut self, index: u32) {
        let Some(node) = self.get_mut(index) else { return };
        let (prev, next, cpu) = (node.prev, node.next, node.cpu as usize);
        let (record_at, record_len) = (node.record_at, node.record_len as usize);
        *node = FREE;
        match self.get_mut(prev) {
            Some(prev) => prev.next = next,
            None => {
                if let Some(ends) = self.ends.get_mut(cpu) {
                    ends.0 = next;
                }
            }
        }
        match self.get_mut(next) {
            Some(next) => next.prev = prev,
            None => {
                if let Some(ends) = self.ends.get_mut(cpu) {
                    ends.1 = prev;
                }
            }
        }
        let units = record_len.div_ceil(UNIT);
        if units > 0 {
            if self.blocks.len() <= units {
                self.blocks.resize_with(units + 1, Vec::new);
            }
            if let Some(blocks) = self.blocks.get_mut(units) {
                blocks.push(record_at);
            }
            self.used -= units * UNIT + size_of::<Node>();
        }
        self.unused.push(index);
    }
}
