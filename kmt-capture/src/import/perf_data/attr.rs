//! `struct perf_event_attr`: what was measured, and what samples of it hold.

use kmt_format::kernel::ByteOrder;

use super::super::cursor::{Cursor, ImportError, Result};

/// One event that was measured, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attr {
    /// `PERF_TYPE_TRACEPOINT` is 2.
    pub kind: u32,
    /// Of a tracepoint: its id.
    pub config: u64,
    /// Events from one sample to the next where that number is fixed; 0 where perf varies it to keep a frequency.
    pub period: u64,
    /// Contents of samples, as bits.
    pub sample_type: u64,
    /// How counts in samples look.
    pub read_format: u64,
    /// True if other records have a trailer like a sample.
    pub sample_id_all: bool,
    /// Clock that times are of, if it is not perf's own.
    pub clock_id: Option<i32>,
    /// Ids that samples name it by.
    pub ids: Vec<u64>,
}

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// Bits of `sample_type`.
pub mod bits {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const IDENTIFIER: u64 = 1 << 16;
}

impl Attr {
    /// True if samples stand for more events than one. A tracepoint whose samples tell their period is logged each time
    /// unless a frequency is asked for, for any period (`perf_swevent_event`, kernel/events/core.c 3.2 to 7.2).
    pub fn is_sampled(&self) -> bool {
        self.period == 0 || self.period > 1 && self.sample_type & bits::PERIOD == 0
    }

    /// True if it is a tracepoint.
    pub fn is_tracepoint(&self) -> bool {
        self.kind == TRACEPOINT
    }

    /// Reads one and leaves the cursor after it.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let offset = cursor.offset();
        let kind = cursor.u32("the type of an attribute")?;
        let size = cursor.u32("the size of an attribute")?;
        // The first version had 64 bytes; a size of 0 meant that one.
        let size = if size == 0 { 64 } else { size };
        if !(64..=4096).contains(&size) {
            return Err(ImportError::at(offset, format!("an attribute cannot have {size} bytes")));
        }
        let config = cursor.u64("an attribute")?;
        let period = cursor.u64("an attribute")?;
        let sample_type = cursor.u64("an attribute")?;
        let read_format = cursor.u64("an attribute")?;
        let flags = bit_fields(cursor.u64("the flags of an attribute")?, cursor.order);
        let rest = cursor.take(u64::from(size) - 48, "an attribute")?;
        let clock_id = rest.get(44..48).map(|b| cursor.order.uint(b) as u32 as i32);
        let flag = |bit: u32| flags >> bit & 1 == 1;
        Ok(Self {
            kind,
            config,
            // PERF_SAMPLE_PERIOD tells the period of each where the flag `freq` is set.
            period: if flag(10) { 0 } else { period },
            sample_type,
            read_format,
            sample_id_all: flag(18),
            clock_id: clock_id.filter(|_| flag(25)),
            ids: Vec::new(),
        })
    }
}

/// The bit fields of a `u64`, the first one in the lowest bit. Compilers fill them from the lowest bit on little-endian
/// machines, from the highest on big-endian ones.
fn bit_fields(word: u64, order: ByteOrder) -> u64 {
    if order == ByteOrder::Big { word.reverse_bits() } else { word }
}
