//! Decodes records of chunks to operations.
//!
//! A `Decoder` reads the records of an open chunk and writes one `Op` for each event that the ledger needs. Codes of
//! sites are cached by descriptor, so that most records cost a few instructions; an event is decoded in full only where
//! its code is not known yet (`resolve`). `merge` takes the operations of all CPUs from it, and `intern` numbers the
//! items.

use std::collections::HashMap;
use std::ops::Range;

use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Event, EventChunk, Schema, Trace};
use kmt_format::schema::{Meaning, Role};

use super::gfp_flags::GfpFlags;
use super::intern::{Interner, Item, NewItems, Select};
use super::join::StackJoin;
use super::op::{Kind, Op, OpCode};
use super::open_chunk::{DescriptorCount, EventCounts, Open, Origins, UNKNOWN};
use super::plan::{DecodePlan, Interests};
use super::side_events::SideNumbers;
use crate::trace::cgroups::TaskStates;

/// Decodes chunks and interns properties of their events.
pub struct Decoder<'t> {
    schema: &'t Schema,
    plans: Vec<DecodePlan>,
    interests: Interests,
    /// Names and cgroups of tasks over time, if a condition or a report uses them.
    task_states: TaskStates<'t>,
    /// Counts of all events by class, task and CPU between two times.
    counted: Option<(u64, u64)>,
    select: Option<Select<'t>>,
    flags: Option<FlagTexts<'t>>,
    /// Interned properties of events.
    pub interner: Interner,
    /// Number of sites of frees in [`NewItems`] so far.
    frees_known: usize,
    /// Fields of side events since the last [`NewItems`], and the number of the last one.
    side_numbers: (Vec<(u64, SideNumbers)>, u64),
    /// Events after this time do not count as seen: how many of them are decoded depends on what is wanted.
    seen_until: u64,
    /// Events that are nothing to the ledger are operations too, as marks: where a clock steps back, the order in which
    /// CPUs are merged depends on them.
    pub keeps_marks: bool,
    /// By class index, whether there are events of it.
    pub classes_seen: Vec<bool>,
    /// Number of events by class and origin, if needed.
    pub event_counts: EventCounts,
    /// Joins stacks to allocations, if stacks are needed.
    join: Option<StackJoin>,
}

/// Bytes of names of allocation flags at most; all flags of Linux 7.2 together have some 500. Rows of reports each have
/// them.
const FLAGS_TEXT_MAX: usize = 1024;

/// Prints allocation flags as the kernel does.
struct FlagTexts<'t> {
    env: PrintEnv<'t>,
    /// The name `GFP_NOWAIT` stands for __GFP_NOWARN too, and the bits do not show it.
    nowait_is_silent: bool,
    /// Print formats of event classes: parsing one costs far more than using it.
    templates: HashMap<usize, EventText>,
}

impl FlagTexts<'_> {
    fn of(&mut self, event: &Event<'_>) -> Option<Vec<u8>> {
        let field = event.class().field_with(Role::GFP_FLAGS)?;
        let new = || EventText::new(event.class(), &self.env);
        self.templates.entry(event.class_index()).or_insert_with(new).field_text(field, event, &self.env)
    }

    /// Keeps the names of the flags of an event, unless they are kept.
    fn see(&mut self, plan: &DecodePlan, event: &Event<'_>, interner: &mut Interner) {
        let flags = plan.uint(event, Role::GFP_FLAGS);
        if let Some(flags) = flags.filter(|flags| !interner.gfp_texts.contains_key(flags)) {
            let text = self.of(event).filter(|text| text.len() <= FLAGS_TEXT_MAX);
            let text = text.unwrap_or_else(|| interner.gfp_text(flags));
            interner.gfp_set.insert(flags, self.set(event, flags, &text));
            interner.gfp_texts.insert(flags, text);
        }
    }

    /// Flags that are set, whatever names the text has for them.
    fn set(&mut self, event: &Event<'_>, flags: u64, text: &[u8]) -> GfpFlags {
        let Some(field) = event.class().field_with(Role::GFP_FLAGS) else { return GfpFlags::empty() };
        let new = || EventText::new(event.class(), &self.env);
        let template = self.templates.entry(event.class_index()).or_insert_with(new);
        let names = template.field_flags(field, flags).into_iter().flatten();
        let set: GfpFlags = names.map(GfpFlags::named).collect();
        let has_nowait = || text.split(|&byte| byte == b'|').any(|name| name == b"GFP_NOWAIT");
        if self.nowait_is_silent && has_nowait() { set | GfpFlags::NOWARN } else { set }
    }
}

