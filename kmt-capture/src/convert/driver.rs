//! The steps that conversions of all formats share: description, events, counts, end of the file.

use kmt_common::kmt_file::KmtFile;
use kmt_common::text::count;
use kmt_format::write::Loss;

use super::description::Description;
use super::{ConvertOptions, Converted};
use crate::failure::{Failure, Result};
use crate::output::Output;

/// The events of an opened input, and the texts that only its format can give.
pub trait EventSource {
    /// Writes all events, without their counts. Returns the number of events of the input.
    fn convert(&mut self, file: &mut KmtFile) -> Result<u64>;

    /// Failure of an input without events and losses; `None` if its file may be empty.
    fn empty(&self) -> Option<Failure>;

    /// Description of the events that were converted: how many, from what input. `file` has the counts of each CPU.
    fn summary(&self, events: u64, file: &KmtFile) -> String;

    /// Entries that the input lacks by its own count, of unknown CPUs and times.
    fn missing(&self) -> u64 {
        0
    }

    /// True if the events show that the input ends before its content does.
    fn is_cut(&self) -> bool {
        false
    }

    /// Notes for the user, a sentence each.
    fn notes(&self, description: Description) -> Vec<String> {
        description.all_notes()
    }
}

/// Converts an input. The description is at the start of the file, so that every prefix of it can be read. `is_cut`: the
/// input ends before its content does, so that each CPU has a mark at its end.
pub fn convert(
    options: &ConvertOptions,
    mut description: Description,
    trace_uuid: [u8; 16],
    mut source: impl EventSource,
    is_cut: bool,
    output: Output,
) -> Result<Converted> {
    description.symbols = options.symbols;
    let mut file = KmtFile::new(description.writer(trace_uuid, options.compression)?, output);
    description.write(&mut file)?;
    let events = source.convert(&mut file)?;
    let is_compressed = is_cut;
    let is_cut = is_cut || source.is_cut();
    if is_cut {
        // Later events of any CPU are unknown.
        let cpus: Vec<u32> = file.cpus.keys().copied().collect();
        let loss = Loss::uncounted().and(Loss::damaged_input());
        cpus.into_iter().try_for_each(|cpu| file.lose(cpu, loss))?;
    }
    file.add_totals()?;
    if events == 0 && file.lost == Loss::default() {
        if let Some(failure) = source.empty() {
            return Err(failure);
        }
    }
    let (summary, flagged, overwritten) = (source.summary(events, &file), file.lost, file.overwritten);
    file.finish()?;
    let lost = description.lost_events().map(|lost| lost.saturating_sub(overwritten));
    let missing = source.missing();
    let mut notes = source.notes(description);
    if is_cut {
        notes.push(format!(
            "{} is {}cut off: all before the cut was converted, and what comes after it is missing",
            options.input.display(),
            if is_compressed { "compressed and " } else { "" }
        ));
    }
    if overwritten > 0 {
        notes.push(format!(
            "the ring buffers kept the newest events: {} were overwritten before them",
            count(overwritten, "older event")
        ));
    }
    Ok(Converted { summary, lost, flagged, missing, notes })
}
