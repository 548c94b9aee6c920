//! The end of a recording: the file gets its name, tracefs is restored, and what remains are results for messages.

use std::path::PathBuf;

use kmt_format::kernel::CpuStats;
use kmt_format::write::Loss;

use super::cpu::Cpu;
use super::room::Bound;
use super::watch::Window;
use super::{Recorder, StopReason};
use crate::failure::Result;
use crate::record::command::Running;
use crate::record::console::Totals;
use crate::record::rotate::{FileEnd, Rotation};
use crate::record::{Cost, RecordOptions};
use kmt_common::shell;
use kmt_common::text::count;

/// Results of a recording that has ended.
pub(in crate::record) struct Finished {
    pub totals: Totals,
    pub cost: Cost,
    pub counters: Vec<(u32, CpuStats)>,
    /// Losses that are marked in the file.
    pub lost: Loss,
    /// Bytes of each CPU's ring buffer that would have held what was lost, too; 0: nothing was lost.
    pub buffer_needed: u64,
    /// Events that are left in the ring buffers because the file has no room for them.
    pub left: u64,
    /// The limit of the file, if events are left.
    pub full: Option<Bound>,
    /// Exit status of the command, if it is the outcome.
    pub status: Option<u8>,
    pub notices: Vec<String>,
    /// Changes of the recording by other processes.
    pub changes: u64,
    /// The time that a ring holds.
    pub window: Option<Window>,
    /// Why the wait of a ring ended.
    pub cause: Option<String>,
    /// Events that a buffer that was found had overwritten before.
    pub overwritten_before: u64,
    /// True if no file was written: nothing happened while a ring waited again and again.
    pub is_unwanted: bool,
    /// The files of a recording with `--rotate` that are there.
    pub files: Vec<PathBuf>,
    /// True if one of these files has no name, or more of them are kept than --max-files allows.
    pub is_rotation_incomplete: bool,
}

impl Recorder {
    /// Stops, empties the buffers, and closes the file. Tracefs is put back before a message is printed: a user who reads that the
    /// recording ended may rely on it.
    pub(in crate::record) fn finish(
        mut self,
        options: &RecordOptions,
        stopped: Result<StopReason>,
    ) -> (Finished, Result<StopReason>) {
        let is_unwanted = stopped.as_ref().is_ok_and(|reason| reason.is_unwanted(options));
        let closed = match stopped {
            Ok(reason) if is_unwanted => Ok(reason),
            stopped => stopped.and_then(|reason| self.close(options, reason).map(|()| reason)),
        };
        let (window, cause) = (self.window(), self.cause());
        let overwritten_before = if self.setup.adopted.is_some() { self.file.overwritten } else { 0 };
        let command = self.command.as_ref().filter(|command| !command.is_signalled());
        let status = command.and_then(Running::code).filter(|_| options.exit_status);
        let totals = self.totals();
        let counters = self.counters();
        let buffer_needed = self.buffer_needed().unwrap_or(0);
        let full = self.room.reached.filter(|_| self.left > 0);
        let Self { setup, file, cpus, left, command, cost, changes, settings, black_box, .. } = self;
        let (mut notices, mut rotation) = (self.notices, self.rotation);
        // The file before this one gets its name however this one ends.
        let end = rotation.as_mut().map_or_else(FileEnd::default, Rotation::wait);
        let (part, events_written, lost) = (file.output.out.part_name(), file.events_written, file.lost);
        let named = match closed {
            Ok(reason) if is_unwanted => {
                file.output.out.discard();
                Ok(reason)
            }
            Ok(reason) => file.finish().map(|()| reason),
            Err(failure) => {
                // A file without events is worth nothing.
                if events_written == 0 {
                    file.output.out.discard();
                }
                Err(failure)
            }
        };
        if let Some(rotation) = &mut rotation {
            notices.extend(rotation.notices(end));
            if named.is_ok() {
                let end = rotation.finish();
                notices.extend(rotation.notices(end));
            }
        }
        drop((cpus, settings, black_box));
        drop(setup);
        if let (Err(_), Some(mut command)) = (&named, command.filter(|_| !options.keep_running)) {
            command.end();
        }
        // Not what another process has put in its place.
        let reason = named.map_err(|failure| match part.as_ref().and_then(|part| part.path()) {
            Some(part) => failure.hint(format!(
                "{} has the {} recorded until then: kmt-analyze {}",
                part.display(),
                count(events_written, "event"),
                shell::path(part)
            )),
            None => failure,
        });
        let changes = changes.count;
        let finished = Finished {
            totals,
            cost,
            counters,
            lost,
            buffer_needed,
            left,
            full,
            status,
            notices,
            changes,
            window,
            cause,
            overwritten_before,
            is_unwanted,
            is_rotation_incomplete: rotation.as_ref().is_some_and(|rotation| rotation.has_failed),
            files: rotation.as_ref().map(Rotation::files).unwrap_or_default(),
        };
        (finished, reason)
    }
}

impl Recorder {
    /// Bytes of each CPU's ring buffer that would have held all, by the CPU that needed most ([`Shortage`]). `None`: nothing was lost.
    ///
    /// [`Shortage`]: super::shortage::Shortage
    pub(super) fn buffer_needed(&self) -> Option<u64> {
        let lost = |cpu: &Cpu| cpu.lost().saturating_sub(cpu.taken);
        self.cpus.iter().filter_map(|cpu| cpu.shortage.needed(self.buffer_len, lost(cpu))).max()
    }
}

impl StopReason {
    /// True if no file is to be written: a wait that begins again after each file was ended from outside.
    fn is_unwanted(self, options: &RecordOptions) -> bool {
        let is_rearmed = options.black_box.as_ref().is_some_and(|options| options.rearm);
        is_rearmed && !matches!(self, Self::Condition | Self::Written)
    }
}
