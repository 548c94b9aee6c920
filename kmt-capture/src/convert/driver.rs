//! The steps that conversions of all formats share: description, events, counts, end of the file.

use kmt_format::write::{Loss, Writer, WriterStats};

use super::description::Description;
use super::{ConvertOptions, Converted};
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Size from which finished chunks are handed to the output, in bytes.
pub const WRITE_LEN: usize = 1 << 20;

/// The .kmt file that a conversion writes.
#[derive(Debug)]
pub struct KmtFile {
    /// Makes chunks of events.
    pub writer: Writer,
    output: Output,
}

impl KmtFile {
    /// Writes finished chunks if there are many of them.
    pub fn write_if_large(&mut self) -> Result<()> {
        if self.writer.pending_len() >= WRITE_LEN { self.write() } else { Ok(()) }
    }

    /// Writes all finished chunks.
    pub fn write(&mut self) -> Result<()> {
        write_pending(&mut self.writer, &mut self.output)
    }

    fn finish(mut self) -> Result<()> {
        self.output.write(&self.writer.finish()?)?;
        self.output.finish()
    }
}

fn write_pending(writer: &mut Writer, output: &mut Output) -> Result<()> {
    output.write(writer.pending())?;
    writer.clear_pending();
    Ok(())
}

/// Counts of the events that were converted.
#[derive(Debug)]
pub struct EventTotals {
    /// Events of the input.
    pub events: u64,
    /// Counts of the events in the file, by CPU.
    pub cpus: Vec<(u32, WriterStats)>,
    /// Losses that the input is marked with.
    pub lost: Loss,
}

/// The events of an opened input, and the texts that only its format can give.
pub trait EventSource {
    /// Writes all events, without their counts.
    fn convert(&mut self, file: &mut KmtFile) -> Result<EventTotals>;

    /// Failure of an input without events and losses; `None` if its file may be empty.
    fn empty(&self) -> Option<Failure>;

    /// Description of the events that were converted: how many, from what input.
    fn summary(&self, totals: &EventTotals) -> String;

    /// Notes for the user, a sentence each.
    fn notes(&self, description: Description) -> Vec<String> {
        description.all_notes()
    }
}

/// Converts an input. The description is at the start of the file, so that every prefix of it can be read.
pub fn convert(
    options: &ConvertOptions,
    mut description: Description,
    trace_uuid: [u8; 16],
    mut source: impl EventSource,
    mut output: Output,
) -> Result<Converted> {
    description.symbols = options.symbols;
    let mut writer = description.writer(trace_uuid, options.compression)?;
    description.write(&mut writer, |writer| write_pending(writer, &mut output))?;
    let mut file = KmtFile { writer, output };
    let totals = source.convert(&mut file)?;
    file.writer.add_writer_stats(&totals.cpus)?;
    if totals.events == 0 && totals.lost == Loss::default() {
        if let Some(failure) = source.empty() {
            return Err(failure);
        }
    }
    file.finish()?;
    Ok(Converted {
        summary: source.summary(&totals),
        lost: description.lost_events(),
        flagged: totals.lost,
        notes: source.notes(description),
    })
}
