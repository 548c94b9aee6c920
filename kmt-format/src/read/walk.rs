//! Walking over the chunks of a file, past damage.

use zerocopy::{BigEndian, ByteOrder as Order, FromBytes, LittleEndian};

use super::Header;
use crate::Limits;
use crate::error::{Error, ErrorKind};
use crate::kernel::ByteOrder;
use crate::raw::{ALIGNMENT, ChunkHeader, ChunkKind};

/// A chunk whose header is sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkRef {
    /// Where the chunk starts in the file.
    pub offset: u64,
    /// Kind.
    pub kind: ChunkKind,
    /// Flags, see [`chunk_flags`](crate::raw::chunk_flags).
    pub flags: u8,
    /// Codec of the body.
    pub codec: u8,
    /// Bytes from this chunk's start to the next chunk.
    pub total_len: u64,
    /// Bytes of the body.
    pub body_len: u64,
    /// CPU number; `None` for chunks of no CPU.
    pub cpu: Option<u32>,
    /// Number of the chunk in its stream.
    pub sequence: u32,
    /// CRC-32 of body and padding.
    pub body_crc: u32,
}

impl ChunkRef {
    /// Where the body starts in the file.
    pub fn body_offset(&self) -> u64 {
        self.offset + ALIGNMENT as u64
    }

    /// The body, after its checksum was found right.
    pub(super) fn body<'d>(&self, data: &'d [u8]) -> Result<&'d [u8], Error> {
        let start = self.body_offset() as usize;
        let end = (self.offset + self.total_len) as usize;
        let stored = data.get(start..end).unwrap_or_default();
        let computed = crc32fast::hash(stored);
        if computed != self.body_crc {
            let kind = ErrorKind::Checksum { what: "body of a chunk", stored: self.body_crc, computed };
            return Err(Error::at(self.body_offset(), kind));
        }
        Ok(stored.get(..self.body_len as usize).unwrap_or_default())
    }
}

/// Bytes of a file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Where they start.
    pub offset: u64,
    /// How many there are; 0 if that is not the point.
    pub len: u64,
    /// What is wrong with them.
    pub error: Error,
}

/// What a walk comes across.
pub(super) enum Found {
    Chunk(ChunkRef),
    Damage(Damage),
}

/// Walks from chunk to chunk; where no chunk is, on to the next one.
pub(super) struct Walk<'d> {
    data: &'d [u8],
    position: usize,
    salt: [u8; 4],
    order: ByteOrder,
    limits: Limits,
}

impl<'d> Walk<'d> {
    pub fn new(data: &'d [u8], header: &Header, limits: Limits) -> Self {
        let [a, b, c, d, ..] = header.trace_uuid;
        Self { data, position: header.header_len, salt: [a, b, c, d], order: header.order, limits }
    }

    fn header_at(&self, position: usize) -> Option<ChunkRef> {
        let bytes = self.data.get(position..position.checked_add(ALIGNMENT)?)?;
        if bytes.get(..4)? != ChunkHeader::<LittleEndian>::SYNC || bytes.get(4..8)? != self.salt {
            return None;
        }
        match self.order {
            ByteOrder::Little => chunk_ref::<LittleEndian>(bytes, position),
            ByteOrder::Big => chunk_ref::<BigEndian>(bytes, position),
        }
    }

    /// Where the next sound chunk header stands, searching in steps of the alignment.
    fn resync(&self, from: usize) -> usize {
        let mut position = from;
        while position < self.data.len() {
            if self.header_at(position).is_some() {
                return position;
            }
            position += ALIGNMENT;
        }
        self.data.len()
    }

    fn skip(&mut self, kind: ErrorKind) -> Found {
        let start = self.position;
        self.position = self.resync(start + ALIGNMENT).min(self.data.len());
        let (offset, len) = (start as u64, (self.position - start) as u64);
        Found::Damage(Damage { offset, len, error: Error::at(offset, kind) })
    }
}

impl Iterator for Walk<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        let available = self.data.len().checked_sub(self.position).filter(|&n| n > 0)?;
        if available < ALIGNMENT {
            let kind = ErrorKind::Truncated { needed: ALIGNMENT as u64, available: available as u64 };
            return Some(self.skip(kind));
        }
        let Some(chunk) = self.header_at(self.position) else { return Some(self.skip(ErrorKind::NotAChunk)) };
        let is_sound = chunk.total_len % ALIGNMENT as u64 == 0
            && chunk.total_len >= ALIGNMENT as u64
            && chunk.body_len <= chunk.total_len - ALIGNMENT as u64;
        if !is_sound {
            return Some(self.skip(ErrorKind::Malformed("the lengths of a chunk contradict each other")));
        }
        if chunk.total_len > self.limits.chunk_len {
            let (found, limit) = (chunk.total_len, self.limits.chunk_len);
            return Some(self.skip(ErrorKind::LimitExceeded { what: "the length of a chunk", found, limit }));
        }
        if chunk.total_len > available as u64 {
            let kind = ErrorKind::Truncated { needed: chunk.total_len, available: available as u64 };
            return Some(self.skip(kind));
        }
        self.position += chunk.total_len as usize;
        Some(Found::Chunk(chunk))
    }
}

fn chunk_ref<O: Order>(bytes: &[u8], position: usize) -> Option<ChunkRef> {
    let (header, _) = ChunkHeader::<O>::ref_from_prefix(bytes).ok()?;
    if crc32fast::hash(bytes.get(..ALIGNMENT - 4)?) != header.header_crc.get() {
        return None;
    }
    let stream = header.stream.get();
    Some(ChunkRef {
        offset: position as u64,
        kind: ChunkKind(header.kind),
        flags: header.flags,
        codec: header.codec,
        total_len: header.total_len.get(),
        body_len: header.body_len.get(),
        cpu: Some(stream).filter(|&s| s != ChunkHeader::<O>::NO_STREAM),
        sequence: header.sequence.get(),
        body_crc: header.body_crc.get(),
    })
}