/// The parts of a decoder that take an operation.
struct Rest<'r> {
    join: &'r mut Option<StackJoin>,
    interner: &'r Interner,
    counted: (u64, u64),
    counts: &'r mut [DescriptorCount],
    event_counts: &'r mut EventCounts,
    /// Codes from this one on are no operations.
    dropped_from: u32,
}

impl Rest<'_> {
    /// Stores the operation of an event at `len`; returns the number of operations then.
    #[inline]
    fn put<const JOIN: bool, const COUNT: bool>(
        &mut self,
        op: Op,
        descriptor: u16,
        (ops, mut len): (&mut [Op], usize),
    ) -> usize {
        if COUNT && (self.counted.0..=self.counted.1).contains(&op.time) && op.origin != UNKNOWN {
            if let Some(count) = self.counts.get_mut(usize::from(descriptor)) {
                count.count(op.origin, self.event_counts);
            }
        }
        // Always stored, and kept if it is an operation: avoids an unpredictable branch.
        if let Some(slot) = ops.get_mut(len) {
            *slot = op;
        }
        len += usize::from(op.code.bits() < self.dropped_from);
        if JOIN {
            let slot = ops.get_mut(len.wrapping_sub(1));
            len -= usize::from(!self.join_stack(op, slot) && self.dropped_from < u32::MAX);
        }
        len
    }

    /// Joins stacks to allocations; `slot` has the operation of the event. False for stacks of other events, which are
    /// dropped.
    fn join_stack(&mut self, op: Op, slot: Option<&mut Op>) -> bool {
        let task = self.interner.origins.get(op.origin).copied();
        let of = self.join.as_mut().zip(task).and_then(|(join, task)| join.see(op.code, task));
        let is_kept = op.code.kind() != Kind::Stack || of.is_some();
        if let Some(slot) = slot {
            match of {
                Some(of) => slot.value = of.value(),
                None if !is_kept => slot.code = OpCode::OTHER,
                None => {}
            }
        }
        is_kept
    }
}

impl<'t> Decoder<'t> {
    /// A decoder of slab and page events, and of others that are needed.
    pub fn new(trace: &'t Trace<'_>, interests: Interests) -> Self {
        let schema = trace.schema();
        Self {
            schema,
            plans: DecodePlan::all(schema),
            interests,
            task_states: TaskStates::default(),
            counted: None,
            select: None,
            flags: None,
            interner: Interner::default(),
            frees_known: 0,
            side_numbers: (Vec::new(), 0),
            seen_until: u64::MAX,
            keeps_marks: false,
            classes_seen: vec![false; schema.class_count()],
            event_counts: HashMap::default(),
            join: interests.intersects(Interests::STACKS).then(StackJoin::default),
        }
    }

    /// Limits the bytes of names and stacks.
    pub fn with_texts_max(mut self, max: u64) -> Self {
        self.interner.set_texts_max(max);
        self
    }

    /// Numbers tasks by their names and cgroups too.
    pub fn with_task_states(self, task_states: TaskStates<'t>) -> Self {
        Self { task_states, ..self }
    }

    /// Counts classes as seen by events until a time.
    pub fn with_seen_until(self, seen_until: u64) -> Self {
        Self { seen_until, ..self }
    }

    /// Counts all events between two times by class and origin.
    pub fn with_event_counts(self, counted: Option<(u64, u64)>) -> Self {
        Self { counted, ..self }
    }

    /// Decides which items are selected.
    pub fn with_selection(self, select: Select<'t>) -> Self {
        Self { select: Some(select), ..self }
    }

    /// Keeps the names of allocation flags. `nowait_is_silent`: `GFP_NOWAIT` stands for __GFP_NOWARN too, and the bits do
    /// not show it.
    pub fn with_flag_texts(self, env: Option<PrintEnv<'t>>, nowait_is_silent: bool) -> Self {
        let texts = |env| FlagTexts { env, nowait_is_silent, templates: HashMap::new() };
        Self { flags: env.map(texts), ..self }
    }

