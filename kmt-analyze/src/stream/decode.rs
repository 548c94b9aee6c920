//! From the records of a chunk to operations.

use std::collections::HashMap;

use kmt_format::read::{ChunkRef, Event, EventChunk, Schema, Trace};
use kmt_format::schema::{Meaning, Role};

use super::intern::{Interner, Origin, SharedInterner};
use super::join::StackJoin;
use super::op::{Kind, Op, OpCode};
use super::plan::DecodePlan;
use super::side_events::SideEventsWanted;
use crate::int_hash::IntHash;
use crate::trace::comms::Comms;

/// What the reports want beyond slab and page events.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'t> {
    /// Call stacks.
    pub stacks: bool,
    /// Events beside the ledger.
    pub side_events: SideEventsWanted,
    /// Names of tasks over time, where a condition asks for them.
    pub names: Option<&'t Comms>,
    /// Counts of all events by class, task and CPU between two times.
    pub event_counts: Option<(u64, u64)>,
}

/// Decodes chunks, and interns what it comes across.
#[derive(Debug)]
pub struct Decoder<'t> {
    schema: &'t Schema,
    plans: Vec<DecodePlan>,
    wanted: Wanted<'t>,
    /// What events have in common.
    interner: &'t SharedInterner,
    /// Items of its tables.
    pub interned: usize,
    /// By class index, whether there are events of it.
    pub classes_seen: Vec<bool>,
    /// If wanted: class and origin, number of events.
    pub event_counts: HashMap<(u32, u32), u64, IntHash>,
    /// Which stacks go on, where stacks are wanted.
    join: Option<StackJoin>,
    /// By number of the origin, as far as it was seen; where stacks are wanted.
    places: Vec<Origin>,
}

/// A chunk that is being decoded, block by block.
#[derive(Debug)]
pub struct Open<'d> {
    at: ChunkRef,
    chunk: EventChunk<'d>,
    /// Events of its CPU are missing just before it.
    pub behind_gap: bool,
    /// Record that comes next.
    next: usize,
    /// What its descriptors and contexts mean, as far as was seen.
    whats: Vec<OpCode>,
    origins: Vec<u32>,
}

const UNKNOWN: u32 = u32::MAX;

impl<'d> Open<'d> {
    /// A chunk of which nothing is decoded yet.
    pub fn new(at: ChunkRef, chunk: EventChunk<'d>, behind_gap: bool) -> Self {
        let whats = vec![OpCode::UNKNOWN; chunk.descriptor_count()];
        Self { at, chunk, behind_gap, next: 0, whats, origins: Vec::new() }
    }

    /// Whether all of it is decoded.
    pub fn is_done(&self) -> bool {
        self.next >= self.chunk.records().len()
    }
}

impl<'t> Decoder<'t> {
    /// A decoder for a trace.
    pub fn new(trace: &'t Trace<'_>, interner: &'t SharedInterner, wanted: Wanted<'t>) -> Self {
        let schema = trace.schema();
        Self {
            schema,
            plans: DecodePlan::all(schema),
            wanted,
            interner,
            interned: 0,
            classes_seen: vec![false; schema.class_count()],
            event_counts: HashMap::default(),
            join: wanted.stacks.then(StackJoin::default),
            places: Vec::new(),
        }
    }

    /// Decodes as many more records as `ops` has room for; returns how many operations came of them.
    pub fn decode(&mut self, open: &mut Open<'_>, ops: &mut [Op]) -> usize {
        if self.join.is_some() {
            self.decode_as::<true>(open, ops)
        } else {
            self.decode_as::<false>(open, ops)
        }
    }

    /// With stacks joined or without: what is not wanted costs nothing.
    fn decode_as<const JOIN: bool>(&mut self, open: &mut Open<'_>, ops: &mut [Op]) -> usize {
        let Open { at, chunk, behind_gap, next, whats, origins } = open;
        let range = *next..chunk.records().len().min(*next + ops.len());
        *next = range.end;
        if self.wanted.event_counts.is_some() {
            self.count(chunk, range.clone());
        }
        if let Some(join) = self.join.as_mut().filter(|_| std::mem::take(behind_gap)) {
            join.gap(chunk.cpu());
        }
        let (mut index, mut len) = (range.start, 0);
        chunk.for_each_in(range, |time, record| {
            let mut code = whats.get(usize::from(record.descriptor)).copied().unwrap_or(OpCode::OTHER);
            let mut origin = origins.get(usize::from(record.context)).copied().unwrap_or(UNKNOWN);
            let mut value = record.value;
            if code.is_question() || origin == UNKNOWN {
                if let Some(resolved) = self.resolve(at, chunk, index, whats, origins) {
                    (code, value, origin) = resolved;
                }
            }
            // Written always, kept if it is something: no branch to guess wrong.
            if let Some(op) = ops.get_mut(len) {
                *op = Op { time, value, code, origin };
            }
            len += usize::from(!code.is_mark());
            if JOIN {
                len -= usize::from(!self.joined(code, origin, ops.get_mut(len.wrapping_sub(1))));
            }
            index += 1;
        });
        len
    }

