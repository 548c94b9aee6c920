//! Survivors as events, the rest as sums: lives of objects that are allocated and freed within a short time are folded.
//!
//! A life is folded only if it is provably plain: its free follows its allocation at the same address (or block of frames) with
//! no event of the address between, within the threshold and the interval, by the same interface, with no loss of any CPU and no
//! event of its page between, and its allocation cannot have ended an older life. Everything else is written as it came. So the
//! ledger of the analyzer makes of the file what it would make of all events, once the sums are added.
//!
//! Events come in merged order; those of a CPU leave in their order, later by the threshold. `record` and `convert` use the same
//! code.

mod feed;
mod frames;
mod nodes;
mod pending;
mod plan;
mod sums;
mod written;

use kmt_format::fold::FoldedInterval;
use kmt_format::kernel::ByteOrder;
use kmt_format::write::Writer;
use kmt_format::{Loss, Result};

pub use self::feed::Feed;
use self::frames::FrameBits;
use self::nodes::{Node, Nodes};
use self::pending::{NONE, PendingTable};
use self::plan::{Kind, Plan, Task};
use self::sums::{FoldedLife, IntervalSums};
use self::written::{Open, WrittenSet};
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

/// What is known of the direct map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownMap {
    /// Its base.
    Base(u64),
    /// Objects are not placed on pages: no rule needs the direct map.
    None,
    /// It is to be learned from events: once pages are allocated, nothing is folded until then.
    Learning,
}
/// Highest address that is none of an object (rule R3).
const ZERO_SIZE_PTR: u64 = 16;
/// log2 of the stamps of frames.
const STAMPS_LOG2: u32 = 16;
/// Largest order of blocks whose frames are followed: MAX_PAGE_ORDER is 10, or 13 with pages of 64 KiB.
const PAGE_ORDER_MAX: u8 = 14;
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
}

/// Value of [`LEARNED_KEY`].
pub fn learned(map: Option<ElectedBase>) -> String {
    map.map_or_else(
        || NO_MAP.to_owned(),
        |map| format!("{:#x} {} {}", map.base_address, map.votes, map.votes_all),
    )
}

/// The event that a stack on some CPU and level belongs to.
#[derive(Debug, Clone, Copy, Default)]
struct Owner {
    task: Task,
    /// Its node; its number tells whether the node is still its.
    node: Option<(u32, u64)>,
    is_folded: bool,
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
    /// Events that were folded in this interval.
    folded_here: u64,
}

/// Folds lives.
#[derive(Debug)]
pub struct Survivors {
    options: SurvivorOptions,
    plans: Vec<Option<Plan>>,
    cpus: Vec<CpuState>,
    nodes: Nodes,
    objects: PendingTable,
    pages: PendingTable,
    written: WrittenSet,
    /// Frames of pages that are allocated, as far as events tell.
    live_frames: FrameBits,
    /// Frames without an event of a slab object since their last page event.
    clean_frames: FrameBits,
    /// Frames of which an allocation of a slab object is written since their last page event: it tells what they are.
    born_frames: FrameBits,
    /// Votes on the direct map, where it is not known from the kernel.
    votes: Option<Votes>,
    /// Allocations of pages while the direct map is learned.
    pages_seen: u32,
    /// By the lower bits of a frame, the number of its last page event.
    stamps: Vec<u64>,
    sums: IntervalSums,
    interval: Option<FoldedInterval>,
    intervals: u64,
    seq: u64,
    /// CPUs between whose last event and their next one events are missing.
    open_losses: u32,
    /// Number of the first event after the last loss, and its time.
    loss_end: u64,
    loss_end_time: Option<u64>,
    /// True until the first event after a loss.
    ends_loss: bool,
    now: u64,
    last_time: u64,
    /// False once a page event could not be followed: then page events are written.
    may_fold_pages: bool,
}

