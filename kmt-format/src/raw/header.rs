//! The file header. Spec section "File header".

use zerocopy::{ByteOrder, FromBytes, Immutable, IntoBytes, KnownLayout, U16, U32, Unaligned};

/// The first eight bytes of a file; a text-mode transfer damages them.
pub const MAGIC: [u8; 8] = [0x89, b'K', b'M', b'T', 0x0d, 0x0a, 0x1a, 0x0a];

/// Value of the byte-order mark when read in the file's own byte order.
pub const BOM: u32 = 0x0102_0304;

/// Length of the file header, in bytes.
pub const HEADER_LEN: usize = 64;

/// Major version written and read.
pub const VERSION_MAJOR: u16 = 1;

/// Minor version written.
pub const VERSION_MINOR: u16 = 0;

/// Bits of the `incompatible` of a file header.
pub mod incompatible {
    /// Lives of objects may be in chunks of folded lives, not in events.
    pub const FOLDED: u32 = 1;
}

/// The file header.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct FileHeader<O: ByteOrder> {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`BOM`].
    pub bom: U32<O>,
    /// Major version of the format.
    pub version_major: U16<O>,
    /// Minor version of the format.
    pub version_minor: U16<O>,
    /// Length of this header in bytes, a multiple of 64; a later minor version may append fields.
    pub header_len: U32<O>,
    /// Feature bits: a reader that does not know one of them must refuse the file.
    pub incompatible: U32<O>,
    /// Feature bits: a reader ignores those that it does not know.
    pub compatible: U32<O>,
    /// sizeof(short) of the traced kernel.
    pub size_short: u8,
    /// sizeof(int).
    pub size_int: u8,
    /// sizeof(long): 4 or 8; decides the width of records.
    pub size_long: u8,
    /// sizeof(long long).
    pub size_long_long: u8,
    /// sizeof(void *).
    pub size_pointer: u8,
    /// Alignment of u64 in structures (4 on i386); 0 if not known.
    pub align_u64: u8,
    /// log2 of the page size; 0 if not known.
    pub page_shift: u8,
    /// sizeof(long) of the target's user space; 0 if not known.
    pub size_user_long: u8,
    /// Written as 0, ignored by readers.
    pub reserved_a: U32<O>,
    /// Identifies the trace; its first four bytes are the salt of every chunk.
    pub trace_uuid: [u8; 16],
    /// Written as 0, ignored by readers.
    pub reserved_b: U32<O>,
    /// CRC-32 of all bytes of the header before this field (which is its last).
    pub header_crc: U32<O>,
}

const _: () = assert!(size_of::<FileHeader<zerocopy::LE>>() == HEADER_LEN);
