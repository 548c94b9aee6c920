//! One event chunk, its records cast in place.

mod check;
#[cfg(test)]
mod tests;

use core::ops::Range;
use std::borrow::Cow;
use zerocopy::ByteOrder as Order;

use super::cast::{array_at, head_len, struct_at};
use super::records::{RawRecord, Record, Records, Slices, with_records};
use super::{ChunkRef, Header, Schema};
use crate::Limits;
use crate::Loss;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{ByteOrder, with_order};
use crate::limits::within_at;
use crate::raw::{ChunkKind, Epoch, EventsHead, SubBuffersHead, loss_flags};

/// Fields of the head of an event chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventsInfo {
    /// Events lost just before the first event.
    pub loss: Loss,
    /// Time of the first event.
    pub t_first: u64,
    /// Time of the last event.
    pub t_last: u64,
    /// Events of this CPU in the chunks before.
    pub first_event: u64,
    /// Number of events.
    pub event_count: u32,
    /// Bit *n* is set if the chunk may hold events of a class whose number modulo 64 is *n*: a query for one
    /// class need not read.
    pub classes: u64,
}

impl EventsInfo {
    /// Of a chunk without events.
    pub(crate) const NONE: Self = Self {
        loss: Loss { counted: 0, uncounted: false, damaged_input: false, overwritten: false },
        t_first: 0,
        t_last: 0,
        first_event: 0,
        event_count: 0,
        classes: 0,
    };
}

/// One event chunk, checked from end to end: every index and offset in it is good.
#[derive(Debug, Clone)]
pub struct EventChunk<'d> {
    pub(super) cpu: u32,
    pub(super) order: ByteOrder,
    info: EventsInfo,
    body: Cow<'d, [u8]>,
    long_size: usize,
    records_at: usize,
    descriptors: Vec<Descriptor>,
    contexts: Range<usize>,
    context_stride: usize,
    heap: Range<usize>,
    /// First record and upper half of the time offset; the first entry is (0, 0).
    epochs: Vec<(u32, u32)>,
}

/// A shape, and where the data for it lie in the body.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Descriptor {
    pub(super) shape: u32,
    start: u32,
    len: u16,
}

impl EventChunk<'_> {
    /// This chunk, with the bytes of the body copied if they are borrowed.
    pub fn into_owned(self) -> EventChunk<'static> {
        EventChunk {
            body: Cow::Owned(self.body.into_owned()),
            cpu: self.cpu,
            order: self.order,
            info: self.info,
            long_size: self.long_size,
            records_at: self.records_at,
            descriptors: self.descriptors,
            contexts: self.contexts,
            context_stride: self.context_stride,
            heap: self.heap,
            epochs: self.epochs,
        }
    }
}

impl<'d> EventChunk<'d> {
    /// CPU.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Fields of the head.
    pub fn info(&self) -> &EventsInfo {
        &self.info
    }

