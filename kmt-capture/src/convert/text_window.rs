//! Begin of the window of a text: entries that the ring buffer overwrote before the first one.
//!
//! A text of the file `trace` is read from a buffer at rest or in use: its header counts the entries that were written and
//! those that are left, of all CPUs together (`print_event_info`, kernel/trace/trace.c). The others were overwritten by
//! design, oldest first (the kernel counts refused ones elsewhere): the text begins behind them. Which CPUs they were of is
//! unknown, so each CPU has a mark before its first event, and their number is in the metadata of the file.

use std::collections::BTreeSet;

use kmt_common::kmt_file::KmtFile;
use kmt_format::write::Loss;

/// Key of the number of entries that the buffer of a text overwrote before its first one.
const OVERWRITTEN: &str = "input.overwritten";

/// Entries that were overwritten before those of a text.
#[derive(Debug, Default)]
pub struct TextWindow {
    /// Those of the header that was read last, before the next entry.
    pending: u64,
    /// Before the first entries of CPUs.
    by_design: u64,
    /// CPUs with an entry.
    cpus: BTreeSet<u32>,
    /// CPUs that were marked.
    marked: usize,
}

impl TextWindow {
    /// Adds the number of a header; 0: the line is not one, or its number was added before.
    pub fn header(&mut self, overwritten: u64) {
        self.pending = self.pending.max(overwritten);
    }

    /// Marks the begin of a CPU, before its entry. Behind other entries of the CPU (a later reading of the buffer is added
    /// to the text), overwritten ones are lost.
    pub fn entry(&mut self, cpu: u32, file: &mut KmtFile) -> kmt_format::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        if !self.cpus.insert(cpu) {
            return if pending > 0 { file.lose(cpu, Loss::counted(pending)) } else { Ok(()) };
        }
        // Files of single CPUs of a buffer in use have rising numbers, each of the whole buffer.
        self.by_design = self.by_design.max(pending);
        if self.by_design == 0 {
            return Ok(());
        }
        self.marked += 1;
        file.mark_begin(cpu)
    }

    /// Writes the number.
    pub fn finish(&mut self, file: &mut KmtFile) -> kmt_format::Result<()> {
        if self.by_design == 0 {
            return Ok(());
        }
        file.overwritten = file.overwritten.saturating_add(self.by_design);
        file.writer.add_metadata(&[(OVERWRITTEN, self.by_design.to_string().as_bytes())])
    }

    /// A note that their CPUs are unknown; `None`: one CPU alone has entries, or none was overwritten.
    pub fn note(&self) -> Option<String> {
        (self.marked > 1).then(|| {
            "the header of the text has one number of overwritten entries for all CPUs: their CPUs are unknown".to_owned()
        })
    }
}
