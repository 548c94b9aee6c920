//! Sub-buffers into a file: shared by `convert` and `record`.

use kmt_format::kernel::{ByteOrder, HeaderPage, Item, SubBuffer};
use kmt_format::write::{Loss, Writer, WriterStats};
use kmt_format::{Error, Result};

/// Decodes the sub-buffers of one kernel.
#[derive(Debug)]
pub struct SubBufferDecoder {
    /// Layout of sub-buffers.
    pub header_page: HeaderPage,
    /// Byte order of the target.
    pub order: ByteOrder,
    /// True if sub-buffers are kept as the kernel wrote them.
    pub verbatim: bool,
    /// Sum of the losses that sub-buffers were marked with, and of damaged sub-buffers.
    pub lost: Loss,
}

impl SubBufferDecoder {
    /// A decoder that has seen no loss.
    pub fn new(header_page: HeaderPage, order: ByteOrder, verbatim: bool) -> Self {
        Self { header_page, order, verbatim, lost: Loss::default() }
    }

    /// Adds one sub-buffer to `writer`. `see` is called with the time and the record of every event.
    ///
    /// # Errors
    ///
    /// Returns an error if the sub-buffer cannot be decoded to its end; the events before that place are in the file.
    pub fn sub_buffer(
        &mut self,
        writer: &mut Writer,
        cpu: u32,
        bytes: &[u8],
        stats: &mut WriterStats,
        mut see: impl FnMut(u64, &[u8]),
    ) -> Result<()> {
        stats.bytes += bytes.len() as u64;
        stats.sub_buffers += 1;
        if self.verbatim {
            if let Ok(found) = writer.sub_buffer_verbatim(cpu, bytes, &self.header_page) {
                self.lost = self.lost.and(found.loss);
                stats.events += found.events;
                stats.discarded += found.discarded;
                for item in SubBuffer::parse(bytes, &self.header_page, self.order)?.items() {
                    if let Item::Event { time, record, .. } = item? {
                        see(time, record);
                    }
                }
                return Ok(());
            }
            // A sub-buffer that cannot be decoded to its end is decoded up to the damage.
        }
        let sub_buffer = SubBuffer::parse(bytes, &self.header_page, self.order)?;
        let loss = Loss::from(sub_buffer.missed());
        if !loss.is_none() {
            self.lost = self.lost.and(loss);
            writer.lost(cpu, loss)?;
        }
        for item in sub_buffer.items() {
            match item? {
                Item::Event { time, record, offset } => {
                    writer
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

    /// Marks in `writer` that input could not be decoded.
    pub fn damaged(&mut self, writer: &mut Writer, cpu: u32) -> Result<()> {
        let loss = Loss::damaged_input();
        self.lost = self.lost.and(loss);
        writer.lost(cpu, loss)
    }
}