    /// The records.
    #[inline]
    pub fn records(&self) -> Records<'_> {
        let count = self.info.event_count as usize;
        Records::at(&self.body, self.records_at, count, self.order, self.long_size)
    }

    /// Number of descriptors.
    pub fn descriptor_count(&self) -> usize {
        self.descriptors.len()
    }

    /// Index of the shape of that descriptor.
    pub fn shape_of(&self, descriptor: usize) -> Option<usize> {
        self.descriptors.get(descriptor).map(|d| d.shape as usize)
    }

    /// The descriptor of that number.
    #[inline]
    pub(super) fn descriptor(&self, number: usize) -> Option<Descriptor> {
        self.descriptors.get(number).copied()
    }

    /// Data of a descriptor.
    #[inline]
    pub(super) fn data_of(&self, descriptor: Descriptor) -> Option<&[u8]> {
        let start = descriptor.start as usize;
        self.body.get(start..start.checked_add(usize::from(descriptor.len))?)
    }

    /// The record of that index, which is one of the chunk.
    #[inline]
    pub(super) fn record(&self, index: usize) -> Option<Record> {
        let stride = self.long_size.wrapping_add(8);
        let start = self.records_at.wrapping_add(index.wrapping_mul(stride));
        Record::read(self.body.get(start..)?, self.order, self.long_size)
    }

    /// Size of the traced kernel's `long`, and of a value word, in bytes.
    pub fn long_size(&self) -> usize {
        self.long_size
    }

    /// Bytes of that context.
    #[inline]
    pub(super) fn context(&self, context: usize) -> Option<&[u8]> {
        let start = self.contexts.start.checked_add(context.checked_mul(self.context_stride)?)?;
        self.body.get(start..start.checked_add(self.context_stride)?)
    }

    /// Time of the record of that index, in the clock's unit.
    #[inline]
    pub fn time(&self, index: usize) -> Option<u64> {
        let record = self.records().get(index)?;
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

    /// The parts of a range of records that are in one epoch each, with the times of their offset 0.
    fn epochs_of(&self, range: Range<usize>) -> impl Iterator<Item = (Range<usize>, u64)> + '_ {
        let mut start = range.start;
        let first = self.epochs.partition_point(|e| e.0 as usize <= start).saturating_sub(1);
        let ends = self.epochs.iter().skip(first.saturating_add(1)).map(|e| e.0 as usize);
        let epochs = self.epochs.iter().skip(first).zip(ends.chain([range.end]));
        epochs.map_while(move |(&(_, upper), end)| {
            let part = start..end.min(range.end).max(start);
            let is_left = start < range.end;
            start = part.end;
            is_left.then(|| (part, self.info.t_first.wrapping_add(u64::from(upper) << 32)))
        })
    }

    /// Calls `visit` with the time and the record of each of `range`; byte order and epochs are tested once.
    #[inline]
    pub fn for_each_in(&self, range: Range<usize>, mut visit: impl FnMut(u64, Record)) {
        for (part, base) in self.epochs_of(range) {
            with_records!(self.records(), r => for record in r.get(part).unwrap_or_default() {
                visit(base.wrapping_add(record.time_offset().into()), record.native());
            });
        }
    }

    /// Calls `visit` as [`Self::for_each_in`] does, until it returns false. Returns the number of records for which it
    /// returned true.
    #[inline]
    pub fn for_each_while(&self, range: Range<usize>, mut visit: impl FnMut(u64, Record) -> bool) -> usize {
        let (start, all) = (range.start, range.len());
        for (part, base) in self.epochs_of(range) {
            let before = part.start.saturating_sub(start);
            let ended = with_records!(self.records(), r => {
                r.get(part).unwrap_or_default().iter().position(|record| {
                    !visit(base.wrapping_add(record.time_offset().into()), record.native())
                })
            });
            if let Some(ended) = ended {
                return before.saturating_add(ended);
            }
        }
        all
    }

    /// Index of the first record at `time` or later.
    pub fn first_at_or_after(&self, time: u64) -> usize {
        let (mut low, mut high) = (0, self.records().len());
        while low < high {
            let middle = low.saturating_add(high.saturating_sub(low) / 2);
            if self.time(middle).is_some_and(|t| t < time) {
                low = middle.saturating_add(1)
            } else {
                high = middle
            }
        }
        low
    }

    /// End of the run that starts at `start`: the first record after it at `limit` or later, `end` at most.
    ///
    /// Times never fall within a chunk, so this steps on in growing strides and halves the last one.
    #[inline]
    pub(super) fn run_end(&self, start: usize, end: usize, limit: u64) -> usize {
        if self.epochs.len() > 1 {
            return gallop(start, end, |i| self.time(i).is_some_and(|t| t < limit));
        }
        // Without epochs the whole chunk is within 32 bits of its first event.
        let Some(offset) = limit.checked_sub(self.info.t_first) else {
            return end.min(start.saturating_add(1));
        };
        let Ok(offset) = u32::try_from(offset) else { return end };
        with_records!(self.records(), r => {
            gallop(start, end, |i| r.get(i).is_some_and(|r| r.time_offset() < offset))
        })
    }

    /// The head alone, without looking at the rest.
    pub(super) fn head(prefix: &[u8], chunk: &ChunkRef, order: ByteOrder) -> Result<EventsInfo> {
        let base = chunk.body_offset();
        let info = match chunk.kind {
            ChunkKind::SUB_BUFFERS => {
                with_order!(order, O => struct_at::<SubBuffersHead<O>>(prefix, 0, base).map(sub_buffers_info))
            }
            _ => with_order!(order, O => struct_at::<EventsHead<O>>(prefix, 0, base).map(info)),
        };
        info.map_err(|_| {
            Error::at(base, ErrorKind::Malformed("the head of an event chunk is not in its prefix"))
        })
    }

    /// Parses a decoded body, and checks it by the schema unless that was done before. `first_shape` is added to the
    /// numbers of shapes.
    pub(crate) fn parse(
        body: Cow<'d, [u8]>,
        chunk: &ChunkRef,
        header: &Header,
        schema: Option<&Schema>,
        limits: &Limits,
        first_shape: u32,
    ) -> Result<Self> {
        let mut parsed =
            with_order!(header.order, O => Self::parse_in_order::<O>(body, chunk, header, limits))?;
        parsed.descriptors.iter_mut().for_each(|d| d.shape = d.shape.saturating_add(first_shape));
        let Some(schema) = schema else { return Ok(parsed) };
        let arrays_max = limits.arrays_of(parsed.info.event_count, parsed.body.len());
        let arrays = parsed.check(schema, arrays_max);
        let arrays = arrays.map_err(|what| Error::at(chunk.body_offset(), ErrorKind::Malformed(what)))?;
        let what = "the length of the arrays of all events of a chunk";
        within_at(chunk.body_offset(), "arrays", what, arrays, arrays_max)?;
        Ok(parsed)
    }

    fn parse_in_order<O: Order>(
        body: Cow<'d, [u8]>,
        chunk: &ChunkRef,
        header: &Header,
        limits: &Limits,
    ) -> Result<Self> {
        let base = chunk.body_offset();
        let bad = |what| Error::at(base, ErrorKind::Malformed(what));
        let head = struct_at::<EventsHead<O>>(&body, 0, base)?;
        head_len::<EventsHead<O>>(head.head_len.get(), &body, base)?;
        let limit =
            |name, what, found: u32, limit: u32| within_at(base, name, what, found.into(), limit.into());
        let (records, rows) = (limits.records, limits.descriptors);
        limit("records", "the number of records of a chunk", head.record_count.get(), records)?;
        limit("descriptors", "the number of descriptors of a chunk", head.descriptor_count.get(), rows)?;
        limit("descriptors", "the number of contexts of a chunk", head.context_count.get(), rows)?;
        limit("records", "the number of epochs of a chunk", head.epoch_count.get(), records)?;
        let record_count = head.record_count.get() as usize;
        let stride = usize::from(head.record_stride.get());
        if stride != header.long_size.saturating_add(8) {
            return Err(bad("the record stride does not fit the word size"));
        }
        let records_at = head.records_offset.get() as usize;
        array_at::<u8>(&body, records_at, record_count.saturating_mul(stride), base)?;
        let context_stride = usize::from(head.context_stride.get());
        let contexts_len = context_stride.saturating_mul(head.context_count.get() as usize);
        let contexts = range_at(&body, head.contexts_offset.get(), contexts_len, base)?;
        let heap = range_at(&body, head.heap_offset.get(), head.heap_len.get() as usize, base)?;
        let offsets: &[zerocopy::U32<O>] = array_at(
            &body,
            head.descriptors_offset.get() as usize,
            head.descriptor_count.get() as usize,
            base,
        )?;
        let rows: &[Epoch<O>] =
            array_at(&body, head.epochs_offset.get() as usize, head.epoch_count.get() as usize, base)?;
        let mut descriptors = Vec::with_capacity(offsets.len());
        for offset in offsets {
            let found = descriptor(&body, offset.get(), header.order);
            descriptors.push(found.ok_or_else(|| bad("a descriptor lies outside its chunk"))?);
        }
        let mut epochs = vec![(0, 0)];
        epochs.extend(rows.iter().map(|e| (e.first_record.get(), e.upper.get())));
        Ok(Self {
            cpu: chunk.cpu.unwrap_or(0),
            order: header.order,
            long_size: header.long_size,
            info: info(head),
            records_at,
            descriptors,
            contexts,
            context_stride,
            heap,
            epochs,
            body,
        })
    }

    fn descriptor_bytes(&self, d: &Descriptor) -> &[u8] {
        let start = d.start as usize;
        self.body.get(start..start.saturating_add(d.len.into())).unwrap_or_default()
    }

    fn heap(&self) -> &[u8] {
        self.body.get(self.heap.clone()).unwrap_or_default()
    }

    /// The array at that heap offset: a u32 length and the bytes.
    pub(super) fn array(&self, offset: u64) -> Option<&[u8]> {
        let offset = usize::try_from(offset).ok()?;
        let heap = self.heap();
        let len = self.order.uint_at(heap, offset, 4)? as usize;
        let start = offset.checked_add(4)?;
        heap.get(start..start.checked_add(len)?)
    }

    #[inline]
    pub(super) fn payload(&self, offset: u64, len: u32) -> Option<&[u8]> {
        let offset = usize::try_from(offset).ok()?;
        self.heap().get(offset..offset.checked_add(len as usize)?)
    }
}

