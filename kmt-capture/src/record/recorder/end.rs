//! Chunks after the last event.

use std::time::Duration;

use kmt_format::write::{Loss, StatsTaken};

use super::room::SLAB_STATE_LEN;
use super::{Recorder, StopReason};
use crate::failure::Result;
use crate::record::command::ENDING;
use crate::record::exits::Exits;
use crate::record::snapshot::{self, When};
use crate::record::{Cost, RecordOptions, baseline, description};
use crate::zero_times;

/// Ids without a format that are named.
const IDS_MAX: usize = 8;

impl Recorder {
    /// Writes the chunks after the last event.
    pub(super) fn close(&mut self, options: &RecordOptions, reason: StopReason) -> Result<()> {
        self.close_wait(options)?;
        if let Some(settings) = &mut self.settings {
            let changes = settings.read_all();
            self.changed(changes)?;
        }
        self.setup.stop()?;
        self.settings.iter_mut().for_each(|settings| settings.set_by_us(["tracing_on"]));
        let baseline = baseline::read(&options.baseline);
        // What follows takes a second on a slow machine, and has nowhere to go without a line.
        self.file.output.check_line()?;
        self.read_counters()?;
        self.write_counters(StatsTaken::Before)?;
        while self.room.reached.is_none() && !self.changes.of_clock && {
            self.drain_round()?;
            self.cpus.iter().any(|cpu| cpu.drained > 0)
        } {}
        self.file.end_folding()?;
        // A write after the stop is a change by another process, too.
        self.notice_writes()?;
        if self.room.reached.is_some() {
            self.left = self.leave_the_rest()?;
        }
        self.read_counters()?;
        if self.changes.of_clock {
            self.mark_unknown_loss()?;
        } else {
            self.taken_by_others()?;
        }
        self.end_of_found()?;
        self.command_outcome(options, reason)?;
        if let Some(used) = &mut self.used {
            used.finish(&mut self.file.writer)?;
        }
        let now = self.save_names();
        self.flush()?;
        self.write_counters(StatsTaken::After)?;
        self.file.add_totals()?;
        match &mut self.black_box {
            Some(black_box) => std::mem::take(&mut black_box.state).write(&mut self.file.writer)?,
            None => drop(snapshot::write(&mut self.file.writer, When::After)?),
        }
        baseline.write(&mut self.file.writer, When::After)?;
        if let Some(now) = now {
            snapshot::write_cgroups(&mut self.file.writer, now)?;
        }
        self.room.update(self.file.output.out.len());
        if self.room.has_room_for(&mut self.file.writer, SLAB_STATE_LEN) {
            snapshot::write_slab(&mut self.file.writer)?;
        }
        self.clock_pair()?;
        self.own_cost()?;
        let missed = self.setup.probe_missed();
        if let Some(missed) = missed.filter(|&missed| missed > 0) {
            self.notices.push(format!(
                "warning: the probe at kvfree_call_rcu missed up to {missed} calls: their frees may be missing"
            ));
        }
        self.file.write()
    }

    /// Notes on the events of a buffer that was found.
    fn end_of_found(&mut self) -> Result<()> {
        let Some(formats) = &mut self.formats else { return Ok(()) };
        zero_times::write(&mut self.file.writer, formats.zeros)?;
        let notes = zero_times::note(formats.zeros).map(|note| format!("note: {note}"));
        let missing: Vec<String> = formats.missing.iter().take(IDS_MAX).map(u16::to_string).collect();
        let missing = (!missing.is_empty()).then(|| {
            format!(
                "warning: no event of this kernel has the id {}: these events are in the file as bytes; their module may be unloaded",
                missing.join(", ")
            )
        });
        self.notices.extend(notes.into_iter().chain(missing));
        Ok(())
    }

    /// Takes names of tasks over that the kernel has saved; returns the time of the trace clock at which counters were read.
    pub(super) fn save_names(&mut self) -> Option<u64> {
        let is_lossy = self.totals().lost > 0
            || self.file.lost != Loss::default()
            || self.cpus.iter().any(|cpu| cpu.overwritten > 0);
        let now = self.cpus.iter().filter_map(|cpu| cpu.counters.sums?.now_time).max();
        let now = now.filter(|_| !self.changes.of_clock);
        self.names.saved(&self.setup.top, now.filter(|_| is_lossy));
        now
    }

    /// How the command ended, if there was one. A command that outlives the recording is ended as Ctrl-C would end it,
    /// unless it is to run on.
    fn command_outcome(&mut self, options: &RecordOptions, reason: StopReason) -> Result<()> {
        let Some(command) = &mut self.command else { return Ok(()) };
        // Ctrl-C on a terminal reaches the command too.
        let mut has_ended =
            command.ends_within(if reason == StopReason::Asked { ENDING } else { Duration::ZERO });
        if !has_ended && !options.keep_running {
            has_ended = command.end();
        }
        let mut outcome =
            command.outcome().unwrap_or_else(|| format!("{} is still running", command.describe()));
        if has_ended && command.is_signalled() {
            outcome.push_str(" at the end of the recording");
        }
        if !options.quiet || command.has_failed() || !(has_ended || options.keep_running) {
            self.notices.push(outcome.clone());
        }
        let status = command.code().map(|code| code.to_string());
        let exit = self.exits.as_ref().filter(|_| reason == StopReason::Command).and_then(Exits::near_end);
        let exit = exit.map(|time| time.to_string());
        let mut pairs = vec![("record.command_outcome", outcome.as_bytes())];
        pairs.extend(status.as_ref().map(|status| ("record.command_status", status.as_bytes())));
        pairs.extend(exit.as_ref().map(|exit| ("record.command_exit", exit.as_bytes())));
        Ok(self.file.writer.add_metadata(&pairs)?)
    }

    /// Cost of the recording, which is part of what was measured; keys have that of this file.
    pub(super) fn own_cost(&mut self) -> Result<()> {
        let now = description::own_cpu_ns();
        let cpu_ns = now.map(|now| now.saturating_sub(self.cpu_ns_before));
        let (totals, length) = (self.totals(), self.times.start.elapsed());
        self.cost = Cost { events: totals.events, lost: totals.lost, bytes: totals.bytes, length, cpu_ns };
        let left_out = self.file.left_out();
        let filtered = Some(self.tasks.filtered.saturating_add(left_out));
        let pairs = [
            ("recorder.filtered_events", filtered.filter(|_| self.plan.in_user_space || left_out > 0)),
            ("recorder.probe_missed", self.setup.probe_missed()),
            ("recorder.cpu_ns", now.map(|now| now.saturating_sub(self.begin.cpu_ns))),
            ("recorder.length_ns", u64::try_from(self.begin.time.elapsed().as_nanos()).ok()),
            ("recorder.events", Some(self.file.events())),
            ("recorder.snapshots_ns", Some(std::mem::take(&mut self.snapshots).as_nanos() as u64)),
            ("recorder.rss_peak_kib", description::own_rss_peak_kib()),
            ("recorder.buffer_needed", self.buffer_needed()),
        ];
        let pairs = pairs.map(|(key, value)| (key, value.map_or_else(String::new, |v| v.to_string())));
        let pairs = pairs.each_ref().map(|(key, value)| (*key, value.as_bytes()));
        Ok(self.file.writer.add_metadata(&pairs)?)
    }
}
