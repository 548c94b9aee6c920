//! Survivors as events, the rest as sums: lives of objects that are allocated and freed within a short time are folded.
//!
//! A life is folded only if it is provably plain: its free follows its allocation at the same address (or block of frames) with
//! no event of the address between, within the threshold and the interval, by the same interface, with no loss of any CPU and no
//! event of its page between, and its allocation cannot have ended an older life. Everything else is written as it came. So the
//! ledger of the analyzer makes of the file what it would make of all events, once the sums are added.
//!
//! Events come in merged order; those of a CPU leave in their order, later by the threshold. `record` and `convert` use the same
//! code. Here events enter; `objects` and `pages` follow what is allocated, `lives` decides on lives, `leave` writes.

mod feed;
mod frames;
mod intervals;
mod leave;
mod lives;
mod losses;
mod map;
mod nodes;
mod objects;
mod pages;
mod pending;
mod plan;
mod sums;
mod written;

use kmt_format::kernel::ByteOrder;
use kmt_format::write::Writer;
use kmt_format::{Loss, Result};

pub use self::feed::Feed;
use self::frames::Frames;
use self::intervals::Intervals;
use self::losses::Losses;
use self::map::DirectMap;
pub use self::map::{KnownMap, LEARNED_KEY, NO_MAP, learned};
use self::nodes::{Node, Nodes};
use self::pending::PendingTable;
use self::plan::{Kind, Plan, Plans, Task};
use self::written::WrittenSet;

/// Levels of interrupts, by the bits of common_flags.
const LEVELS: usize = 16;

/// How lives are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurvivorOptions {
    /// Longest life that is folded, in the clock's unit.
    pub threshold: u64,
    /// Length of an interval of sums, in the clock's unit; not 0.
    pub interval: u64,
    /// A millisecond in the clock's unit.
    pub millisecond: u64,
    /// Memory, in bytes.
    pub memory: usize,
    /// Byte order of the target.
    pub order: ByteOrder,
    /// Size of the target's `long`, in bytes.
    pub long_size: usize,
    /// log2 of the target's page size.
    pub page_shift: u32,
    /// The direct map.
    pub map: KnownMap,
    /// Frees that are counted only, in a recording whose allocations are filtered.
    pub narrowed: Narrowed,
}

/// Kinds of objects of which a filter left out allocations. A free has nothing that the filter could look at, so those of all objects
/// come: a free at an address without an event of an allocation is counted, and not written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Narrowed {
    /// Objects of slab memory.
    pub objects: bool,
    /// Pages.
    pub pages: bool,
}

/// Way of an event, and of its stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Way {
    /// To the file, or it waits.
    #[default]
    Written,
    /// Into a sum.
    Folded,
    /// It is counted only.
    LeftOut,
}

/// The event that a stack on some CPU and level belongs to.
#[derive(Debug, Clone, Copy, Default)]
struct Owner {
    task: Task,
    /// Node of the event, and its number then: another number shows that the node was reused.
    node: Option<(u32, u64)>,
    way: Way,
    is_waiting: bool,
}

#[derive(Debug, Default)]
struct CpuState {
    number: u32,
    /// By level.
    owners: [Owner; LEVELS],
    /// True once it has an event.
    has_begun: bool,
    folded: u64,
    /// Events that are counted only: [`Narrowed`].
    left_out: u64,
    /// Events that were folded in this interval.
    folded_here: u64,
}

/// Folds lives.
#[derive(Debug)]
pub struct Survivors {
    options: SurvivorOptions,
    plans: Plans,
    cpus: Vec<CpuState>,
    /// What waits: events, and of these the allocations by address and by first frame.
    nodes: Nodes,
    objects: PendingTable,
    pages: PendingTable,
    written: WrittenSet,
    frames: Frames,
    map: DirectMap,
    losses: Losses,
    intervals: Intervals,
    /// Number of the last event, in merged order, from 1.
    seq: u64,
    now: u64,
    /// False once a page event could not be followed: then page events are written.
    may_fold_pages: bool,
}

impl Survivors {
    /// Without events.
    pub fn new(options: SurvivorOptions) -> Self {
        Self {
            plans: Plans::default(),
            cpus: Vec::new(),
            nodes: Nodes::default(),
            objects: PendingTable::default(),
            pages: PendingTable::default(),
            written: WrittenSet::new(options.memory / 4),
            frames: Frames::new(options.memory * 3 / 32),
            map: DirectMap::new(options.map, options.page_shift),
            losses: Losses::default(),
            intervals: Intervals::new(&options),
            seq: 0,
            now: 0,
            may_fold_pages: true,
            options,
        }
    }

    /// Events that were folded, with their stacks, by CPU.
    pub fn folded(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.cpus.iter().map(|cpu| (cpu.number, cpu.folded))
    }

    /// Events that are neither in the file nor in sums, with their stacks, by CPU: [`Narrowed`].
    pub fn left_out(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.cpus.iter().map(|cpu| (cpu.number, cpu.left_out))
    }

