//! File header and chunk headers, as bytes.

use zerocopy::IntoBytes;

use super::types::WriterOptions;
use crate::raw::{
    BOM, ChunkHeader, ChunkKind, FileHeader, HEADER_LEN, MAGIC, VERSION_MAJOR, VERSION_MINOR, incompatible,
};

/// Identity of a chunk to be framed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkId {
    pub kind: ChunkKind,
    pub flags: u8,
    pub stream: u32,
    pub sequence: u32,
}

/// Fields of a chunk header.
pub(crate) struct Frame {
    pub id: ChunkId,
    pub codec: u8,
    pub total_len: usize,
    pub body_len: usize,
    pub raw_len: usize,
    pub body_crc: u32,
    pub prefix_len: usize,
    pub prefix_crc: u32,
}

impl Frame {
    /// The header, its checksum included.
    pub fn header<O: zerocopy::ByteOrder>(&self, uuid: [u8; 16]) -> [u8; 64] {
        let [a, b, c, d, ..] = uuid;
        let mut header = ChunkHeader::<O> {
            sync: ChunkHeader::<O>::SYNC,
            salt: [a, b, c, d],
            kind: self.id.kind.0,
            flags: self.id.flags,
            codec: self.codec,
            body_version: 0.into(),
            total_len: (self.total_len as u64).into(),
            body_len: (self.body_len as u64).into(),
            raw_len: (self.raw_len as u64).into(),
            stream: self.id.stream.into(),
            sequence: self.id.sequence.into(),
            body_crc: self.body_crc.into(),
            prefix_len: (self.prefix_len as u32).into(),
            prefix_crc: self.prefix_crc.into(),
            header_crc: 0.into(),
        };
        let crc = crc32fast::hash(header.as_bytes().get(..60).unwrap_or_default());
        header.header_crc = crc.into();
        zerocopy::transmute!(header)
    }
}

/// The file header, its checksum included.
pub(crate) fn file_header<O: zerocopy::ByteOrder>(options: &WriterOptions) -> Vec<u8> {
    let mut header = FileHeader::<O> {
        magic: MAGIC,
        bom: BOM.into(),
        version_major: VERSION_MAJOR.into(),
        version_minor: VERSION_MINOR.into(),
        header_len: (HEADER_LEN as u32).into(),
        incompatible: if options.folded { incompatible::FOLDED } else { 0 }.into(),
        compatible: 0.into(),
        size_short: 2,
        size_int: 4,
        size_long: options.long_size as u8,
        size_long_long: 8,
        size_pointer: options.long_size as u8,
        align_u64: options.align_u64.unwrap_or(0),
        page_shift: options.page_size.filter(|s| s.is_power_of_two()).map_or(0, |s| s.trailing_zeros() as u8),
        size_user_long: 0,
        reserved_a: 0.into(),
        trace_uuid: options.trace_uuid,
        reserved_b: 0.into(),
        header_crc: 0.into(),
    };
    let crc = crc32fast::hash(header.as_bytes().get(..HEADER_LEN - 4).unwrap_or_default());
    header.header_crc = crc.into();
    header.as_bytes().to_vec()
}
