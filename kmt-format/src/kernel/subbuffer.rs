//! One sub-buffer of the ring buffer: header, commit word, and the walk over its events.

use super::{ByteOrder, HeaderPage};
use crate::error::{Error, ErrorKind, Result};

/// Bit 31 of the commit word: events were lost just before this sub-buffer's first (`RB_MISSED_EVENTS`).
const MISSED_EVENTS: u64 = 1 << 31;
/// Bit 30 of the commit word: the number of lost events is after the data (`RB_MISSED_STORED`).
const MISSED_STORED: u64 = 1 << 30;
/// Bits of the commit word that hold the number of valid bytes.
const COMMIT_SIZE: u64 = 0x07ff_ffff;

const TYPE_DATA_MAX: u32 = 28;
const TYPE_PADDING: u32 = 29;
const TYPE_TIME_EXTEND: u32 = 30;

/// Bits 59 to 63, which an absolute stamp does not store (`TS_MSB`).
const STAMP_UPPER: u64 = 0xf8 << 56;

/// Events lost just before the first event of a sub-buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missed {
    /// No loss is recorded in the sub-buffer. Events dropped with `overwrite=0` never set a flag.
    No,
    /// This number of events was overwritten.
    Count(u64),
    /// At least one event was lost; the kernel did not store the number.
    Unknown,
}

/// One thing found in a sub-buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubBufferItem<'a> {
    /// An event: its time in the trace clock's unit, and its record from `common_type` on.
    ///
    /// The record may be longer than the event (its length is rounded up), and padding between its fields is
    /// uninitialised kernel memory.
    Event {
        /// Time in the trace clock's unit.
        time: u64,
        /// Bytes from `common_type` to the (rounded) end.
        record: &'a [u8],
        /// Offset of the event header in the sub-buffer.
        offset: usize,
    },
    /// An event that the kernel took back, or the filler at the end of a full sub-buffer.
    Discarded,
}

/// One sub-buffer, as one read of `trace_pipe_raw` returns it.
///
/// ```
/// use kmt_format::kernel::{ByteOrder, HeaderPage, SubBufferItem, Missed, SubBuffer};
///
/// // A header of 16 bytes, and one event of 8 bytes, 5 ns later.
/// let layout = HeaderPage { timestamp_offset: 0, commit_offset: 8, commit_size: 8, data_offset: 16, data_size: 48 };
/// let mut bytes = 1_000u64.to_le_bytes().to_vec();
/// bytes.extend(12u64.to_le_bytes());
/// bytes.extend((5u32 << 5 | 2).to_le_bytes());
/// bytes.extend([11, 0, 0, 0, 77, 0, 0, 0]);
/// bytes.resize(64, 0);
/// let sub_buffer = SubBuffer::parse(&bytes, &layout, ByteOrder::Little)?;
/// assert_eq!(sub_buffer.missed(), Missed::No);
/// for item in sub_buffer.items() {
///     if let SubBufferItem::Event { time, record, .. } = item? {
///         assert_eq!((time, record.len()), (1_005, 8));
///     }
/// }
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct SubBuffer<'a> {
    timestamp: u64,
    missed: Missed,
    data: &'a [u8],
    data_offset: usize,
    order: ByteOrder,
}

impl<'a> SubBuffer<'a> {
    /// Reads the header of a sub-buffer.
    ///
    /// `bytes` may end before the full sub-buffer as long as it holds everything that was committed. The commit
    /// word's upper half differs between kernels and read paths (sign-extended or not), so only its low 32 bits
    /// count.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes end before the committed data, or the commit word claims more than fits.
    pub fn parse(bytes: &'a [u8], header: &HeaderPage, order: ByteOrder) -> Result<Self> {
        let truncated = |needed| Error::at(0, ErrorKind::Truncated { needed, available: bytes.len() as u64 });
        let timestamp = order
            .uint_at(bytes, header.timestamp_offset, 8)
            .ok_or_else(|| truncated(header.data_offset as u64))?;
        let commit = order
            .uint_at(bytes, header.commit_offset, header.commit_size)
            .ok_or_else(|| truncated(header.data_offset as u64))?;
        let size = (commit & COMMIT_SIZE) as usize;
        if size > header.data_size {
            let what = "the commit word claims more data than a sub-buffer holds";
            return Err(Error::at(header.commit_offset as u64, ErrorKind::SubBuffer(what)));
        }
        let end = header.data_offset.saturating_add(size);
        let data = bytes.get(header.data_offset..end).ok_or_else(|| truncated(end as u64))?;
        let missed = missed_events(commit, bytes, end, header, order);
        Ok(Self { timestamp, missed, data, data_offset: header.data_offset, order })
    }

