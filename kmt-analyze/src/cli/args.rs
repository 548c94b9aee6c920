//! Options of several commands.

use std::path::PathBuf;

use kmt_common::quantity;

use crate::pass::condition::Condition;
use crate::pass::selection::Selection;
use crate::reports::diff::By;
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
    /// Print a table as CSV: that of --by, or the largest
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// With --csv: the name of another table, as in docs/json.md
    #[arg(long, value_name = "NAME", requires = "csv")]
    pub table: Option<String>,
}

/// Heading of the options that select events.
pub const SELECTION: &str = "Selection";

/// Selection of events.
#[derive(Clone, clap::Args)]
#[command(next_help_heading = SELECTION)]
pub struct SelectArgs {
    /// Count events from A to B: +seconds from the start, or seconds as dump prints them. Earlier allocations still match
    #[arg(long, value_name = "A..B", value_parser = TimeRange::parse)]
    time: Option<TimeRange>,
    /// Show the memory that is allocated at this instant
    #[arg(long, value_name = "T", value_parser = TimeRange::parse_instant, conflicts_with = "time")]
    at: Option<TimeRange>,
    /// Allocations of this task (thread id); can be repeated
    #[arg(long, value_name = "PID")]
    pid: Vec<i32>,
    /// Allocations of tasks of this name; can be repeated
    #[arg(long, value_name = "NAME")]
    comm: Vec<String>,
    /// With --pid or --comm, allocations of their descendants too, as far as their starts were recorded
    #[arg(long)]
    children: bool,
    /// Allocations on this CPU; can be repeated
    #[arg(long, value_name = "CPU")]
    cpu: Vec<u32>,
    /// Allocations that meet a condition: size>4096, call_site~^ext4_, pid=1,2, lifetime>1ms. Keys: pid, comm, cgroup, cpu,
    /// node, event, call_site, module, dir, file, cache, bytes_req, bytes_alloc or size, lifetime, gfp, order, migratetype,
    /// pfn (pfn=0x100..0x1ff). Operators: = != < <= > >=, ~ and !~ for regular expressions. If repeated, all conditions
    /// must hold
    #[arg(long = "where", value_name = "CONDITION", value_parser = Condition::parse)]
    terms: Vec<Condition>,
    /// Allocations of functions whose source is in this directory, such as fs/ext4: as --where dir=DIR
    #[arg(short = 'b', long, value_name = "DIR", value_parser = directory)]
    start_branch: Option<String>,
    /// Leave out memory that the recorder itself allocated
    #[arg(long)]
    without_recorder: bool,
    /// Use at most N cores; the output is the same for any number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

impl SelectArgs {
    /// The directory of --start-branch.
    pub fn branch(&self) -> Option<String> {
        self.start_branch.clone()
    }
}

impl From<SelectArgs> for Selection {
    fn from(args: SelectArgs) -> Self {
        let branch = args.start_branch.and_then(|dir| Condition::parse(&format!("dir={dir}")).ok());
        Self {
            time: args.time,
            at: args.at,
            pids: args.pid,
            comms: args.comm,
            children: args.children,
            cpus: args.cpu,
            terms: args.terms.into_iter().chain(branch).collect(),
            without_recorder: args.without_recorder,
            threads: args.threads.map(usize::from),
        }
    }
}

/// A directory, as the source lines have it.
fn directory(text: &str) -> Result<String, String> {
    let dir = text.trim_end_matches('/').trim_start_matches("./");
    Condition::parse(&format!("dir={dir}")).map(|_| dir.to_owned())
}

/// Number of rows.
#[derive(Clone, clap::Args)]
pub struct LineArgs {
    /// Show at most N rows of a table; 0: all [default: 20, all with --json]
    #[arg(short, long = "lines", value_name = "N")]
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
    select: SelectArgs,
    /// The second window; --time is the first one. Without a second file both are windows of the same file
    #[arg(long, value_name = "A..B", value_parser = TimeRange::parse, requires = "time")]
    against: Option<TimeRange>,
    /// Key of the comparison
    #[arg(long, value_enum, default_value = "call-site")]
    pub by: By,
    /// Another run of the first side, to measure noise; may be given several times
    #[arg(long, value_name = "FILE")]
    pub repeat_before: Vec<PathBuf>,
    /// Another run of the second side; may be given several times
    #[arg(long, value_name = "FILE")]
    pub repeat_after: Vec<PathBuf>,
    /// Compare rates, for runs of different length
    #[arg(long)]
    pub per_second: bool,
    /// Show also rows within noise
    #[arg(long)]
    pub all: bool,
    /// Exit with 1 if live slab memory grows by more than this beyond noise
    #[arg(long, value_name = "SIZE", value_parser = quantity::size)]
    pub fail_over: Option<u64>,
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
        let first = Selection::from(self.select.clone());
        let mut second = first.clone();
        if self.against.is_some() {
            second.time.clone_from(&self.against);
        }
        (first, second)
    }

    /// Files and windows of both sides, as a command line has them.
    pub fn arguments(&self) -> String {
        let windows =
            [("--time", self.time_text()), ("--against", self.against.as_ref().map(ToString::to_string))];
        let windows =
            windows.into_iter().filter_map(|(option, window)| Some(format!("{option} {}", window?)));
        let repeats = [("--repeat-before", &self.repeat_before), ("--repeat-after", &self.repeat_after)];
        let repeats =
            repeats.into_iter().flat_map(|(option, files)| files.iter().map(move |file| (option, file)));
        let repeats = repeats.map(|(option, file)| format!("{option} {}", file.display()));
        let files = std::iter::once(&self.before).chain(&self.after).map(|file| file.display().to_string());
        windows.chain(repeats).chain(files).collect::<Vec<_>>().join(" ")
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