impl Survivors {
    /// Without events.
    pub fn new(options: SurvivorOptions) -> Self {
        Self {
            plans: Vec::new(),
            cpus: Vec::new(),
            nodes: Nodes::default(),
            objects: PendingTable::default(),
            pages: PendingTable::default(),
            written: WrittenSet::new(options.memory / 4),
            live_frames: FrameBits::new(options.memory / 32),
            clean_frames: FrameBits::new(options.memory / 32),
            born_frames: FrameBits::new(options.memory / 32),
            votes: (options.map == KnownMap::Learning).then(|| Votes::new(options.page_shift)),
            pages_seen: 0,
            stamps: vec![0; 1 << STAMPS_LOG2],
            sums: IntervalSums::new(options.order),
            interval: None,
            intervals: 0,
            seq: 0,
            open_losses: 0,
            loss_end: 0,
            loss_end_time: None,
            ends_loss: false,
            now: 0,
            last_time: 0,
            may_fold_pages: true,
            options,
        }
    }

    /// Events that were folded, with their stacks, by CPU.
    pub fn folded(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.cpus.iter().map(|cpu| (cpu.number, cpu.folded))
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
        if std::mem::take(&mut self.ends_loss) {
            self.loss_end_time = self.loss_end_time.max(Some(time));
        }
        self.begin_interval(writer, time)?;
        let order = self.options.order;
        let id = order.uint_at(record, 0, 2).unwrap_or(0) as u16;
        let plan = self.plan(writer, id);
        let index = self.cpu(cpu);
        let mut node = Node::new(self.seq, time, index);
        node.kind = plan.map_or(Kind::Other, |plan| plan.kind);
        node.task = plan.map_or_else(Task::default, |plan| plan.task(record, order));
        if let Some(plan) = plan {
            node.value = plan.value(record, order);
            node.order = plan.page_order(record, order) as u8;
            node.of_caches = plan.of_caches;
        }
        let is_first =
            self.cpus.get_mut(index as usize).is_some_and(|cpu| !std::mem::replace(&mut cpu.has_begun, true));
        node.keep = is_edge || is_first || self.open_losses > 0;
        if node.kind == Kind::Stack {
            self.stack(index, node, record);
        } else {
            self.other(writer, index, node, record)?;
        }
        self.emit(writer, index)?;
        if self.nodes.memory() > self.options.memory / 2 {
            self.write_through(writer)?;
        }
        Ok(())
    }

    /// Events of that CPU are missing from here on, until its next event. Its last event was an edge.
    pub fn begin_loss(&mut self) {
        self.open_losses += 1;
    }

    /// The next event of that CPU comes, before which events are missing.
    pub fn end_loss(&mut self, cpu: u32, loss: Loss, was_begun: bool) {
        self.open_losses -= u32::from(was_begun);
        self.loss_end = self.seq + 1;
        self.ends_loss = true;
        self.mark_loss(cpu, loss);
    }

    /// Marks a loss before the next event of a CPU.
    pub fn mark_loss(&mut self, cpu: u32, loss: Loss) {
        let index = self.cpu(cpu);
        if let Some(cpu) = self.cpus.get_mut(index as usize) {
            cpu.owners = Default::default();
        }
        self.nodes.push_loss(self.seq, index, loss);
    }

    /// Writes what has waited long enough, of all CPUs: no event before `time` comes any more.
    pub fn advance(&mut self, writer: &mut Writer, time: u64) -> Result<()> {
        self.now = self.now.max(time);
        (0..self.cpus.len() as u32).try_for_each(|cpu| self.emit(writer, cpu))
    }

    /// Writes everything that waits, and the last interval.
    pub fn finish(&mut self, writer: &mut Writer) -> Result<()> {
        for cpu in 0..self.cpus.len() as u32 {
            while let Some(first) = self.nodes.first(cpu) {
                self.write(writer, first)?;
            }
        }
        self.end_interval(writer)?;
        let Some(votes) = &self.votes else { return Ok(()) };
        let map = match self.options.map {
            KnownMap::Base(_) => votes.result(),
            KnownMap::None | KnownMap::Learning => None,
        };
        writer.add_metadata(&[(LEARNED_KEY, learned(map).as_bytes())])
    }

