//! Display options: width, exact or human sizes, colour, clock times.
//!
//! They come from the command line and from the terminal of standard output, whose width, colours and pager are here too. Screens
//! and pages are printed by them.

use std::env;
use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::env::Env;

/// Display options of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal; [`Look::NO_LIMIT`] where lines are not cut.
    pub width: usize,
    /// All columns, and sizes of functions behind their names.
    pub wide: bool,
    /// Sizes in bytes instead of KiB and MiB.
    pub exact_bytes: bool,
    /// Escape sequences for colour and weight.
    pub colour: bool,
    /// Time of day instead of seconds from the start, where the file has it.
    pub wall_clock: bool,
}

impl Look {
    /// Width of a terminal that does not report its own.
    pub const WIDTH_DEFAULT: usize = 80;
    /// Width of `--wide`, of a pipe and of a file.
    pub const NO_LIMIT: usize = usize::MAX;
}

impl Default for Look {
    fn default() -> Self {
        Self { width: Self::WIDTH_DEFAULT, wide: false, exact_bytes: false, colour: false, wall_clock: false }
    }
}

/// Display options on the command line.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Display")]
pub struct LookArgs {
    /// Show all columns and whole names, whatever the terminal's width
    #[arg(long, global = true)]
    pub wide: bool,
    /// Show sizes in bytes, not in KiB, MiB and GiB
    #[arg(long, global = true)]
    pub bytes: bool,
    /// Clock of event times
    #[arg(long, global = true, value_enum, value_name = "CLOCK", default_value_t = ClockArg::Start)]
    pub clock: ClockArg,
    /// Use colour
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    pub color: Colour,
    /// Do not start a pager
    #[arg(long, global = true)]
    pub no_pager: bool,
}

/// Clock of event times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ClockArg {
    /// Seconds from the start of the trace
    #[default]
    Start,
    /// Time of day, where the file has it
    Wall,
}

/// Use of colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl LookArgs {
    /// Display options for standard output.
    pub fn look(&self, env: &Env) -> Look {
        Look {
            width: if self.wide { Look::NO_LIMIT } else { terminal_width(env) },
            wide: self.wide,
            exact_bytes: self.bytes,
            colour: match self.color {
                Colour::Always => true,
                Colour::Never => false,
                Colour::Auto => has_colour(env),
            },
            wall_clock: self.clock == ClockArg::Wall,
        }
    }
}

/// Narrowest width that tables are laid out for: less does not hold a name and a number.
const WIDTH_MIN: usize = 40;

/// Width of a screen: `COLUMNS`, else the terminal's width; a pipe and a file have lines of any length.
fn terminal_width(of: &Env) -> usize {
    let columns = env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    let columns = columns.filter(|_| !of.is_in_memory()).or_else(|| {
        let size = of.is_terminal().then(|| rustix::termios::tcgetwinsize(io::stdout()).ok())??;
        Some(usize::from(size.ws_col))
    });
    let other = if of.is_terminal() || of.is_in_memory() { Look::WIDTH_DEFAULT } else { Look::NO_LIMIT };
    columns.filter(|&columns| columns > 0).map_or(other, |columns| columns.max(WIDTH_MIN))
}

/// True if standard output is a terminal that shows colour and the user did not set `NO_COLOR` (no-color.org).
fn has_colour(of: &Env) -> bool {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    of.is_terminal() && !is_set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A running pager.
pub struct Pager {
    child: Child,
    input: Option<ChildStdin>,
}

impl Pager {
    /// Starts the pager that `PAGER` names, or `less`, as git does; `None` without a terminal, where `PAGER` is
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