    /// Time stamp of the sub-buffer, in the trace clock's unit.
    pub fn timestamp(&self) -> u64 {
        self.timestamp
    }

    /// Events lost just before the first event.
    pub fn missed(&self) -> Missed {
        self.missed
    }

    /// Bytes that hold events.
    pub fn data_len(&self) -> usize {
        self.data.len()
    }

    /// Walks over the events in the order the kernel wrote them.
    pub fn items(&self) -> SubBufferItems<'a> {
        SubBufferItems {
            data: self.data,
            data_offset: self.data_offset,
            position: 0,
            time: self.timestamp,
            order: self.order,
        }
    }
}

/// The lost count is right after the data, one kernel `long`, where there was room for it. Bit 30 without bit
/// 31 arises where a recovered sub-buffer of 7.2 adds bit 31 twice.
fn missed_events(commit: u64, bytes: &[u8], end: usize, header: &HeaderPage, order: ByteOrder) -> Missed {
    if commit & (MISSED_EVENTS | MISSED_STORED) == 0 {
        return Missed::No;
    }
    if commit & MISSED_STORED == 0 || end.saturating_add(header.commit_size) > header.sub_buffer_len() {
        return Missed::Unknown;
    }
    match order.uint_at(bytes, end, header.commit_size) {
        Some(count) if count > 0 => Missed::Count(count),
        _ => Missed::Unknown,
    }
}

/// Iterator over the items of a sub-buffer. After an error it ends.
#[derive(Debug, Clone)]
pub struct SubBufferItems<'a> {
    data: &'a [u8],
    data_offset: usize,
    position: usize,
    time: u64,
    order: ByteOrder,
}

impl<'a> SubBufferItems<'a> {
    /// Time at the current position, in the trace clock's unit: the base of the next delta.
    pub fn time(&self) -> u64 {
        self.time
    }

    #[inline]
    fn word(&self, position: usize) -> Option<u32> {
        let bytes: [u8; 4] = self.data.get(position..position.checked_add(4)?)?.try_into().ok()?;
        Some(self.order.u32(bytes))
    }

    /// Type and delta: C bit-field order, the type in the low 5 bits on little endian, in the high 5 on big endian.
    #[inline(always)]
    fn head(&self, header: u32) -> (u32, u32) {
        match self.order {
            ByteOrder::Little => (header & 31, header >> 5),
            ByteOrder::Big => (header >> 27, header & 0x07ff_ffff),
        }
    }

