//! Options of several commands.

use std::path::PathBuf;

use kmt_common::{quantity, shell};

use crate::limits;
use crate::pass::selection::Selection;
use crate::reports::column_order::ColumnOrder;
use crate::reports::diff::DiffKey;
use crate::trace::time_range::TimeRange;

/// The file, and the form of the output.
#[derive(Clone, clap::Args)]
pub struct Target {
    /// Print JSON (docs/json.md)
    #[arg(long)]
    pub json: bool,
    /// The .kmt file; - is standard input
    pub file: PathBuf,
}

/// A table of a report as CSV.
#[derive(Clone, clap::Args)]
pub struct TableArgs {
    /// Print a table as CSV: that of --by, that of the report's name, or the largest
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// With --csv: the name of another table, as in docs/json.md
    #[arg(long, value_name = "NAME", requires = "csv")]
    pub table: Option<String>,
}

/// Number of rows.
#[derive(Clone, clap::Args)]
pub struct LineArgs {
    /// Show at most N rows of a table; 0: all [default: 20, all with --json]
    #[arg(short, long = "lines", value_name = "N", value_parser = limits::lines)]
    pub lines: Option<usize>,
}

/// Options of `info`.
#[derive(clap::Args)]
pub struct InfoArgs {
    /// Print a file of the target that the recording keeps, such as slabinfo.after
    #[arg(long, value_name = "NAME", conflicts_with_all = ["json", "diff"])]
    pub show: Option<String>,
    /// With --show, of several of that name: the last one that was read until this instant
    #[arg(long, value_name = "T", value_parser = TimeRange::parse_instant, requires = "show")]
    pub at: Option<TimeRange>,
    /// Print what changed from begin to end by the kernel's own counts: meminfo, slabinfo, buddyinfo, zoneinfo,
    /// vmstat
    #[arg(long)]
    pub diff: bool,
    #[command(flatten)]
    pub lines: LineArgs,
    #[command(flatten)]
    pub target: Target,
}

/// Options of `diff`.
#[derive(clap::Args)]
pub struct DiffArgs {
    #[command(flatten)]
    select: Selection,
    /// The second window; --time is the first one. Without a second file both are windows of the same file
    #[arg(long, value_name = "A..B", value_parser = TimeRange::parse, requires = "time")]
    against: Option<TimeRange>,
    /// Key of the comparison
    #[arg(long, value_enum, default_value = "call-site")]
    pub by: DiffKey,
    /// Another run of the first side, to measure noise; may be given several times
    #[arg(long, value_name = "FILE")]
    pub repeat_before: Vec<PathBuf>,
    /// Another run of the second side; may be given several times
    #[arg(long, value_name = "FILE")]
    pub repeat_after: Vec<PathBuf>,
    /// Compare rates; the default where the lengths differ by more than a tenth
    #[arg(long, conflicts_with = "totals")]
    per_second: bool,
    /// Compare totals; the default with --fail-over
    #[arg(long)]
    totals: bool,
    /// Show also rows within noise
    #[arg(long)]
    pub all: bool,
    /// Exit with 1 if live slab memory grows by more than this beyond noise
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub fail_over: Option<u64>,
    #[command(flatten)]
    pub order: ColumnOrder,
    #[command(flatten)]
    pub lines: LineArgs,
    /// Machine-readable output; docs/json.md describes it
    #[arg(long)]
    pub json: bool,
    /// The first .kmt file
    pub before: PathBuf,
    /// The second .kmt file
    #[arg(required_unless_present = "against")]
    pub after: Option<PathBuf>,
}

impl DiffArgs {
    /// Selections of the first and of the second side.
    pub fn selections(&self) -> (Selection, Selection) {
        let first = self.select.clone();
        let mut second = first.clone();
        if self.against.is_some() {
            second.time.clone_from(&self.against);
        }
        (first, second)
    }

    /// Files and windows of both sides, as a shell reads them.
    pub fn arguments(&self) -> Vec<String> {
        let windows =
            [("--time", self.time_text()), ("--against", self.against.as_ref().map(ToString::to_string))];
        let windows =
            windows.into_iter().filter_map(|(option, window)| Some(shell::option(option, &window?)));
        let repeats = [("--repeat-before", &self.repeat_before), ("--repeat-after", &self.repeat_after)];
        let repeats =
            repeats.into_iter().flat_map(|(option, files)| files.iter().map(move |file| (option, file)));
        let repeats = repeats.map(|(option, file)| format!("{option} {}", shell::path(file)));
        let files = std::iter::once(&self.before).chain(&self.after).map(|file| shell::path(file));
        windows.chain(repeats).chain(files).collect()
    }

    /// Rates or totals, where one of them is asked for.
    pub fn per_second(&self) -> Option<bool> {
        (self.per_second || self.totals).then_some(self.per_second)
    }

    /// The window of the first side, for people.
    pub fn time_text(&self) -> Option<String> {
        self.select.time.as_ref().map(ToString::to_string)
    }

    /// Time window of the second side, as given.
    pub fn against_text(&self) -> Option<String> {
        self.against.as_ref().or(self.select.time.as_ref()).map(ToString::to_string)
    }
}
