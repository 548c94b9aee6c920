//! Building one event chunk: tables of repeated fields, and an array of records.

mod layout;

use zerocopy::LittleEndian;

use super::interner::{Interner, Key};
use super::plan::{RecordPlan, ValuePlan};
use crate::error::Result;
use crate::kernel::{ByteOrder, FieldKind, with_order};
use crate::raw::EventsHead;
use crate::schema::{Place, SHAPE_COMPACT, SHAPE_PAYLOAD, SHAPE_WIDE, Shape};

use super::BodyLayout;
use crate::Loss;
use crate::codec::{Compression, records_behind};

/// Records of one chunk at most: a chunk of 1 MiB on 64-bit targets.
const RECORDS_MAX: usize = 65_536;
/// Descriptors, and contexts, of one chunk at most.
const INTERNED_MAX: usize = 65_000;

/// Words of a key that is made on the stack.
const SHORT_KEY: usize = 12;

/// The event chunk of one CPU that is being filled.
#[derive(Debug)]
pub(crate) struct EventChunkBuilder {
    order: ByteOrder,
    long_size: usize,
    records_max: usize,
    /// Heap length at which the chunk is closed, in bytes. One more event may follow (1 MiB at most).
    heap_len_max: usize,
    record_count: usize,
    records: Vec<u8>,
    t_base: u64,
    t_last: u64,
    upper: u32,
    epochs: Vec<(u32, u32)>,
    loss: Loss,
    classes: u64,
    has_new_fields: bool,
    first_event: u64,
    descriptors: Interner,
    /// Offset of each descriptor in `descriptor_data`.
    descriptor_offsets: Vec<u32>,
    descriptor_data: Vec<u8>,
    contexts: Interner,
    /// Key and index of the last event's context.
    last_context: Option<((u32, u64), u16)>,
    /// Bytes of the contexts, and where each one ends.
    context_data: Vec<u8>,
    context_ends: Vec<u32>,
    arrays: Interner,
    array_offsets: Vec<u32>,
    heap: Vec<u8>,
    key: Key,
    array_key: Key,
}

/// Summary of a chunk, for its head and its index row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Summary {
    pub t_base: u64,
    pub t_last: u64,
    pub first_event: u64,
    pub record_count: u32,
    pub loss: Loss,
    /// Bit *n* for classes whose number modulo 64 is *n*.
    pub classes: u64,
}

/// A body that was laid out.
pub(crate) struct EventBody {
    /// Offset of the records; the bytes before them are the prefix.
    pub records_offset: usize,
    pub summary: Summary,
}

impl EventBody {
    /// Layout of the body: bytes before the records stay as they are; with a codec, only the head.
    pub(crate) fn layout(&self, order: ByteOrder, long_size: usize, compression: Compression) -> BodyLayout {
        let Self { records_offset, summary } = *self;
        let head_len = size_of::<EventsHead<LittleEndian>>();
        let prefix_len = if compression == Compression::None { records_offset } else { head_len };
        let (count, stride) = (summary.record_count as usize, 8 + long_size);
        let records = records_behind(prefix_len, records_offset, count, stride, order);
        BodyLayout { prefix_len, records, summary }
    }
}

/// Events of a class and new descriptors, for the choice between descriptor and payload.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClassRepeats {
    pub events: u32,
    pub misses: u32,
    /// The class hardly ever repeats: its fields go into the heap.
    pub in_payload: bool,
}

impl ClassRepeats {
    fn count(&mut self, missed: bool) {
        self.events = self.events.saturating_add(1);
        self.misses = self.misses.saturating_add(u32::from(missed));
        if self.misses > 256 && self.misses > self.events / 2 {
            self.in_payload = true;
        }
    }
}

impl EventChunkBuilder {
    pub fn new(order: ByteOrder, long_size: usize, chunk_len: usize) -> Self {
        Self {
            order,
            long_size,
            records_max: (chunk_len / (8 + long_size)).clamp(1, RECORDS_MAX),
            heap_len_max: chunk_len.saturating_mul(4),
            record_count: 0,
            records: Vec::new(),
            t_base: 0,
            t_last: 0,
            upper: 0,
            epochs: Vec::new(),
            loss: Loss::default(),
            classes: 0,
            has_new_fields: false,
            first_event: 0,
            descriptors: Interner::default(),
            descriptor_offsets: Vec::new(),
            descriptor_data: Vec::new(),
            contexts: Interner::default(),
            last_context: None,
            context_data: Vec::new(),
            context_ends: Vec::new(),
            arrays: Interner::default(),
            array_offsets: Vec::new(),
            heap: Vec::new(),
            key: Key::default(),
            array_key: Key::default(),
        }
    }

