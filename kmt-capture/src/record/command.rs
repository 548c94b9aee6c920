//! The command that is recorded, and the signals that end a recording.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kmt_common::early_end::is_ignored;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1};

use super::RecordOptions;
use super::line::Line;
use super::tasks::numbered;
use crate::failure::{Failure, Result};

/// Signals that end a recording, and those of a command that ended: each a byte in a socket, so that one `poll` waits
/// for everything.
#[derive(Debug)]
pub struct Signals {
    stops: UnixStream,
    children: UnixStream,
    /// SIGUSR1: the file of a ring is wanted now.
    wanted: Option<UnixStream>,
    line: Option<Line>,
    asked: usize,
    ids: Vec<signal_hook::SigId>,
}

impl Signals {
    /// Takes the signals over; SIGUSR1 too if `is_ring`.
    pub fn new(is_ring: bool) -> Result<Self> {
        let failed = |e: std::io::Error| Failure::os("cannot watch for signals", &e);
        let mut ids = Vec::new();
        let mut watch = |signals: &[i32]| -> std::io::Result<UnixStream> {
            let (stream, sender) = UnixStream::pair()?;
            stream.set_nonblocking(true)?;
            for &signal in signals {
                ids.push(signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?);
            }
            Ok(stream)
        };
        // Who starts us with nohup wants us to outlive the terminal.
        let stops =
            if is_ignored(SIGHUP) { watch(&[SIGINT, SIGTERM]) } else { watch(&[SIGINT, SIGTERM, SIGHUP]) };
        let stops = stops.map_err(failed)?;
        let children = watch(&[SIGCHLD]).map_err(failed)?;
        let wanted = if is_ring { Some(watch(&[SIGUSR1]).map_err(failed)?) } else { None };
        Ok(Self { stops, children, wanted, line: None, asked: 0, ids })
    }

    /// These signals, with a line that can ask for an end too.
    pub fn with_line(mut self, line: Option<Line>) -> Self {
        self.line = line;
        self
    }

    /// How many signals came so far that ask for an end.
    pub fn asked(&mut self) -> usize {
        let mut bytes = [0; 64];
        let _ = self.children.read(&mut bytes);
        self.asked += self.stops.read(&mut bytes).unwrap_or(0);
        self.asked += self.line.as_mut().map_or(0, Line::asked);
        self.asked
    }

    /// True if SIGUSR1 came since the last call.
    pub fn is_file_wanted(&mut self) -> bool {
        let mut bytes = [0; 64];
        self.wanted.as_mut().is_some_and(|stream| matches!(stream.read(&mut bytes), Ok(1..)))
    }

    /// File descriptors to wait for.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.stops.as_fd(), self.children.as_fd()]
            .into_iter()
            .chain(self.wanted.iter().map(|stream| stream.as_fd()))
            .chain(self.line.iter().map(|line| line.fd().as_fd()))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.ids.drain(..).for_each(|id| {
            signal_hook::low_level::unregister(id);
        });
    }
}

/// Time that a command has to end after each signal.
pub const ENDING: Duration = Duration::from_millis(500);

/// The command that runs while we record.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    status: Option<ExitStatus>,
    /// A signal was sent to it.
    is_signalled: bool,
}

impl Running {
    /// Starts it.
    pub fn start(options: &RecordOptions) -> Result<Option<Self>> {
        let Some((program, args)) = options.command.split_first() else { return Ok(None) };
        let name = program.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command.args(args);
        if options.line.is_some() {
            // Both ends of the line are the recorder's.
            let out = std::io::stderr().as_fd().try_clone_to_owned();
            command.stdin(Stdio::null()).stdout(out.map_or_else(|_| Stdio::null(), Stdio::from));
        }
        let child = command.spawn().map_err(|e| {
            Failure::new(format!("starting {name}: {e}"))
                .hint("give a program in PATH, or the path of a program")
        })?;
        Ok(Some(Self { name, child, status: None, is_signalled: false }))
    }

    /// True if it ended.
    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// True if it ends within a time.
    pub fn ends_within(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while !self.has_ended() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.has_ended()
    }

    /// Ends it as Ctrl-C would, then more firmly; true if it ended in time.
    pub fn end(&mut self) -> bool {
        for signal in [Signal::INT, Signal::TERM] {
            if !self.has_ended() {
                self.signal(signal);
                self.ends_within(ENDING);
            }
        }
        self.has_ended()
    }

    /// Sends a signal to it and to the processes that it has started, as a terminal sends that of Ctrl-C to all of them.
    pub fn signal(&mut self, signal: Signal) {
        self.is_signalled = true;
        let Ok(own) = i32::try_from(self.child.id()) else { return };
        for pid in with_descendants(own) {
            let Some(pid) = Pid::from_raw(pid) else { continue };
            // Each may have ended meanwhile.
            let _ = kill_process(pid, signal);
        }
    }

    /// How it ended, in words; `None` while it runs.
    pub fn outcome(&self) -> Option<String> {
        let status = self.status?;
        Some(match (status.code(), status.signal()) {
            (Some(code), _) => format!("{} exited with {code}", self.name),
            (None, Some(signal)) => format!("{} was ended by signal {signal}", self.name),
            (None, None) => format!("{} ended", self.name),
        })
    }

    /// Exit status of the command as in a shell: 128 + the signal's number where a signal ended it; `None` while it
    /// runs.
    pub fn code(&self) -> Option<u8> {
        let status = self.status?;
        let code = status.code().or_else(|| Some(128 + status.signal()?))?;
        u8::try_from(code).ok()
    }

    /// True if it ended otherwise than with status 0, and not for a signal of ours.
    pub fn has_failed(&self) -> bool {
        !self.is_signalled && self.status.is_some_and(|status| !status.success())
    }

    /// True if a signal was sent to it.
    pub fn is_signalled(&self) -> bool {
        self.is_signalled
    }

    /// Number and name of the process.
    pub fn describe(&self) -> String {
        format!("{} (process {})", self.name, self.child.id())
    }
}

/// A process and those that it and its children have started, as far as their parents still run.
fn with_descendants(pid: i32) -> Vec<i32> {
    let parent = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse::<i32>().ok()
    };
    let parents: Vec<(i32, i32)> =
        numbered("/proc").iter().filter_map(|pid| Some((*pid, parent(pid)?))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&of) = found.get(next) {
        let children = parents.iter().filter(|(pid, parent)| *parent == of && !found.contains(pid));
        let children: Vec<i32> = children.map(|(pid, _)| *pid).collect();
        found.extend(children);
        next += 1;
    }
    found
}
