//! The end of a file: the index and the trailer. Spec sections "INDX" and "TRLR".

use zerocopy::{ByteOrder, FromBytes, Immutable, IntoBytes, KnownLayout, U32, U64, Unaligned};

/// The body of the last chunk of a finished file.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct Trailer<O: ByteOrder> {
    /// Length of this structure in bytes; a later minor version may append fields.
    pub head_len: U32<O>,
    /// Number of chunks in the file, this one included.
    pub chunk_count: U32<O>,
    /// Length of the file in bytes, up to and with this chunk.
    pub file_len: U64<O>,
    /// Events of all event chunks together.
    pub event_count: U64<O>,
    /// Bytes of all event chunks together, headers and padding included.
    pub event_bytes: U64<O>,
    /// Offset of the INDX chunk; 0: there is none.
    pub index_offset: U64<O>,
}

/// Row of the index for one chunk: its offset, its header, and fields of the head of its body.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct IndexRow<O: ByteOrder> {
    /// Offset of the chunk.
    pub offset: U64<O>,
    /// `t_base` of the head of EVNT and RAWP; 0 for other kinds, as are the fields up to `loss_flags`.
    pub t_base: U64<O>,
    /// `t_last` of the head.
    pub t_last: U64<O>,
    /// `first_event` of the head.
    pub first_event: U64<O>,
    /// `lost_events` of the head.
    pub lost_events: U64<O>,
    /// `record_count` of the head.
    pub record_count: U32<O>,
    /// `loss_flags` of the head.
    pub loss_flags: U32<O>,
    /// `classes` of the head.
    pub classes: U64<O>,
    /// The chunk's header, byte for byte.
    pub header: [u8; 64],
}

const _: () = assert!(size_of::<Trailer<zerocopy::LE>>() == 40);
const _: () = assert!(size_of::<IndexRow<zerocopy::LE>>() == 120);
