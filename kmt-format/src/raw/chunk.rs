//! The header of a chunk. Spec section "Chunk header".

use core::fmt;
use zerocopy::{ByteOrder, FromBytes, Immutable, IntoBytes, KnownLayout, U16, U32, U64, Unaligned};

/// The header in front of every chunk.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct ChunkHeader<O: ByteOrder> {
    /// [`ChunkHeader::SYNC`].
    pub sync: [u8; 4],
    /// The first four bytes of the file's `trace_uuid`.
    pub salt: [u8; 4],
    /// Kind of the body.
    pub kind: [u8; 4],
    /// [`chunk_flags`].
    pub flags: u8,
    /// Encoding of the body: [`codecs`] in the low half, [`filters`] in the upper half.
    pub codec: u8,
    /// Minor version of the body's layout.
    pub body_version: U16<O>,
    /// Bytes from the start of this header to the next chunk: header, body, padding; a multiple of 64.
    pub total_len: U64<O>,
    /// Bytes of the body as stored.
    pub body_len: U64<O>,
    /// Bytes of the body when decoded; equal to `body_len` without a codec.
    pub raw_len: U64<O>,
    /// CPU number, or [`ChunkHeader::NO_STREAM`].
    pub stream: U32<O>,
    /// Counts the chunks of one stream from 0; chunks of no stream count among themselves.
    pub sequence: U32<O>,
    /// CRC-32 of everything after this header: body and padding.
    pub body_crc: U32<O>,
    /// Bytes at the start of the body that are stored as they are with any codec, and have a checksum of their own.
    pub prefix_len: U32<O>,
    /// CRC-32 of the prefix.
    pub prefix_crc: U32<O>,
    /// CRC-32 of the 60 bytes before this field.
    pub header_crc: U32<O>,
}

impl<O: ByteOrder> ChunkHeader<O> {
    /// The first four bytes of every chunk.
    pub const SYNC: [u8; 4] = *b"KMTC";
    /// `stream` of chunks that belong to no CPU.
    pub const NO_STREAM: u32 = u32::MAX;
    /// Length of the header in bytes.
    pub const LEN: usize = 64;
}

const _: () = assert!(size_of::<ChunkHeader<zerocopy::LE>>() == 64);

/// Bits of the `flags` of a chunk header.
pub mod chunk_flags {
    /// A reader that does not know the kind must not go on as if nothing were missing.
    pub const CRITICAL: u8 = 1;
    /// A tool that rewrites files may keep the chunk without knowing its kind.
    pub const SAFE_TO_COPY: u8 = 2;
    /// Event chunk: its first event is older than the last one of the chunk before.
    pub const TIME_REGRESSION: u8 = 4;
    /// Event chunk: its records, or its loss alone, were taken from a torn or damaged chunk, whose checksum could not be
    /// checked.
    pub const UNVERIFIED: u8 = 8;
}

/// The low half of the `codec` of a chunk header.
pub mod codecs {
    /// Stored as it is.
    pub const NONE: u8 = 0;
    /// One LZ4 block, without a frame.
    pub const LZ4: u8 = 1;
    /// Zstandard frames.
    pub const ZSTD: u8 = 2;
}

/// The upper half of the `codec` of a chunk header, shifted down.
pub mod filters {
    /// Nothing was rearranged.
    pub const NONE: u8 = 0;
    /// Event chunk: time offsets as differences, records as planes of bytes.
    pub const RECORDS: u8 = 1;
}

/// The four-character code of a chunk kind. Unknown values are legal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkKind(pub [u8; 4]);

impl ChunkKind {
    /// A copy of the file header, so that the file survives damage to its first bytes.
    pub const HEADER_COPY: Self = Self(*b"HDRC");
    /// Event classes, their fields, and the shapes of their records.
    pub const SCHEMA: Self = Self(*b"SCHM");
    /// Events of one CPU.
    pub const EVENTS: Self = Self(*b"EVNT");
    /// Sub-buffers of one CPU, as the kernel wrote them.
    pub const SUB_BUFFERS: Self = Self(*b"RAWP");
    /// The trace clock.
    pub const CLOCK: Self = Self(*b"CLOK");
    /// Keys and values.
    pub const META: Self = Self(*b"META");
    /// A file of the target, verbatim.
    pub const FILE: Self = Self(*b"FILE");
    /// Symbols of the target's kernel.
    pub const SYMBOLS: Self = Self(*b"KSYM");
    /// Names of tasks.
    pub const TASKS: Self = Self(*b"TASK");
    /// The kernel's own counters for each CPU, and the writer's.
    pub const STATS: Self = Self(*b"STAT");
    /// Lines of source code by address.
    pub const LINES: Self = Self(*b"LINE");
    /// Cgroups of tasks.
    pub const CGROUPS: Self = Self(*b"CGRP");
    /// Totals by call site, without their events.
    pub const SUMS: Self = Self(*b"SUMS");
    /// Sums of lives whose events were folded.
    pub const FOLD: Self = Self(*b"FOLD");
    /// Offsets and contents of the chunks.
    pub const INDEX: Self = Self(*b"INDX");
    /// The last chunk of a finished file.
    pub const TRAILER: Self = Self(*b"TRLR");

    /// True if this library knows the kind.
    pub fn is_known(self) -> bool {
        [
            Self::HEADER_COPY,
            Self::SCHEMA,
            Self::EVENTS,
            Self::SUB_BUFFERS,
            Self::CLOCK,
            Self::META,
            Self::FILE,
            Self::SYMBOLS,
            Self::TASKS,
            Self::STATS,
            Self::LINES,
            Self::CGROUPS,
            Self::SUMS,
            Self::FOLD,
            Self::INDEX,
            Self::TRAILER,
        ]
        .contains(&self)
    }
}

impl fmt::Display for ChunkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for ChunkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
