//! The body of the trailer. Spec section "TRLR".

use zerocopy::{ByteOrder, FromBytes, Immutable, IntoBytes, KnownLayout, U32, U64, Unaligned};

/// The body of the last chunk of a finished file.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct Trailer<O: ByteOrder> {
    /// Length of this body in bytes; a later minor version may append fields.
    pub head_len: U32<O>,
    /// Number of chunks in the file, this one included.
    pub chunk_count: U32<O>,
    /// Length of the file up to and with this chunk, in bytes.
    pub file_len: U64<O>,
    /// Events in all event chunks.
    pub event_count: U64<O>,
    /// Bytes of all event chunks, headers and padding included.
    pub event_bytes: U64<O>,
}

const _: () = assert!(size_of::<Trailer<zerocopy::LE>>() == 32);
