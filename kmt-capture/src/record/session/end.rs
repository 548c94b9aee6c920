//! Chunks behind the last event, and the report at the end.

use std::path::Path;
use std::time::Duration;

use kmt_format::kernel::CpuStats;
use kmt_format::write::{Loss, StatsTaken};

use super::Session;
use super::room::{self, Bound};
use crate::failure::{Outcome, Result};
use crate::record::command::ENDING;
use crate::record::exits::Exits;
use crate::record::snapshot::{self, When};
use crate::record::status::{self, Totals};
use crate::record::{Cost, RecordOptions, description};
use crate::tracefs::Event;
use kmt_common::text::count;

/// Length of the state of /sys/kernel/slab in the file, at most about.
const SLAB_STATE_LEN: u64 = 128 << 10;

impl Session {
    /// Writes the chunks behind the last event.
    pub(super) fn close(&mut self, options: &RecordOptions, ending: Ending) -> Result<()> {
        self.setup.stop()?;
        // What follows takes a second on a slow machine, and has nowhere to go without a line.
        self.sink.check_line()?;
        self.disturbed()?;
        self.read_counters();
        self.counters(StatsTaken::Before)?;
        while self.room.reached.is_none() && {
            let before: u64 = self.stats.iter().map(|(_, s)| s.bytes).sum();
            self.drain_round()?;
            before != self.stats.iter().map(|(_, s)| s.bytes).sum()
        } {}
        if self.room.reached.is_some() {
            self.left = self.leave_the_rest()?;
        }
        self.read_counters();
        self.command_outcome(options, ending)?;
        if let Some(used) = &mut self.used {
            used.collect(&mut self.writer);
            used.pass(|| Ok(()))?;
            used.write(&mut self.writer)?;
        }
        let is_lossy = self.totals().lost > 0 || self.decoder.lost != Loss::default();
        let now = self.counters.iter().filter_map(|(_, c)| c.now_time).max();
        self.names.saved(&self.setup.top, now.filter(|_| is_lossy));
        self.flush()?;
        self.counters(StatsTaken::After)?;
        self.writer.writer_stats(&self.stats)?;
        snapshot::write(&mut self.writer, When::After)?;
        self.room.update(self.sink.output.len());
        if self.room.has_room_for(&mut self.writer, SLAB_STATE_LEN) {
            snapshot::write_slab(&mut self.writer)?;
        }
        self.clock_pair()?;
        self.own_cost()?;
        self.emit()
    }

    /// Notes events that somebody else switched off, or that went away with their module, while we recorded.
    pub(super) fn disturbed(&mut self) -> Result<()> {
        let is_on =
            |event: &Event| self.setup.dir.read(&event.file("enable")).is_some_and(|t| t.starts_with('1'));
        let off: Vec<String> =
            self.plan.events.keys().filter(|event| !is_on(event)).map(Event::to_string).collect();
        if off.is_empty() {
            return Ok(());
        }
        self.status.clear();
        kmt_common::message!(
            "warning: {}: disabled or removed by another process during the recording",
            off.join(", ")
        );
        self.decoder.lost.uncounted = true;
        let pairs = [("record.disabled", off.join(" ").into_bytes())];
        let pairs = pairs.each_ref().map(|(key, value)| (*key, value.as_slice()));
        Ok(self.writer.meta(&pairs)?)
    }

    /// How the command ended, if there was one. A command that outlives the recording is ended as Ctrl-C would end it,
    /// unless it is to run on.
    fn command_outcome(&mut self, options: &RecordOptions, ending: Ending) -> Result<()> {
        let Some(command) = &mut self.command else { return Ok(()) };
        // Ctrl-C on a terminal reaches the command too.
        let mut has_ended =
            command.ends_within(if ending == Ending::Asked { ENDING } else { Duration::ZERO });
        if !has_ended && !options.keep_running {
            has_ended = command.end();
        }
        let mut outcome =
            command.outcome().unwrap_or_else(|| format!("{} is still running", command.describe()));
        if has_ended && command.is_signalled() {
            outcome.push_str(" at the end of the recording");
        }
        if !options.quiet || command.has_failed() || !(has_ended || options.keep_running) {
            self.status.clear();
            kmt_common::message!("{outcome}");
        }
        let status = command.code().map(|code| code.to_string());
        let exit = self.exits.as_ref().filter(|_| ending == Ending::Command).and_then(Exits::near_end);
        let exit = exit.map(|time| time.to_string());
        let mut pairs = vec![("record.command_outcome", outcome.as_bytes())];
        pairs.extend(status.as_ref().map(|status| ("record.command_status", status.as_bytes())));
        pairs.extend(exit.as_ref().map(|exit| ("record.command_exit", exit.as_bytes())));
        Ok(self.writer.meta(&pairs)?)
    }