    fn plan(&mut self, writer: &Writer, id: u16) -> Option<Plan> {
        let at = usize::from(id);
        if let Some(Some(plan)) = self.plans.get(at) {
            return Some(*plan);
        }
        let plan = Plan::of(writer.class_of(id)?);
        if self.plans.len() <= at {
            self.plans.resize(at + 1, None);
        }
        if let Some(place) = self.plans.get_mut(at) {
            *place = Some(plan);
        }
        Some(plan)
    }

    fn cpu(&mut self, number: u32) -> u32 {
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

    /// A stack goes the way of its event.
    fn stack(&mut self, cpu: u32, node: Node, record: &[u8]) {
        let Some(owner) =
            self.owner(cpu, node.task).filter(|owner| owner.is_waiting && owner.task == node.task)
        else {
            self.nodes.push(node, record);
            return;
        };
        owner.is_waiting = false;
        let (of, is_folded) = (owner.node, owner.is_folded);
        if is_folded && !node.keep {
            return self.count_folded(cpu, 1);
        }
        let index = self.nodes.push(node, record);
        if let Some((of, seq)) = of {
            if let Some(of) = self.nodes.get_mut(of).filter(|of| of.seq == seq) {
                of.stack = index;
                of.keep |= node.keep;
            }
        }
    }

    fn count_folded(&mut self, cpu: u32, events: u64) {
        if let Some(cpu) = self.cpus.get_mut(cpu as usize) {
            cpu.folded += events;
            cpu.folded_here += events;
        }
    }

    fn other(&mut self, writer: &Writer, cpu: u32, mut node: Node, record: &[u8]) -> Result<()> {
        self.vote(cpu, &node, record);
        node.keep |= self.pages_seen > 0 && self.options.map == KnownMap::Learning;
        let folded = match node.kind {
            Kind::Alloc => {
                self.alloc(&mut node);
                false
            }
            Kind::Free => self.free(writer, &mut node, record),
            Kind::FreeRcu => {
                self.free_rcu(&mut node);
                false
            }
            Kind::PageAlloc => {
                self.page_alloc(&mut node);
                false
            }
            Kind::PageFree => self.page_free(writer, &mut node, record),
            Kind::Stack | Kind::Other => {
                node.keep = true;
                false
            }
        };
        let waits = if folded {
            self.count_folded(cpu, 1);
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
            *owner = Owner { task: node.task, node: waits, is_folded: folded, is_waiting: true };
        }
        Ok(())
    }

    /// Learns the direct map from an event.
    fn vote(&mut self, cpu: u32, node: &Node, record: &[u8]) {
        let number = self.cpus.get(cpu as usize).map_or(0, |cpu| cpu.number);
        let (order, pid) = (self.options.order, node.task.pid as i32);
        let is_failure = node.value == self.no_frame();
        let Some(votes) = &mut self.votes else { return };
        match node.kind {
            Kind::Alloc if votes.is_waiting() => {
                votes.slab_event(number, pid, Some(node.value).filter(|&ptr| ptr != 0));
            }
            Kind::Free if votes.is_waiting() => votes.slab_event(number, pid, None),
            Kind::PageAlloc if !is_failure => {
                let plan = self.plans.get(usize::from(order.uint_at(record, 0, 2).unwrap_or(0) as u16));
                if plan.copied().flatten().is_some_and(|plan| !plan.is_movable(record, order)) {
                    votes.page_alloc(number, pid, node.value, node.order);
                }
                self.pages_seen = self.pages_seen.saturating_add(1);
            }
            _ => return,
        }
        if self.options.map == KnownMap::Learning {
            let won = votes.result();
            let is_sure = won.is_some_and(|won| won.votes >= VOTES_MIN);
            if is_sure || self.pages_seen >= PAGES_MAX {
                self.options.map = won.map_or(KnownMap::None, |won| KnownMap::Base(won.base_address));
                // What waits may have had events of its page.
                self.loss_end = self.seq + 1;
            }
        }
    }

    fn no_frame(&self) -> u64 {
        u64::MAX >> (64 - 8 * self.options.long_size as u32)
    }

    fn frame(&self, address: u64) -> Option<u64> {
        let KnownMap::Base(base) = self.options.map else { return None };
        Some((address.wrapping_sub(base) & ADDRESS_BITS) >> self.options.page_shift)
    }

    /// Number of the last page event of the frame of an address; 0 if no rule asks for it.
    fn page_stamp(&self, address: u64) -> u64 {
        let Some(frame) = self.frame(address) else { return 0 };
        self.stamps.get(frame as usize & (self.stamps.len() - 1)).copied().unwrap_or(u64::MAX)
    }

    fn stamp_pages(&mut self, first: u64, order: u8) {
        let (mask, seq) = (self.stamps.len() - 1, self.seq);
        let count = (1u64 << order).min(self.stamps.len() as u64);
        for frame in first..first.saturating_add(count) {
            if let Some(stamp) = self.stamps.get_mut(frame as usize & mask) {
                *stamp = seq;
            }
        }
    }

    fn alloc(&mut self, node: &mut Node) {
        let address = node.value & ADDRESS_BITS;
        node.value = address;
        if address == 0 {
            node.keep = true;
            return;
        }
        if let Some(frame) = self.frame(address) {
            // The first object of a page tells that it is a slab's.
            node.keep |= self.born_frames.get(frame) != Some(true);
            if node.keep {
                self.born_frames.set(frame, true);
            }
            self.clean_frames.set(frame, false);
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

    /// Enters a free; true if the life that it ends is folded.
    fn free(&mut self, writer: &Writer, node: &mut Node, record: &[u8]) -> bool {
        let address = node.value & ADDRESS_BITS;
        node.value = address;
        if address <= ZERO_SIZE_PTR {
            node.keep |= address != 0 || self.open_losses > 0;
            let plan = self.plan(writer, self.options.order.uint_at(record, 0, 2).unwrap_or(0) as u16);
            let is_folded = !node.keep && plan.is_some_and(|plan| self.sums.add_null(record, &plan));
            node.keep = true;
            return is_folded;
        }
        let Some(alloc) = self.objects.remove(address) else {
            node.keep = true;
            let open = match self.written.get(address) {
                None | Some(Open::Live) => None,
                Some(Open::LiveTangled | Open::Tangled) => Some(Open::Tangled),
                Some(Open::Unknown) => return false,
            };
            self.written.set(address, open);
            return false;
        };
        let stamp = self.page_stamp(address);
        let is_plain = |alloc: &Node| alloc.of_caches == node.of_caches && stamp < alloc.seq;
        if self.fold(writer, alloc, node, record, is_plain) {
            return true;
        }
        self.keep(alloc);
        node.keep = true;
        // A page event between them makes it a late or an implied free.
        let is_tangled = self.nodes.get(alloc).is_some_and(|alloc| stamp >= alloc.seq);
        self.written.set(address, is_tangled.then_some(Open::Tangled));
        false
    }

    /// An object is given up: its life ends, and its free may still be seen.
    fn free_rcu(&mut self, node: &mut Node) {
        node.keep = true;
        let address = node.value & ADDRESS_BITS;
        if let Some(alloc) = self.objects.remove(address) {
            self.keep(alloc);
            self.written.set(address, Some(Open::Tangled));
        } else if !matches!(self.written.get(address), None | Some(Open::Unknown)) {
            self.written.set(address, Some(Open::Tangled));
        }
    }

    /// Folds the life of a node that waits, which the event `node` with `record` ends, if it is plain.
    fn fold(
        &mut self,
        writer: &Writer,
        alloc: u32,
        node: &Node,
        record: &[u8],
        is_plain: impl Fn(&Node) -> bool,
    ) -> bool {
        let Some(born) = self.nodes.get(alloc).copied() else { return false };
        let length = node.time.checked_sub(born.time);
        let begin = self.interval.as_ref().map_or(0, |interval| interval.t_begin);
        let is_foldable = length.is_some_and(|length| length <= self.options.threshold)
            && !born.keep
            && !node.keep
            && born.seq >= self.loss_end
            && self.loss_end_time.is_none_or(|end| born.time > end)
            && born.time >= begin
            && node.time >= begin
            && is_plain(&born);
        let (Some(length), true) = (length, is_foldable) else { return false };
        let order = self.options.order;
        let id = |record: &[u8]| order.uint_at(record, 0, 2).unwrap_or(0) as u16;
        let of_alloc = id(self.nodes.record(alloc));
        let (Some(alloc_plan), Some(free_plan)) =
            (self.plan(writer, of_alloc), self.plan(writer, id(record)))
        else {
            return false;
        };
        let cross_cpu = born.cpu != node.cpu;
        let life = FoldedLife {
            records: [self.nodes.record(alloc), record],
            plans: [&alloc_plan, &free_plan],
            length,
            cross_cpu,
            elsewhere: cross_cpu || born.task != node.task,
            millisecond: self.options.millisecond,
        };
        if !self.sums.add(&life) {
            return false;
        }
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
                owner.is_folded = true;
            }
        }
        true
    }

    /// Decides that a node is written.
    fn keep(&mut self, index: u32) {
        if let Some(node) = self.nodes.get_mut(index) {
            node.keep = true;
        }
    }

    /// Enters an allocation of pages.
    fn page_alloc(&mut self, node: &mut Node) {
        let (first, count) = (node.value, 1u64 << node.order);
        if first == self.no_frame() {
            node.keep = true;
            return;
        }
        self.stamp_pages(first, node.order);
        // Blocks of the buddy allocator are aligned. What is not is none of its, and may overlap any other.
        if node.order > PAGE_ORDER_MAX || first % count != 0 {
            self.may_fold_pages = false;
            node.keep = true;
            return;
        }
        let is_new = !self.live_frames.any(first, count) && self.are_clean(first, count);
        if !is_new || !self.may_fold_pages {
            self.keep_pages(first, count);
            node.keep = true;
        }
        self.live_frames.set_all(first, count, true);
        self.renew_frames(first, count);
    }

    /// True if no object of a slab can be on frames whose page event would end it.
    fn are_clean(&self, first: u64, count: u64) -> bool {
        match self.options.map {
            KnownMap::Base(_) => self.clean_frames.all(first, count),
            KnownMap::None => true,
            KnownMap::Learning => false,
        }
    }

    /// Frames after a page event: no object of a slab is on them.
    fn renew_frames(&mut self, first: u64, count: u64) {
        if matches!(self.options.map, KnownMap::Base(_)) {
            self.clean_frames.set_all(first, count, true);
            self.born_frames.set_all(first, count, false);
        }
    }

    /// Enters a free of pages; true if the life of the pages is folded.
    fn page_free(&mut self, writer: &Writer, node: &mut Node, record: &[u8]) -> bool {
        let (first, count) = (node.value, 1u64 << node.order);
        self.stamp_pages(first, node.order);
        if node.order > PAGE_ORDER_MAX {
            self.may_fold_pages = false;
            node.keep = true;
            return false;
        }
        let is_clean = self.are_clean(first, count);
        let is_plain = |alloc: &Node| alloc.order == node.order && is_clean;
        let alloc = self.pages.get(first).filter(|_| self.may_fold_pages);
        let folded = alloc.is_some_and(|alloc| self.fold(writer, alloc, node, record, is_plain));
        if folded {
            self.pages.remove(first);
        } else {
            self.keep_pages(first, count);
            node.keep = true;
        }
        self.live_frames.set_all(first, count, false);
        self.renew_frames(first, count);
        folded
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

    /// Writes the events of a CPU that have waited long enough.
    fn emit(&mut self, writer: &mut Writer, cpu: u32) -> Result<()> {
        while let Some(first) = self.nodes.first(cpu) {
            let Some(node) = self.nodes.get(first) else { break };
            let waits = !node.keep && matches!(node.kind, Kind::Alloc | Kind::PageAlloc);
            if waits && self.now.saturating_sub(node.time) <= self.options.threshold {
                break;
            }
            self.write(writer, first)?;
        }
        Ok(())
    }

    /// Writes an event, with which no life is folded any more.
    fn write(&mut self, writer: &mut Writer, index: u32) -> Result<()> {
        let Some(node) = self.nodes.get(index).copied() else { return Ok(()) };
        let number = self.cpus.get(node.cpu as usize).map_or(0, |cpu| cpu.number);
        if let Some(loss) = self.nodes.take_loss(index) {
            writer.add_loss(number, loss)?;
        } else {
            self.expire(&node, index);
            writer.add_event(number, node.time, self.nodes.record(index))?;
        }
        self.nodes.remove(index);
        Ok(())
    }

    /// An allocation has waited long enough: its life is a survivor's.
    fn expire(&mut self, node: &Node, index: u32) {
        let table = match node.kind {
            Kind::Alloc => &mut self.objects,
            Kind::PageAlloc => &mut self.pages,
            _ => return,
        };
        if table.get(node.value) == Some(index) {
            table.remove(node.value);
            if node.kind == Kind::Alloc {
                self.written.set(node.value, Some(Open::Live));
            }
        }
    }

    /// Writes the oldest events until there is memory again.
    fn write_through(&mut self, writer: &mut Writer) -> Result<()> {
        if let Some(interval) = &mut self.interval {
            interval.written_through = true;
        }
        while self.nodes.memory() > self.options.memory / 2 {
            let firsts = (0..self.cpus.len() as u32).filter_map(|cpu| self.nodes.first(cpu));
            let oldest = firsts.min_by_key(|&first| self.nodes.get(first).map(|node| node.seq));
            let Some(oldest) = oldest else { break };
            self.write(writer, oldest)?;
        }
        Ok(())
    }

    /// Begins the interval of a time, and ends the one before.
    fn begin_interval(&mut self, writer: &mut Writer, time: u64) -> Result<()> {
        let is_full = self.sums.memory() > self.options.memory / 4 && time > self.last_time;
        self.last_time = self.last_time.max(time);
        let begin = match &mut self.interval {
            Some(interval) if time >= interval.t_end => interval.t_end,
            Some(interval) if is_full && time > interval.t_begin => {
                interval.t_end = time;
                time
            }
            Some(_) => return Ok(()),
            None => time - time % self.options.interval,
        };
        self.end_interval(writer)?;
        let mut interval = FoldedInterval::default();
        interval.number = self.intervals;
        interval.t_begin = begin;
        interval.t_end = (time - time % self.options.interval).saturating_add(self.options.interval);
        interval.threshold = self.options.threshold;
        self.intervals += 1;
        self.interval = Some(interval);
        Ok(())
    }

    fn end_interval(&mut self, writer: &mut Writer) -> Result<()> {
        let Some(mut interval) = self.interval.take() else { return Ok(()) };
        let folded = self.cpus.iter_mut().map(|cpu| (cpu.number, std::mem::take(&mut cpu.folded_here)));
        interval.cpus = folded.filter(|(_, events)| *events > 0).collect();
        writer.add_fold(&self.sums.take(interval))
    }
}

#[cfg(test)]
mod tests;
