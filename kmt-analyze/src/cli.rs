//! The command line.

use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use crate::commands::session::{Out, Session};
use crate::commands::selection::Selection;
use crate::commands::sorting::SortKey;
use crate::commands::{caches, callers, dump, follow, info, summary};
use crate::failure::{Failure, Outcome, Result};
use crate::open;
use crate::time_range::TimeRange;

/// Explain where a Linux kernel's memory went, from a .kmt file.
#[derive(Parser)]
#[command(
    name = "kmt-analyze",
    version,
    about,
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    after_help = "EXAMPLES:\n  \
        kmt-analyze trace.kmt                          totals\n  \
        kmt-analyze callers -l 20 --sort waste trace.kmt\n  \
        kmt-analyze dump --time +1.0..+1.1 trace.kmt   as the kernel's trace file prints it\n\n\
        EXIT CODES: 0 done, 1 failed, 2 usage, 3 done but events were lost or input was damaged"
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    // Without a command the options are those of summary.
    #[command(flatten)]
    select: SelectArgs,
    /// Machine-readable output; docs/json.md tells its shape
    #[arg(long)]
    json: bool,
    /// Without a command: the .kmt file to summarise; - is standard input
    file: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Totals of the exact ledger
    Summary {
        #[command(flatten)]
        select: SelectArgs,
        #[command(flatten)]
        target: Target,
    },
    /// What the file holds, its losses, its integrity
    Info {
        #[command(flatten)]
        target: Target,
    },
    /// The events, as the kernel's own trace file prints them, or as JSON lines
    Dump(DumpArgs),
    /// Sums by call site
    Callers {
        #[command(flatten)]
        select: SelectArgs,
        #[command(flatten)]
        rows: RowArgs,
        /// Only call sites whose name holds TEXT
        #[arg(long, value_name = "TEXT")]
        call_site: Option<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Sums by cache and size class
    Caches {
        #[command(flatten)]
        select: SelectArgs,
        #[command(flatten)]
        rows: RowArgs,
        /// Only caches whose name holds TEXT
        #[arg(long, value_name = "TEXT")]
        cache: Option<String>,
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

#[derive(clap::Args)]
struct Target {
    /// Machine-readable output; docs/json.md tells its shape
    #[arg(long)]
    json: bool,
    /// The .kmt file; - is standard input
    file: PathBuf,
}

#[derive(clap::Args)]
struct SelectArgs {
    /// Count what happened from A to B: seconds as the dump prints them, or +seconds from the start
    #[arg(long, value_name = "A..B", value_parser = TimeRange::parse)]
    time: Option<TimeRange>,
    /// Allocations of this task (thread id); may be given several times
    #[arg(long, value_name = "PID")]
    pid: Vec<i32>,
    /// Allocations of tasks of this name; may be given several times
    #[arg(long, value_name = "NAME")]
    comm: Vec<String>,
    /// Allocations on this CPU; may be given several times
    #[arg(long, value_name = "CPU")]
    cpu: Vec<u32>,
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
            pids: args.pid,
            comms: args.comm,
            cpus: args.cpu,
            without_recorder: args.without_recorder,
            threads: args.threads.map(usize::from),
            ..Self::default()
        }
    }
}

#[derive(clap::Args)]
struct RowArgs {
    /// Sort by these, the most important first
    #[arg(short, long, value_enum, value_delimiter = ',', default_value = "alloc")]
    sort: Vec<SortKey>,
    /// Print so many rows
    #[arg(short, long = "lines", value_name = "N")]
    lines: Option<usize>,
}

#[derive(clap::Args)]
struct DumpArgs {
    /// How to print
    #[arg(long, value_enum, default_value_t = DumpFormat::Kernel)]
    format: DumpFormat,
    /// The same as --format jsonl
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Events from A to B: seconds as the dump prints them, or +seconds from the start
    #[arg(long, value_name = "A..B", value_parser = TimeRange::parse)]
    time: Option<TimeRange>,
    /// Events on this CPU; may be given several times
    #[arg(long, value_name = "CPU")]
    cpu: Vec<u32>,
    /// Events of this task (thread id); may be given several times
    #[arg(long, value_name = "PID")]
    pid: Vec<i32>,
    /// Print so many events
    #[arg(short, long = "lines", value_name = "N")]
    lines: Option<u64>,
    /// Print events while they come: of a file that is being written, or of a stream
    #[arg(short, long, conflicts_with = "time")]
    follow: bool,
    /// The .kmt file; - is standard input
    file: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DumpFormat {
    /// As the kernel's trace file with nohash-ptr
    Kernel,
    /// One JSON object a line
    Jsonl,
}

/// Parses the command line and does what it says.
pub fn run() -> Result<Outcome> {
    let cli = Cli::parse();
    let command = match (cli.command, cli.file) {
        (Some(command), _) => command,
        (None, Some(file)) => {
            let selection = Selection::from(cli.select);
            return with(&file, |session| summary::run(session, &selection, cli.json));
        }
        (None, None) => {
            return Err(Failure::new("no file to summarise").hint("kmt-analyze --help lists the commands"));
        }
    };
    match command {
        Command::Summary { select, target } => {
            let selection = Selection::from(select);
            with(&target.file, |session| summary::run(session, &selection, target.json))
        }
        Command::Info { target } => with(&target.file, |session| info::run(session, target.json)),
        Command::Dump(args) => {
            let format = match args.format {
                DumpFormat::Kernel if !args.json => dump::Format::Kernel,
                DumpFormat::Kernel => dump::Format::Jsonl,
                DumpFormat::Jsonl => dump::Format::Jsonl,
            };
            let options =
                dump::Options { format, time: args.time, cpus: args.cpu, pids: args.pid, limit: args.lines };
            if args.follow {
                return follow::run(&args.file, &options);
            }
            with(&args.file, |session| dump::run(session, &options))
        }
        Command::Callers { select, rows, call_site, target } => {
            let selection = select.into();
            let options = callers::Options {
                selection,
                sort: rows.sort,
                limit: rows.lines,
                call_site,
                json: target.json,
            };
            with(&target.file, |session| callers::run(session, &options))
        }
        Command::Caches { select, rows, cache, target } => {
            let selection = select.into();
            let options =
                caches::Options { selection, sort: rows.sort, limit: rows.lines, cache, json: target.json };
            with(&target.file, |session| caches::run(session, &options))
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "kmt-analyze", &mut script);
            print(&script)
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut page)
                .map_err(|e| Failure::new(format!("rendering the manual page: {e}")))?;
            print(&page)
        }
    }
}

fn with(file: &Path, run: impl FnOnce(&Session<'_>) -> Result<Outcome>) -> Result<Outcome> {
    let bytes = open::bytes(file)?;
    let trace = open::trace(file, &bytes)?;
    run(&Session::new(file, &trace))
}

fn print(text: &[u8]) -> Result<Outcome> {
    let mut out = Out::stdout();
    out.write(text)?;
    out.finish()?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
