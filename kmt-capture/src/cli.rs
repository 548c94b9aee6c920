//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[cfg(any(feature = "docs", test))]
use clap::CommandFactory;
use clap::{Parser, Subcommand, ValueEnum};

use kmt_common::compress::Compress;

#[cfg(feature = "convert")]
use crate::convert::{ConvertOptions, LimitKind, Limits, convert};
#[cfg(feature = "docs")]
use crate::failure::Failure;
use crate::failure::{Outcome, Result};
#[cfg(feature = "docs")]
use crate::output::print;
use crate::record::{self, Preset, RecordOptions, Symbols};
use crate::tracefs::{EventSpec, guard};
use crate::{check, clean, snippet};

/// Record where a Linux kernel's memory goes, live or from saved ring buffers, into .kmt files.
#[derive(Parser)]
#[command(
    name = "kmt-capture",
    version,
    about,
    arg_required_else_help = true,
    after_help = "EXAMPLES:\n  \
        kmt-capture record                           every kmem event until Ctrl-C\n  \
        kmt-capture record -o boot.kmt -- make -j8   while a command runs\n  \
        kmt-capture record -o - | ssh host 'cat > trace.kmt'\n  \
        kmt-capture convert saved/ -o trace.kmt      from files copied off a target\n  \
        kmt-capture convert saved/ -o - | ssh host 'cat > trace.kmt'\n  \
        kmt-capture convert broken.kmt -o whole.kmt  what a damaged file still holds\n  \
        kmt-capture convert big.kmt -o small.kmt --compress zstd\n  \
        kmt-capture completions bash > /etc/bash_completion.d/kmt-capture\n\n\
        EXIT CODES: 0 done, 1 failed, 2 usage, 3 done but events were lost or input was damaged"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Record kernel memory events of the running system
    ///
    /// Records the kmem events but rss_stat, of all CPUs, in a ring buffer of its own, until Ctrl-C, or until COMMAND
    /// ends. What was lost is counted and told, CPU by CPU. Nothing stays behind in tracefs.
    ///
    /// Ctrl-C, SIGTERM and SIGHUP end a recording in order: the file is complete, the exit code 0 or 3. A second one changes
    /// nothing, except where the output is a pipe that is not read: then the recording fails.
    ///
    /// COMMAND's status is printed and kept in the file. The exit code is that of the recording, or of COMMAND with
    /// --exit-status, unless the recording failed (1) or lost events (3).
    Record(Box<RecordArgs>),
    /// Tell what this system can record, each fact with its remedy
    Check {
        /// Machine-readable output
        #[arg(long)]
        json: bool,
        /// Where tracefs is mounted, if not at /sys/kernel/tracing
        #[arg(long, value_name = "DIR")]
        tracefs: Option<PathBuf>,
    },
    /// Print a shell script that records on a target without kmt-capture, for `convert`
    Snippet,
    /// Remove what a recorder left in tracefs that was killed
    Clean {
        /// Where tracefs is mounted, if not at /sys/kernel/tracing
        #[arg(long, value_name = "DIR")]
        tracefs: Option<PathBuf>,
    },
    /// Convert saved ring buffers, or a recording of another tool, to a .kmt file
    ///
    /// INPUT is one of: a directory of ring buffers; a trace.dat of trace-cmd; a perf.data of perf; text that ftrace,
    /// trace-cmd or perf script printed; a .kmt file; a directory that holds one of these, or the parts that perf record --switch-output makes;
    /// each also compressed (.gz, .xz, .zst); or - for standard input.
    ///
    /// A directory of ring buffers is laid out like tracefs (events/header_page, events/SYSTEM/EVENT/format,
    /// per_cpu/cpuN/trace_pipe_raw; with stats, trace_clock, trace_options, saved_cmdlines, saved_tgids and
    /// printk_formats where there are such), or the directory that holds it as tracefs/. The files kallsyms, modules,
    /// uname, cmdline, pagesize, slabinfo.before, slabinfo.after and so on are looked for in it and beside it.
    ///
    /// A .kmt file is written anew, with the codec asked for. What is damaged is left out, what
    /// was torn is used as far as it goes, and what is missing is counted.
    #[cfg(feature = "convert")]
    Convert(ConvertArgs),
    /// Print a completion script
    #[cfg(feature = "docs")]
    Completions {
        /// The shell that it is for
        shell: clap_complete::Shell,
    },
    /// Print a manual page: of the program, or of one of its commands
    #[cfg(feature = "docs")]
    Man {
        /// Command, such as record
        command: Option<String>,
    },
}

