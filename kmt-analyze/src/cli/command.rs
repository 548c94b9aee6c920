//! The commands and their options.

use std::path::PathBuf;

use clap::Subcommand;

use super::args::{DiffArgs, DumpArgs, SelectArgs, Target};
use crate::edit::{Audience, Compress};
use crate::export::{self, Format};
use crate::reports::{account, compat};
use crate::trace::time_range::TimeRange;

/// Options of `summary`.
#[derive(clap::Args)]
pub struct SummaryArgs {
    /// What is counted.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Machine-readable output; docs/json.md tells its shape
    #[arg(long)]
    pub json: bool,
    /// Print what another tool prints for the same events; it knows no selection
    #[arg(
        long,
        value_enum,
        value_name = "TOOL",
        conflicts_with_all = ["time", "at", "pid", "comm", "cpu", "terms", "without_recorder"]
    )]
    pub compat: Option<compat::Tool>,
    /// With --compat perf-kmem: slab, which is the default
    #[arg(long, requires = "compat")]
    pub slab: bool,
    /// With --compat perf-kmem: pages
    #[arg(long, requires = "compat")]
    pub page: bool,
    /// With --compat perf-kmem: a table by call site
    #[arg(long, requires = "compat")]
    pub caller: bool,
    /// With --compat perf-kmem: a table by address or frame
    #[arg(long, requires = "compat")]
    pub alloc: bool,
    /// With --compat: print so many rows of each table
    #[arg(short, long = "lines", value_name = "N", requires = "compat")]
    pub lines: Option<usize>,
}

/// A file that is made of another one.
#[derive(clap::Args)]
pub struct MadeArgs {
    /// The .kmt file
    pub file: PathBuf,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "FILE.kmt")]
    pub output: PathBuf,
    /// Overwrite FILE.kmt if it exists
    #[arg(long)]
    pub force: bool,
    /// How to store the file
    #[arg(long, value_enum, default_value = "none")]
    pub compress: Compress,
}

/// Options of `slice`.
#[derive(clap::Args)]
pub struct SliceArgs {
    #[command(flatten)]
    pub made: MadeArgs,
    /// From A to B: seconds as the dump prints them, or +seconds from the start
    #[arg(long, value_name = "A..B", value_parser = TimeRange::parse)]
    pub time: Option<TimeRange>,
    /// On this CPU; may be given several times
    #[arg(long, value_name = "CPU")]
    pub cpu: Vec<u32>,
    /// Of this task (thread id); may be given several times
    #[arg(long, value_name = "PID")]
    pub pid: Vec<i32>,
    /// Events: SYSTEM, EVENT, SYSTEM:EVENT, with * and ?; may be given several times. Stacks go with their events
    #[arg(short, long = "event", value_name = "EVENT")]
    pub event: Vec<String>,
}

