//! Runs a recording from its begin to its end, and reports the result.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kmt_common::output::print;
use kmt_common::shell;
use kmt_common::text::{count, grouped};
use kmt_format::kernel::CpuStats;
use kmt_format::write::Loss;

use super::black_box::Triggers;
use super::console::{self, Console};
use super::cpus::online;
use super::end_reason::EndReason;
use super::recorder::room::{self, Bound, is_in_memory};
use super::recorder::sink::Sink;
use super::recorder::{Finished, Recorder, StopReason};
use super::rotate::Rotation;
use super::setup::Setup;
use super::{Cost, RecordOptions, description, line, size};
use crate::failure::{Outcome, Result};
use crate::tracefs;

/// Records as `options` say.
pub fn record(options: &RecordOptions) -> Result<Outcome> {
    measure(options).map(|(outcome, _)| outcome)
}

/// Records as `options` say, and returns the cost too.
pub fn measure(options: &RecordOptions) -> Result<(Outcome, Cost)> {
    once(options).map(|ended| (ended.outcome, ended.cost))
}

/// A recording that ended.
pub(super) struct Ended {
    pub outcome: Outcome,
    pub cost: Cost,
    /// True if a ring ended its wait by a condition or by SIGUSR1: with `--rearm` it waits again.
    pub is_by_condition: bool,
}

/// Line of status behind the end of the recorded time.
const ENDING: &str = "writing the events that are left in the ring buffers, and the end of the file";

/// Makes one recording.
pub(super) fn once(options: &RecordOptions) -> Result<Ended> {
    // Before the output: another user may not even create it, and root can.
    tracefs::check_user(options.tracefs.as_deref())?;
    let output = options.output.clone().unwrap_or_else(|| PathBuf::from(description::own_default_name()));
    let rotation = Rotation::new(options, &output)?;
    let path = rotation.as_ref().map_or(output, Rotation::path);
    let mut console = Console::new(options.quiet, options.line.is_some());
    let (mut recorder, buffer_kb) = begin(&path, options, &mut console, rotation)?;
    let options = &recorder.with_what_was_found(options);
    // What a ring will hold is not known before its wait ends.
    let described = match &options.black_box {
        Some(black_box) => recorder.arm(black_box),
        None => recorder.describe(options),
    };
    let stopped = described.and_then(|()| {
        recorder.open_rings();
        let announcement = recorder.announcement(&path, options, buffer_kb);
        take_notices(&mut recorder, &mut console);
        announcement.iter().for_each(|text| console.say(format_args!("{text}")));
        run(&mut recorder, &mut console, options)
    });
    if stopped.is_ok() {
        if let Some(text) = console.wait(ENDING) {
            // Without a line the end of the file has nowhere to go, and fails.
            let _ = recorder.file.output.frame(line::STATUS, text.as_bytes());
        }
    }
    let (finished, reason) = recorder.finish(options, stopped);
    console.clear();
    finished.notices.iter().for_each(|notice| console.print(format_args!("{notice}")));
    let is_rearmed = options.black_box.as_ref().is_some_and(|black_box| black_box.rearm);
    let reason = match reason {
        // The output failed, and the next file may have room.
        Err(failure) if is_rearmed && finished.cause.is_some() => {
            console.print(format_args!("warning: no file was written: {failure}"));
            return Ok(Ended { outcome: Outcome::Incomplete, cost: finished.cost, is_by_condition: true });
        }
        reason => reason?,
    };
    if options.end_reason {
        // A reader that is gone misses nothing.
        let _ = print(format!("{}\n", EndReason::of(reason, finished.full).word()).as_bytes());
    }
    let is_by_condition = matches!(reason, StopReason::Condition | StopReason::Written);
    if finished.is_unwanted {
        console.say(format_args!("ended while waiting; no file was written"));
        let outcome = if finished.changes > 0 { Outcome::Incomplete } else { Outcome::Done };
        return Ok(Ended { outcome, cost: finished.cost, is_by_condition });
    }
    let outcome = match (report(&mut console, &path, options, &finished, reason), finished.status) {
        (Outcome::Done, Some(status)) => Outcome::Command(status),
        (outcome, _) => outcome,
    };
    Ok(Ended { outcome, cost: finished.cost, is_by_condition })
}

