//! Options that several commands have.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::pass::selection::Selection;
use crate::pass::term::Term;
use crate::reports::diff::By;
use crate::trace::time_range::TimeRange;

/// What is printed, and of which file.
#[derive(Clone, clap::Args)]
pub struct Target {
    /// Machine-readable output; docs/json.md tells its shape
    #[arg(long)]
    pub json: bool,
    /// The .kmt file; - is standard input
    pub file: PathBuf,
}

/// What is counted.
#[derive(Clone, clap::Args)]
pub struct SelectArgs {
    /// Count what happened from A to B: seconds as the dump prints them, or +seconds from the start. What was allocated
    /// before still matches
    #[arg(long, value_name = "A..B", value_parser = TimeRange::parse)]
    time: Option<TimeRange>,
    /// What is live at that instant
    #[arg(long, value_name = "T", value_parser = TimeRange::parse_instant, conflicts_with = "time")]
    at: Option<TimeRange>,
    /// Allocations of this task (thread id); may be given several times
    #[arg(long, value_name = "PID")]
    pid: Vec<i32>,
    /// Allocations of tasks of this name; may be given several times
    #[arg(long, value_name = "NAME")]
    comm: Vec<String>,
    /// Allocations on this CPU; may be given several times
    #[arg(long, value_name = "CPU")]
    cpu: Vec<u32>,
    /// Allocations that meet a condition, such as size>4096, call_site~^ext4_, pid=1,2, lifetime>1ms. Keys: pid, comm,
    /// cpu, node, event, call_site, cache, bytes_req, bytes_alloc or size, lifetime, gfp, order, migratetype. Operators:
    /// = != < <= > >= and ~ !~ for regular expressions. Given several times, all have to hold
    #[arg(long = "where", value_name = "CONDITION", value_parser = Term::parse)]
    terms: Vec<Term>,
    /// Leave out what the recorder itself allocated
    #[arg(long)]
    without_recorder: bool,
    /// Use so many cores; the output is the same whatever their number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

impl From<SelectArgs> for Selection {
    fn from(args: SelectArgs) -> Self {
        Self {
            time: args.time,
            at: args.at,
            pids: args.pid,
            comms: args.comm,
            cpus: args.cpu,
            terms: args.terms,
            without_recorder: args.without_recorder,
            threads: args.threads.map(usize::from),
        }
    }
}

/// How many rows.
#[derive(Clone, clap::Args)]
pub struct LineArgs {
    /// Print so many rows
    #[arg(short, long = "lines", value_name = "N")]
    pub lines: Option<usize>,
}

/// Options of `diff`.
#[derive(clap::Args)]
pub struct DiffArgs {
    #[command(flatten)]
    select: SelectArgs,
    /// The second window; --time is the first one. Without a second file both are of the same
    #[arg(long, value_name = "A..B", value_parser = TimeRange::parse, requires = "time")]
    against: Option<TimeRange>,
    /// What is compared
    #[arg(long, value_enum, default_value = "call-site")]
    pub by: By,
    /// Another run of the first side, to tell noise by; may be given several times
    #[arg(long, value_name = "FILE")]
    pub repeat_before: Vec<PathBuf>,
    /// Another run of the second side
    #[arg(long, value_name = "FILE")]
    pub repeat_after: Vec<PathBuf>,
    /// Compare rates, for runs of different length
    #[arg(long)]
    pub per_second: bool,
    /// Print rows of noise, too
    #[arg(long)]
    pub all: bool,
    /// Exit with 1 if live slab memory grows by more than this beyond noise
    #[arg(long, value_name = "BYTES")]
    pub fail_over: Option<u64>,
    #[command(flatten)]
    pub lines: LineArgs,
    /// Machine-readable output; docs/json.md tells its shape
    #[arg(long)]
    pub json: bool,
    /// The first .kmt file
    pub before: PathBuf,
    /// The second one
    #[arg(required_unless_present = "against")]
    pub after: Option<PathBuf>,
}

impl DiffArgs {
    /// What is counted of the first side, and of the second.
    pub fn selections(&self) -> (Selection, Selection) {
        let first = Selection::from(self.select.clone());
        let mut second = first.clone();
        if self.against.is_some() {
            second.time.clone_from(&self.against);
        }
        (first, second)
    }

    /// The window of the first side, for people.
    pub fn time_text(&self) -> Option<String> {
        self.select.time.as_ref().map(ToString::to_string)
    }

    /// That of the second side.
    pub fn against_text(&self) -> Option<String> {
        self.against.as_ref().or(self.select.time.as_ref()).map(ToString::to_string)
    }
}

/// How `dump` prints.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DumpFormat {
    /// As the kernel's trace file with nohash-ptr
    Kernel,
    /// One JSON object a line
    Jsonl,
}

/// Options of `dump`.
#[derive(clap::Args)]
pub struct DumpArgs {
    /// How to print
    #[arg(long, value_enum, default_value_t = DumpFormat::Kernel)]
    pub format: DumpFormat,
    /// The same as --format jsonl
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Events from A to B: seconds as the dump prints them, or +seconds from the start
    #[arg(long, value_name = "A..B", value_parser = TimeRange::parse)]
    pub time: Option<TimeRange>,
    /// Events on this CPU; may be given several times
    #[arg(long, value_name = "CPU")]
    pub cpu: Vec<u32>,
    /// Events of this task (thread id); may be given several times
    #[arg(long, value_name = "PID")]
    pub pid: Vec<i32>,
    /// Events: SYSTEM, EVENT, SYSTEM:EVENT, with * and ?; may be given several times. Stacks go with their events
    #[arg(short, long = "event", value_name = "EVENT")]
    pub event: Vec<String>,
    /// Print at most N events
    #[arg(short, long = "lines", value_name = "N")]
    pub lines: Option<u64>,
    /// Print events while they come: of a file that is being written, or of a stream
    #[arg(short, long, conflicts_with = "time")]
    pub follow: bool,
    /// The .kmt file; - is standard input
    pub file: PathBuf,
}
