//! Records, one after another.

use super::super::cursor::{Cursor, ImportError, Result};

/// One record.
#[derive(Debug, Clone, Copy)]
pub struct Record<'d> {
    /// Type of the record.
    pub kind: u32,
    /// Flags whose meaning depends on what it is.
    pub misc: u16,
    /// Offset of its body in the file (of the compressed record it comes from).
    pub offset: u64,
    /// All after its header.
    pub body: &'d [u8],
    /// Data after a record that is longer than its header can say.
    pub tail: &'d [u8],
    /// Offset of that data.
    pub tail_offset: u64,
}

impl Record<'_> {
    /// A mapping; the first are those of the kernel.
    pub const MMAP: u32 = 1;
    /// Records that a full buffer had no room for.
    pub const LOST: u32 = 2;
    /// A task got a name.
    pub const COMM: u32 = 3;
    /// An event was switched off for coming too often.
    pub const THROTTLE: u32 = 5;
    /// A task was made.
    pub const FORK: u32 = 7;
    /// An event.
    pub const SAMPLE: u32 = 9;
    /// How many samples of an event were lost.
    pub const LOST_SAMPLES: u32 = 13;
    /// Attributes of the events, in pipe mode.
    pub const HEADER_ATTR: u32 = 64;
    /// The target's tracefs, in pipe mode.
    pub const TRACING_DATA: u32 = 66;
    /// All buffers have been read once more.
    pub const FINISHED_ROUND: u32 = 68;
    /// Data of tracing hardware.
    pub const AUXTRACE: u32 = 71;
    /// A part of the header, in pipe mode.
    pub const HEADER_FEATURE: u32 = 80;
    /// Compressed records.
    pub const COMPRESSED: u32 = 81;
    /// Compressed records whose size is in their body (6.16).
    pub const COMPRESSED2: u32 = 83;
}

/// The records of a stretch of bytes.
#[derive(Debug, Clone)]
pub struct Records<'d> {
    cursor: Cursor<'d>,
}

const HEADER_LEN: u64 = 8;

impl<'d> Records<'d> {
    /// From where the cursor is.
    pub fn new(cursor: Cursor<'d>) -> Self {
        Self { cursor }
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    ///
    /// Returns an error where a record does not end within the bytes; reading cannot go on after it.
    pub fn next_record(&mut self) -> Result<Option<Record<'d>>> {
        if self.cursor.rest().is_empty() {
            return Ok(None);
        }
        let offset = self.cursor.offset();
        let kind = self.cursor.u32("a record")?;
        let misc = self.cursor.u16("a record")?;
        let size = u64::from(self.cursor.u16("a record")?);
        let Some(len) = size.checked_sub(HEADER_LEN) else {
            return Err(ImportError::at(
                offset,
                format!("a record of {size} bytes is shorter than its header"),
            ));
        };
        let body_offset = self.cursor.offset();
        let body = self.cursor.take(len, "a record")?;
        let tail_offset = self.cursor.offset();
        let tail_len = match kind {
            Record::TRACING_DATA => {
                let order = self.cursor.order;
                let len = order.uint(body.get(..4).unwrap_or_default());
                len.checked_next_multiple_of(8)
            }
            Record::AUXTRACE => Some(self.cursor.order.uint(body.get(..8).unwrap_or_default())),
            _ => Some(0),
        };
        let tail_len = tail_len
            .ok_or_else(|| ImportError::at(offset, "the length of the data of a record is out of range"))?;
        let tail = self.cursor.take(tail_len, "the data of a record")?;
        Ok(Some(Record { kind, misc, offset: body_offset, body, tail, tail_offset }))
    }

    /// Offset of the next record.
    pub fn offset(&self) -> u64 {
        self.cursor.offset()
    }

    /// Bytes that are not parsed yet.
    pub fn rest(&self) -> &'d [u8] {
        self.cursor.rest()
    }
}