/// Options of `anonymize`.
#[derive(clap::Args)]
pub struct AnonymizeArgs {
    #[command(flatten)]
    pub made: MadeArgs,
    /// Replace names of functions and modules, and shuffle functions and call sites
    #[arg(long)]
    pub hide_symbols: bool,
    /// Replace names of caches, except those of kmalloc
    #[arg(long)]
    pub hide_caches: bool,
    /// Hide more, for these readers
    #[arg(long = "for", value_enum, value_name = "READERS")]
    pub audience: Option<Audience>,
    /// For tests: derive the key from this number. Anyone who guesses the number can undo the result
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Print the manifest as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Options of `export`.
#[derive(clap::Args)]
pub struct ExportArgs {
    /// Format
    #[arg(value_enum)]
    pub format: Format,
    /// The .kmt file; - is standard input
    pub file: PathBuf,
    /// File to write, a directory for parquet; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Overwrite what is there
    #[arg(long)]
    pub force: bool,
    /// With csv and ndjson: what rows are made of: events, objects, call-sites, or the name of a report
    #[arg(long, value_name = "WHAT", default_value = "events")]
    pub of: String,
    /// With csv and ndjson of a report: which of its tables
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// With folded: what is counted
    #[arg(long, value_enum, default_value = "alloc")]
    pub by: export::Weight,
    /// With perfetto, sqlite and parquet: the events too
    #[arg(long)]
    pub events: bool,
    /// With parquet: the name of the target [default: its host name]
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// With perfetto: counters of so many caches and call sites
    #[arg(short, long = "lines", value_name = "N", default_value_t = 20)]
    pub lines: usize,
    #[command(flatten)]
    pub select: SelectArgs,
}

/// Commands and their options; those of reports are in their registry.
#[derive(Subcommand)]
pub enum Command {
    /// Totals of the exact ledger, slab and pages
    Summary {
        #[command(flatten)]
        summary: SummaryArgs,
        /// The .kmt file; - is standard input
        file: PathBuf,
    },
    /// What the file holds, its losses, its integrity
    Info {
        #[command(flatten)]
        target: Target,
    },
    /// The events, as the kernel's own trace file prints them, or as JSON lines
    Dump(DumpArgs),
    /// Every report, over one pass
    All {
        #[command(flatten)]
        select: SelectArgs,
        /// Print so many rows of each table
        #[arg(short, long = "lines", value_name = "N", default_value_t = 10)]
        lines: usize,
        #[command(flatten)]
        target: Target,
    },
    /// Two runs, or two windows of one: what differs beyond noise
    Diff(Box<DiffArgs>),
    /// The account file of trace_analyze.py: bytes by caller, by its rules
    Account {
        #[command(flatten)]
        options: account::Options,
        #[command(flatten)]
        target: Target,
    },
    /// The trace in a format of other tools: perfetto, pprof, dhat, folded, csv, ndjson, sqlite, parquet
    Export(Box<ExportArgs>),
    /// Part of a trace as a file of its own
    ///
    /// What was allocated before it and is freed in it counts as allocated before the trace there; --time of the reports
    /// knows better.
    Slice(SliceArgs),
    /// What a damaged or torn file still holds, as a sound file
    Recover {
        #[command(flatten)]
        made: MadeArgs,
    },
    /// Whether a file is whole: every chunk, every checksum, every event
    Verify {
        #[command(flatten)]
        target: Target,
    },
    /// A trace to share: random addresses, frames and task ids; no host, task names, command line or other text
    ///
    /// Addresses of the kernel, of each module and of each block of memory (4 MiB with pages of 4 KiB) are replaced with
    /// random ones. Objects and pages keep their places within a block, so reports give the same figures. Task ids are
    /// replaced, times start at 0, and the kernel release is cut to X.Y.Z. Chunks, keys, attached files, events and
    /// fields that are not known to be harmless are left out or set to 0. A manifest of the rest is printed.
    ///
    /// A reader of the file can still infer the kernel version, the architecture, the number of CPUs and the amount of
    /// memory. The names of functions, modules and caches tell which drivers and file systems are in use, and the
    /// distances of call sites tell the build of the kernel, unless they are hidden.
    ///
    /// Sizes, rates and the order of events tell the workload. If memory is used in the order of its addresses, the
    /// order of events also tells which blocks are neighbours. Allocation flags, and use only when memory is short, can
    /// tell that a block is in a low zone.
    ///
    /// With --hide-symbols a function can still be recognized by its sizes, flags and caches; --hide-caches helps. With
    /// either, verdicts of reports that know names (leaks of known caches) can differ. Functions that a vendor
    /// added to the kernel image keep their names without --hide-symbols. Two files of one trace can be matched.
    Anonymize(AnonymizeArgs),
    /// What separates the totals of trace-cmd mem and perf kmem from these, term by term
    Reconcile {
        #[command(flatten)]
        target: Target,
    },
    /// Print a completion script
    Completions {
        /// The shell that it is for
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}
