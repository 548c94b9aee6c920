//! Saved sub-buffers of all CPUs into the file.

use std::fmt::Display;

use kmt_common::kmt_file::KmtFile;
use kmt_common::tell;
use kmt_format::kernel::HeaderPage;
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
}

impl SubBufferConversion {
    /// Of sub-buffers with that layout, whose events `names` reads.
    pub fn new(layout: HeaderPage, verbatim: bool, names: EventNames) -> Self {
        let keep = if verbatim { Keep::Verbatim } else { Keep::Decoded };
        Self { layout, keep, cpu: 0, names }
    }

    /// Size of a sub-buffer, in bytes.
    pub fn sub_buffer_len(&self) -> usize {
        self.layout.sub_buffer_len()
    }

    /// Begins the sub-buffers of the next CPU.
    pub fn begin(&mut self, file: &mut KmtFile, cpu: u32) {
        self.cpu = cpu;
        file.stats(cpu);
    }

    /// Adds a sub-buffer of that CPU. Returns damage, before which its events are in the file.
    pub fn add(&mut self, file: &mut KmtFile, bytes: &[u8]) -> Result<Option<Error>> {
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
