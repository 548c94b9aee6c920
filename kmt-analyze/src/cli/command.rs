//! Commands and their options.

use std::path::PathBuf;

use clap::Subcommand;

use super::args::{DiffArgs, InfoArgs, SelectArgs, Target};
use crate::allocinfo::AllocinfoArgs;
use crate::chart;
use crate::dump::DumpOptions;
use crate::edit::{AnonymizeOptions, OutputArgs, SliceOptions};
use crate::export::{self, Format};
#[cfg(feature = "dwarf")]
use crate::footprint::FootprintArgs;
use crate::reports::{account, compat, timeline};

/// Options of `summary`.
#[derive(clap::Args)]
pub struct SummaryArgs {
    /// Selection.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Machine-readable output; docs/json.md describes it
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub options: compat::CompatOptions,
}

/// Options of `export`.
#[derive(clap::Args)]
pub struct ExportArgs {
    /// Output format
    #[arg(value_enum)]
    pub format: Format,
    /// The .kmt file; - is standard input
    pub file: PathBuf,
    /// File to write, a directory for parquet; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Overwrite existing output
    #[arg(long)]
    pub force: bool,
    /// With csv and ndjson: the rows: events, objects, call-sites, or the name of a report
    #[arg(long, value_name = "WHAT", default_value = "events")]
    pub of: String,
    /// With csv and ndjson of a report: the name of the table
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// With folded: the weight of a stack
    #[arg(long, value_enum, default_value = "alloc")]
    pub by: export::Weight,
    /// With folded and pprof: pages by allocation stack, instead of slab objects
    #[arg(long)]
    pub pages: bool,
    /// With perfetto, sqlite and parquet: include the events
    #[arg(long)]
    pub events: bool,
    /// With parquet: the name of the target [default: its host name]
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// With perfetto: counters of the N largest caches and call sites
    #[arg(short, long = "lines", value_name = "N", default_value_t = 20)]
    pub lines: usize,
    #[command(flatten)]
    pub select: SelectArgs,
}

/// Options of `chart`.
#[derive(clap::Args)]
pub struct ChartArgs {
    /// Kind of the chart
    #[arg(value_enum)]
    pub kind: chart::ChartKind,
    /// The .kmt file; - is standard input
    pub file: PathBuf,
    /// File to write, SVG, or PNG if its name ends with .png; - is standard output
    #[arg(short, long, value_name = "FILE.svg", default_value = "-")]
    pub output: PathBuf,
    /// Overwrite existing output
    #[arg(long)]
    pub force: bool,
    /// With timeline: key of the lines
    #[arg(long, value_enum, default_value = "kind")]
    pub by: timeline::TimelineKey,
    /// With timeline: number of steps
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub steps: u32,
    /// With timeline: at most N lines, and the sum of the others
    #[arg(short, long = "lines", value_name = "N", default_value_t = 7)]
    pub lines: usize,
    /// With flame and icicle: the quantity that the width of a frame shows
    #[arg(long, value_enum, default_value = "alloc")]
    pub weight: export::Weight,
    /// With flame and icicle: pages by allocation stack, instead of slab objects
    #[arg(long)]
    pub pages: bool,
    /// With flame and icicle: an earlier file; colours show what grew and what shrank since
    #[arg(long, value_name = "FILE.kmt")]
    pub against: Option<PathBuf>,
    #[command(flatten)]
    pub select: SelectArgs,
}

/// Options of `report`.
#[derive(clap::Args)]
pub struct PageArgs {
    /// The .kmt file; - is standard input
    pub file: PathBuf,
    /// An earlier file: the page has what changed since
    #[arg(long, value_name = "FILE.kmt")]
    pub against: Option<PathBuf>,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "FILE.html", default_value = "-")]
    pub output: PathBuf,
    /// Overwrite existing output
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub select: SelectArgs,
}

/// Commands and their options; those of reports are in the registry.
#[derive(Subcommand)]
pub enum Command {
    /// Slab and page memory: allocated, freed, live
    Summary {
        #[command(flatten)]
        summary: SummaryArgs,
        /// The .kmt file; - is standard input
        file: PathBuf,
    },
    /// File, kernel, time of recording, losses and events
    Info(InfoArgs),
    /// Events as the kernel prints them, or as JSON lines
    Dump(DumpOptions),
    /// All reports of one trace
    All {
        #[command(flatten)]
        select: SelectArgs,
        /// Show at most N rows of each table; 0: all
        #[arg(short, long = "lines", value_name = "N", default_value_t = 10)]
        lines: usize,
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
    /// The account file of trace_analyze.py
    Account {
        #[command(flatten)]
        options: account::AccountOptions,
        #[command(flatten)]
        select: Box<SelectArgs>,
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
        select: Box<SelectArgs>,
        /// The .kmt file; - is standard input
        file: Option<PathBuf>,
    },
    /// Files for Perfetto, pprof, DHAT, flame graphs, SQLite, CSV …
    ///
    /// Formats: perfetto, pprof, dhat, folded, csv, ndjson, sqlite, parquet.
    Export(Box<ExportArgs>),
    /// A picture of a report, as SVG or PNG
    Chart(Box<ChartArgs>),
    /// One page to mail: findings, memory over time, all reports
    ///
    /// The page is a single HTML file that a browser shows without a network. Its range selector gives the numbers of
    /// any part of the time by call site, cache and task, as --time does.
    Report(Box<PageArgs>),
    /// Part of a trace as a new file
    ///
    /// In the new file, objects allocated before the part and freed in it count as allocated before the trace. Option
    /// --time of the reports follows them from their allocation.
    Slice(SliceOptions),
    /// A sound file of what is left of a damaged one
    Recover {
        #[command(flatten)]
        made: OutputArgs,
    },
    /// A trace with the source lines of its addresses
    ///
    /// Looks up function, file and line of each caller and of each address of a stack, with the functions that are inlined
    /// there, in the traced kernel's own debug information. Reports of the new file have them on any machine.
    Symbolize {
        #[command(flatten)]
        made: OutputArgs,
    },
    /// Check every chunk, checksum and event of a file
    Verify {
        #[command(flatten)]
        target: Target,
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