    /// Sees an event where stacks are wanted; `op` is the operation for it. Whether that is to be kept: of stacks only
    /// those of allocations are.
    fn joined(&mut self, code: OpCode, origin: u32, op: Option<&mut Op>) -> bool {
        let place = self.places.get(origin as usize).copied();
        let of = self.join.as_mut().zip(place).and_then(|(join, place)| join.see(code, place));
        if let Some((of, op)) = of.zip(op) {
            op.value = of.value();
        }
        code.kind() != Kind::Stack || of.is_some()
    }

    /// The slow way: the event itself is asked, and the answer kept where it holds for others.
    #[cold]
    fn resolve(
        &mut self,
        at: &ChunkRef,
        chunk: &EventChunk<'_>,
        index: usize,
        whats: &mut [OpCode],
        origins: &mut Vec<u32>,
    ) -> Option<(OpCode, u64, u32)> {
        let event = Event::new(self.schema, chunk, index)?;
        let plan = self.plans.get(event.class_index())?;
        let record = event.record();
        let place = usize::from(record.context);
        if origins.len() <= place {
            origins.resize(place + 1, UNKNOWN);
        }
        let mut interner = Interner::lock(self.interner);
        let names = self.wanted.names;
        let origin = interner.origin(plan, &event, names);
        let interned = interner.origins.items();
        if self.join.is_some() && self.places.len() < interned.len() {
            self.places.extend_from_slice(interned.get(self.places.len()..).unwrap_or_default());
        }
        // Of a task that changes its name each event is asked.
        let changes = names.is_some_and(|names| names.changes(event.pid()));
        if let Some(slot) = origins.get_mut(place).filter(|_| !changes) {
            *slot = origin;
        }
        let is_stack = plan.meaning == Some(Meaning::KERNEL_STACK);
        let side_event = plan.side_event.as_ref().filter(|n| n.is_wanted(self.wanted.side_events));
        let code = match side_event {
            Some(side_event) => OpCode::new(Kind::SideEvent, side_event.kind as u32),
            None if is_stack && !self.wanted.stacks => OpCode::OTHER,
            None => interner.code_of(plan, &event),
        };
        let side_event = side_event.filter(|n| n.kind.has_fields());
        let side_number = side_event.map(|n| interner.put_side_numbers(n.read(&event)));
        let handed_over = (code.kind() == Kind::FreeRcu).then(|| plan.rcu_object(&event)).flatten();
        if let Some(flags) = plan.uint(&event, Role::GFP_FLAGS) {
            interner.gfp.entry(flags).or_insert((*at, index));
        }
        self.interned = interner.item_count();
        drop(interner);
        let role = match code.kind() {
            Kind::Alloc | Kind::Kfree | Kind::CacheFree => Role::PTR,
            Kind::PageAlloc | Kind::PageFree => Role::PFN,
            Kind::Stack | Kind::SideEvent | Kind::FreeRcu | Kind::Other => Role::NONE,
        };
        let shape = chunk.shape_of(record.descriptor.into())?;
        let has_payload = self.schema.shape(shape).is_some_and(|s| s.payload_len > 0);
        let is_plain = match code.kind() {
            Kind::Other => true,
            Kind::SideEvent => side_number.is_none(),
            Kind::Stack => !has_payload,
            Kind::FreeRcu => false,
            _ => plan.is_value(self.schema, shape, role, chunk.long_size()),
        };
        if let Some(seen) = self.classes_seen.get_mut(event.class_index()) {
            *seen = true;
        }
        *whats.get_mut(usize::from(record.descriptor))? = if is_plain { code } else { OpCode::BY_EVENT };
        let value = side_number.or(handed_over).or_else(|| plan.uint(&event, role)).unwrap_or(record.value);
        Some((code, value, origin))
    }

    /// Counts events by class and origin.
    fn count(&mut self, chunk: &EventChunk<'_>, range: std::ops::Range<usize>) {
        let Some((first, last)) = self.wanted.event_counts else { return };
        let mut counts = HashMap::<(u16, u16, usize), (usize, u64), IntHash>::default();
        let mut index = range.start;
        // With names, each event for itself: its context does not tell them.
        let by_event = self.wanted.names.is_some();
        chunk.for_each_in(range, |time, record| {
            if (first..=last).contains(&time) {
                let key = (record.descriptor, record.context, if by_event { index } else { 0 });
                counts.entry(key).or_insert((index, 0)).1 += 1;
            }
            index += 1;
        });
        for (index, count) in counts.into_values() {
            let Some(event) = Event::new(self.schema, chunk, index) else { continue };
            let Some(plan) = self.plans.get(event.class_index()) else { continue };
            let origin = Interner::lock(self.interner).origin(plan, &event, self.wanted.names);
            *self.event_counts.entry((event.class_index() as u32, origin)).or_default() += count;
        }
    }
}