#[derive(clap::Args)]
struct RecordArgs {
    /// File to write; - is standard output. Default: kmt-HOST-TIME.kmt
    #[arg(short, long, value_name = "FILE|-")]
    output: Option<PathBuf>,
    /// Overwrite FILE if it exists
    #[arg(long)]
    force: bool,
    /// A set of events instead of the default ones
    #[arg(short, long, value_enum, value_name = "NAME")]
    preset: Option<PresetName>,
    /// Events: SYSTEM, SYSTEM:EVENT, with * and ?; 'SYSTEM:EVENT if FILTER' takes a filter of the kernel
    #[arg(short, long = "event", value_name = "EVENT", value_parser = EventSpec::parse)]
    event: Vec<EventSpec>,
    /// Take the stack at each such event; also 'EVENT if FILTER'
    #[arg(long, value_name = "EVENT", value_parser = EventSpec::parse)]
    stack: Vec<EventSpec>,
    /// Allocations of this process (with its threads) or thread only; frees are recorded all. May be given several times
    #[arg(long, value_name = "PID")]
    pid: Vec<i32>,
    /// Record objects passed to kfree_rcu, with a probe: most frees without an event. Needs kprobe_events
    #[arg(long)]
    kfree_rcu: bool,
    /// Take the latency of this function; may be given several times
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,
    /// Calls of functions that take at least so long: 100us, 5ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    threshold: Option<Duration>,
    /// Trace clock. Default: mono, or another one that is comparable across CPUs
    #[arg(long, value_name = "NAME")]
    clock: Option<String>,
    /// Ring buffer of each CPU: 512K, 64M. Default: from the rate of events, at most 1/16 of the memory in all
    #[arg(short, long, value_name = "SIZE", value_parser = size)]
    buffer_size: Option<u64>,
    /// Stop after so long: 10s, 5m
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Stop so that the file has at most this size: 100M, 2G. What is still in the ring buffers then is counted as lost
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
    /// Symbols of the kernel that the file gets: those that its events need, all, or none
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = SymbolsName::Used)]
    symbols: SymbolsName,
    /// Read /proc/slabinfo at begin and end only, or also every so often: 5s. Bounds what is live where frees have no event
    #[arg(long, value_name = "TIME", value_parser = duration)]
    snapshot_every: Option<Duration>,
    /// How to store the file: as it is, to be read in place; lz4, a third; zstd, a quarter
    #[arg(long, value_parser = Compress::by_name(), default_value = "none")]
    compress: Compress,
    /// Keep sub-buffers as the kernel wrote them: three times the bytes, least work
    #[arg(long)]
    raw: bool,
    /// Map ring buffers instead of reading them, where the kernel can (Linux 6.10): another way, not a faster one
    #[arg(long)]
    mmap: bool,
    /// Do not record the events that tell the names of tasks
    #[arg(long)]
    no_task_events: bool,
    /// Where tracefs is mounted, if not at /sys/kernel/tracing
    #[arg(long, value_name = "DIR")]
    tracefs: Option<PathBuf>,
    /// Print nothing but problems
    #[arg(short, long)]
    quiet: bool,
    /// Return COMMAND's status, 128 + N where signal N ended it, if the recording itself succeeded
    #[arg(long, requires = "command")]
    exit_status: bool,
    /// Record while this command runs, on all CPUs
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PresetName {
    /// Slab allocations and frees
    Slab,
    /// Page allocations, with their stacks
    Pages,
    /// Reclaim and compaction: tracepoints, and functions that take long
    Reclaim,
    /// All about kernel memory: kmem, vmalloc, percpu, cma, page_pool
    All,
}

impl From<PresetName> for Preset {
    fn from(name: PresetName) -> Self {
        match name {
            PresetName::Slab => Self::Slab,
            PresetName::Pages => Self::Pages,
            PresetName::Reclaim => Self::Reclaim,
            PresetName::All => Self::All,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SymbolsName {
    /// All of /proc/kallsyms: 2 to 5 MB
    All,
    /// Those that hold addresses of events
    Used,
    /// None: call sites print as addresses
    None,
}

impl From<SymbolsName> for Symbols {
    fn from(name: SymbolsName) -> Self {
        match name {
            SymbolsName::All => Self::All,
            SymbolsName::Used => Self::Used,
            SymbolsName::None => Self::None,
        }
    }
}

impl From<RecordArgs> for RecordOptions {
    fn from(args: RecordArgs) -> Self {
        Self {
            preset: args.preset.map(Preset::from),
            events: args.event,
            stacks: args.stack,
            pids: args.pid,
            kfree_rcu: args.kfree_rcu,
            functions: args.function,
            threshold: args.threshold,
            clock: args.clock,
            buffer_size: args.buffer_size,
            duration: args.duration,
            symbols: args.symbols.into(),
            max_size: args.max_size,
            snapshot_every: args.snapshot_every,
            verbatim: args.raw,
            mmap: args.mmap,
            task_events: !args.no_task_events,
            compression: args.compress.into(),
            output: args.output,
            force: args.force,
            quiet: args.quiet,
            guard: true,
            tracefs: args.tracefs,
            exit_status: args.exit_status,
            command: args.command,
        }
    }
}

#[cfg(feature = "convert")]
#[derive(clap::Args)]
struct ConvertArgs {
    /// Directory with saved ring buffers, or a .kmt file
    input: PathBuf,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "FILE.kmt")]
    output: PathBuf,
    /// Overwrite FILE.kmt if it exists
    #[arg(long)]
    force: bool,
    /// How to store the file: as it is, to be read in place; lz4, a third; zstd, a quarter
    #[arg(long, value_parser = Compress::by_name(), default_value = "none")]
    compress: Compress,
    /// Symbols of the kernel that the file gets: those that its events need, all, or none. A .kmt file keeps those it has
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = SymbolsName::Used)]
    symbols: SymbolsName,
    /// Keep sub-buffers as the kernel wrote them: three times the bytes, hardly any work
    #[arg(long)]
    verbatim: bool,
    /// Which buffer of a trace.dat: the name of an instance, "" is the top level. Default: the first that holds events
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
    /// Read more of the input: raw (ring buffers), kallsyms, format, file (any other), directory (all but ring buffers),
    /// stream (standard input, pipes), inflated (of compressed files and parts), and other limits by the names that messages
    /// give; --limit kallsyms=1G. May be given several times
    #[arg(long, value_name = "NAME=SIZE", value_parser = limit)]
    limit: Vec<(LimitKind, u64)>,
    /// Do not print what was converted
    #[arg(short, long)]
    quiet: bool,
}

