//! The black box: waits for a condition without reading the ring buffer, and then stores the state of the machine.
//!
//! A trigger that stops the buffer wakes no process, so `tracing_on` is read now and then: [`Pace`]. Other files are read only
//! where `poll` reports that there is something to read.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use super::room::Room;
use super::{Recorder, StopReason, TurnResult};
use crate::failure::{Failure, Result};
use crate::record::RecordOptions;
use crate::record::black_box::{BlackBoxOptions, KernelLog, OomScore, Pace, Polls, State, Triggers};

/// How often the output is looked at, and everything else that has not reported anything.
const CHECK: Duration = Duration::from_secs(1);

/// A wait for conditions.
#[derive(Debug)]
pub(super) struct BlackBox {
    /// `tracing_on`, kept open: opening it takes twenty times as long as reading it.
    tracing_on: File,
    triggers: Triggers,
    polls: Polls,
    pace: Pace,
    log: Option<KernelLog>,
    /// A condition that held, and when the buffer is to be stopped.
    pending: Option<(String, Instant)>,
    /// Why the wait ended.
    pub cause: Option<String>,
    /// The state when the condition was seen, which may be before the buffer is stopped.
    pub state: State,
    /// When the state was read, by the trace clock; `None`: it was not.
    seen: Option<Option<u64>>,
    checked: Instant,
    /// Set once the command was started, which would inherit it.
    score: Option<OomScore>,
}

/// What ended a wait.
#[derive(Debug, Default)]
struct Woken {
    /// A condition on pressure that holds.
    pressure: Option<String>,
    /// True if a signal came, the command ended or a setting was written, as far as `poll` shows.
    is_by_others: bool,
}

/// The part of the recording that the ring buffers hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::record) struct Window {
    /// Events that were overwritten by design.
    pub overwritten: u64,
    /// Length of the time of which all CPUs have their events, in nanoseconds.
    pub length: u64,
}

impl Recorder {
    /// Sets the conditions, before the ring buffer records: triggers would be used up at once.
    pub(in crate::record) fn arm(&mut self, options: &BlackBoxOptions) -> Result<()> {
        if self.setup.is_top() {
            return Err(Failure::new("--ring needs an instance of tracefs, and this kernel has the function graph tracer at the top level only")
                .hint("omit --function and -p reclaim"));
        }
        let triggers = Triggers::new(&options.stop_when, &self.setup.top)?;
        let dir = &self.setup.dir;
        let polls = Polls::new(&options.stop_when, options.is_again)?;
        let tracing_on = dir
            .open("tracing_on", OFlags::RDONLY)
            .map_err(|e| Failure::io("opening", &dir.file("tracing_on"), &e))?;
        triggers.set(dir)?;
        self.black_box = Some(BlackBox {
            tracing_on,
            triggers,
            polls,
            pace: Pace::new(&options.stop_when),
            log: KernelLog::from_now(),
            pending: None,
            cause: None,
            state: State::default(),
            seen: None,
            checked: Instant::now(),
            score: None,
        });
        Ok(())
    }

