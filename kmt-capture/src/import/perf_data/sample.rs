//! Samples, and the trailers of other records.

use std::collections::HashMap;

use kmt_format::kernel::ByteOrder;

use super::super::cursor::{Cursor, ImportError, Result};
use super::attr::{Attr, bits};
use super::records::Record;

/// A sample of a tracepoint.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample<'d> {
    /// In the unit of the file's clock.
    pub time: u64,
    /// CPU.
    pub cpu: u32,
    /// Events that it represents, if known.
    pub period: Option<u64>,
    /// The kernel's record, `common_type` first; empty if it has none.
    pub raw: &'d [u8],
    /// Addresses of the call chain, innermost first, with marks between kernel and user parts.
    pub chain: &'d [u8],
}

/// Trailer of records other than samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trailer {
    /// Time, 0 if unknown.
    pub time: u64,
    /// CPU, if known.
    pub cpu: Option<u32>,
}

/// How samples look, by id.
#[derive(Debug)]
pub struct SampleShapes {
    order: ByteOrder,
    /// The shape of all, if all have the same.
    only: Option<(u64, u64)>,
    by_id: HashMap<u64, (u64, u64)>,
    has_trailer: bool,
    /// Bits of the trailer, if all have the same.
    trailer: Option<u64>,
}

const TRAILER: u64 = bits::TID | bits::TIME | bits::ID | bits::STREAM_ID | bits::CPU | bits::IDENTIFIER;

impl SampleShapes {
    /// As the attributes say.
    pub fn new(attrs: &[Attr], order: ByteOrder) -> Self {
        let shape = |a: &Attr| (a.sample_type, a.read_format);
        let first = attrs.first();
        let only = first.map(shape).filter(|s| attrs.iter().all(|a| shape(a) == *s));
        let trailer = first.map(|a| a.sample_type & TRAILER);
        let trailer = trailer.filter(|t| attrs.iter().all(|a| a.sample_type & TRAILER == *t));
        let by_id = attrs.iter().flat_map(|a| a.ids.iter().map(move |&id| (id, shape(a)))).collect();
        Self { order, only, by_id, has_trailer: attrs.iter().all(|a| a.sample_id_all), trailer }
    }

    /// Takes a sample apart.
    #[inline]
    pub fn sample<'d>(&self, record: &Record<'d>) -> Result<Sample<'d>> {
        let mut cursor = Cursor::new(record.body, record.offset, self.order);
        let (kind, read_format) = match self.only {
            Some(shape) => shape,
            // Where samples differ, all begin with their id.
            None => {
                let id = self.order.uint(record.body.get(..8).unwrap_or_default());
                let found = self.by_id.get(&id).copied();
                found.ok_or_else(|| {
                    ImportError::at(
                        record.offset,
                        format!("a sample has the id {id}, which no recorded event has"),
                    )
                })?
            }
        };
        let has = |bit: u64| kind & bit != 0;
        let mut sample = Sample::default();
        for bit in [bits::IDENTIFIER, bits::IP, bits::TID] {
            if has(bit) {
                cursor.take(8, "a sample")?;
            }
        }
        if has(bits::TIME) {
            sample.time = cursor.u64("a sample")?;
        }
        for bit in [bits::ADDR, bits::ID, bits::STREAM_ID] {
            if has(bit) {
                cursor.take(8, "a sample")?;
            }
        }
        if has(bits::CPU) {
            sample.cpu = cursor.u32("a sample")?;
            cursor.take(4, "a sample")?;
        }
        if has(bits::PERIOD) {
            sample.period = Some(cursor.u64("a sample")?);
        }
        if has(bits::READ) {
            skip_counts(&mut cursor, read_format)?;
        }
        if has(bits::CALLCHAIN) {
            let count = cursor.u64("a call chain")?;
            let len = count.checked_mul(8).ok_or_else(|| {
                ImportError::at(cursor.offset(), "the length of a call chain is out of range")
            })?;
            sample.chain = cursor.take(len, "a call chain")?;
        }
        if has(bits::RAW) {
            let len = cursor.u32("the kernel's record")?;
            sample.raw = cursor.take(len.into(), "the kernel's record")?;
        }
        Ok(sample)
    }

    /// The first eight bytes as a number.
    pub fn word(&self, bytes: &[u8]) -> u64 {
        self.order.uint(bytes.get(..8).unwrap_or_default())
    }

    /// A signed number of four bytes.
    pub fn int(&self, bytes: &[u8], at: usize) -> Option<i32> {
        self.order.uint_at(bytes, at, 4).map(|n| n as u32 as i32)
    }

    /// Reads the trailer of another record.
    pub fn trailer(&self, record: &Record<'_>) -> Trailer {
        let body = record.body;
        let bits_of = || {
            let id = self.order.uint(body.get(body.len().saturating_sub(8)..).unwrap_or_default());
            self.by_id.get(&id).map(|(kind, _)| kind & TRAILER)
        };
        let Some(kind) = self.trailer.or_else(bits_of).filter(|_| self.has_trailer) else {
            return Trailer::default();
        };
        let len = (kind.count_ones() as usize).saturating_mul(8);
        let Some(words) = body.len().checked_sub(len).and_then(|at| body.get(at..)) else {
            return Trailer::default();
        };
        let mut trailer = Trailer::default();
        let mut words = words.chunks_exact(8);
        for bit in [bits::TID, bits::TIME, bits::ID, bits::STREAM_ID, bits::CPU, bits::IDENTIFIER] {
            let Some(word) = Some(kind & bit).filter(|&b| b != 0).and_then(|_| words.next()) else {
                continue;
            };
            match bit {
                bits::TIME => trailer.time = self.order.uint(word),
                bits::CPU => trailer.cpu = Some(self.order.uint(word.get(..4).unwrap_or_default()) as u32),
                _ => {}
            }
        }
        trailer
    }
}

/// `PERF_SAMPLE_READ`.
fn skip_counts(cursor: &mut Cursor<'_>, read_format: u64) -> Result<()> {
    const TIMES: u64 = 1 | 2;
    const ID: u64 = 4;
    const GROUP: u64 = 8;
    const LOST: u64 = 16;
    let times = u64::from((read_format & TIMES).count_ones());
    let each = 1 + u64::from((read_format & (ID | LOST)).count_ones());
    let words = if read_format & GROUP == 0 {
        times + each
    } else {
        let count = cursor.u64("counts")?;
        count.checked_mul(each).and_then(|n| n.checked_add(times)).unwrap_or(u64::MAX)
    };
    cursor.take(words.saturating_mul(8), "counts").map(|_| ())
}
