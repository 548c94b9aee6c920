//! Changes of the recording by other processes: noticed, marked in the file, reported.

use std::collections::BTreeSet;

use kmt_format::write::Loss;

use super::Recorder;
use crate::failure::Result;
use crate::record::{cpus, description};
use kmt_common::setting_change::SettingChange;

/// How far the times of two events in a row may be apart without a look at the clock, in nanoseconds.
pub(super) const APART_NS: u64 = 1_000_000_000;

/// Changes that are stored.
const STORED_MAX: u64 = 256;

/// Changes by others in a recording.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Number of changes.
    pub count: u64,
    /// Those that were reported.
    described: BTreeSet<String>,
    /// True if the clock was changed: the recording ends.
    pub of_clock: bool,
    /// Time of the trace clock when settings were looked at last.
    pub looked: u64,
    /// Latest time of a sub-buffer.
    newest: u64,
}

impl Changes {
    /// True if the time of a sub-buffer does not follow from that of the sub-buffer before and those of other CPUs.
    pub fn is_unlikely(&mut self, time: u64, before: u64) -> bool {
        let is_apart = self.newest > 0 && time.abs_diff(self.newest) > APART_NS;
        let is_unlikely = time < before || is_apart;
        if !is_unlikely {
            self.newest = self.newest.max(time);
        }
        is_unlikely
    }

    /// That time is of our clock.
    pub fn trust(&mut self, time: u64) {
        self.newest = self.newest.max(time);
    }
}

impl Recorder {
    /// Notices writes to settings of the buffer.
    pub(super) fn notice_writes(&mut self) -> Result<()> {
        let changes = self.settings.as_mut().map(|settings| settings.written()).unwrap_or_default();
        self.changed(changes)
    }

    /// Reads settings again, once a second.
    pub(super) fn read_settings(&mut self) -> Result<()> {
        let changes = self.settings.as_mut().map(|settings| settings.read_again()).unwrap_or_default();
        self.changed(changes)?;
        if let Some(now) = self.trace_now().filter(|_| !self.changes.of_clock) {
            self.changes.looked = now;
        }
        Ok(())
    }

    /// Marks changes in the file, and reports them.
    pub(super) fn changed(&mut self, changes: Vec<SettingChange>) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        self.changes.of_clock |=
            changes.iter().any(|change| change.file == "trace_clock" && change.before != change.after);
        let now = self.trace_now().filter(|_| !self.changes.of_clock);
        let (from, to) = (self.changes.looked, now.unwrap_or(self.changes.newest.max(self.changes.looked)));
        for change in &changes {
            self.changes.count += 1;
            // A process may write again and again.
            let (text, is_stored) = (change.describe(), self.changes.count <= STORED_MAX);
            if !is_stored {
                continue;
            }
            if self.changes.described.insert(text.clone()) {
                self.notices.push(format!("warning: another process changed this recording: {text}"));
            }
            let line = change.to_pair(from, to);
            self.file.writer.add_metadata(&[("record.changed", line.as_bytes())])?;
        }
        if changes.iter().any(SettingChange::loses_events) {
            self.mark_unknown_loss()?;
        }
        self.changes.looked = to;
        Ok(())
    }

    /// Marks that an unknown number of events is missing here, on each CPU.
    pub(super) fn mark_unknown_loss(&mut self) -> Result<()> {
        let loss = Loss::uncounted();
        for cpu in &self.cpus {
            self.file.lose(cpu.number(), loss)?;
        }
        Ok(())
    }

    /// A buffer whose counters stepped back was cleared.
    pub(super) fn cleared(&mut self) -> Result<()> {
        self.changed(vec![SettingChange::clear()])
    }

    pub(super) fn trace_now(&self) -> Option<u64> {
        let cpu = cpus::online(&self.setup).first().copied().unwrap_or(0);
        description::trace_now(&self.setup, cpu)
    }

    /// Marks events that another process has taken out of the buffers.
    pub(super) fn taken_by_others(&mut self) -> Result<()> {
        if self.plan.in_user_space {
            return Ok(());
        }
        for index in 0..self.cpus.len() {
            let Some(cpu) = self.cpus.get_mut(index) else { continue };
            let (number, taken) = (cpu.number(), cpu.read_by_others(self.file.stats(cpu.number())));
            if taken == 0 {
                continue;
            }
            cpu.taken = cpu.taken.saturating_add(taken);
            self.changes.count += 1;
            self.notices.push(format!(
                "warning: another process has read {} of CPU {number} from this recording's buffer; they are missing",
                kmt_common::text::count(taken, "event")
            ));
            let loss = Loss::counted(taken);
            self.file.lose(number, loss)?;
        }
        Ok(())
    }
}
