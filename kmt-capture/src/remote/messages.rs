//! Text of the target that the user sees: what the command and the recorder print on standard error.

use std::io::Read;
use std::process::ChildStderr;
use std::time::{Duration, Instant};

use kmt_common::tell;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::progress::Progress;

/// Longest line that a target may send as text.
pub const LINE_MAX: usize = 4096;
/// Lines of text that are shown of one target.
const SHOWN_MAX: u32 = 1_000;
/// Time that the messages of a command may take which ends.
const ENDING: Duration = Duration::from_millis(500);

/// Standard error of the command, shown line by line.
pub struct Messages {
    /// The stream; `None` at its end.
    pub stderr: Option<ChildStderr>,
    unread: Vec<u8>,
    shown: u32,
    /// The line of status, which messages replace.
    pub progress: Progress,
}

impl Messages {
    /// Those of that stream.
    pub fn new(stderr: Option<ChildStderr>, quiet: bool) -> Self {
        Self { stderr, unread: Vec::new(), shown: 0, progress: Progress::new(quiet) }
    }

    /// Prints what came.
    pub fn read(&mut self) {
        let mut bytes = [0; LINE_MAX];
        match self.stderr.as_mut().map(|stderr| stderr.read(&mut bytes)) {
            Some(Ok(len)) if len > 0 => self.unread.extend_from_slice(bytes.get(..len).unwrap_or_default()),
            _ => self.stderr = None,
        }
        while let Some(len) = end_of_line(&self.unread, self.stderr.is_none()) {
            let line: Vec<u8> = self.unread.drain(..len).collect();
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            self.show(line.strip_suffix(b"\r").unwrap_or(line));
        }
    }

    /// Shows a line of the target, which may send them without end.
    pub fn show(&mut self, line: &[u8]) {
        self.shown = self.shown.saturating_add(1);
        if self.shown < SHOWN_MAX {
            self.progress.clear();
            tell!("{}", String::from_utf8_lossy(line));
        } else if self.shown == SHOWN_MAX {
            tell!("the target sends more than {SHOWN_MAX} lines of text; the rest is not shown");
        }
    }

    /// Prints the messages of a command that ends.
    pub fn drain(&mut self) {
        let until = Instant::now() + ENDING;
        while let Some(stderr) = self.stderr.as_ref().filter(|_| Instant::now() < until) {
            let timeout = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            if matches!(poll(&mut [PollFd::new(stderr, PollFlags::IN)], Some(&timeout)), Ok(1..)) {
                self.read();
            }
        }
    }
}

/// Length of the first line; a long one is cut, and at the end of the text the rest is one.
fn end_of_line(text: &[u8], is_end: bool) -> Option<usize> {
    match text.iter().take(LINE_MAX).position(|&b| b == b'\n') {
        Some(at) => Some(at + 1),
        None if text.len() >= LINE_MAX => Some(LINE_MAX),
        None => Some(text.len()).filter(|&len| is_end && len > 0),
    }
}