    /// A sound event of the short form, as nearly all are; `None` for everything else.
    #[inline(always)]
    fn short_event(&mut self, header: u32) -> Option<SubBufferItem<'a>> {
        let (type_len, delta) = self.head(header);
        if !(1..=TYPE_DATA_MAX).contains(&type_len) {
            return None;
        }
        let start = self.position;
        let begin = start.checked_add(4)?;
        let end = begin.checked_add((type_len as usize).checked_mul(4)?)?;
        let record = self.data.get(begin..end)?;
        self.time = self.time.wrapping_add(u64::from(delta));
        self.position = end;
        Some(SubBufferItem::Event { time: self.time, record, offset: self.data_offset.saturating_add(start) })
    }

    /// The item at the current position if it is not a short event: the next item, or an error. By
    /// value: a loop over events keeps its iterator in registers then.
    #[inline(never)]
    fn other(mut self, header: u32) -> (Self, Option<Result<SubBufferItem<'a>>>) {
        let at = self.data_offset.saturating_add(self.position);
        match self.step(header) {
            Ok(item) => (self, item.map(Ok)),
            Err(what) => {
                self.position = self.data.len();
                (self, Some(Err(Error::at(at as u64, ErrorKind::SubBuffer(what)))))
            }
        }
    }

    /// Steps over the header at the current position, or returns its defect.
    fn step(&mut self, header: u32) -> core::result::Result<Option<SubBufferItem<'a>>, &'static str> {
        let (type_len, delta) = self.head(header);
        let start = self.position;
        if (1..=TYPE_DATA_MAX).contains(&type_len) {
            self.time = self.time.wrapping_add(u64::from(delta));
            return self.event(start, 4, (type_len as usize).saturating_mul(4)).map(Some);
        }
        if type_len == TYPE_PADDING && delta == 0 {
            // Null padding: the rest of the sub-buffer is void.
            self.position = self.data.len();
            return Ok(None);
        }
        let word = self.word(start.saturating_add(4)).ok_or("an event header is cut off")?;
        if type_len == 0 {
            // The long form: the word holds the length of itself and the record.
            self.time = self.time.wrapping_add(u64::from(delta));
            let len = word as usize;
            if len < 4 {
                return Err("an event is shorter than its own length word");
            }
            return self.event(start, 8, len.saturating_sub(4)).map(Some);
        }
        if type_len == TYPE_PADDING {
            // A discarded event still carries time; a delta of 1 means 0 (`rb_event_discard`).
            self.time = self.time.wrapping_add(if delta == 1 { 0 } else { u64::from(delta) });
            let end = start.checked_add(4).and_then(|p| p.checked_add(word as usize));
            let end = end.filter(|&e| word >= 4 && e <= self.data.len());
            let end = end.ok_or("a discarded event reaches past the committed data")?;
            self.position = end.saturating_add(3) & !3;
            return Ok(Some(SubBufferItem::Discarded));
        }
        let value = (u64::from(word) << 27).saturating_add(u64::from(delta));
        self.time = if type_len == TYPE_TIME_EXTEND {
            self.time.wrapping_add(value)
        } else {
            absolute_stamp(value, self.time)
        };
        self.position = start.saturating_add(8);
        Ok(None)
    }

    #[inline]
    fn event(
        &mut self,
        start: usize,
        head: usize,
        len: usize,
    ) -> core::result::Result<SubBufferItem<'a>, &'static str> {
        let begin = start.saturating_add(head);
        let end = begin.checked_add(len).ok_or("an event is longer than any sub-buffer")?;
        let record = self.data.get(begin..end).ok_or("an event reaches past the committed data")?;
        // All records start with the event id; an empty one cannot come from a tracepoint.
        if record.len() < 2 {
            return Err("an event is too short for its id");
        }
        // The next header is 4-aligned; a long form with an odd length is rounded up (libtraceevent does so too).
        self.position = end.saturating_add(3) & !3;
        Ok(SubBufferItem::Event { time: self.time, record, offset: self.data_offset.saturating_add(start) })
    }
}

/// Repairs the 59 bits of an absolute stamp from the last full time.
///
/// As `rb_fix_abs_ts` (kernel/trace/ring_buffer.c, 5.19 to 7.2) where the last time has upper bits; where it has
/// none, only the step over 2^59 itself is a wrap, any smaller step back is the clock's own.
fn absolute_stamp(stamp: u64, last: u64) -> u64 {
    if last & STAMP_UPPER != 0 {
        let full = stamp | (last & STAMP_UPPER);
        return if full < last { full.wrapping_add(1 << 59) } else { full };
    }
    if stamp < last && last.saturating_sub(stamp) > 1 << 58 { stamp.saturating_add(1 << 59) } else { stamp }
}

impl<'a> Iterator for SubBufferItems<'a> {
    type Item = Result<SubBufferItem<'a>>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let header = self.word(self.position)?;
            if let Some(event) = self.short_event(header) {
                return Some(Ok(event));
            }
            let (behind, other) = self.clone().other(header);
            *self = behind;
            if other.is_some() {
                return other;
            }
        }
    }
}

#[cfg(test)]
mod tests;
