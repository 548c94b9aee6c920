//! The body of a chunk of folded lives. Spec section "FOLD".

use zerocopy::{ByteOrder, FromBytes, Immutable, IntoBytes, KnownLayout, U32, U64, Unaligned};

/// Head of a chunk of folded lives. Offsets count from the start of the body.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct FoldHead<O: ByteOrder> {
    /// Length of this head in bytes; a later minor version may append fields.
    pub head_len: U32<O>,
    /// [`fold_flags`].
    pub flags: U32<O>,
    /// Number of the interval: the first one of the file has 0.
    pub number: U64<O>,
    /// Begin of the interval, in the clock's unit.
    pub t_begin: U64<O>,
    /// End of the interval; it is the begin of the next one.
    pub t_end: U64<O>,
    /// Longest life that was folded, in the clock's unit.
    pub threshold: U64<O>,
    /// Number of rows.
    pub row_count: U32<O>,
    /// Bytes from one row to the next.
    pub row_len: U32<O>,
    /// Number of rows of CPUs.
    pub cpu_count: U32<O>,
    /// Bytes from one row of a CPU to the next.
    pub cpu_len: U32<O>,
    /// Number of bins.
    pub bin_count: U32<O>,
    /// Bytes from one bin to the next.
    pub bin_len: U32<O>,
    /// Offset of the rows.
    pub rows_offset: U32<O>,
    /// Offset of the rows of CPUs.
    pub cpus_offset: U32<O>,
    /// Offset of the bins.
    pub bins_offset: U32<O>,
    /// Offset of the events, which are laid out as the body of an EVNT chunk.
    pub events_offset: U32<O>,
    /// Events that were folded, with their stacks: the sum of those of all CPUs.
    pub event_count: U64<O>,
}

const _: () = assert!(size_of::<FoldHead<zerocopy::LE>>() == 88);

/// Bits of the `flags` of the head of a chunk of folded lives.
pub mod fold_flags {
    /// Lives were left as events in part of the interval, because the memory for folding was used up.
    pub const WRITTEN_THROUGH: u32 = 1;
}

/// `alloc` of frees of NULL.
pub const NULL_FREES: u32 = u32::MAX;

/// Lives with equal allocations and equal frees, or equal frees of NULL.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct FoldRow<O: ByteOrder> {
    /// Index of the event that is like their allocations; [`NULL_FREES`] if there are none: these are frees of NULL.
    pub alloc: U32<O>,
    /// Index of the event that is like their frees.
    pub free: U32<O>,
    /// Number of lives, or of frees of NULL.
    pub count: U64<O>,
    /// Those whose free came from another CPU.
    pub cross_cpu: U64<O>,
    /// Those whose free came from another CPU, another task or another interrupt level.
    pub elsewhere: U64<O>,
    /// Sum of their lengths, in the clock's unit.
    pub length_sum: U64<O>,
    /// The longest of them.
    pub length_max: U64<O>,
    /// Those that are longer than a millisecond.
    pub over_ms: U64<O>,
    /// Those that are longer than a second.
    pub over_s: U64<O>,
    /// Index of the first bin.
    pub first_bin: U32<O>,
    /// Number of bins.
    pub bin_count: U32<O>,
}

const _: () = assert!(size_of::<FoldRow<zerocopy::LE>>() == 72);

/// Number of the lives of a row that are about as long.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct FoldBin<O: ByteOrder> {
    /// Number of the bin: up to 31 the length itself; else 32 bins for each power of two.
    pub bin: U32<O>,
    /// Number of lives.
    pub count: U32<O>,
}

const _: () = assert!(size_of::<FoldBin<zerocopy::LE>>() == 8);

/// Folded events of one CPU.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct FoldCpu<O: ByteOrder> {
    /// The CPU.
    pub cpu: U32<O>,
    /// Written as 0, ignored by readers.
    pub reserved: U32<O>,
    /// Events of it that were folded, with their stacks.
    pub events: U64<O>,
}

const _: () = assert!(size_of::<FoldCpu<zerocopy::LE>>() == 16);
