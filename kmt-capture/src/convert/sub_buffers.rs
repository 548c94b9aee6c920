//! Saved sub-buffers of all CPUs into the file.

use std::fmt::Display;

use kmt_common::kmt_file::{KmtFile, overwritten};
use kmt_common::tell;
use kmt_format::kernel::{ByteOrder, CpuStats, HeaderPage};
use kmt_format::write::{Keep, Loss};
use kmt_format::{Error, Result};

use super::event_names::EventNames;

/// Damaged places that are reported one by one for each CPU.
const DAMAGES_REPORTED: u64 = 3;

/// Conversion of sub-buffers, CPU by CPU.
#[derive(Debug)]
pub struct SubBufferConversion {
    layout: HeaderPage,
    keep: Keep,
    /// The CPU whose sub-buffers are converted.
    cpu: u32,
    names: EventNames,
    /// Byte order, and counters of the CPU before its first sub-buffer, if it may be a ring that keeps the newest events.
    ring: Option<(ByteOrder, CpuStats)>,
}

impl SubBufferConversion {
    /// Of sub-buffers with that layout, whose events `names` reads.
    pub fn new(layout: HeaderPage, verbatim: bool, names: EventNames) -> Self {
        let keep = if verbatim { Keep::Verbatim } else { Keep::Decoded };
        Self { layout, keep, cpu: 0, names, ring: None }
    }

    /// Size of a sub-buffer, in bytes.
    pub fn sub_buffer_len(&self) -> usize {
        self.layout.sub_buffer_len()
    }

    /// Begins the sub-buffers of the next CPU.
    pub fn begin(&mut self, file: &mut KmtFile, cpu: u32) {
        self.cpu = cpu;
        self.ring = None;
        file.stats(cpu);
    }

    /// The CPU has a ring buffer that overwrites: counters that were read before the buffer was. If events were read before
    /// that, or dropped, those that are missing are lost.
    pub fn expect_ring(&mut self, order: ByteOrder, counters: Option<CpuStats>) {
        let counters = counters.filter(|stats| stats.read == Some(0) && stats.dropped == Some(0));
        self.ring = counters.map(|counters| (order, counters));
    }

    /// Adds a sub-buffer of that CPU. Returns damage, before which its events are in the file.
    pub fn add(&mut self, file: &mut KmtFile, bytes: &[u8]) -> Result<Option<Error>> {
        if let Some((order, counters)) = self.ring.take() {
            let events = overwritten(bytes, &self.layout, order, Some(counters));
            events.map_or(Ok(()), |events| file.mark_overwritten(self.cpu, events))?;
        }
        let names = &mut self.names;
        let see = |time, record: &[u8]| {
            names.see(time, record);
            true
        };
        let found = file.sub_buffer(self.cpu, bytes, &self.layout, self.keep, see)?;
        self.names.write_if_many(file)?;
        Ok(found.damage)
    }

    /// Reports damage of a sub-buffer of that CPU, which is marked in the file.
    pub fn report(&self, file: &mut KmtFile, damage: impl Display) {
        if file.stats(self.cpu).sub_buffers_damaged <= DAMAGES_REPORTED {
            tell!("warning: {damage}");
        }
    }

    /// Reports damaged input of that CPU and marks it in the file.
    pub fn damaged(&self, file: &mut KmtFile, damage: impl Display) -> Result<()> {
        file.stats(self.cpu).sub_buffers_damaged += 1;
        file.lose(self.cpu, Loss::damaged_input())?;
        self.report(file, damage);
        Ok(())
    }

    /// Ends the sub-buffers of that CPU.
    pub fn end(&self, file: &mut KmtFile) -> crate::failure::Result<()> {
        file.writer.end_cpu(self.cpu)?;
        file.write()
    }

    /// Writes the names that are left; returns the number of events.
    pub fn finish(&mut self, file: &mut KmtFile) -> Result<u64> {
        self.names.finish(file)?;
        Ok(file.events())
    }
}
