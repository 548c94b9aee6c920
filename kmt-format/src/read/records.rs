//! Records, cast where they lie in a body.

use zerocopy::{BigEndian, ByteOrder as Order, FromBytes, Immutable, KnownLayout, LittleEndian, Unaligned};

use crate::kernel::{ByteOrder, with_order};
use crate::raw::{Record32, Record64};

/// The records of a chunk, where they lie in the file, in the byte order and word size of the target.
#[derive(Debug, Clone, Copy)]
pub struct Records<'d>(pub(super) Slices<'d>);

#[derive(Debug, Clone, Copy)]
pub(super) enum Slices<'d> {
    Little64(&'d [Record64<LittleEndian>]),
    Big64(&'d [Record64<BigEndian>]),
    Little32(&'d [Record32<LittleEndian>]),
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

impl Record {
    /// The record that `bytes` start with.
    #[inline]
    pub(super) fn read(bytes: &[u8], order: ByteOrder, long_size: usize) -> Option<Self> {
        Some(with_order!(order, O => match long_size {
            8 => Record64::<O>::ref_from_prefix(bytes).ok()?.0.native(),
            _ => Record32::<O>::ref_from_prefix(bytes).ok()?.0.native(),
        }))
    }
}

/// A record as it is on disk.
pub(super) trait RawRecord {
    fn time_offset(&self) -> u32;
    fn native(&self) -> Record;
}

macro_rules! raw_record {
    ($name:ident) => {
        impl<O: Order> RawRecord for $name<O> {
            #[inline]
            fn time_offset(&self) -> u32 {
                self.time_offset.get()
            }

            #[inline]
            fn native(&self) -> Record {
                Record {
                    time_offset: self.time_offset.get(),
                    descriptor: self.descriptor.get(),
                    context: self.context.get(),
                    value: u64::from(self.value.get()),
                }
            }
        }
    };
}

raw_record!(Record64);
raw_record!(Record32);

/// Does the same with records of any order and width.
macro_rules! with_records {
    ($records:expr, $slice:ident => $work:expr) => {
        match $records.0 {
            Slices::Little64($slice) => $work,
            Slices::Big64($slice) => $work,
            Slices::Little32($slice) => $work,
            Slices::Big32($slice) => $work,
        }
    };
}

pub(super) use with_records;

impl Records<'_> {
    /// Number of records.
    pub fn len(&self) -> usize {
        with_records!(self, r => r.len())
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The record of that index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Record> {
        with_records!(self, r => r.get(index).map(RawRecord::native))
    }

    /// Calls `visit` with every record; the byte order is chosen once.
    #[inline]
    pub fn for_each(&self, mut visit: impl FnMut(Record)) {
        with_records!(self, r => r.iter().for_each(|r| visit(r.native())));
    }
}

impl<'d> Records<'d> {
    /// `count` records at `at` of a body; none if they are not all there.
    #[inline]
    pub(super) fn at(body: &'d [u8], at: usize, count: usize, order: ByteOrder, long_size: usize) -> Self {
        // A variant each, so that loops over many records choose the order and the width once (`with_records`).
        Self(match (order, long_size) {
            (ByteOrder::Little, 8) => Slices::Little64(slice_at(body, at, count)),
            (ByteOrder::Big, 8) => Slices::Big64(slice_at(body, at, count)),
            (ByteOrder::Little, _) => Slices::Little32(slice_at(body, at, count)),
            (ByteOrder::Big, _) => Slices::Big32(slice_at(body, at, count)),
        })
    }
}

#[inline]
fn slice_at<T: FromBytes + KnownLayout + Immutable + Unaligned>(
    body: &[u8],
    at: usize,
    count: usize,
) -> &[T] {
    let bytes = body.get(at..).unwrap_or_default();
    <[T]>::ref_from_prefix_with_elems(bytes, count).map_or(&[], |(records, _)| records)
}
