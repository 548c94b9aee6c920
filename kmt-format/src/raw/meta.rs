//! The bodies of the small chunks. Spec sections "CLOK", "TASK" and "STAT".

use zerocopy::{ByteOrder, FromBytes, Immutable, IntoBytes, KnownLayout, U32, U64, Unaligned};

/// Head of a clock chunk; the name follows.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct ClockHead<O: ByteOrder> {
    /// Length of this head in bytes; a later minor version may append fields.
    pub head_len: U32<O>,
    /// 0 nanoseconds, 1 ticks of unknown length.
    pub unit: u8,
    /// 1 if time stamps of different CPUs can be compared.
    pub comparable: u8,
    /// Written as 0, ignored by readers.
    pub reserved: [u8; 2],
    /// Length of the name in bytes; 0 if the clock is not known.
    pub name_len: U32<O>,
}

/// Head of a table; the rows follow. TASK, STAT and INDX are such tables.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct TableHead<O: ByteOrder> {
    /// Length of this head in bytes; a later minor version may append fields.
    pub head_len: U32<O>,
    /// Bytes from one row to the next; a later minor version may append fields to the rows.
    pub row_len: U32<O>,
    /// Number of rows.
    pub row_count: U32<O>,
    /// Length of the heap after the rows, in bytes.
    pub heap_len: U32<O>,
}

/// Head of a META chunk.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct MetaHead<O: ByteOrder> {
    /// Length of this head in bytes; a later minor version may append fields.
    pub head_len: U32<O>,
    /// Length of the head of each pair; a later minor version may append fields.
    pub pair_len: U32<O>,
    /// Number of pairs.
    pub pair_count: U32<O>,
}

/// Head of a pair in a META chunk.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct PairHead<O: ByteOrder> {
    /// Length of the key in bytes.
    pub key_len: U32<O>,
    /// Length of the value in bytes.
    pub value_len: U32<O>,
}

/// Head of a FILE chunk.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct AttachmentHead<O: ByteOrder> {
    /// Length of this head in bytes; a later minor version may append fields.
    pub head_len: U32<O>,
    /// Length of the name in bytes.
    pub name_len: U32<O>,
    /// Length of the contents in bytes.
    pub contents_len: U64<O>,
    /// Time when reading began, in the clock's unit.
    pub time_first: U64<O>,
    /// Time when it was done.
    pub time_last: U64<O>,
    /// [`attachment_flags`].
    pub flags: U32<O>,
    /// Written as 0, ignored by readers.
    pub reserved: U32<O>,
}

/// Bits of the `flags` of a FILE chunk's head.
pub mod attachment_flags {
    /// The times are known.
    pub const TIMED: u32 = 1;
}

/// A task's name, a row of a TASK chunk.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct TaskRow<O: ByteOrder> {
    /// Since when, in the clock's unit; 0 if not known.
    pub time: U64<O>,
    /// Thread id in the initial namespace, as a signed number.
    pub pid: U32<O>,
    /// Thread group id; 0 if not known.
    pub tgid: U32<O>,
    /// Name, filled up with NUL.
    pub comm: [u8; 16],
}

/// The counters of one CPU, a row of a STAT chunk.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct StatsRow<O: ByteOrder> {
    /// CPU number.
    pub cpu: U32<O>,
    /// 0 the kernel's counters before its buffer was drained, 1 after, 2 the writer's own.
    pub taken: U32<O>,
    /// [`stats_present`]: which of the numbers below are known.
    pub present: U32<O>,
    /// Written as 0, ignored by readers.
    pub reserved: U32<O>,
    /// Events not yet read; of the writer: events in this file.
    pub entries: U64<O>,
    /// Events overwritten.
    pub overrun: U64<O>,
    /// Events lost in nested storms.
    pub commit_overrun: U64<O>,
    /// Unread bytes; of the writer: bytes of input.
    pub bytes: U64<O>,
    /// Events refused because the buffer was full.
    pub dropped: U64<O>,
    /// Events read.
    pub read: U64<O>,
    /// Time of the oldest unread event.
    pub oldest_time: U64<O>,
    /// Time when the counters were read.
    pub now_time: U64<O>,
    /// Of the writer: sub-buffers read.
    pub sub_buffers: U64<O>,
    /// Of the writer: sub-buffers that could not be decoded to their end.
    pub sub_buffers_damaged: U64<O>,
    /// Of the writer: discarded events and fillers passed over.
    pub discarded: U64<O>,
}

/// Bits of the `present` of a row of counters, in the order of the numbers.
pub mod stats_present {
    /// `entries`.
    pub const ENTRIES: u32 = 1;
    /// `overrun`.
    pub const OVERRUN: u32 = 1 << 1;
    /// `commit_overrun`.
    pub const COMMIT_OVERRUN: u32 = 1 << 2;
    /// `bytes`.
    pub const BYTES: u32 = 1 << 3;
    /// `dropped`.
    pub const DROPPED: u32 = 1 << 4;
    /// `read`.
    pub const READ: u32 = 1 << 5;
    /// `oldest_time`.
    pub const OLDEST_TIME: u32 = 1 << 6;
    /// `now_time`.
    pub const NOW_TIME: u32 = 1 << 7;
    /// `sub_buffers`.
    pub const SUB_BUFFERS: u32 = 1 << 8;
    /// `sub_buffers_damaged`.
    pub const SUB_BUFFERS_DAMAGED: u32 = 1 << 9;
    /// `discarded`.
    pub const DISCARDED: u32 = 1 << 10;
}

const _: () = assert!(size_of::<ClockHead<zerocopy::LE>>() == 12);
const _: () = assert!(size_of::<TableHead<zerocopy::LE>>() == 16);
const _: () = assert!(size_of::<MetaHead<zerocopy::LE>>() == 12);
const _: () = assert!(size_of::<AttachmentHead<zerocopy::LE>>() == 40);
const _: () = assert!(size_of::<TaskRow<zerocopy::LE>>() == 32);
const _: () = assert!(size_of::<StatsRow<zerocopy::LE>>() == 104);