    /// Takes the next event in merged order. `is_edge`: it is the last one of its CPU before events that are missing, or the
    /// first one after, or the last of all.
    pub fn event(
        &mut self,
        writer: &mut Writer,
        cpu: u32,
        time: u64,
        record: &[u8],
        is_edge: bool,
    ) -> Result<()> {
        self.seq += 1;
        self.now = time;
        self.losses.event(time);
        if self.intervals.are_over(time) {
            let before = self.end_interval(writer)?;
            self.intervals.begin(time, before);
        }
        let index = self.cpu(cpu);
        let is_first =
            self.cpus.get_mut(index as usize).is_some_and(|cpu| !std::mem::replace(&mut cpu.has_begun, true));
        let mut node = Node::new(self.seq, time, index);
        node.keep = is_edge || is_first || self.losses.are_open();
        match self.plans.of(record, self.options.order, writer) {
            Some(plan) => {
                node.read(&plan, record, self.options.order);
                if node.kind == Kind::Stack {
                    self.stack(index, node, record);
                } else {
                    self.other(index, node, &plan, record);
                }
            }
            None => {
                self.forget_owners(index);
                node.keep = true;
                self.nodes.push(node, record);
            }
        }
        self.emit(writer, index)?;
        if self.nodes.memory() > self.options.memory / 2 {
            self.write_through(writer)?;
        }
        Ok(())
    }

    /// Events of that CPU are missing from here on, until its next event. Its last event was an edge.
    pub fn begin_loss(&mut self) {
        self.losses.begin();
    }

    /// The next event of that CPU comes, before which events are missing.
    pub fn end_loss(&mut self, cpu: u32, loss: Loss, was_begun: bool) {
        self.losses.end(self.seq + 1, was_begun);
        self.mark_loss(cpu, loss);
    }

    /// Marks a loss before the next event of a CPU.
    pub fn mark_loss(&mut self, cpu: u32, loss: Loss) {
        let index = self.cpu(cpu);
        self.forget_owners(index);
        self.nodes.push_loss(self.seq, index, loss);
    }

    fn forget_owners(&mut self, cpu: u32) {
        if let Some(cpu) = self.cpus.get_mut(cpu as usize) {
            cpu.owners = Default::default();
        }
    }

    fn cpu(&mut self, number: u32) -> u32 {
        // CPUs mostly come in the order of their numbers.
        if self.cpus.get(number as usize).is_some_and(|cpu| cpu.number == number) {
            return number;
        }
        if let Some(index) = self.cpus.iter().position(|cpu| cpu.number == number) {
            return index as u32;
        }
        self.cpus.push(CpuState { number, ..CpuState::default() });
        (self.cpus.len() - 1) as u32
    }

    fn owner(&mut self, cpu: u32, task: Task) -> Option<&mut Owner> {
        let level = usize::from(task.level >> 3) % LEVELS;
        self.cpus.get_mut(cpu as usize)?.owners.get_mut(level)
    }

    /// Counts an event that is not written.
    fn count(&mut self, cpu: u32, way: Way) {
        match way {
            Way::Written => {}
            Way::Folded => self.count_folded(cpu, 1),
            Way::LeftOut => {
                if let Some(cpu) = self.cpus.get_mut(cpu as usize) {
                    cpu.left_out += 1;
                }
            }
        }
    }

    fn count_folded(&mut self, cpu: u32, events: u64) {
        if let Some(cpu) = self.cpus.get_mut(cpu as usize) {
            cpu.folded += events;
            cpu.folded_here += events;
        }
    }

    /// Writes the interval that is open; returns its end.
    fn end_interval(&mut self, writer: &mut Writer) -> Result<Option<u64>> {
        let folded = self.cpus.iter_mut().map(|cpu| (cpu.number, std::mem::take(&mut cpu.folded_here)));
        self.intervals.end(writer, folded)
    }

    /// A stack goes the way of its event.
    fn stack(&mut self, cpu: u32, node: Node, record: &[u8]) {
        let Some(owner) =
            self.owner(cpu, node.task).filter(|owner| owner.is_waiting && owner.task == node.task)
        else {
            self.nodes.push(node, record);
            return;
        };
        owner.is_waiting = false;
        let (of, way) = (owner.node, owner.way);
        if way != Way::Written && !node.keep {
            return self.count(cpu, way);
        }
        let index = self.nodes.push(node, record);
        if let Some((of, seq)) = of {
            if let Some(of) = self.nodes.get_mut(of).filter(|of| of.seq == seq) {
                of.stack = index;
                of.keep |= node.keep;
            }
        }
    }

    /// An event other than a stack: it is folded, or it waits.
    fn other(&mut self, cpu: u32, mut node: Node, plan: &Plan, record: &[u8]) {
        let is_failure = node.kind == Kind::PageAlloc && node.value == self.no_frame();
        let number = self.cpus.get(cpu as usize).map_or(0, |cpu| cpu.number);
        if !is_failure && self.map.learn(number, &node, plan, record, self.options.order) {
            self.losses.touch_before(self.seq + 1);
        }
        node.keep |= self.map.is_undecided() || is_failure;
        let mut way = Way::Written;
        match node.kind {
            Kind::Alloc => self.alloc(&mut node),
            Kind::Free => way = self.free(&mut node, plan, record),
            Kind::FreeRcu => self.free_rcu(&mut node),
            Kind::PageAlloc if is_failure => {}
            Kind::PageAlloc => self.page_alloc(&mut node),
            Kind::PageFree => way = self.page_free(&mut node, plan, record),
            Kind::Stack | Kind::Other => node.keep = true,
        }
        self.count(cpu, way);
        let waits = if way != Way::Written {
            None
        } else {
            let index = self.nodes.push(node, record);
            if !node.keep {
                let table = if node.kind == Kind::PageAlloc { &mut self.pages } else { &mut self.objects };
                table.insert(node.value, index);
            }
            Some((index, node.seq))
        };
        if let Some(owner) = self.owner(cpu, node.task) {
            *owner = Owner { task: node.task, node: waits, way, is_waiting: true };
        }
    }

    /// The frame of a page allocation that failed.
    fn no_frame(&self) -> u64 {
        u64::MAX >> (64 - 8 * self.options.long_size as u32)
    }
}

#[cfg(test)]
mod tests;
