//! The buffers of a `trace.dat`: sub-buffers of each CPU, compressed in pieces or not.

use std::borrow::Cow;

use super::super::cursor::{Cursor, ImportError, Result};
use super::super::inflate::{Codec, Inflating};
use super::TraceDat;

/// Most CPUs of one buffer; Linux has 8,192.
pub const CPUS_MAX: u32 = 65_536;

/// A buffer: the top level, or an instance.
#[derive(Debug, Clone)]
pub struct BufferInstance {
    /// Name; the top level's is empty.
    pub name: String,
    /// Name of its clock, where the file tells it with the buffer (version 7).
    pub clock: Option<String>,
    /// Size of its sub-buffers in bytes (version 7).
    pub page_size: Option<u32>,
    /// Data of its CPUs.
    pub cpus: Vec<CpuData>,
    /// True if the data come in compressed pieces.
    pub is_compressed: bool,
}

/// Offset and length of the data of one CPU.
#[derive(Debug, Clone, Copy)]
pub struct CpuData {
    /// Number.
    pub cpu: u32,
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub len: u64,
}

/// The sub-buffers of one CPU, some at a time.
#[derive(Debug)]
pub struct SubBuffers<'a, 'd> {
    cursor: Cursor<'d>,
    codec: Option<(Codec, &'a Inflating)>,
    part_len_max: u64,
    pieces_left: u32,
}

impl BufferInstance {
    /// True if it has data.
    pub fn has_data(&self) -> bool {
        self.cpus.iter().any(|c| c.len > 0)
    }

    /// Checks that no bytes are the data of two CPUs.
    ///
    /// # Errors
    ///
    /// Returns where some are.
    pub fn check_overlaps(&self) -> Result<()> {
        let mut places: Vec<&CpuData> = self.cpus.iter().filter(|c| c.len > 0).collect();
        places.sort_by_key(|c| (c.offset, c.len));
        for pair in places.windows(2) {
            if let [a, b] = pair {
                if a.offset.saturating_add(a.len) > b.offset {
                    let what = format!("the data of CPU {} and of CPU {} overlap", a.cpu, b.cpu);
                    return Err(ImportError::at(b.offset, what));
                }
            }
        }
        Ok(())
    }
}

impl<'d> TraceDat<'d> {
    /// The sub-buffers of a CPU. The second value is what the file has lost at its end.
    pub fn sub_buffers(
        &self,
        instance: &BufferInstance,
        data: &CpuData,
    ) -> Result<(SubBuffers<'_, 'd>, Option<ImportError>)> {
        self.counted(instance, data, &self.inflating)
    }

    /// The first sub-buffers of each CPU, as long as not too much has to be decompressed for them.
    pub fn first_pieces(&self, instance: &BufferInstance) -> Vec<Cow<'d, [u8]>> {
        const ENOUGH: u64 = 32 << 20;
        let inflating = Inflating::new("the first events", ENOUGH);
        let first =
            |data| self.counted(instance, data, &inflating).ok()?.0.next_piece().ok()?.map(|(_, p)| p);
        instance.cpus.iter().filter(|data| data.len > 0).filter_map(first).collect()
    }

    fn counted<'a>(
        &self,
        instance: &BufferInstance,
        data: &CpuData,
        inflating: &'a Inflating,
    ) -> Result<(SubBuffers<'a, 'd>, Option<ImportError>)> {
        /// The size of compressed data leaves out the number of pieces before them.
        const PIECES_LEN: u64 = 4;
        let end = self.bytes.len() as u64;
        let mut cursor = Cursor::new(self.bytes, 0, self.start.order).seek(data.offset, "a CPU's data")?;
        let codec = self.codec.filter(|_| instance.is_compressed && data.len > 0);
        let len = data.len.saturating_add(if codec.is_some() { PIECES_LEN } else { 0 });
        let there = len.min(end.saturating_sub(data.offset));
        let torn = Some(len.saturating_sub(there)).filter(|&missing| missing > 0).map(|missing| {
            ImportError::at(
                end,
                format!("the file is truncated: {missing} bytes of CPU {} are missing", data.cpu),
            )
        });
        let here = cursor.take(there, "a CPU's data")?;
        let mut cursor = Cursor::new(here, data.offset, self.start.order);
        let pieces_left = if codec.is_some() { cursor.u32("the number of pieces")? } else { 1 };
        let codec = codec.map(|codec| (codec, inflating));
        let part_len_max = self.bounds.compressed_part;
        Ok((SubBuffers { cursor, codec, part_len_max, pieces_left }, torn))
    }
}

impl<'d> SubBuffers<'_, 'd> {
    /// The next whole sub-buffers and their offset in the file (of their piece where that is compressed); `None` at
    /// the end.
    pub fn next_piece(&mut self) -> Result<Option<(u64, Cow<'d, [u8]>)>> {
        if self.pieces_left == 0 || self.cursor.rest().is_empty() {
            return Ok(None);
        }
        self.pieces_left = self.pieces_left.saturating_sub(1);
        let offset = self.cursor.offset();
        let Some((codec, inflating)) = self.codec else {
            let rest = self.cursor.rest();
            return Ok(Some((offset, Cow::Borrowed(self.cursor.take(rest.len() as u64, "sub-buffers")?))));
        };
        let packed = self.cursor.u32("the compressed size of a piece")?;
        let len = self.cursor.u32("the size of a piece")?;
        let packed = self.cursor.take(packed.into(), "a compressed piece")?;
        inflating.take(len.into(), offset)?;
        Ok(Some((offset, Cow::Owned(codec.inflate(packed, len.into(), self.part_len_max, offset)?))))
    }
}
