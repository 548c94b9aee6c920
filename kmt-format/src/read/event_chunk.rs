//! One event chunk, its records cast in place.

use zerocopy::{BigEndian, ByteOrder as Order, LittleEndian};

use super::cast::{array_at, head_len, struct_at};
use super::{ChunkRef, Schema};
use crate::Limits;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{ByteOrder, FieldKind};
use crate::raw::{Epoch, EventsHead, Record32, Record64, loss_flags};
use crate::schema::{Place, Shape};
use crate::write::Loss;

/// The records of a chunk, in the byte order and word size of the target.
#[derive(Debug, Clone, Copy)]
pub enum Records<'d> {
    /// Little endian, 8-byte words.
    Little64(&'d [Record64<LittleEndian>]),
    /// Big endian, 8-byte words.
    Big64(&'d [Record64<BigEndian>]),
    /// Little endian, 4-byte words.
    Little32(&'d [Record32<LittleEndian>]),
    /// Big endian, 4-byte words.
    Big32(&'d [Record32<BigEndian>]),
}

/// One record in native numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Record {
    /// Low 32 bits of the time offset.
    pub time_offset: u32,
    /// Index of the descriptor.
    pub descriptor: u16,
    /// Index of the context.
    pub context: u16,
    /// The value word.
    pub value: u64,
}

macro_rules! native {
    ($record:expr) => {
        Record {
            time_offset: $record.time_offset.get(),
            descriptor: $record.descriptor.get(),
            context: $record.context.get(),
            value: u64::from($record.value.get()),
        }
    };
}

impl Records<'_> {
    /// Number of records.
    pub fn len(&self) -> usize {
        match self {
            Self::Little64(r) => r.len(),
            Self::Big64(r) => r.len(),
            Self::Little32(r) => r.len(),
            Self::Big32(r) => r.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The record of that index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Record> {
        Some(match self {
            Self::Little64(r) => native!(r.get(index)?),
            Self::Big64(r) => native!(r.get(index)?),
            Self::Little32(r) => native!(r.get(index)?),
            Self::Big32(r) => native!(r.get(index)?),
        })
    }

    /// Calls `visit` with every record; the byte order is chosen once.
    #[inline]
    pub fn for_each(&self, mut visit: impl FnMut(Record)) {
        match self {
            Self::Little64(r) => r.iter().for_each(|r| visit(native!(r))),
            Self::Big64(r) => r.iter().for_each(|r| visit(native!(r))),
            Self::Little32(r) => r.iter().for_each(|r| visit(native!(r))),
            Self::Big32(r) => r.iter().for_each(|r| visit(native!(r))),
        }
    }
}

/// What the head of an event chunk says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventsInfo {
    /// What was lost just before the first event.
    pub loss: Loss,
    /// Time of the first event.
    pub t_first: u64,
    /// Time of the last event.
    pub t_last: u64,
    /// Events of this CPU in the chunks before.
    pub first_event: u64,
    /// Number of events.
    pub event_count: u32,
}

/// One event chunk, checked from end to end: every index and offset in it is good.
#[derive(Debug, Clone)]
pub struct EventChunk<'d> {
    pub(super) cpu: u32,
    pub(super) order: ByteOrder,
    pub(super) info: EventsInfo,
    pub(super) records: Records<'d>,
    /// Shape and data of each descriptor.
    pub(super) descriptors: Vec<(u16, &'d [u8])>,
    pub(super) contexts: &'d [u8],
    pub(super) context_stride: usize,
    pub(super) heap: &'d [u8],
    /// First record and upper half of the time offset; the first entry is (0, 0).
    epochs: Vec<(u32, u32)>,
}

impl<'d> EventChunk<'d> {
    /// CPU.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// What the head says.
    pub fn info(&self) -> &EventsInfo {
        &self.info
    }

    /// The records.
    pub fn records(&self) -> Records<'d> {
        self.records
    }

    /// Number of descriptors.
    pub fn descriptor_count(&self) -> usize {
        self.descriptors.len()
    }

    /// Index of the shape of that descriptor.
    pub fn shape_of(&self, descriptor: usize) -> Option<usize> {
        self.descriptors.get(descriptor).map(|d| usize::from(d.0))
    }

    /// Time of the record of that index, in the clock's unit.
    #[inline]
    pub fn time(&self, index: usize) -> Option<u64> {
        let record = self.records.get(index)?;
        Some(self.time_of(index, record.time_offset))
    }

    #[inline]
    pub(super) fn time_of(&self, index: usize, time_offset: u32) -> u64 {
        let upper = match self.epochs.as_slice() {
            [_] => 0,
            epochs => {
                let after = epochs.partition_point(|e| e.0 as usize <= index);
                after.checked_sub(1).and_then(|i| epochs.get(i)).map_or(0, |e| e.1)
            }
        };
        self.info.t_first.wrapping_add(u64::from(upper) << 32 | u64::from(time_offset))
    }

    /// Index of the first record at `time` or later.
    pub fn first_at_or_after(&self, time: u64) -> usize {
        let (mut low, mut high) = (0, self.records.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.time(middle).is_some_and(|t| t < time) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Where the run that starts at `start` ends: the first record behind it at `limit` or later, `end` at most.
    ///
    /// Times never fall within a chunk, so this steps on in growing strides and halves the last one.
    pub(super) fn run_end(&self, start: usize, end: usize, limit: u64) -> usize {
        let is_before = |index: usize| self.time(index).is_some_and(|t| t < limit);
        let (mut low, mut stride) = (start, 1);
        while low + stride < end && is_before(low + stride) {
            low += stride;
            stride *= 2;
        }
        let mut high = (low + stride).min(end);
        low += 1;
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The head alone, without looking at the rest.
    pub(super) fn head(body: &[u8], chunk: &ChunkRef, order: ByteOrder) -> Result<EventsInfo> {
        match order {
            ByteOrder::Little => {
                Ok(info(struct_at::<EventsHead<LittleEndian>>(body, 0, chunk.body_offset())?))
            }
            ByteOrder::Big => Ok(info(struct_at::<EventsHead<BigEndian>>(body, 0, chunk.body_offset())?)),
        }
    }

    pub(super) fn parse(
        body: &'d [u8],
        chunk: &ChunkRef,
        order: ByteOrder,
        long_size: usize,
        schema: &Schema,
        limits: &Limits,
    ) -> Result<Self> {
        let parsed = match order {
            ByteOrder::Little => Self::parse_in_order::<LittleEndian>(body, chunk, order, long_size, limits),
            ByteOrder::Big => Self::parse_in_order::<BigEndian>(body, chunk, order, long_size, limits),
        }?;
        parsed
            .check(schema, long_size)
            .map_err(|what| Error::at(chunk.body_offset(), ErrorKind::Malformed(what)))?;
        Ok(parsed)
    }

    fn parse_in_order<O: Order>(
        body: &'d [u8],
        chunk: &ChunkRef,
        order: ByteOrder,
        long_size: usize,
        limits: &Limits,
    ) -> Result<Self> {
        let base = chunk.body_offset();
        let bad = |what| Error::at(base, ErrorKind::Malformed(what));
        let head = struct_at::<EventsHead<O>>(body, 0, base)?;
        head_len::<EventsHead<O>>(head.head_len.get(), body, base)?;
        let limit = |what, found: u32, limit: u32| {
            let (found, limit) = (u64::from(found), u64::from(limit));
            if found > limit {
                Err(Error::at(base, ErrorKind::LimitExceeded { what, found, limit }))
            } else {
                Ok(())
            }
        };
        limit("the number of records of a chunk", head.record_count.get(), limits.records)?;
        limit("the number of descriptors of a chunk", head.descriptor_count.get(), limits.descriptors)?;
        limit("the number of contexts of a chunk", head.context_count.get(), limits.descriptors)?;
        limit("the number of epochs of a chunk", head.epoch_count.get(), limits.records)?;
        let record_count = head.record_count.get() as usize;
        let stride = usize::from(head.record_stride.get());
        if stride != 8 + long_size {
            return Err(bad("the record stride does not fit the word size"));
        }
        let records_offset = head.records_offset.get() as usize;
        let records = match (order, long_size) {
            (ByteOrder::Little, 8) => Records::Little64(array_at(body, records_offset, record_count, base)?),
            (ByteOrder::Big, 8) => Records::Big64(array_at(body, records_offset, record_count, base)?),
            (ByteOrder::Little, _) => Records::Little32(array_at(body, records_offset, record_count, base)?),
            (ByteOrder::Big, _) => Records::Big32(array_at(body, records_offset, record_count, base)?),
        };
        let context_stride = usize::from(head.context_stride.get());
        let contexts_len = context_stride * head.context_count.get() as usize;
        let contexts = array_at(body, head.contexts_offset.get() as usize, contexts_len, base)?;
        let heap = array_at(body, head.heap_offset.get() as usize, head.heap_len.get() as usize, base)?;
        let offsets: &[zerocopy::U32<O>] = array_at(
            body,
            head.descriptors_offset.get() as usize,
            head.descriptor_count.get() as usize,
            base,
        )?;
        let mut descriptors = Vec::with_capacity(offsets.len());
        for offset in offsets {
            descriptors.push(
                descriptor(body, offset.get() as usize, order)
                    .ok_or_else(|| bad("a descriptor lies outside its chunk"))?,
            );
        }
        let rows: &[Epoch<O>] =
            array_at(body, head.epochs_offset.get() as usize, head.epoch_count.get() as usize, base)?;
        let mut epochs = vec![(0, 0)];
        epochs.extend(rows.iter().map(|e| (e.first_record.get(), e.upper.get())));
        Ok(Self {
            cpu: chunk.cpu.unwrap_or(0),
            order,
            info: info(head),
            records,
            descriptors,
            contexts,
            context_stride,
            heap,
            epochs,
        })
    }

    /// Checks every index, offset and time once, so that nothing read later can be out of place.
    fn check(&self, schema: &Schema, long_size: usize) -> core::result::Result<(), &'static str> {
        if !self.epochs.windows(2).all(|w| matches!(w, [a, b] if a.0 <= b.0 && a.1 < b.1)) {
            return Err("the epochs of a chunk do not rise");
        }
        // For each descriptor the payload length of its shape, 0 mostly.
        let mut payload_shapes: Vec<Option<&Shape>> = Vec::with_capacity(self.descriptors.len());
        for (shape, data) in &self.descriptors {
            let shape =
                schema.shape(usize::from(*shape)).ok_or("a descriptor has a shape that no schema defines")?;
            if (data.len() as u64) < u64::from(shape.descriptor_len) {
                return Err("a descriptor is shorter than its shape");
            }
            self.check_slots(schema, shape, data, long_size)?;
            payload_shapes.push(Some(shape).filter(|s| s.payload_len > 0));
        }
        let context_count = self.contexts.len().checked_div(self.context_stride).unwrap_or(0);
        let mut index = 0usize;
        let mut last = 0u64;
        let mut wrong = None;
        self.records.for_each(|record| {
            let offset = self.time_of(index, record.time_offset).wrapping_sub(self.info.t_first);
            if offset < last {
                wrong = Some("the times of a chunk fall");
            }
            last = offset;
            index += 1;
            if usize::from(record.context) >= context_count {
                wrong = Some("a record has a context that is not there");
            }
            match payload_shapes.get(usize::from(record.descriptor)) {
                None => wrong = Some("a record has a descriptor that is not there"),
                Some(None) => {}
                Some(Some(shape)) => match self.payload(record.value, shape.payload_len) {
                    None => wrong = Some("the payload of a record lies outside the heap"),
                    Some(data) => {
                        if let Err(what) = self.check_arrays(schema, shape, Place::Payload, data) {
                            wrong = Some(what);
                        }
                    }
                },
            }
        });
        let first_offset = self.records.get(0).map_or(0, |r| r.time_offset);
        let t_last = self.info.t_first.wrapping_add(last);
        if !self.records.is_empty() && (first_offset != 0 || t_last != self.info.t_last) {
            wrong = Some("the head of a chunk has other times than its records");
        }
        wrong.map_or(Ok(()), Err)
    }

    fn check_slots(
        &self,
        schema: &Schema,
        shape: &Shape,
        data: &[u8],
        long_size: usize,
    ) -> core::result::Result<(), &'static str> {
        for slot in &shape.slots {
            let end = slot.offset as usize + usize::from(slot.stored);
            match slot.place {
                Place::Context if end > self.context_stride => {
                    return Err("a context is shorter than its fields");
                }
                Place::Value if end > long_size => return Err("a field is wider than the value word"),
                _ => {}
            }
        }
        self.check_arrays(schema, shape, Place::Descriptor, data)
    }

    fn check_arrays(
        &self,
        schema: &Schema,
        shape: &Shape,
        place: Place,
        data: &[u8],
    ) -> core::result::Result<(), &'static str> {
        let class = schema.class(shape.class).ok_or("a shape has a class that no schema defines")?;
        for (field, slot) in class.fields.iter().zip(&shape.slots) {
            if field.kind == FieldKind::Scalar || slot.place != place {
                continue;
            }
            let offset = self.order.uint_at(data, slot.offset as usize, usize::from(slot.stored));
            if offset.and_then(|o| self.array(o)).is_none() {
                return Err("an array lies outside the heap");
            }
        }
        Ok(())
    }

    /// The array at that heap offset: a u32 length and the bytes.
    pub(super) fn array(&self, offset: u64) -> Option<&'d [u8]> {
        let offset = usize::try_from(offset).ok()?;
        let len = self.order.uint_at(self.heap, offset, 4)? as usize;
        let start = offset + 4;
        self.heap.get(start..start.checked_add(len)?)
    }

    pub(super) fn payload(&self, offset: u64, len: u32) -> Option<&'d [u8]> {
        let offset = usize::try_from(offset).ok()?;
        self.heap.get(offset..offset.checked_add(len as usize)?)
    }
}

fn info<O: Order>(head: &EventsHead<O>) -> EventsInfo {
    let flags = head.loss_flags.get();
    EventsInfo {
        loss: Loss {
            counted: if flags & loss_flags::COUNTED != 0 { head.lost_events.get() } else { 0 },
            uncounted: flags & loss_flags::UNCOUNTED != 0,
            damaged_input: flags & loss_flags::DAMAGED_INPUT != 0,
        },
        t_first: head.t_base.get(),
        t_last: head.t_last.get(),
        first_event: head.first_event.get(),
        event_count: head.record_count.get(),
    }
}

fn descriptor(body: &[u8], offset: usize, order: ByteOrder) -> Option<(u16, &[u8])> {
    let shape = order.uint_at(body, offset, 2)? as u16;
    let len = order.uint_at(body, offset.checked_add(2)?, 2)? as usize;
    let start = offset + 4;
    Some((shape, body.get(start..start + len)?))
}