    /// Waits until something happens or a look is due, and looks at the conditions.
    pub(in crate::record) fn watch_turn(&mut self, options: &RecordOptions) -> Result<TurnResult> {
        let stop = |reason| Ok(TurnResult { stop_reason: Some(reason), is_heartbeat: false });
        let left = options.duration.map(|d| d.saturating_sub(self.times.start.elapsed()));
        if let Some(black_box) = &mut self.black_box {
            black_box.score.get_or_insert_with(OomScore::lower);
        }
        let woken = self.wait_for_condition(left);
        let is_check_due =
            self.black_box.as_ref().is_some_and(|black_box| black_box.checked.elapsed() >= CHECK);
        let is_over = left.is_some_and(|left| left.is_zero());
        let mut reason = is_over.then_some(StopReason::Time);
        if woken.is_by_others || is_check_due {
            // A process that stops the buffer is a change by others, not a condition.
            self.notice_others()?;
            reason = self.stop_reason(is_over);
        }
        let Some(black_box) = &mut self.black_box else { return stop(StopReason::Asked) };
        let mut cause = None;
        if black_box.is_stopped() {
            let fired = black_box.triggers.fired(&self.setup.dir);
            cause = Some(match fired.is_empty() {
                true => "the ring buffer was stopped by another process or by the kernel".to_owned(),
                false => fired.join(" and "),
            });
        } else if let Some((text, _)) = black_box.pending.take_if(|(_, until)| Instant::now() >= *until) {
            cause = Some(text);
        } else if black_box.pending.is_none() {
            let found = woken.pressure.or_else(|| black_box.polls.memory());
            let after = options.black_box.as_ref().map_or(Duration::ZERO, |options| options.after);
            match found {
                Some(text) if after.is_zero() => cause = Some(text),
                Some(text) => {
                    black_box.pending = Some((text, Instant::now() + after));
                    self.read_state(options);
                }
                None => {}
            }
        }
        let Some(black_box) = &mut self.black_box else { return stop(StopReason::Asked) };
        // Before a signal that came at the same time: the condition is the reason that the file names.
        if cause.is_some() {
            black_box.cause = cause;
            return stop(StopReason::Condition);
        }
        if let Some(reason) = reason {
            let pending = black_box.pending.take().map(|(text, _)| text);
            let is_condition = pending.is_some();
            black_box.cause = pending.or_else(|| Some(words(reason).to_owned()));
            return stop(if is_condition { StopReason::Condition } else { reason });
        }
        if is_check_due {
            black_box.checked = Instant::now();
            self.file.output.out.check_name()?;
        }
        Ok(TurnResult::default())
    }

    /// Reads the state of the machine, unless it was read when the condition was seen.
    fn read_state(&mut self, options: &RecordOptions) {
        let Some(mut black_box) = self.black_box.take_if(|black_box| black_box.seen.is_none()) else {
            return;
        };
        black_box.seen = Some(self.trace_now());
        let group = options.black_box.as_ref().and_then(|options| options.cgroup());
        black_box.state = State::read(|| self.trace_now(), black_box.log.as_mut(), group);
        self.black_box = Some(black_box);
    }

    /// Notices writes to settings. Where any file of tracefs was written, all settings are read, and a trigger may have stopped
    /// the buffer meanwhile.
    fn notice_others(&mut self) -> Result<()> {
        let mut changes = self.settings.as_mut().map(|settings| settings.written()).unwrap_or_default();
        if let Some(black_box) = &self.black_box {
            changes.retain(|change| !black_box.triggers.made(change, &self.setup.dir));
        }
        self.changed(changes)
    }

    /// Waits, for `left` at most.
    fn wait_for_condition(&mut self, left: Option<Duration>) -> Woken {
        let Self { black_box, file, settings, notices, .. } = self;
        let Some(black_box) = black_box.as_mut() else { return Woken::default() };
        let until =
            black_box.pending.as_ref().map(|(_, until)| until.saturating_duration_since(Instant::now()));
        let timeout = left.into_iter().chain(until).fold(black_box.pace.wait(), Duration::min);
        let for_reading = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds: Vec<PollFd<'_>> = black_box.polls.fds().collect();
        let pressures = fds.len();
        fds.extend(black_box.pace.fd().map(for_reading));
        let others = fds.len();
        fds.extend(file.output.signals.fds().map(for_reading));
        fds.extend(settings.as_ref().and_then(|settings| settings.fd()).map(for_reading));
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        // An interruption is as good as a report: everything is looked at.
        let is_interrupted = poll(&mut fds, Some(&timeout)).is_err();
        let mut reports = fds.iter().map(PollFd::revents);
        let results: Vec<PollFlags> = reports.by_ref().take(pressures).collect();
        let has_line = reports.by_ref().take(others - pressures).any(|flags| !flags.is_empty());
        let has_others = reports.any(|flags| !flags.is_empty());
        drop(fds);
        black_box.pace.waited(has_line, Instant::now());
        let (mut holds, gone) = black_box.polls.pressed(&results);
        if !gone.is_empty() {
            black_box.polls.leave_out(&gone);
            let gone = gone.join(", ");
            notices.push(format!(
                "warning: the cgroup of {gone} was removed; the condition is not watched any more"
            ));
        }
        let is_unsettled = settings.as_ref().is_some_and(|settings| settings.is_unsettled());
        Woken {
            pressure: (!holds.is_empty()).then(|| holds.swap_remove(0)),
            is_by_others: is_interrupted || is_unsettled || has_others,
        }
    }