    /// Code of an event that folded lives are like, which has no origin.
    pub fn code_of_sample(&mut self, event: &Event<'_>) -> OpCode {
        let Some(plan) = self.plans.get(event.class_index()) else { return OpCode::OTHER };
        if let Some(texts) = &mut self.flags {
            texts.see(plan, event, &mut self.interner);
        }
        if let Some(seen) = self.classes_seen.get_mut(event.class_index()) {
            *seen = true;
        }
        self.interner.code_of(plan, event)
    }

    /// Items that were numbered since the last call.
    pub fn new_items(&mut self) -> NewItems {
        let Self { interner, select, .. } = self;
        let mut is_selected = |item: Item<'_>| select.as_mut().is_none_or(|select| select(interner, item));
        let known = &interner.selected;
        let sites = interner.sites.items().iter().skip(known.sites.len());
        let sites: Vec<_> = sites.map(|site| (*site, is_selected(Item::Site(site)))).collect();
        let pages = interner.pages.items().iter().skip(known.pages.len());
        let pages: Vec<_> = pages.map(|pages| (*pages, is_selected(Item::Pages(pages)))).collect();
        let origins = interner.origins.items().iter().skip(known.origins.len());
        let origins: Vec<_> = origins.map(|origin| (*origin, is_selected(Item::Origin(origin)))).collect();
        let frees: Vec<_> = interner.frees.items().iter().skip(self.frees_known).copied().collect();
        self.frees_known += frees.len();
        let known = &mut interner.selected;
        known.sites.extend(sites.iter().map(|site| site.1));
        known.pages.extend(pages.iter().map(|pages| pages.1));
        known.origins.extend(origins.iter().map(|origin| origin.1));
        NewItems { sites, frees, pages, origins, side_numbers: std::mem::take(&mut self.side_numbers.0) }
    }

    /// Marks the classes of a chunk's events as seen, without decoding them.
    pub fn see_classes(&mut self, chunk: &EventChunk<'_>) {
        let mut counts = self.descriptors_of(chunk);
        chunk.records().for_each(|record| {
            if let Some(count) = counts.get_mut(usize::from(record.descriptor)) {
                count.events += 1;
            }
        });
        for count in counts.iter().filter(|count| count.events > 0) {
            if let Some(seen) = self.classes_seen.get_mut(count.class as usize) {
                *seen = true;
            }
        }
    }

    /// Decodes at most `ops.len()` records; returns the number of operations.
    pub fn decode(&mut self, open: &mut Open<'_>, ops: &mut [Op]) -> usize {
        match (self.join.is_some(), self.counted.is_some()) {
            (false, false) => self.decode_as::<false, false>(open, ops),
            (false, true) => self.decode_as::<false, true>(open, ops),
            (true, false) => self.decode_as::<true, false>(open, ops),
            (true, true) => self.decode_as::<true, true>(open, ops),
        }
    }

    /// The loop, compiled with and without stacks and counts, so that they cost nothing if they are not needed.
    fn decode_as<const JOIN: bool, const COUNT: bool>(
        &mut self,
        open: &mut Open<'_>,
        ops: &mut [Op],
    ) -> usize {
        let range = open.next..open.chunk.records().len().min(open.next + ops.len());
        open.next = range.end;
        if COUNT && open.counts.is_empty() {
            open.counts = self.descriptors_of(&open.chunk);
        }
        if let Some(join) = self.join.as_mut().filter(|_| std::mem::take(&mut open.behind_gap)) {
            join.gap(open.chunk.cpu());
        }
        let (mut index, mut len) = (range.start, 0);
        while index < range.end {
            let end = open.same_origins_until(index, range.end);
            index += self.known::<JOIN, COUNT>(open, index..end, (ops, &mut len));
            if index < end {
                self.unknown::<JOIN, COUNT>(open, index, (ops, &mut len));
                index += 1;
            }
        }
        // The rest of the chunk may never be decoded.
        open.counts.iter_mut().for_each(|count| count.add_to(&mut self.event_counts));
        len
    }

    /// Decodes records until one whose code or origin must be found; returns their number.
    #[inline]
    fn known<const JOIN: bool, const COUNT: bool>(
        &mut self,
        open: &mut Open<'_>,
        range: Range<usize>,
        (ops, len): (&mut [Op], &mut usize),
    ) -> usize {
        let Open { chunk, codes, origins, counts, .. } = open;
        let (codes, origins) = (codes.as_slice(), origins.known());
        let mut rest = self.rest(counts);
        let mut at = *len;
        let done = chunk.for_each_while(range, |time, record| {
            let code = codes.get(usize::from(record.descriptor)).copied().unwrap_or(OpCode::UNKNOWN);
            let origin = origins.get(usize::from(record.context)).copied().unwrap_or(UNKNOWN);
            if code.needs_event() || origin == UNKNOWN {
                return false;
            }
            let op = Op { time, value: record.value, code, origin };
            at = rest.put::<JOIN, COUNT>(op, record.descriptor, (ops, at));
            true
        });
        *len = at;
        done
    }

