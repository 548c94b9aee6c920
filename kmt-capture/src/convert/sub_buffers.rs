//! Saved sub-buffers of all CPUs into the file.

use std::fmt::Display;

use kmt_common::tell;
use kmt_format::Result;
use kmt_format::kernel::{ByteOrder, HeaderPage};
use kmt_format::write::WriterStats;

use super::driver::{EventTotals, KmtFile};
use super::naming_events::NamingEvents;
use crate::decode::SubBufferDecoder;

/// Damaged places that are reported one by one for each CPU.
const DAMAGES_REPORTED: u64 = 3;

/// Conversion of sub-buffers, CPU by CPU.
#[derive(Debug)]
pub struct SubBufferConversion {
    decoder: SubBufferDecoder,
    cpus: Vec<(u32, WriterStats)>,
    names: NamingEvents,
}

impl SubBufferConversion {
    /// Of sub-buffers with that layout, whose events `names` reads.
    pub fn new(header_page: HeaderPage, order: ByteOrder, verbatim: bool, names: NamingEvents) -> Self {
        Self { decoder: SubBufferDecoder::new(header_page, order, verbatim), cpus: Vec::new(), names }
    }

    /// Size of a sub-buffer, in bytes.
    pub fn sub_buffer_len(&self) -> usize {
        self.decoder.header_page.sub_buffer_len()
    }

    /// Begins the sub-buffers of the next CPU.
    pub fn begin(&mut self, cpu: u32) {
        self.cpus.push((cpu, WriterStats::default()));
    }

    /// Adds a sub-buffer of that CPU. After an error the events before the damage are in the file.
    pub fn add(&mut self, file: &mut KmtFile, bytes: &[u8]) -> Result<()> {
        let Some((cpu, stats)) = self.cpus.last_mut() else { return Ok(()) };
        let names = &mut self.names;
        let see = |time, record: &[u8]| {
            names.see(time, record);
            true
        };
        self.decoder.sub_buffer(&mut file.writer, *cpu, bytes, stats, see)?;
        self.names.write_if_many(&mut file.writer)
    }

    /// Reports damaged input of that CPU and marks it in the file. The next sub-buffer may follow.
    pub fn damaged(&mut self, file: &mut KmtFile, damage: impl Display) -> Result<()> {
        let Some((cpu, stats)) = self.cpus.last_mut() else { return Ok(()) };
        stats.sub_buffers_damaged += 1;
        if stats.sub_buffers_damaged <= DAMAGES_REPORTED {
            tell!("warning: {damage}");
        }
        self.decoder.damaged(&mut file.writer, *cpu)
    }

    /// Ends the sub-buffers of that CPU.
    pub fn end(&mut self, file: &mut KmtFile) -> crate::failure::Result<()> {
        let Some((cpu, _)) = self.cpus.last() else { return Ok(()) };
        file.writer.end_of(*cpu)?;
        file.write()
    }

    /// Writes the names that are left; returns the counts of all CPUs.
    pub fn finish(&mut self, file: &mut KmtFile) -> Result<EventTotals> {
        self.names.finish(&mut file.writer)?;
        let cpus = std::mem::take(&mut self.cpus);
        Ok(EventTotals { events: cpus.iter().map(|(_, s)| s.events).sum(), cpus, lost: self.decoder.lost })
    }
}
