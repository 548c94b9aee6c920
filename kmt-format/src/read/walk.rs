//! Walking over the chunks of a file, past damage, whether it is all there or still coming.

use zerocopy::{ByteOrder as Order, FromBytes, LittleEndian};

use super::Header;
use crate::Limits;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{ByteOrder, with_order};
use crate::limits::within;
use crate::raw::{ALIGNMENT, ChunkHeader, ChunkKind};

/// A chunk whose header is sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkRef {
    /// Offset of the chunk in the file.
    pub offset: u64,
    /// Kind.
    pub kind: ChunkKind,
    /// Flags, see [`chunk_flags`](crate::raw::chunk_flags).
    pub flags: u8,
    /// Codec and filter of the body, see [`codecs`](crate::raw::codecs).
    pub codec: u8,
    /// Bytes from this chunk's start to the next chunk.
    pub total_len: u64,
    /// Bytes of the body as stored.
    pub body_len: u64,
    /// Bytes of the body when decoded.
    pub raw_len: u64,
    /// CPU number; `None` for chunks of no CPU.
    pub cpu: Option<u32>,
    /// Number of the chunk in its stream.
    pub sequence: u32,
    /// CRC-32 of body and padding.
    pub body_crc: u32,
    /// Bytes of the body that are stored as they are and have a checksum of their own.
    pub prefix_len: u32,
    /// CRC-32 of them.
    pub prefix_crc: u32,
    /// CRC-32 of the chunk's header.
    pub header_crc: u32,
}

impl ChunkRef {
    /// Offset of the body in the file.
    pub fn body_offset(&self) -> u64 {
        self.offset.saturating_add(ALIGNMENT as u64)
    }

    /// Body and padding in the file that `data` is; empty if they are not there.
    pub(crate) fn stored_in<'d>(&self, data: &'d [u8]) -> &'d [u8] {
        let start = usize::try_from(self.body_offset()).unwrap_or(usize::MAX);
        let end = usize::try_from(self.offset.saturating_add(self.total_len)).unwrap_or(usize::MAX);
        data.get(start..end).unwrap_or_default()
    }

    /// The prefix, after its checksum was found right. `stored` is body and padding, or as much as there is of them.
    pub(crate) fn prefix<'s>(&self, stored: &'s [u8]) -> Result<&'s [u8]> {
        let Some(prefix) = stored.get(..self.prefix_len as usize) else {
            let (needed, available) = (u64::from(self.prefix_len), stored.len() as u64);
            return Err(Error::at(self.body_offset(), ErrorKind::Truncated { needed, available }));
        };
        self.checked("prefix of a chunk", self.prefix_crc, prefix)
    }

    /// The body as it is stored, after its checksum was found right.
    pub(crate) fn body<'s>(&self, stored: &'s [u8]) -> Result<&'s [u8]> {
        let checked = self.checked("body of a chunk", self.body_crc, stored)?;
        Ok(checked.get(..self.body_len as usize).unwrap_or_default())
    }

    /// Body and padding, where `rest` begins with the whole body and not with the right padding; `None` if the body is not
    /// right. The padding is zero bytes up to a multiple of 64.
    pub(crate) fn with_padding(&self, rest: &[u8]) -> Option<Vec<u8>> {
        let len = usize::try_from(self.total_len).ok()?.checked_sub(ALIGNMENT)?;
        let body = rest.get(..usize::try_from(self.body_len).ok()?)?;
        if len.checked_sub(body.len())? >= ALIGNMENT {
            return None;
        }
        let mut stored = Vec::with_capacity(len);
        stored.extend_from_slice(body);
        stored.resize(len, 0);
        self.body(&stored).is_ok().then_some(stored)
    }

    fn checked<'s>(&self, what: &'static str, stored: u32, bytes: &'s [u8]) -> Result<&'s [u8]> {
        let computed = crc32fast::hash(bytes);
        if computed != stored {
            return Err(Error::at(self.body_offset(), ErrorKind::Checksum { what, stored, computed }));
        }
        Ok(bytes)
    }

    pub(crate) fn check_lengths(&self, limits: &Limits) -> core::result::Result<(), ErrorKind> {
        let room = self.total_len.checked_sub(ALIGNMENT as u64);
        let is_sound = self.total_len.checked_rem(ALIGNMENT as u64).unwrap_or(0) == 0
            && room.is_some_and(|room| self.body_len <= room)
            && u64::from(self.prefix_len) <= self.body_len;
        if !is_sound {
            return Err(ErrorKind::Malformed("the lengths of a chunk contradict each other"));
        }
        within("chunk_len", "the length of a chunk", self.total_len, limits.chunk_len)
    }
}

/// Bytes of a file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes; 0 if no byte range applies.
    pub len: u64,
    /// Defect of the bytes.
    pub error: Error,
}

impl Damage {
    /// Damage of `len` bytes from `offset` on; 0 if no byte range applies.
    pub fn new(offset: u64, len: u64, error: Error) -> Self {
        Self { offset, len, error }
    }
}

/// An item found by a walk.
#[derive(Debug)]
pub(crate) enum Found {
    /// A chunk; its bytes are there.
    Chunk(ChunkRef),
    /// A chunk header whose body does not end within the file. The walk continues inside it, in search of the next one.
    Torn,
    /// Bytes that are no chunk.
    Damage(Damage),
}

