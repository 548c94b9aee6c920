//! Commands and their options, as clap parses them.
//!
//! Each command takes its options from the part of the crate that runs it; options that several commands share are here.

use std::path::PathBuf;

use clap::Subcommand;
use kmt_common::{quantity, shell};

use crate::allocinfo::AllocinfoArgs;
use crate::balance::BalanceArgs;
use crate::chart::ChartOptions;
use crate::dump::DumpOptions;
use crate::edit::{AnonymizeOptions, InputArgs, OutputArgs, SliceOptions};
use crate::export::ExportOptions;
#[cfg(feature = "dwarf")]
use crate::footprint::FootprintArgs;
use crate::html::PageOptions;
use crate::limits;
use crate::pass::selection::Selection;
use crate::reports::column_order::ColumnOrder;
use crate::reports::diff::DiffKey;
use crate::reports::{account, compat};
use crate::trace::time_range::TimeRange;

/// Options of `summary`.
#[derive(clap::Args)]
pub struct SummaryArgs {
    /// Selection.
    #[command(flatten)]
    pub select: Selection,
    /// Machine-readable output; docs/json.md describes it
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub options: compat::CompatOptions,
}

/// Commands and their options; those of reports are in the registry.
#[derive(Subcommand)]
pub enum Command {
    /// Slab and page memory: allocated, freed, live
    Summary {
        #[command(flatten)]
        summary: SummaryArgs,
        /// The .kmt file, or the files of one recording of `kmt-capture record --rotate`; - is standard input
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// File, kernel, time of recording, losses and events
    Info(InfoArgs),
    /// Events as the kernel prints them, or as JSON lines
    Dump(DumpOptions),
    /// All reports of one trace
    All {
        #[command(flatten)]
        select: Selection,
        /// Show at most N rows of each table; 0: all [default: 10]
        #[arg(short, long = "lines", value_name = "N", value_parser = limits::lines)]
        lines: Option<usize>,
        #[command(flatten)]
        target: Target,
    },
    /// Differences between two runs beyond noise
    Diff(Box<DiffArgs>),
    /// Copies of /proc/allocinfo: what grew, by call site
    ///
    /// Linux 6.10 and later counts memory by call site (CONFIG_MEM_ALLOC_PROFILING). With one copy, what is in use; with two,
    /// the changes from the first to the second. No trace is needed.
    Allocinfo(AllocinfoArgs),
    /// Where free memory went: MemTotal by account, and the rest
    ///
    /// Splits MemTotal into accounts that do not overlap (docs/balance.md), at the begin and at the end of a recording, or of two
    /// folders of saved /proc texts, without a recording. What no account has is a row of its own. Of a folder: meminfo is
    /// needed; zoneinfo, vmstat and slabinfo make it more exact.
    Balance(BalanceArgs),
    /// The account file of trace_analyze.py
    Account {
        #[command(flatten)]
        options: account::AccountOptions,
        #[command(flatten)]
        select: Box<Selection>,
        #[command(flatten)]
        target: Target,
    },
    /// Code and data by directory, beside what was allocated there
    ///
    /// Sums the sections of a build's objects (--build) or the symbols of a kernel with debug information (--vmlinux), and of
    /// modules (--modules). With FILE, slab memory stands beside them: what is in use, what was allocated, what is wasted.
    #[cfg(feature = "dwarf")]
    Footprint {
        #[command(flatten)]
        args: Box<FootprintArgs>,
        #[command(flatten)]
        select: Box<Selection>,
        /// The .kmt file, or the files of one recording of `kmt-capture record --rotate`; - is standard input
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Files for Perfetto, pprof, DHAT, flame graphs, SQLite, CSV …
    ///
    /// Formats: perfetto, pprof, dhat, folded, csv, ndjson, sqlite, parquet.
    Export(Box<ExportOptions>),
    /// A picture of a report, as SVG or PNG
    Chart(Box<ChartOptions>),
    /// One page to mail: findings, memory over time, main reports
    ///
    /// The page is a single HTML file that a browser shows without a network. Its range selector gives the numbers of
    /// any part of the time by call site, cache and task, as --time does.
    Report(Box<PageOptions>),
    /// Part of a trace as a new file
    ///
    /// In the new file, objects allocated before the part and freed in it count as allocated before the trace. Option
    /// --time of the reports follows them from their allocation. Of the files of one recording, it makes one file.
    ///
    /// Of a recording with --survivors, the part begins and ends with intervals of sums; sums have no CPU, task or event to
    /// select by.
    Slice(SliceOptions),
    /// A sound file of what is left of a damaged one
    ///
    /// Files of one recording are recovered one by one; other commands read the recovered ones together.
    Recover {
        /// The .kmt file; - is standard input
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        made: OutputArgs,
    },
    /// A trace with the source lines of its addresses
    ///
    /// Looks up function, file and line of each caller and of each address of a stack, with the functions that are inlined
    /// there, in the traced kernel's own debug information. Reports of the new file have them on any machine.
    Symbolize {
        #[command(flatten)]
        input: InputArgs,
        #[command(flatten)]
        made: OutputArgs,
    },
    /// Check every chunk, checksum and event of a file
    Verify {
        /// Print JSON (docs/json.md)
        #[arg(long)]
        json: bool,
        /// The .kmt file; - is standard input
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// A trace to share, without addresses, names and texts
    ///
    /// The copy has random addresses, frames and task ids, and no host name, task names, command line or other text.
    ///
    /// Addresses of the kernel, of each module and of each block of memory (4 MiB with pages of 4 KiB) are replaced with
    /// random ones. Objects and pages keep their places within a block, so reports give the same figures. Task ids are
    /// replaced, times start at 0, and the kernel release is cut to X.Y.Z. Chunks, keys, attached files, events and
    /// fields that are not known to be harmless are left out or set to 0. A manifest of the rest is printed.
    ///
    /// A reader of the file can still infer the kernel version, the architecture, the number of CPUs and the amount of
    /// memory. The names of functions, modules and caches reveal the drivers and file systems in use, and the
    /// distances of call sites reveal the build of the kernel, unless they are hidden.
    ///
    /// Sizes, rates and the order of events reveal the workload. If memory is used in the order of its addresses, the
    /// order of events also reveals which blocks are neighbours. Allocation flags, and use only when memory is short, can
    /// reveal that a block is in a low zone.
    ///
    /// With --hide-symbols a function can still be recognized by its sizes, flags and caches; --hide-caches helps. With
    /// either, verdicts that depend on names (leaks of some caches) can differ. Functions that a vendor
    /// added to the kernel image keep their names without --hide-symbols. Two files of one trace can be matched.
    Anonymize(AnonymizeOptions),
    /// Why trace-cmd mem and perf kmem print other totals
    Reconcile {
        #[command(flatten)]
        target: Target,
    },
    /// Print a completion script
    Completions {
        /// Shell of the script
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program, or of one command
    Man {
        /// Command, such as leaks
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
}

/// The file, and the form of the output.
#[derive(Clone, clap::Args)]
pub struct Target {
    /// Print JSON (docs/json.md)
    #[arg(long)]
    pub json: bool,
    /// The .kmt file, or the files of one recording of `kmt-capture record --rotate`; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
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
    /// Show at most N rows of a table; 0: all [default: 20, 20,000 with --json]
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
    /// Compare rates; the default where the lengths differ by more than a twentieth
    #[arg(long, conflicts_with = "totals")]
    per_second: bool,
    /// Compare totals; the default with --fail-over
    #[arg(long)]
    totals: bool,
    /// Show also rows within noise
    #[arg(long)]
    pub all: bool,
    /// Count memory that the recorder itself allocated, such as the page cache of the file that it wrote. Default: left out
    #[arg(long, conflicts_with = "without_recorder")]
    with_recorder: bool,
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
        let without_recorder = !self.with_recorder;
        let first = Selection { without_recorder, ..self.select.clone() };
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
