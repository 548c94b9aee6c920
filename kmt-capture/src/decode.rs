//! Sub-buffers into a file: what `convert` and `record` share.

use kmt_format::kernel::{ByteOrder, HeaderPage, Item, SubBuffer};
use kmt_format::write::{Loss, Writer, WriterStats};
use kmt_format::{Error, Result};

/// A writer, and how the sub-buffers that it is given look.
#[derive(Debug)]
pub struct Decoder {
    /// The file.
    pub writer: Writer,
    /// Layout of sub-buffers.
    pub header_page: HeaderPage,
    /// Byte order of the target.
    pub order: ByteOrder,
    /// Whether sub-buffers are kept as they are.
    pub verbatim: bool,
    /// What the sub-buffers said was lost, all together.
    pub flagged: Loss,
}

impl Decoder {
    /// Takes in one sub-buffer. `see` is shown every event's time and record.
    ///
    /// # Errors
    ///
    /// Returns an error where it could not be decoded to its end; what stands before that is in the file.
    pub fn sub_buffer(
        &mut self,
        cpu: u32,
        bytes: &[u8],
        stats: &mut WriterStats,
        mut see: impl FnMut(u64, &[u8]),
    ) -> Result<()> {
        stats.bytes += bytes.len() as u64;
        stats.sub_buffers += 1;
        if self.verbatim {
            if let Ok(kept) = self.writer.sub_buffer_verbatim(cpu, bytes, &self.header_page) {
                self.flagged = self.flagged.and(kept.loss);
                stats.events += kept.events;
                stats.discarded += kept.discarded;
                for item in SubBuffer::parse(bytes, &self.header_page, self.order)?.items() {
                    if let Item::Event { time, record, .. } = item? {
                        see(time, record);
                    }
                }
                return Ok(());
            }
            // What cannot be decoded to its end is decoded as far as it goes.
        }
        let sub_buffer = SubBuffer::parse(bytes, &self.header_page, self.order)?;
        let loss = Loss::from(sub_buffer.missed());
        if !loss.is_none() {
            self.flagged = self.flagged.and(loss);
            self.writer.lost(cpu, loss)?;
        }
        for item in sub_buffer.items() {
            match item? {
                Item::Event { time, record, offset } => {
                    self.writer
                        .event(cpu, time, record)
                        .map_err(|e| Error::at(offset as u64, e.kind().clone()))?;
                    stats.events += 1;
                    see(time, record);
                }
                Item::Discarded => stats.discarded += 1,
            }
        }
        Ok(())
    }

    /// Marks a place where input could not be decoded.
    pub fn damaged(&mut self, cpu: u32) -> Result<()> {
        let loss = Loss::damaged_input();
        self.flagged = self.flagged.and(loss);
        self.writer.lost(cpu, loss)
    }
}
