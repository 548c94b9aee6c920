//! Messages to people, and the line of live status on a terminal. Both are dropped where standard error cannot be written.

use std::fmt::Arguments;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use kmt_common::terminal::{fitted, line_width};
use kmt_common::text::{count, grouped};

/// Totals of the recording so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Events in the file.
    pub events: u64,
    /// Events that the kernel says were lost.
    pub lost: u64,
    /// Bytes written.
    pub bytes: u64,
    /// How full the fullest ring buffer was when it was emptied, in percent.
    pub fill_percent: f64,
}

/// Messages, and a line that is written again every second.
#[derive(Debug)]
pub struct Console {
    is_quiet: bool,
    /// Standard error is a terminal, and the line is asked for.
    is_on: bool,
    /// The other end of a line shows the status.
    is_line: bool,
    start: Instant,
    last: (Instant, u64),
    is_shown: bool,
}

impl Console {
    /// A console; the line is shown if standard error is a terminal.
    pub fn new(is_quiet: bool, is_line: bool) -> Self {
        let now = Instant::now();
        let is_on = !is_quiet && std::io::stderr().is_terminal();
        Self { is_quiet, is_on, is_line, start: now, last: (now, 0), is_shown: false }
    }

    /// Prints a message.
    pub fn print(&mut self, message: Arguments<'_>) {
        self.clear();
        kmt_common::message!("{message}");
    }

    /// Prints a message, unless the console is quiet.
    pub fn say(&mut self, message: Arguments<'_>) {
        if !self.is_quiet {
            self.print(message);
        }
    }

    /// Shows the totals, or returns the text for the other end of a line.
    pub fn show(&mut self, totals: &Totals) -> Option<String> {
        let now = Instant::now();
        let (since, events) = self.last;
        self.last = (now, totals.events);
        if !self.is_on && !self.is_line {
            return None;
        }
        let line = line(now - self.start, now - since, totals.events.saturating_sub(events), totals);
        if self.is_line {
            return Some(line);
        }
        let width = line_width().unwrap_or(0);
        kmt_common::text::to_stderr(format_args!("\r\x1b[K{}", fitted(line.split("  "), width)));
        self.is_shown = true;
        None
    }

    /// Shows the present work as a line without totals, or returns it for the other end of a line. The next message replaces it.
    pub fn wait(&mut self, text: &str) -> Option<String> {
        if self.is_line {
            return Some(text.to_owned());
        }
        if self.is_on {
            let width = line_width().unwrap_or(0);
            kmt_common::text::to_stderr(format_args!("\r\x1b[K{}", fitted(std::iter::once(text), width)));
            self.is_shown = true;
        }
        None
    }

    /// Takes the line away.
    pub fn clear(&mut self) {
        if self.is_shown {
            kmt_common::text::to_stderr(format_args!("\r\x1b[K"));
            self.is_shown = false;
        }
    }
}

fn line(elapsed: Duration, step: Duration, events: u64, totals: &Totals) -> String {
    let rate = events as f64 / step.as_secs_f64().max(0.001);
    format!(
        "{:.0} s  {}  {}/s  {} lost  {}  buffers {:.0} % full at most",
        elapsed.as_secs_f64(),
        count(totals.events, "event"),
        grouped(rate as u64),
        grouped(totals.lost),
        bytes(totals.bytes),
        totals.fill_percent,
    )
}

/// Bytes in words.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_shown_where_the_status_is() {
        let mut line = Console::new(false, true);
        assert_eq!(line.wait("ending"), Some("ending".to_owned()));
        // Tests have no terminal, or one whose line is taken away.
        let mut console = Console { is_on: false, ..Console::new(false, false) };
        assert_eq!((console.wait("ending"), console.is_shown), (None, false));
        let mut console = Console { is_on: true, ..Console::new(false, false) };
        assert_eq!((console.wait("ending"), console.is_shown), (None, true));
        console.clear();
        assert!(!console.is_shown);
    }

    #[test]
    fn tells_rate_loss_size_and_fill() {
        let totals = Totals { events: 5_000, lost: 3, bytes: 20 << 20, fill_percent: 12.4 };
        let line = line(Duration::from_secs(7), Duration::from_secs(2), 800, &totals);
        assert_eq!(line, "7 s  5,000 events  400/s  3 lost  20 MiB  buffers 12 % full at most");
    }
}
