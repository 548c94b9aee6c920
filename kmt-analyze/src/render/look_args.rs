//! Display options on the command line.

use super::look::Look;
use super::terminal;
use crate::env::Env;

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
            width: if self.wide { Look::NO_LIMIT } else { terminal::width(env) },
            wide: self.wide,
            exact_bytes: self.bytes,
            colour: match self.color {
                Colour::Always => true,
                Colour::Never => false,
                Colour::Auto => terminal::has_colour(env),
            },
            wall_clock: self.clock == ClockArg::Wall,
        }
    }
}