/// A recorder whose events are enabled, and the size of its buffers in KiB.
fn begin(
    path: &Path,
    options: &RecordOptions,
    console: &mut Console,
    rotation: Option<Rotation>,
) -> Result<(Recorder, u64)> {
    let mut sink = Sink::open(path, options)?;
    if let Some(name) = &options.adopt {
        let (setup, plan) = Setup::adopt(options, name)?;
        options.line.iter().for_each(|line| line::remove(&line.folder));
        sink.check_line()?;
        warn_of_tmpfs(path, console);
        let buffer_kb = setup.found_size_kb();
        return Ok((Recorder::new(setup, plan, options, sink, buffer_kb, rotation)?, buffer_kb));
    }
    let (mut setup, mut plan) = Setup::new(options)?;
    options.line.iter().for_each(|line| line::remove(&line.folder));
    sink.check_line()?;
    warn_of_tmpfs(path, console);
    if let Some(black_box) = &options.black_box {
        for event in Triggers::new(&black_box.stop_when, &setup.top)?.events() {
            plan.events.entry(event.clone()).or_default();
        }
    }
    let cpus = online(&setup);
    let of_ring = options.black_box.as_ref().map(|black_box| black_box.of_cpu(cpus.len()));
    let buffer_size = of_ring.or(options.buffer_size);
    if let Some(warning) = small_buffer(options) {
        console.say(format_args!("warning: {warning}"));
    }
    let buffer_kb = match buffer_size {
        Some(bytes) => (bytes >> 10).max(1),
        None => {
            setup.enable(&mut plan)?;
            size::probe(&mut setup, cpus.len())?
        }
    };
    setup.buffer_size_kb(buffer_kb)?;
    if buffer_size.is_some() {
        setup.enable(&mut plan)?;
    }
    sink.check_line()?;
    Ok((Recorder::new(setup, plan, options, sink, buffer_kb, rotation)?, buffer_kb))
}

/// Records until something stops it; returns the reason, if it was no error.
fn run(recorder: &mut Recorder, console: &mut Console, options: &RecordOptions) -> Result<StopReason> {
    recorder.start(options)?;
    loop {
        let turn = match options.black_box.is_some() {
            true => recorder.watch_turn(options)?,
            false => recorder.turn(options)?,
        };
        take_notices(recorder, console);
        if let Some(reason) = turn.stop_reason {
            return Ok(reason);
        }
        if turn.is_heartbeat {
            if let Some(text) = console.show(&recorder.totals()) {
                recorder.file.output.frame(line::STATUS, text.as_bytes())?;
            }
        }
    }
}

fn take_notices(recorder: &mut Recorder, console: &mut Console) {
    recorder.notices.drain(..).for_each(|notice| console.print(format_args!("{notice}")));
}

