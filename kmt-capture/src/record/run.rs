//! Runs a recording from its begin to its end, and reports the result.

use std::path::{Path, PathBuf};

use kmt_common::shell;
use kmt_common::text::{count, grouped};
use kmt_format::kernel::CpuStats;
use kmt_format::write::Loss;

use super::console::{self, Console};
use super::cpus::online;
use super::recorder::room::{self, Bound, is_in_memory};
use super::recorder::sink::Sink;
use super::recorder::{Finished, Recorder, StopReason};
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
    // Before the output: another user may not even create it, and root can.
    tracefs::check_user(options.tracefs.as_deref())?;
    let path = options.output.clone().unwrap_or_else(|| PathBuf::from(description::own_default_name()));
    let mut console = Console::new(options.quiet, options.line.is_some());
    let (mut recorder, buffer_kb) = begin(&path, options, &mut console)?;
    let stopped = recorder.describe(options).and_then(|()| {
        recorder.open_rings();
        let announcement = recorder.announcement(&path, options, buffer_kb);
        take_notices(&mut recorder, &mut console);
        announcement.iter().for_each(|text| console.say(format_args!("{text}")));
        run(&mut recorder, &mut console, options)
    });
    console.clear();
    let (finished, reason) = recorder.finish(options, stopped);
    finished.notices.iter().for_each(|notice| console.print(format_args!("{notice}")));
    let outcome = match (report(&mut console, &path, options, &finished, reason?), finished.status) {
        (Outcome::Done, Some(status)) => Outcome::Command(status),
        (outcome, _) => outcome,
    };
    Ok((outcome, finished.cost))
}

/// A recorder whose events are enabled, and the size of its buffers in KiB.
fn begin(path: &Path, options: &RecordOptions, console: &mut Console) -> Result<(Recorder, u64)> {
    let mut sink = Sink::open(path, options)?;
    let (mut setup, mut plan) = Setup::new(options)?;
    options.line.iter().for_each(|line| line::remove(&line.folder));
    sink.check_line()?;
    warn_of_tmpfs(path, console);
    let cpus = online(&setup);
    let buffer_kb = match options.buffer_size {
        Some(bytes) => (bytes >> 10).max(1),
        None => {
            setup.enable(&mut plan)?;
            size::probe(&mut setup, cpus.len())?
        }
    };
    setup.buffer_size_kb(buffer_kb)?;
    if options.buffer_size.is_some() {
        setup.enable(&mut plan)?;
    }
    sink.check_line()?;
    Ok((Recorder::new(setup, plan, options, sink, buffer_kb)?, buffer_kb))
}

/// Records until something stops it; returns the reason, if it was no error.
fn run(recorder: &mut Recorder, console: &mut Console, options: &RecordOptions) -> Result<StopReason> {
    recorder.start(options)?;
    loop {
        let turn = recorder.turn(options)?;
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
        let share = 100.0 * totals.lost as f64 / (totals.lost + totals.events) as f64;
        console.print(format_args!(
            "warning: events were lost: {} ({share:.1} %), {}; use a larger --buffer-size, fewer events, or --raw",
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
    let is_cut = matches!(reason, StopReason::Size(Bound::Disk | Bound::Memory));
    if let StopReason::Size(bound) = reason {
        if !options.quiet || is_cut {
            console.print(format_args!(
                "{}{}",
                if is_cut { "warning: " } else { "" },
                room::reason(bound, *left, options)
            ));
        }
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
        if path.is_file() {
            console.print(format_args!("kmt-analyze {}", shell::path(path)));
        }
    }
    let is_changed = finished.changes > 0;
    if totals.lost > 0 || *flagged != Loss::default() || is_cut || is_changed {
        Outcome::Incomplete
    } else {
        Outcome::Done
    }
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