    pub fn record_count(&self) -> usize {
        self.record_count
    }

    /// Bytes of the chunk so far.
    pub fn len_bytes(&self) -> usize {
        let tables = self.descriptor_data.len() + 4 * self.descriptor_offsets.len() + self.context_data.len();
        let tables = tables + 8 * self.epochs.len() + self.heap.len();
        if self.is_empty() { 0 } else { 128 + tables + self.records.len() }
    }

    /// Records a loss before the first event.
    pub fn add_loss(&mut self, loss: Loss) {
        self.loss = self.loss.and(loss);
    }

    /// True if there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.record_count == 0 && self.loss == Loss::default()
    }

    /// True if `time` is before the last event.
    pub fn falls_at(&self, time: u64) -> bool {
        self.record_count > 0 && time < self.t_last
    }

    /// Bytes of arrays and payloads so far.
    pub fn heap_len(&self) -> usize {
        self.heap.len()
    }

    /// True if the chunk has to be closed before an event at `time`.
    pub fn must_close_before(&self, time: u64) -> bool {
        self.record_count > 0
            && (time < self.t_last
                || self.record_count >= self.records_max
                || self.descriptors.len() >= INTERNED_MAX
                || self.contexts.len() >= INTERNED_MAX
                || self.heap.len() >= self.heap_len_max)
    }

    /// Adds an event. [`Self::must_close_before`] must be false.
    pub fn push(
        &mut self,
        plan: &RecordPlan,
        repeats: &mut ClassRepeats,
        time: u64,
        record: &[u8],
    ) -> Result<()> {
        plan.check_len(record)?;
        self.add_time(time);
        let context = self.context(plan, record);
        let value = if repeats.in_payload { None } else { self.value(plan, time, record) };
        let (descriptor, value) = match value {
            Some(value) => {
                let (descriptor, is_new) = self.descriptor(plan, record);
                repeats.count(is_new);
                self.has_new_fields = is_new;
                (descriptor, value)
            }
            None => {
                self.has_new_fields = true;
                self.payload(plan, record)
            }
        };
        let offset = time.wrapping_sub(self.t_base) as u32;
        self.push_record(offset, descriptor, context, value);
        self.record_count += 1;
        Ok(())
    }

    /// True if the last event had fields that this chunk did not have.
    pub fn has_new_fields(&self) -> bool {
        self.has_new_fields
    }

    #[inline]
    fn push_record(&mut self, offset: u32, descriptor: u16, context: u16, value: u64) {
        let head = u64::from(offset) | u64::from(descriptor) << 32 | u64::from(context) << 48;
        // For every event: the usual targets' record is one store, without the loop of `push`.
        match (self.order, self.long_size) {
            (ByteOrder::Little, 8) => {
                let record = u128::from(head) | u128::from(value) << 64;
                self.records.extend_from_slice(&record.to_le_bytes());
            }
            (ByteOrder::Little, _) => {
                self.records.extend_from_slice(&head.to_le_bytes());
                self.records.extend_from_slice(&(value as u32).to_le_bytes());
            }
            (ByteOrder::Big, _) => {
                self.records.extend_from_slice(&offset.to_be_bytes());
                self.records.extend_from_slice(&descriptor.to_be_bytes());
                self.records.extend_from_slice(&context.to_be_bytes());
                self.order.push(&mut self.records, value, self.long_size);
            }
        }
    }

    fn add_time(&mut self, time: u64) {
        if self.record_count == 0 {
            self.t_base = time;
        }
        let upper = (time.wrapping_sub(self.t_base) >> 32) as u32;
        if upper != self.upper {
            self.upper = upper;
            self.epochs.push((self.record_count as u32, upper));
        }
        self.t_last = time;
    }

    #[inline]
    fn context(&mut self, plan: &RecordPlan, record: &[u8]) -> u16 {
        // Contexts change every few events only; nearly all kernels' fit into one word.
        let word = match plan.context_key.as_slice() {
            [load] => Some((plan.context_len, load.word(record))),
            _ => None,
        };
        if let (Some(word), Some((last, index))) = (word, self.last_context) {
            if word == last {
                return index;
            }
        }
        self.key.start(plan.context_len.into());
        self.key.extend(plan.context_key.iter().map(|load| load.word(record)));
        let found = self.contexts.intern(self.key.words());
        if found.is_new {
            for segment in &plan.context {
                self.context_data.extend_from_slice(part(record, segment.offset, segment.len));
            }
            self.context_ends.push(self.context_data.len() as u32);
        }
        let index = found.index as u16;
        self.last_context = word.map(|word| (word, index));
        index
    }

    /// The value word of the compact and wide shapes; `None` if it does not fit.
    #[inline]
    fn value(&self, plan: &RecordPlan, time: u64, record: &[u8]) -> Option<u64> {
        match plan.value {
            ValuePlan::Zero => Some(0),
            ValuePlan::Field(load) => Some(load.number(record, self.order)),
            ValuePlan::Timed { entry, returned } => {
                let entry = self.order.uint(part(record, entry.offset, 8));
                let returned = self.order.uint(part(record, returned.offset, 8));
                let low = u32::try_from(time.checked_sub(returned)?).ok()?;
                let high = u32::try_from(returned.checked_sub(entry)?).ok()?;
                Some(u64::from(high) << 32 | u64::from(low))
            }
        }
    }

    /// Index of the descriptor with this record's repeating fields, and whether it is new.
    #[inline]
    fn descriptor(&mut self, plan: &RecordPlan, record: &[u8]) -> (u16, bool) {
        let found = if plan.arrays.is_empty() && plan.key.len() < SHORT_KEY {
            let mut words = [plan.index as u64; SHORT_KEY];
            for (word, load) in words.iter_mut().skip(1).zip(&plan.key) {
                *word = load.word(record);
            }
            self.descriptors.intern_recent(words.get(..=plan.key.len()).unwrap_or_default())
        } else {
            self.key.start(plan.index as u64);
            self.key.extend(plan.key.iter().map(|load| load.word(record)));
            for array in &plan.arrays {
                self.key.push_bytes(array.bytes(record, self.order, self.long_size));
            }
            self.descriptors.intern_recent(self.key.words())
        };
        if found.is_new {
            let shape =
                if self.fits(&plan.shapes[SHAPE_COMPACT], plan, record) { SHAPE_COMPACT } else { SHAPE_WIDE };
            self.add_descriptor(plan, shape, Some(record));
        }
        (found.index as u16, found.is_new)
    }

    /// True if every number fits into its bytes in the shape.
    fn fits(&self, shape: &Shape, plan: &RecordPlan, record: &[u8]) -> bool {
        plan.class.fields.iter().zip(shape.slots.iter()).all(|(field, slot)| {
            if slot.place != Place::Descriptor
                || field.kind != FieldKind::Scalar
                || slot.stored as u32 == field.size
            {
                return true;
            }
            let value = self.order.uint(part(record, field.offset, field.size));
            if field.signed { i32::try_from(value as i64).is_ok() } else { u32::try_from(value).is_ok() }
        })
    }

    fn add_descriptor(&mut self, plan: &RecordPlan, shape_index: usize, record: Option<&[u8]>) {
        let Some(shape) = plan.shapes.get(shape_index) else { return };
        self.classes |= class_bit(plan.index);
        self.descriptor_offsets.push(self.descriptor_data.len() as u32);
        let mut data = core::mem::take(&mut self.descriptor_data);
        self.order.push(&mut data, (plan.first_shape + shape_index) as u64, 2);
        self.order.push(&mut data, u64::from(shape.descriptor_len), 2);
        if let Some(record) = record {
            self.push_fields(&mut data, shape, plan, Place::Descriptor, record);
        }
        data.resize(data.len().next_multiple_of(4), 0);
        self.descriptor_data = data;
    }

    /// Appends the fields that `shape` keeps in `place`, in order.
    fn push_fields(
        &mut self,
        out: &mut Vec<u8>,
        shape: &Shape,
        plan: &RecordPlan,
        place: Place,
        record: &[u8],
    ) {
        for (i, (field, slot)) in plan.class.fields.iter().zip(shape.slots.iter()).enumerate() {
            if slot.place != place {
                continue;
            }
            let stored = match plan.arrays.iter().find(|a| a.field == i) {
                None => self.order.uint(part(record, field.offset, field.size)),
                Some(array) => u64::from(self.array(array.bytes(record, self.order, self.long_size))),
            };
            self.order.push(out, stored, usize::from(slot.stored));
        }
    }

    /// Heap offset of an array with these contents.
    fn array(&mut self, bytes: &[u8]) -> u32 {
        self.array_key.start(0);
        self.array_key.push_bytes(bytes);
        let found = self.arrays.intern(self.array_key.words());
        if found.is_new {
            self.heap.resize(self.heap.len().next_multiple_of(4), 0);
            self.array_offsets.push(self.heap.len() as u32);
            self.order.push(&mut self.heap, bytes.len() as u64, 4);
            self.heap.extend_from_slice(bytes);
        }
        self.array_offsets.get(found.index).copied().unwrap_or(0)
    }

    /// Stores all fields in the heap; returns descriptor and value word.
    fn payload(&mut self, plan: &RecordPlan, record: &[u8]) -> (u16, u64) {
        let mut data = Vec::new();
        self.push_fields(&mut data, &plan.shapes[SHAPE_PAYLOAD], plan, Place::Payload, record);
        self.heap.resize(self.heap.len().next_multiple_of(8), 0);
        let offset = self.heap.len() as u64;
        self.heap.extend_from_slice(&data);
        // A key that no descriptor of the other shapes can have: the class with its upper bit set.
        let found = self.descriptors.intern(&[plan.index as u64 | 1 << 63]);
        if found.is_new {
            self.add_descriptor(plan, SHAPE_PAYLOAD, None);
        }
        (found.index as u16, offset)
    }

    /// Appends the body of the chunk; returns where in it the records start, and the values of its head. Empties the
    /// builder; the next chunk starts at `first_event` plus these events.
    pub fn take_body(&mut self, out: &mut Vec<u8>) -> EventBody {
        let records_offset = with_order!(self.order, O => self.layout::<O>(out));
        let body = EventBody { records_offset, summary: self.summary() };
        self.first_event = self.first_event.saturating_add(self.record_count as u64);
        self.record_count = 0;
        self.records.clear();
        self.epochs.clear();
        self.upper = 0;
        self.loss = Loss::default();
        self.classes = 0;
        self.descriptors.clear();
        self.descriptor_offsets.clear();
        self.descriptor_data.clear();
        self.contexts.clear();
        self.last_context = None;
        self.context_data.clear();
        self.context_ends.clear();
        self.arrays.clear();
        self.array_offsets.clear();
        self.heap.clear();
        body
    }

    /// Frees the memory of an empty builder: of thousands of CPUs most have few events.
    pub fn release_memory(&mut self) {
        if !self.is_empty() {
            return;
        }
        self.records = Vec::new();
        self.epochs = Vec::new();
        self.descriptors.release_memory();
        self.descriptor_offsets = Vec::new();
        self.descriptor_data = Vec::new();
        self.contexts.release_memory();
        self.context_data = Vec::new();
        self.context_ends = Vec::new();
        self.arrays.release_memory();
        self.array_offsets = Vec::new();
        self.heap = Vec::new();
    }

    /// Summary of the chunk.
    pub fn summary(&self) -> Summary {
        Summary {
            t_base: if self.record_count == 0 { self.t_last } else { self.t_base },
            t_last: self.t_last,
            first_event: self.first_event,
            record_count: self.record_count as u32,
            loss: self.loss,
            classes: self.classes,
        }
    }

    /// Continues after events in other chunks.
    pub fn continue_after(&mut self, first_event: u64, t_last: u64) {
        self.first_event = first_event;
        self.t_last = t_last;
    }

    /// Takes the recorded loss.
    pub fn take_loss(&mut self) -> Loss {
        core::mem::take(&mut self.loss)
    }
}

/// The bit of a class in the `classes` of a head.
#[inline]
pub(crate) fn class_bit(class: usize) -> u64 {
    1 << (class % 64)
}

/// Part of a record; empty where the record is too short, which `record_len_min` has ruled out.
#[inline]
fn part(record: &[u8], offset: u32, len: u32) -> &[u8] {
    record.get(offset as usize..(offset + len) as usize).unwrap_or(&[])
}