/// Prints the result of the recording and the next command.
fn report(
    console: &mut Console,
    path: &Path,
    options: &RecordOptions,
    finished: &Finished,
    reason: StopReason,
) -> Outcome {
    let Finished { totals, cost, counters, lost: flagged, left, .. } = finished;
    if totals.lost > 0 {
        let of = |(cpu, c): &(u32, CpuStats)| Some((*cpu, c.lost_events().filter(|&n| n > 0)?));
        let by_cpu: Vec<String> = counters
            .iter()
            .filter_map(of)
            .map(|(cpu, lost)| format!("{} on CPU {cpu}", grouped(lost)))
            .collect();
        let remedy = match (&options.adopt, finished.buffer_needed) {
            (Some(_), _) => {
                "give the buffer more room (trace_buf_size=, buffer_size_kb), or record fewer events"
                    .to_owned()
            }
            (None, 0) => "use a larger --buffer-size, fewer events, or --raw".to_owned(),
            (None, bytes) => format!(
                "--buffer-size {}M would probably have held them; or record fewer events, or --raw",
                bytes.div_ceil(1 << 20)
            ),
        };
        let share = 100.0 * totals.lost as f64 / (totals.lost + totals.events) as f64;
        console.print(format_args!(
            "warning: events were lost: {} ({share:.1} %), {}; {remedy}",
            grouped(totals.lost),
            by_cpu.join(", ")
        ));
    }
    if flagged.damaged_input {
        console.print(format_args!(
            "warning: part of the ring buffers could not be decoded; marks in the file show where events are missing"
        ));
    }
    if reason == StopReason::Clock {
        console.print(format_args!(
            "warning: stopped: another process changed the trace clock of this recording"
        ));
    }
    let full = if let StopReason::Size(bound) = reason { Some(bound) } else { finished.full };
    let is_cut = matches!(full, Some(Bound::Disk | Bound::Memory));
    if let Some(bound) = full {
        if !options.quiet || is_cut {
            console.print(format_args!(
                "{}{}",
                if is_cut { "warning: " } else { "" },
                room::reason(bound, *left, options)
            ));
        }
    }
    if finished.overwritten_before > 0 {
        console.say(format_args!(
            "{} were overwritten before the recording began",
            count(finished.overwritten_before, "event")
        ));
    }
    if let Some(window) = &finished.window {
        finished.cause.iter().for_each(|cause| console.say(format_args!("stopped by: {cause}")));
        console.say(format_args!(
            "the file has the last {:.2} s of all CPUs; {} were overwritten before, as a ring does",
            Duration::from_nanos(window.length).as_secs_f64(),
            count(window.overwritten, "older event"),
        ));
    }
    if !options.quiet {
        console.print(format_args!(
            "{}, {} lost{}, {}; the fullest buffer was {:.0} % full",
            count(totals.events, "event"),
            grouped(totals.lost),
            if *left > 0 { " before the stop" } else { "" },
            console::bytes(totals.bytes),
            totals.fill_percent
        ));
        match cost.of_recorder() {
            unknown if unknown.is_empty() => {}
            cost => console.print(format_args!("cost of recording: {cost}")),
        }
        match finished.files.as_slice() {
            [] if path.is_file() => console.print(format_args!("kmt-analyze {}", shell::path(path))),
            [] => {}
            files => console.print(format_args!("{}", next_command(files))),
        }
    }
    let is_incomplete = finished.changes > 0 || finished.is_rotation_incomplete;
    if totals.lost > 0 || *flagged != Loss::default() || is_cut || is_incomplete {
        Outcome::Incomplete
    } else {
        Outcome::Done
    }
}

/// Files of one recording on a line, at most; a longer one has the first and the last.
const FILES_MAX: usize = 6;

/// The command that reads the files of a recording as one trace.
fn next_command(files: &[PathBuf]) -> String {
    let words: Vec<String> = files.iter().map(|path| shell::path(path)).collect();
    match words.as_slice() {
        [first, .., last] if words.len() > FILES_MAX => {
            format!(
                "{} from {first} to {last}; kmt-analyze reads all of them as one trace",
                count(words.len() as u64, "file")
            )
        }
        words => format!("kmt-analyze {}", words.join(" ")),
    }
}

/// A smaller buffer holds a few hundred events: the size may have been meant in KiB, as trace-cmd takes it.
const SMALL_BUFFER: u64 = 64 << 10;

/// A warning of a small buffer whose size was given without a unit.
fn small_buffer(options: &RecordOptions) -> Option<String> {
    let bytes = options.buffer_size.filter(|bytes| options.is_buffer_size_plain && *bytes < SMALL_BUFFER)?;
    Some(format!(
        "--buffer-size is in bytes: {} for each CPU may lose events; for KiB add K",
        count(bytes, "byte")
    ))
}

/// A file on a tmpfs takes the memory that is being looked at.
fn warn_of_tmpfs(path: &Path, console: &mut Console) {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path != Path::new("-") && is_in_memory(folder) {
        console.say(format_args!(
            "warning: {} is in memory (tmpfs): the file uses memory that is being measured, and is lost at a reboot",
            folder.display()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_small_size_without_a_unit_has_a_warning() {
        let of = |buffer_size, is_buffer_size_plain| {
            small_buffer(&RecordOptions { buffer_size, is_buffer_size_plain, ..RecordOptions::default() })
        };
        let said = of(Some(4096), true).unwrap();
        assert!(said.contains("for KiB add K") && said.contains("may lose events"), "{said}");
        assert_eq!(of(Some(32 << 10), false), None, "32K");
        assert_eq!(of(Some(1 << 20), true), None);
        assert_eq!(of(None, false), None);
    }
}