/// One step of a walk.
#[derive(Debug)]
pub(crate) enum Step {
    /// Something was found. Bytes up to [`Walker::position`] are no longer needed.
    Found(Found),
    /// More bytes are needed.
    NeedMore,
    /// The input is at its end.
    End,
}

/// Walks from chunk to chunk; where no chunk is, on to the next one. Holds no bytes.
#[derive(Debug, Clone)]
pub(crate) struct Walker {
    position: u64,
    /// Offset of the bytes that are being skipped, and their defect.
    skipping: Option<(u64, ErrorKind)>,
    salt: [u8; 4],
    order: ByteOrder,
    limits: Limits,
}

impl Walker {
    pub fn new(header: &Header, limits: Limits) -> Self {
        let [a, b, c, d, ..] = header.trace_uuid;
        let position = header.header_len as u64;
        Self { position, skipping: None, salt: [a, b, c, d], order: header.order, limits }
    }

    /// Up to where the file is done with.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// One step. `data` starts at [`Self::position`]; `is_all` says that nothing comes after it.
    pub fn step(&mut self, data: &[u8], is_all: bool) -> Step {
        if self.skipping.is_some() {
            return self.resync(data, is_all);
        }
        let available = data.len() as u64;
        if available < ALIGNMENT as u64 {
            return match (is_all, available) {
                (false, _) => Step::NeedMore,
                (true, 0) => Step::End,
                (true, _) => self.skip(
                    ErrorKind::Truncated { needed: ALIGNMENT as u64, available },
                    available,
                    data,
                    true,
                ),
            };
        }
        let Some(chunk) = self.header_at(data) else {
            return self.skip(ErrorKind::NotAChunk, ALIGNMENT as u64, data, is_all);
        };
        if let Err(kind) = chunk.check_lengths(&self.limits) {
            return self.skip(kind, ALIGNMENT as u64, data, is_all);
        }
        if chunk.total_len <= available {
            self.position = self.position.saturating_add(chunk.total_len);
            return Step::Found(Found::Chunk(chunk));
        }
        if !is_all {
            return Step::NeedMore;
        }
        self.skipping = Some((self.position, ErrorKind::Truncated { needed: chunk.total_len, available }));
        self.position = self.position.saturating_add(ALIGNMENT as u64);
        Step::Found(Found::Torn)
    }

    fn skip(&mut self, kind: ErrorKind, len: u64, data: &[u8], is_all: bool) -> Step {
        self.skipping = Some((self.position, kind));
        self.position = self.position.saturating_add(len);
        self.resync(data.get(len as usize..).unwrap_or_default(), is_all)
    }

    /// On to the next sound chunk header, in steps of the alignment.
    fn resync(&mut self, data: &[u8], is_all: bool) -> Step {
        let mut rest = data;
        while rest.len() >= ALIGNMENT {
            if self.header_at(rest).is_some() {
                return self.resynced();
            }
            rest = rest.get(ALIGNMENT..).unwrap_or_default();
            self.position = self.position.saturating_add(ALIGNMENT as u64);
        }
        if !is_all {
            return Step::NeedMore;
        }
        self.position = self.position.saturating_add(rest.len() as u64);
        self.resynced()
    }

    fn resynced(&mut self) -> Step {
        let Some((offset, kind)) = self.skipping.take() else { return Step::End };
        let len = self.position.saturating_sub(offset);
        Step::Found(Found::Damage(Damage { offset, len, error: Error::at(offset, kind) }))
    }

    fn header_at(&self, data: &[u8]) -> Option<ChunkRef> {
        chunk_at(data, self.position, self.salt, self.order)
    }
}

/// The sound chunk header at the start of `data`, which is at `offset` of the file.
pub(crate) fn chunk_at(data: &[u8], offset: u64, salt: [u8; 4], order: ByteOrder) -> Option<ChunkRef> {
    let bytes = data.get(..ALIGNMENT)?;
    if bytes.get(..4)? != ChunkHeader::<LittleEndian>::SYNC || bytes.get(4..8)? != salt {
        return None;
    }
    with_order!(order, O => chunk_ref::<O>(bytes, offset))
}

fn chunk_ref<O: Order>(bytes: &[u8], offset: u64) -> Option<ChunkRef> {
    let (header, _) = ChunkHeader::<O>::ref_from_prefix(bytes).ok()?;
    let header_crc = header.header_crc.get();
    if crc32fast::hash(bytes.get(..ALIGNMENT - 4)?) != header_crc {
        return None;
    }
    let stream = header.stream.get();
    Some(ChunkRef {
        offset,
        kind: ChunkKind(header.kind),
        flags: header.flags,
        codec: header.codec,
        total_len: header.total_len.get(),
        body_len: header.body_len.get(),
        raw_len: header.raw_len.get(),
        cpu: Some(stream).filter(|&s| s != ChunkHeader::<O>::NO_STREAM),
        sequence: header.sequence.get(),
        body_crc: header.body_crc.get(),
        prefix_len: header.prefix_len.get(),
        prefix_crc: header.prefix_crc.get(),
        header_crc,
    })
}
