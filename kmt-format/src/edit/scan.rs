//! The chunks that a file still holds, however it was damaged. Spec section "Recovery".

use std::borrow::Cow;

use crate::Limits;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::ByteOrder;
use crate::raw::{ALIGNMENT, ChunkHeader, ChunkKind};
use crate::read::recovering::{Contents, Header, Taken, chunk_at, header_anywhere};
use crate::read::{ChunkRef, Damage};

/// Result of a scan.
pub(super) struct Scan<'d> {
    pub contents: Contents<'d>,
    /// Chunks that can be used, in the order of the file. Event chunks are whole, but not yet read.
    pub chunks: Vec<ChunkRef>,
    /// The last event chunk, if its end is missing and its prefix is there.
    pub torn: Option<ChunkRef>,
}

impl<'d> Scan<'d> {
    /// Looks through a file. Chunks may start anywhere: bytes lost or added on a wire shift what follows.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no header and no copy of it, or the file must be refused.
    pub fn new(data: &'d [u8], limits: Limits) -> Result<Self> {
        let (header, damage) = header_anywhere(data)?;
        let mut scan =
            Self { contents: Contents::new(header, damage, limits, true), chunks: Vec::new(), torn: None };
        let mut at = header.header_len.min(data.len());
        while at < data.len() {
            at = match scan.chunk(data, at)? {
                Ok(end) => end,
                Err(kind) => scan.skip(data, at, kind),
            };
        }
        scan.contents.close(data.len() as u64);
        Ok(scan)
    }

    /// Takes the chunk at `at` and returns where it ends, or says why there is none with all its bytes.
    ///
    /// A damaged chunk is none: bytes may be missing from it, and sound chunks have moved up into it.
    fn chunk(&mut self, data: &'d [u8], at: usize) -> Result<core::result::Result<usize, ErrorKind>> {
        let Some(chunk) = self.chunk_at(data, at) else { return Ok(Err(ErrorKind::NotAChunk)) };
        if let Err(kind) = chunk.check_lengths(&self.contents.limits) {
            return Ok(Err(kind));
        }
        let rest = data.get(at.saturating_add(ALIGNMENT)..).unwrap_or_default();
        let len = usize::try_from(chunk.total_len).unwrap_or(usize::MAX).saturating_sub(ALIGNMENT);
        let Some(stored) = rest.get(..len) else {
            if chunk.kind == ChunkKind::EVENTS && chunk.codec == 0 && chunk.prefix(rest).is_ok() {
                self.torn = Some(chunk);
            }
            let available = rest.len().saturating_add(ALIGNMENT) as u64;
            return Ok(Err(ErrorKind::Truncated { needed: chunk.total_len, available }));
        };
        if let Err(error) = chunk.body(stored) {
            return Ok(Err(error.kind().clone()));
        }
        match self.contents.chunk(&chunk, Cow::Borrowed(stored))? {
            Taken::Damaged(_) => {}
            Taken::Events(_) | Taken::Other => self.chunks.push(chunk),
        }
        Ok(Ok(at.saturating_add(ALIGNMENT).saturating_add(len)))
    }

    /// Passes over bytes that are no chunk; returns where the next one starts.
    fn skip(&mut self, data: &[u8], from: usize, kind: ErrorKind) -> usize {
        let mut at = from.saturating_add(1);
        let sync = ChunkHeader::<zerocopy::LE>::SYNC;
        while let Some(found) =
            data.get(at..).and_then(|rest| rest.windows(sync.len()).position(|w| w == sync))
        {
            at = at.saturating_add(found);
            if self.chunk_at(data, at).is_some() {
                break;
            }
            at = at.saturating_add(1);
        }
        let end = if self.chunk_at(data, at).is_some() { at } else { data.len() };
        let error = Error::at(from as u64, kind);
        self.contents.add_damage(Damage { offset: from as u64, len: end.saturating_sub(from) as u64, error });
        end
    }

    fn chunk_at(&self, data: &[u8], at: usize) -> Option<ChunkRef> {
        let Header { trace_uuid: [a, b, c, d, ..], order, .. } = self.contents.header;
        chunk_at(data.get(at..)?, at as u64, [a, b, c, d], order)
    }

    /// Byte order of the file.
    pub fn order(&self) -> ByteOrder {
        self.contents.header.order
    }
}
