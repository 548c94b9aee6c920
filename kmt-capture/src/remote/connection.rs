//! The command that gives a shell on the target, its standard input and output, and Ctrl-C.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::messages::{LINE_MAX, Messages};
use crate::failure::{Failure, Result};
use crate::record::command::Signals;

/// Bytes that are read at once.
const READ_LEN: usize = 64 << 10;
/// How often a beat is sent.
const BEAT_EVERY: Duration = Duration::from_millis(200);
/// Time without progress after which sending is given up.
const STUCK: Duration = Duration::from_secs(30);
/// A beat: a line, since scripts read lines.
const BEAT: &[u8] = &[crate::record::line::BEAT, b'\n'];

/// Result of waiting for the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// Bytes: see [`Connection::unread`].
    Bytes,
    /// The end of the output.
    End,
    /// Ctrl-C, or another signal to end.
    Asked,
    /// Nothing until the time given.
    Nothing,
}

/// A shell on the target.
pub struct Connection {
    /// Command that gives the shell, for messages.
    pub name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    /// Reports of the command and the recorder, and the line of status.
    pub messages: Messages,
    /// Bytes that came and were not taken.
    pub unread: Vec<u8>,
    signals: Signals,
    asked: usize,
    /// When the last beat was sent; `None`: the target expects none.
    beat: Option<Instant>,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

impl Connection {
    /// Starts the command. No shell of this machine sees its words.
    pub fn open(words: &[String], quiet: bool) -> Result<Self> {
        let (program, args) = words.split_first().ok_or_else(|| Failure::new("no command"))?;
        let signals = Signals::new(false)?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        ignore_ctrl_c(&mut command);
        let failed = |e: std::io::Error| {
            Failure::os(format!("starting {program}"), &e)
                .hint("install it, or give another command with --via")
        };
        let mut child = command.spawn().map_err(failed)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::new(format!("{program} has no standard input or output")));
        };
        rustix::io::ioctl_fionbio(&stdin, true).map_err(|e| failed(e.into()))?;
        Ok(Self {
            name: words.join(" "),
            messages: Messages::new(child.stderr.take(), quiet),
            child,
            stdin: Some(stdin),
            stdout,
            unread: Vec::new(),
            signals,
            asked: 0,
            beat: None,
            sent: 0,
            received: 0,
        })
    }

    /// Sends beats from now on.
    pub fn begin_beats(&mut self) {
        self.beat = Some(Instant::now());
    }

    /// Sends no more beats.
    pub fn end_beats(&mut self) {
        self.beat = None;
    }

    /// Signals to end so far.
    pub fn asked(&mut self) -> usize {
        self.asked = self.signals.asked();
        self.asked
    }

    /// Sends bytes; fails if the target does not take them, or at Ctrl-C.
    pub fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        let before = self.asked();
        let mut moved = Instant::now();
        while !bytes.is_empty() {
            let Some(stdin) = &mut self.stdin else { return Err(self.ended()) };
            match stdin.write(bytes) {
                Ok(len) => {
                    self.sent += len as u64;
                    bytes = bytes.get(len..).unwrap_or_default();
                    moved = Instant::now();
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    let wait = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
                    let _ = poll(&mut [PollFd::new(&*stdin, PollFlags::OUT)], Some(&wait));
                }
                Err(_) => return Err(self.ended()),
            }
            if self.asked() > before {
                return Err(Failure::new("interrupted"));
            }
            if moved.elapsed() > STUCK {
                return Err(Failure::new(format!(
                    "{}: the target takes no data for {} s",
                    self.name,
                    STUCK.as_secs()
                )));
            }
        }
        Ok(())
    }

    /// Waits for bytes, and appends them to [`Connection::unread`].
    pub fn wait(&mut self, until: Option<Instant>) -> Came {
        loop {
            let before = self.asked;
            if self.asked() > before {
                return Came::Asked;
            }
            self.send_beat();
            let now = Instant::now();
            if until.is_some_and(|until| now >= until) {
                return Came::Nothing;
            }
            let left = until.map_or(BEAT_EVERY, |until| (until - now).min(BEAT_EVERY));
            // Processes that the command has started may keep its output open.
            let has_ended = !matches!(self.child.try_wait(), Ok(None));
            let (is_out, is_err) = self.poll(left);
            if has_ended && !is_out && !is_err {
                return Came::End;
            }
            if is_err {
                self.messages.read();
            }
            if is_out {
                let mut bytes = [0; READ_LEN];
                match self.stdout.read(&mut bytes) {
                    Ok(0) => return Came::End,
                    Ok(len) => {
                        self.received += len as u64;
                        self.unread.extend_from_slice(bytes.get(..len).unwrap_or_default());
                        return Came::Bytes;
                    }
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return Came::End,
                }
            }
        }
    }

    /// True for standard output and standard error if they can be read.
    fn poll(&self, left: Duration) -> (bool, bool) {
        let mut fds = vec![PollFd::new(&self.stdout, PollFlags::IN)];
        fds.extend(self.messages.stderr.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        fds.extend(self.signals.fds().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let _ = poll(&mut fds, Some(&timeout));
        let is_ready = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| !fd.revents().is_empty());
        (is_ready(fds.first()), self.messages.stderr.is_some() && is_ready(fds.get(1)))
    }

    /// A beat that does not fit is left out: then enough bytes are on their way.
    fn send_beat(&mut self) {
        if self.beat.is_some_and(|beat| beat.elapsed() >= BEAT_EVERY) {
            self.beat = Some(Instant::now());
            if let Some(Ok(len)) = self.stdin.as_mut().map(|stdin| stdin.write(BEAT)) {
                self.sent += len as u64;
            }
        }
    }

    /// The next line of text, without its end.
    pub fn line(&mut self, until: Option<Instant>) -> Result<Vec<u8>> {
        loop {
            if let Some(at) = self.unread.iter().take(LINE_MAX).position(|&b| b == b'\n') {
                let mut line: Vec<u8> = self.unread.drain(..=at).collect();
                line.pop();
                return Ok(line);
            }
            if self.unread.len() >= LINE_MAX {
                return Err(Failure::new(format!(
                    "{}: a line of text was expected, and the target sent more than {LINE_MAX} bytes without an end of line",
                    self.name
                )));
            }
            match self.wait(until) {
                Came::Bytes => {}
                Came::End => return Err(self.ended()),
                Came::Asked => return Err(Failure::new("interrupted")),
                Came::Nothing => {
                    return Err(Failure::new(format!("{}: no answer from the target", self.name)).hint(
                        "the command must give a POSIX shell that reads commands from standard input",
                    ));
                }
            }
        }
    }

    /// The failure of a command that ended too early.
    pub fn ended(&mut self) -> Failure {
        self.messages.drain();
        // Its streams end a moment before it does.
        let status = self.exit_within(Duration::from_millis(500));
        let how =
            status.map_or_else(|| "closed the connection".to_owned(), |status| format!("ended ({status})"));
        Failure::new(format!("{} {how}", self.name))
            .hint("run this command by hand: it must give a shell on the target, without questions and without a terminal")
    }

    /// Status of the command if it ends within a time.
    fn exit_within(&mut self, time: Duration) -> Option<std::process::ExitStatus> {
        let until = Instant::now() + time;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                status => return status.ok().flatten(),
            }
        }
    }

    /// Closes the line. The command has a second to end by itself.
    pub fn close(&mut self) {
        self.stdin = None;
        self.messages.drain();
        self.exit_within(Duration::from_secs(1));
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.messages.progress.clear();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

/// Ctrl-C on a terminal goes to all processes in the foreground: the recording is to end well, and needs the command for that.
/// A process group of its own would not do: ssh could not ask for a password.
fn ignore_ctrl_c(command: &mut Command) {
    let ignore = || {
        // SAFETY: `signal` is async-signal-safe, and SIG_IGN needs no handler.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: between fork and exec only `signal` is called.
    unsafe { command.pre_exec(ignore) };
}
