//! Saved sub-buffers of all CPUs into the file.

use std::fmt::Display;

use kmt_common::tell;
use kmt_format::kernel::HeaderPage;
use kmt_format::write::{Keep, Loss, WriterStats};
use kmt_format::{Error, Result};

use super::driver::{EventTotals, KmtFile};
use super::naming_events::NamingEvents;

/// Damaged places that are reported one by one for each CPU.
const DAMAGES_REPORTED: u64 = 3;

/// Conversion of sub-buffers, CPU by CPU.
#[derive(Debug)]
pub struct SubBufferConversion {
    layout: HeaderPage,
    keep: Keep,
    /// Sum of the losses that sub-buffers are marked with, and of damage.
    lost: Loss,
    cpus: Vec<(u32, WriterStats)>,
    names: NamingEvents,
}

impl SubBufferConversion {
    /// Of sub-buffers with that layout, whose events `names` reads.
    pub fn new(layout: HeaderPage, verbatim: bool, names: NamingEvents) -> Self {
        let keep = if verbatim { Keep::Verbatim } else { Keep::Decoded };
        Self { layout, keep, lost: Loss::default(), cpus: Vec::new(), names }
    }

    /// Size of a sub-buffer, in bytes.
    pub fn sub_buffer_len(&self) -> usize {
        self.layout.sub_buffer_len()
    }

    /// Begins the sub-buffers of the next CPU.
    pub fn begin(&mut self, cpu: u32) {
        self.cpus.push((cpu, WriterStats::default()));
    }

    /// Adds a sub-buffer of that CPU. Returns damage, before which its events are in the file.
    pub fn add(&mut self, file: &mut KmtFile, bytes: &[u8]) -> Result<Option<Error>> {
        let Some((cpu, stats)) = self.cpus.last_mut() else { return Ok(None) };
        let names = &mut self.names;
        let see = |time, record: &[u8]| {
            names.see(time, record);
            true
        };
        let found = file.writer.add_sub_buffer(*cpu, bytes, &self.layout, self.keep, see)?;
        stats.add(bytes.len(), &found);
        self.lost = self.lost.and(found.loss);
        self.names.write_if_many(&mut file.writer)?;
        Ok(found.damage)
    }

    /// Reports damage of a sub-buffer of that CPU, which is marked in the file.
    pub fn report(&self, damage: impl Display) {
        if self.cpus.last().is_some_and(|(_, stats)| stats.sub_buffers_damaged <= DAMAGES_REPORTED) {
            tell!("warning: {damage}");
        }
    }

    /// Reports damaged input of that CPU and marks it in the file.
    pub fn damaged(&mut self, file: &mut KmtFile, damage: impl Display) -> Result<()> {
        let Some((cpu, stats)) = self.cpus.last_mut() else { return Ok(()) };
        stats.sub_buffers_damaged += 1;
        let loss = Loss::damaged_input();
        self.lost = self.lost.and(loss);
        file.writer.add_loss(*cpu, loss)?;
        self.report(damage);
        Ok(())
    }

    /// Ends the sub-buffers of that CPU.
    pub fn end(&mut self, file: &mut KmtFile) -> crate::failure::Result<()> {
        let Some((cpu, _)) = self.cpus.last() else { return Ok(()) };
        file.writer.end_cpu(*cpu)?;
        file.write()
    }

    /// Writes the names that are left; returns the counts of all CPUs.
    pub fn finish(&mut self, file: &mut KmtFile) -> Result<EventTotals> {
        self.names.finish(&mut file.writer)?;
        let cpus = std::mem::take(&mut self.cpus);
        Ok(EventTotals { events: cpus.iter().map(|(_, s)| s.events).sum(), cpus, lost: self.lost })
    }
}