    /// Cost of the recording, which is part of what was measured.
    pub(super) fn own_cost(&mut self) -> Result<()> {
        let cpu_ns = description::own_cpu_ns().map(|now| now.saturating_sub(self.cpu_ns_before));
        let (totals, length) = (self.totals(), self.started.elapsed());
        self.cost = Cost { events: totals.events, lost: totals.lost, bytes: totals.bytes, length, cpu_ns };
        let missed = self.setup.probe_missed();
        if let Some(missed) = missed.filter(|&missed| missed > 0) {
            self.status.clear();
            kmt_common::message!(
                "warning: the probe at kvfree_call_rcu missed up to {missed} calls: their frees may be missing"
            );
        }
        let pairs = [
            ("recorder.filtered_events", Some(self.tasks.filtered).filter(|_| self.plan.in_user_space)),
            ("recorder.probe_missed", missed),
            ("recorder.cpu_ns", cpu_ns),
            ("recorder.length_ns", u64::try_from(length.as_nanos()).ok()),
            ("recorder.events", Some(totals.events)),
            ("recorder.snapshots_ns", Some(self.snapshots.as_nanos() as u64)),
            ("recorder.rss_peak_kib", description::own_rss_peak_kib()),
        ];
        let pairs = pairs.map(|(key, value)| (key, value.map_or_else(String::new, |v| v.to_string())));
        let pairs = pairs.each_ref().map(|(key, value)| (*key, value.as_bytes()));
        Ok(self.writer.meta(&pairs)?)
    }
}

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Asked,
    Command,
    Time,
    Size(Bound),
}

/// Prints the result of the recording and the next command.
pub(super) fn tell(
    path: &Path,
    options: &RecordOptions,
    totals: &Totals,
    cost: &Cost,
    counters: &[(u32, CpuStats)],
    flagged: Loss,
    (ending, left): (Ending, u64),
) -> Outcome {
    if totals.lost > 0 {
        let of = |(cpu, c): &(u32, CpuStats)| Some((*cpu, c.lost_events().filter(|&n| n > 0)?));
        let by_cpu: Vec<String> =
            counters.iter().filter_map(of).map(|(cpu, lost)| format!("{lost} on CPU {cpu}")).collect();
        let share = 100.0 * totals.lost as f64 / (totals.lost + totals.events) as f64;
        kmt_common::message!(
            "warning: events were lost: {} ({share:.1} %), {}; use a larger --buffer-size, fewer events, or --raw",
            totals.lost,
            by_cpu.join(", ")
        );
    }
    if flagged.damaged_input {
        kmt_common::message!(
            "warning: part of the ring buffers could not be decoded; marks in the file show where events are missing"
        );
    }
    let is_cut = matches!(ending, Ending::Size(Bound::Disk | Bound::Memory));
    if let Ending::Size(bound) = ending {
        if !options.quiet || is_cut {
            kmt_common::message!(
                "{}{}",
                if is_cut { "warning: " } else { "" },
                room::reason(bound, left, options)
            );
        }
    }
    if !options.quiet {
        kmt_common::message!(
            "{}, {} lost{}, {}; the fullest buffer was {:.0} % full",
            count(totals.events, "event"),
            totals.lost,
            if left > 0 { " before the stop" } else { "" },
            status::bytes(totals.bytes),
            totals.fill_percent
        );
        match cost.of_recorder() {
            unknown if unknown.is_empty() => {}
            cost => kmt_common::message!("cost of recording: {cost}"),
        }
        if path.is_file() {
            kmt_common::message!("kmt-analyze {}", path.display());
        }
    }
    if totals.lost > 0 || flagged != Loss::default() || is_cut { Outcome::Incomplete } else { Outcome::Done }
}