/// Parses the command line and does what it says.
pub fn run() -> Result<Outcome> {
    // Not a command for users, and not worth the memory of a parser.
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == guard::COMMAND) {
        args.next().iter().for_each(|owner| guard::run(owner));
        return Ok(Outcome::Done);
    }
    match Cli::parse().command {
        Command::Record(args) => record::record(&(*args).into()),
        Command::Check { json, tracefs } => check::check(tracefs.as_deref(), json),
        Command::Snippet => snippet::snippet(),
        Command::Clean { tracefs } => clean::clean(tracefs.as_deref()),
        #[cfg(feature = "convert")]
        Command::Convert(args) => {
            let (compression, symbols) = (args.compress.into(), args.symbols.into());
            let ConvertArgs { input, output, force, verbatim, quiet, instance, limit, .. } = args;
            let mut limits = Limits::default();
            for (kind, bytes) in limit {
                limits.set(kind, bytes);
            }
            convert(&ConvertOptions {
                input,
                output,
                force,
                compression,
                symbols,
                verbatim,
                quiet,
                instance,
                limits,
            })
        }
        #[cfg(feature = "docs")]
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "kmt-capture", &mut script);
            print(&script)
        }
        #[cfg(feature = "docs")]
        Command::Man { command } => print(&manual(command.as_deref())?),
    }
}

#[cfg(feature = "docs")]
fn manual(command: Option<&str>) -> Result<Vec<u8>> {
    let mut program = Cli::command();
    program.build();
    let subject = match command {
        None => program,
        Some(name) => {
            let found = program.find_subcommand(name).cloned();
            found.ok_or_else(|| {
                Failure::new(format!("there is no command {name:?}")).hint("kmt-capture --help lists them")
            })?
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(subject)
        .render(&mut page)
        .map_err(|e| Failure::new(format!("rendering the manual page: {e}")))?;
    Ok(page)
}

/// `10s`, `250ms`, `5m`, `2h`; a number alone is seconds.
fn duration(text: &str) -> std::result::Result<Duration, String> {
    let (number, unit) = split_unit(text);
    let seconds: f64 = number.parse().map_err(|_| format!("{text:?} is no time, such as 10s"))?;
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        _ => return Err(format!("{unit:?} is not one of us, ms, s, m, h")),
    };
    Duration::try_from_secs_f64(seconds * factor).map_err(|_| format!("{text:?} is too long"))
}

/// `kallsyms=1G`.
#[cfg(feature = "convert")]
fn limit(text: &str) -> std::result::Result<(LimitKind, u64), String> {
    let (name, bytes) = text.split_once('=').ok_or_else(|| format!("{text:?} is not NAME=SIZE"))?;
    let (kind, bytes) = (LimitKind::named(name)?, size(bytes)?);
    if Limits::default().set(kind, bytes) {
        Ok((kind, bytes))
    } else {
        Err(format!("{name} cannot be so large"))
    }
}

/// `64M`, `512K`, `2G`; a number alone is bytes.
fn size(text: &str) -> std::result::Result<u64, String> {
    let (number, unit) = split_unit(text);
    let count: u64 = number.parse().map_err(|_| format!("{text:?} is no size, such as 64M"))?;
    let shift = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 0,
        "k" | "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(format!("{unit:?} is not one of K, M, G")),
    };
    let bytes = count.checked_mul(1 << shift).filter(|&bytes| bytes > 0);
    bytes.ok_or_else(|| format!("{text:?} is no size that can be had"))
}

fn split_unit(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        assert!(duration("-1s").is_err() && duration("1d").is_err() && duration("s").is_err());
        assert_eq!((size("64M"), size("512KiB"), size("9")), (Ok(64 << 20), Ok(512 << 10), Ok(9)));
        assert!(size("0").is_err() && size("1T").is_err() && size("99999999999G").is_err());
    }
}
