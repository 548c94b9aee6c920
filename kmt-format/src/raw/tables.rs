//! Rows of the tables with texts. Spec sections "LINE", "CGRP" and "SUMS".

use zerocopy::{ByteOrder, FromBytes, Immutable, IntoBytes, KnownLayout, U16, U32, U64, Unaligned};

use super::StringRef;

/// A line of source code, a row of a LINE chunk.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct LineRow<O: ByteOrder> {
    /// The address as events have it.
    pub address: U64<O>,
    /// Function.
    pub function: StringRef<O>,
    /// Path of the source file.
    pub file: StringRef<O>,
    /// Line, from 1; 0 if not known.
    pub line: U32<O>,
    /// 0 for the innermost function; each that it was inlined into has one more.
    pub depth: U16<O>,
    /// Written as 0, ignored by readers.
    pub reserved: U16<O>,
}

/// A task's cgroup, a row of a CGRP chunk.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct CgroupRow<O: ByteOrder> {
    /// Since when, in the clock's unit; 0 if not known.
    pub time: U64<O>,
    /// The cgroup's number in its hierarchy; 0 if not known.
    pub id: U64<O>,
    /// Thread id, as a signed number.
    pub pid: U32<O>,
    /// Number of the hierarchy as `/proc/PID/cgroup` has it; 0 for version 2.
    pub hierarchy: U32<O>,
    /// Path from the root of the hierarchy.
    pub path: StringRef<O>,
}

/// Totals of a time at one call site, a row of a SUMS chunk.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct SumsRow<O: ByteOrder> {
    /// Start of the time that is summed up, in the clock's unit.
    pub time_first: U64<O>,
    /// End of it.
    pub time_last: U64<O>,
    /// Return address of the allocator's caller; 0 if only the function is known.
    pub call_site: U64<O>,
    /// Events.
    pub events: U64<O>,
    /// Sum of the bytes requested.
    pub bytes_req: U64<O>,
    /// Sum of the bytes handed out.
    pub bytes_alloc: U64<O>,
    /// Function; empty if only the address is known.
    pub function: StringRef<O>,
    /// Meaning of the events as in a class; see the registry.
    pub meaning: U16<O>,
    /// Bit *n* is set if the *n*th of `events`, `bytes_req` and `bytes_alloc`, from 0, is known.
    pub present: U16<O>,
    /// Written as 0, ignored by readers.
    pub reserved: U32<O>,
}

const _: () = assert!(size_of::<LineRow<zerocopy::LE>>() == 32);
const _: () = assert!(size_of::<CgroupRow<zerocopy::LE>>() == 32);
const _: () = assert!(size_of::<SumsRow<zerocopy::LE>>() == 64);