    /// After the wait: stops the buffer, reads the state of the machine, then writes what a recording has at its begin.
    pub(super) fn close_wait(&mut self, options: &RecordOptions) -> Result<()> {
        if self.black_box.is_none() {
            return Ok(());
        }
        let now = self.trace_now();
        let stopped = self.setup.stop();
        self.read_state(options);
        let Some(black_box) = &self.black_box else { return Ok(()) };
        let seen = black_box.seen.flatten().or(now);
        let files = black_box.triggers.files();
        let cause = black_box.cause.clone();
        // Why the wait ended is known before anything fails.
        stopped?;
        let ours = files.iter().map(String::as_str).chain(["tracing_on"]);
        self.settings.iter_mut().for_each(|settings| settings.set_by_us(ours.clone()));
        if self.file.output.begin()? {
            self.room = Room::new(self.file.output.out.file().ok(), options.max_size);
        }
        self.open_rings();
        self.describe(options)?;
        self.notices.extend(self.plan.notes.drain(..).map(|note| format!("note: {note}")));
        let size = options.black_box.as_ref().map_or(0, |options| options.size).to_string();
        let seen = seen.map_or_else(String::new, |time| time.to_string());
        let conditions = options.black_box.iter().flat_map(|options| &options.stop_when);
        let conditions: Vec<String> = conditions.map(ToString::to_string).collect();
        let mut pairs: Vec<(&str, &[u8])> = vec![("record.ring", size.as_bytes())];
        pairs.extend(conditions.iter().map(|text| ("record.stop_when", text.as_bytes())));
        pairs.extend(cause.iter().map(|text| ("record.stopped_by", text.as_bytes())));
        pairs.push(("record.stop_seen", seen.as_bytes()));
        pairs.retain(|(_, value)| !value.is_empty());
        Ok(self.file.writer.add_metadata(&pairs)?)
    }

    /// The time of which all CPUs have their events; `None`: the recording is not one of a ring.
    pub(super) fn window(&self) -> Option<Window> {
        self.black_box.as_ref()?;
        let overwritten = self.cpus.iter().map(|cpu| cpu.overwritten).fold(0, u64::saturating_add);
        let begins =
            self.cpus.iter().filter(|cpu| cpu.overwritten > 0).filter_map(|cpu| cpu.first_time).max();
        let first = begins.or_else(|| self.cpus.iter().filter_map(|cpu| cpu.first_time).min());
        let last = self.cpus.iter().map(|cpu| cpu.last_time).max().unwrap_or(0);
        Some(Window { overwritten, length: last.saturating_sub(first.unwrap_or(last)) })
    }

    /// Why the wait ended; `None`: the recording is not one of a ring.
    pub(super) fn cause(&self) -> Option<String> {
        self.black_box.as_ref()?.cause.clone()
    }
}

impl BlackBox {
    fn is_stopped(&self) -> bool {
        let mut text = [0; 4];
        matches!(self.tracing_on.read_at(&mut text, 0), Ok(1..)) && text.first() == Some(&b'0')
    }
}

/// Why a wait ended without a condition.
fn words(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Asked => "the recorder was asked to end",
        StopReason::Written => "SIGUSR1",
        StopReason::Command => "the command ended",
        StopReason::Time => "--duration",
        StopReason::Condition => "a condition",
        StopReason::Size(_) => "the limit of the file",
        StopReason::Clock => "another process changed the trace clock",
    }
}
