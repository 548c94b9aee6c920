//! The terminal of standard output: its width, its colours, a pager.

use std::env;
use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::look::Look;
use crate::env::Env;

/// Narrowest width that tables are laid out for: less does not hold a name and a number.
const WIDTH_MIN: usize = 40;

/// Width of a screen: `COLUMNS`, else the terminal's width; a pipe and a file have lines of any length.
pub fn width(of: &Env) -> usize {
    let columns = env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    let columns = columns.filter(|_| !of.is_in_memory()).or_else(|| {
        let size = of.is_terminal().then(|| rustix::termios::tcgetwinsize(io::stdout()).ok())??;
        Some(usize::from(size.ws_col))
    });
    let other = if of.is_terminal() || of.is_in_memory() { Look::WIDTH_DEFAULT } else { Look::NO_LIMIT };
    columns.filter(|&columns| columns > 0).map_or(other, |columns| columns.max(WIDTH_MIN))
}

/// True if standard output is a terminal that shows colour and the user did not set `NO_COLOR` (no-color.org).
pub fn has_colour(of: &Env) -> bool {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    of.is_terminal() && !is_set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A running pager.
pub struct Pager {
    child: Child,
    input: Option<ChildStdin>,
}

impl Pager {
    /// Starts the pager that `PAGER` names, or `less`, as git does; `None` where there is no terminal, where `PAGER` is
    /// empty or `cat`, or where it does not start.
    pub fn start(of: &Env) -> Option<Self> {
        if !of.is_terminal() {
            return None;
        }
        let pager = env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
        if matches!(pager.trim(), "" | "cat") {
            return None;
        }
        let mut command = Command::new("sh");
        command.arg("-c").arg(&pager).stdin(Stdio::piped());
        // F: end at once if all fits; R: pass colour through; X: leave the screen as it is. As git's defaults.
        if env::var_os("LESS").is_none() {
            command.env("LESS", "FRX");
        }
        let mut child = command.spawn().ok()?;
        let input = child.stdin.take();
        Some(Self { child, input })
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.input {
            Some(input) => input.write(bytes),
            None => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.input.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Waits until the reader leaves the pager: the shell must not prompt into it.
impl Drop for Pager {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