/// The first index after `start`, `end` at most, for which `is_before` says no.
#[inline]
fn gallop(start: usize, end: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut stride) = (start, 1);
    while low.saturating_add(stride) < end && is_before(low.saturating_add(stride)) {
        low = low.saturating_add(stride);
        stride = stride.saturating_mul(2);
    }
    let mut high = low.saturating_add(stride).min(end);
    low = low.saturating_add(1);
    while low < high {
        let middle = low.saturating_add(high.saturating_sub(low) / 2);
        if is_before(middle) { low = middle.saturating_add(1) } else { high = middle }
    }
    low
}

fn range_at(body: &[u8], offset: u32, len: usize, base: u64) -> Result<Range<usize>> {
    let start = offset as usize;
    array_at::<u8>(body, start, len, base).map(|bytes| start..start.saturating_add(bytes.len()))
}

pub(super) fn loss(flags: u32, lost_events: u64) -> Loss {
    const KNOWN: u32 =
        loss_flags::COUNTED | loss_flags::UNCOUNTED | loss_flags::DAMAGED_INPUT | loss_flags::OVERWRITTEN;
    Loss {
        counted: if flags & loss_flags::COUNTED != 0 { lost_events } else { 0 },
        // A bit of a later version is a loss of unknown kind.
        uncounted: flags & loss_flags::UNCOUNTED != 0 || flags & !KNOWN != 0,
        damaged_input: flags & loss_flags::DAMAGED_INPUT != 0,
        overwritten: flags & loss_flags::OVERWRITTEN != 0,
    }
}

macro_rules! info {
    ($head:expr) => {
        EventsInfo {
            loss: loss($head.loss_flags.get(), $head.lost_events.get()),
            t_first: $head.t_base.get(),
            t_last: $head.t_last.get(),
            first_event: $head.first_event.get(),
            event_count: $head.record_count.get(),
            classes: $head.classes.get(),
        }
    };
}

fn info<O: Order>(head: &EventsHead<O>) -> EventsInfo {
    info!(head)
}

fn sub_buffers_info<O: Order>(head: &SubBuffersHead<O>) -> EventsInfo {
    info!(head)
}

fn descriptor(body: &[u8], offset: u32, order: ByteOrder) -> Option<Descriptor> {
    let at = offset as usize;
    let shape = order.uint_at(body, at, 2)? as u32;
    let len = order.uint_at(body, at.checked_add(2)?, 2)? as u16;
    let start = offset.checked_add(4)?;
    body.get(start as usize..(start as usize).checked_add(len.into())?)?;
    Some(Descriptor { shape, start, len })
}