    /// Decodes one record, whatever it needs.
    fn unknown<const JOIN: bool, const COUNT: bool>(
        &mut self,
        open: &mut Open<'_>,
        index: usize,
        (ops, len): (&mut [Op], &mut usize),
    ) {
        let Open { chunk, codes, origins, counts, .. } = open;
        let (Some(record), Some(time)) = (chunk.records().get(index), chunk.time(index)) else { return };
        let (code, value, origin) = self.resolve(chunk, index, codes, origins).unwrap_or_else(|| {
            let code = codes.get(usize::from(record.descriptor)).copied().unwrap_or(OpCode::OTHER);
            (code, record.value, origins.of(record.context))
        });
        let op = Op { time, value, code, origin };
        *len = self.rest(counts).put::<JOIN, COUNT>(op, record.descriptor, (ops, *len));
    }

    /// What follows when code and origin of a record are known.
    fn rest<'r>(&'r mut self, counts: &'r mut [DescriptorCount]) -> Rest<'r> {
        Rest {
            join: &mut self.join,
            interner: &self.interner,
            counted: self.counted.unwrap_or((u64::MAX, 0)),
            counts,
            event_counts: &mut self.event_counts,
            dropped_from: if self.keeps_marks { u32::MAX } else { OpCode::OTHER.bits() },
        }
    }

    /// Empty counts of each descriptor.
    fn descriptors_of(&self, chunk: &EventChunk<'_>) -> Vec<DescriptorCount> {
        let class = |descriptor| Some(self.schema.shape(chunk.shape_of(descriptor)?)?.class as u32);
        let class = |descriptor| class(descriptor).unwrap_or(UNKNOWN);
        let count = |descriptor| DescriptorCount { class: class(descriptor), origin: UNKNOWN, events: 0 };
        (0..chunk.descriptor_count()).map(count).collect()
    }

    /// Slow path: decodes the event, and caches the result where it holds for other events.
    #[cold]
    fn resolve(
        &mut self,
        chunk: &EventChunk<'_>,
        index: usize,
        codes: &mut [OpCode],
        origins: &mut Origins,
    ) -> Option<(OpCode, u64, u32)> {
        let event = Event::new(self.schema, chunk, index)?;
        let plan = self.plans.get(event.class_index())?;
        let record = event.record();
        let mut origin = origins.of(record.context);
        if origin == UNKNOWN {
            let states = self.task_states;
            origin = self.interner.origin(plan, &event, states);
            origins.put(chunk, record.context, origin, states.same_until(event.pid(), event.time()));
        }
        let is_stack = plan.meaning == Some(Meaning::KERNEL_STACK);
        let side_event = plan.side_event.as_ref().filter(|n| n.is_wanted(self.interests));
        let code = match side_event {
            Some(side_event) => OpCode::new(Kind::SideEvent, side_event.kind as u32),
            None if is_stack && self.join.is_none() => OpCode::OTHER,
            None => self.interner.code_of(plan, &event),
        };
        let side_event = side_event.filter(|n| n.kind.has_fields());
        let side_number = side_event.map(|side_event| {
            let (numbers, last) = &mut self.side_numbers;
            *last += 1;
            numbers.push((*last, side_event.read(&event)));
            *last
        });
        let given_up = (code.kind() == Kind::FreeRcu).then(|| plan.rcu_object(&event)).flatten();
        if let Some(texts) = &mut self.flags {
            texts.see(plan, &event, &mut self.interner);
        }
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
        // Times do not fall within a chunk: the first event of a kind comes here.
        if let Some(seen) = self.classes_seen.get_mut(event.class_index()) {
            *seen |= event.time() <= self.seen_until;
        }
        *codes.get_mut(usize::from(record.descriptor))? = if is_plain { code } else { OpCode::BY_EVENT };
        let value = side_number.or(given_up).or_else(|| plan.uint(&event, role)).unwrap_or(record.value);
        Some((code, value, origin))
    }
}
