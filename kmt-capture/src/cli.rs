//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

#[cfg(feature = "convert")]
use kmt_common::compress::Compress;
#[cfg(feature = "docs")]
use kmt_common::manual;
use kmt_common::quantity;
use kmt_common::usage;
use kmt_common::version::VERSION;

#[cfg(feature = "convert")]
use crate::convert::{Boot, ConvertOptions, LimitKind, Limits, convert};
use crate::crash::{ArmArgs, CollectArgs};
#[cfg(feature = "docs")]
use crate::failure::Failure;
use crate::failure::{Outcome, Result};
use crate::help;
use crate::mistakes;
#[cfg(feature = "docs")]
use crate::output::print;
#[cfg(feature = "convert")]
use crate::record::Symbols;
use crate::record::{self, Condition, RecordArgs, RecordOptions};
#[cfg(feature = "convert")]
use crate::remote::{self, args::RemoteArgs};
#[cfg(feature = "convert")]
use crate::survivors::SurvivorOptionArgs;
use crate::tracefs::guard;
use crate::watch::{self, WatchArgs};
use crate::{check, clean, snippet};

/// Record where a Linux kernel's memory goes, live or from saved ring buffers, into .kmt files.
#[derive(Parser)]
#[command(
    name = "kmt-capture",
    version = VERSION,
    about
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Record kernel memory events of the running system
    ///
    /// Records all kmem events except rss_stat, on all CPUs, in its own ring buffer, until Ctrl-C or until COMMAND ends.
    /// Lost events are counted and reported per CPU. All changes in tracefs are undone at the end.
    ///
    /// Ctrl-C, SIGTERM and SIGHUP end a recording normally: the file is complete, and the exit code is 0 or 3. Further
    /// signals have no effect, unless the output is a pipe without a reading process: then the recording fails.
    ///
    /// The exit status of COMMAND is printed and recorded in the file. The exit code is that of the recording. With
    /// --exit-status it is that of COMMAND, unless the recording failed (1) or lost events (3).
    #[command(after_help = "Examples:
  kmt-capture record -d 30s -o trace.kmt          this machine, 30 seconds
  kmt-capture record -o build.kmt -- make -j8     while a command runs
  kmt-capture record -p reclaim -o waits.kmt      tasks that wait for memory, until Ctrl-C
  kmt-capture record --ring --stop-when oom       the last minutes before an OOM kill
  kmt-capture record --adopt -o boot.kmt          what was recorded since boot, and on
  kmt-capture record --rotate 1h --max-files 24   the last day, in files of an hour
  kmt-capture record -o - | ssh host 'cat > trace.kmt'")]
    Record(Box<RecordArgs>),
    /// Show if this system can record, with a remedy for each problem
    Check {
        /// Machine-readable output
        #[arg(long)]
        json: bool,
        /// Show also the facts that are as they should be
        #[arg(long)]
        list: bool,
        /// Record for this time, to nowhere, and report events and MB a second and the CPU time: 5s
        #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
        cost: Option<Duration>,
        /// Print kernel parameters that record from boot on, for this kernel, with the size of the buffer
        #[arg(long, conflicts_with_all = ["json", "list", "cost"])]
        boot: bool,
        /// Where tracefs is mounted, if not at /sys/kernel/tracing
        #[arg(long, value_name = "DIR")]
        tracefs: Option<PathBuf>,
    },
    /// Record on another machine through a shell, and show the findings here
    ///
    /// Sends a static kmt-capture to a folder in memory of the target, over the standard input of the shell; records until Ctrl-C
    /// or until the recording ends by its options; writes the file here while it is recorded; and removes all that it brought.
    /// The target needs a POSIX shell of root, nothing else. If the connection is cut, the file has the events up to then.
    ///
    /// Where no program can run, the script of `snippet` records.
    #[cfg(feature = "convert")]
    #[command(after_help = "Examples:
  kmt-capture remote root@board -o trace.kmt                    until Ctrl-C
  kmt-capture remote root@board -- record -p reclaim -d 60s     with options of record
  kmt-capture remote --via 'adb shell -T' -o phone.kmt          through another shell
  kmt-capture remote root@board --build                         how to build a program for it
  kmt-capture remote root@board --binary ./kmt-capture          with this program
  kmt-capture remote root@board --script -b 4M -d 30s           with the shell script")]
    Remote(RemoteArgs),
    /// Print a shell script for targets without kmt-capture; `convert` reads its output
    ///
    /// On the target: sh kmt.sh DIR [SECONDS]. The script records in a ring buffer that keeps the newest events, and saves it in the
    /// new directory DIR after SECONDS, at Ctrl-C, or when STOP occurs. It needs a POSIX shell (BusyBox) and root.
    ///
    /// Variables of the script: BUFKB, the ring buffer of each CPU in KiB (4096); EVENTS, systems or SYSTEM/EVENT (kmem); STOP, the
    /// event that ends it, such as oom/mark_victim; CLOCK, the trace clock (mono); T, the mount point of tracefs. `sh kmt.sh
    /// --help` lists them.
    #[command(after_help = "Example:
  kmt-capture snippet > kmt.sh                            here
  sh kmt.sh saved 30                                      on the target, 30 seconds
  BUFKB=16384 EVENTS='kmem/kmalloc kmem/kfree' sh kmt.sh saved    more room, fewer events
  kmt-capture convert saved -o trace.kmt                  here, after saved was copied")]
    Snippet,
    /// Record into memory that survives a crash, and leave
    ///
    /// Needs Linux 6.12 or later, and a persistent ring buffer: without one this prints the kernel parameters that make it.
    /// Records the default events of `record`, and those of tasks, until the machine crashes or is reset. The newest events stay.
    /// The sidecar has the facts that the buffer does not keep: formats, addresses, time of day, names of tasks.
    #[command(after_help = "Examples:
  kmt-capture arm                               after each boot
  kmt-capture arm -p slab --stack kmem:kmalloc  fewer events, with stacks
  kmt-capture arm --off                         before a planned reboot")]
    Arm(ArmArgs),
    /// After a crash: the events before it, from the memory that survived, to a file
    ///
    /// Works in the boot after the crash, if `arm` ran before it. The ring buffers are saved first, then converted as `convert`
    /// does. Functions get names if this boot runs the same build of the kernel.
    #[command(after_help = "Examples:
  kmt-capture collect -o crash.kmt              the events before the crash
  kmt-capture collect --arm -o crash.kmt        and record again for the next one
  kmt-capture collect --save crash/             only save them, to convert on another machine")]
    Collect(CollectArgs),
    /// Restore tracefs after a recorder was killed
    Clean {
        /// Where tracefs is mounted, if not at /sys/kernel/tracing
        #[arg(long, value_name = "DIR")]
        tracefs: Option<PathBuf>,
    },
    /// Wait until memory of the kernel grows steadily, then record who allocates it
    ///
    /// Reads /proc/slabinfo, meminfo, zoneinfo and vmstat every 10 s, and judges caches that cannot be reclaimed, unreclaimable slab, page
    /// tables, percpu, vmalloc, kernel stacks and memory in no account, over 5, 30 and 240 minutes. Nothing is traced meanwhile.
    /// Caches that fill, a daily cycle, and growth that the load explains are not growth.
    ///
    /// Growth is printed and recorded with stacks, as by record --survivors, for 1 to 30 minutes, within --max-size and --cpu-budget.
    /// The file has samples of the day before: kmt-analyze timeline --by account. Growth is reported again when it has
    /// doubled. SIGUSR1 records slab memory as soon as no other recording runs.
    #[command(after_help = "Examples:
  kmt-capture watch -o leak.kmt                         until Ctrl-C: leak-1.kmt, leak-2.kmt
  kmt-capture watch --dry-run -o leak.kmt               what would be recorded, and why
  kmt-capture watch --once --exec ./mail -o leak.kmt    the first growth, then ./mail leak-1.kmt
  kmt-capture watch --state watch.state -o leak.kmt     with reports of an earlier run")]
    Watch(WatchArgs),
    /// Convert saved ring buffers, or a recording of another tool, to a .kmt file
    ///
    /// INPUT is one of: a directory of ring buffers; a trace.dat of trace-cmd; a perf.data of perf; a trace of
    /// Perfetto; text printed by ftrace, trace-cmd or perf script; a .kmt file; a directory with one of these, or with the
    /// parts of perf record --switch-output.
    /// Each can be compressed (.gz, .xz, .zst, or zlib as by atrace -z). - is standard input.
    ///
    /// A directory of ring buffers has the layout of tracefs: events/header_page, events/SYSTEM/EVENT/format,
    /// per_cpu/cpuN/trace_pipe_raw, and, if available, stats, trace_clock, trace_options, saved_cmdlines, saved_tgids and
    /// printk_formats. It can also be a subdirectory tracefs/ of INPUT. Files about the target (kallsyms, modules, uname,
    /// cmdline, pagesize, slabinfo.before, slabinfo.after and others) are read from the same directory or the one above.
    ///
    /// A .kmt file is rewritten with the requested codec. Damaged chunks are left out, incomplete chunks are used up to the
    /// damage, and missing events are counted.
    #[cfg(feature = "convert")]
    #[command(after_help = "Examples:
  kmt-capture convert perf.data -o trace.kmt          a recording of another tool
  kmt-capture convert saved/ -o trace.kmt             ring buffers that were copied from a target
  kmt-capture convert broken.kmt -o whole.kmt         the readable parts of a damaged file
  kmt-capture convert big.kmt -o small.kmt --compress zstd")]
    Convert(ConvertArgs),
    /// Print a completion script
    #[cfg(feature = "docs")]
    #[command(after_help = "Example:
  kmt-capture completions bash > /etc/bash_completion.d/kmt-capture")]
    Completions {
        /// Shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program, or of one command
    #[cfg(feature = "docs")]
    Man {
        /// Command, such as record
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
}

#[cfg(feature = "convert")]
#[derive(clap::Args)]
struct ConvertArgs {
    /// Directory or file to convert; - is standard input
    input: PathBuf,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "FILE.kmt")]
    output: PathBuf,
    /// Overwrite FILE.kmt if it exists
    #[arg(long)]
    force: bool,
    /// Compression of the file: none, lz4 (a third of the size) or zstd (a quarter)
    #[arg(long, value_parser = Compress::by_name(), default_value = "none")]
    compress: Compress,
    /// Kernel symbols to store; a .kmt input keeps its symbols
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Symbols::Used)]
    symbols: Symbols,
    /// Keep sub-buffers as the kernel wrote them: less CPU time, three times the size
    #[arg(long)]
    verbatim: bool,
    /// Buffer of a trace.dat: name of an instance, or "" for the top level. Default: the first buffer with events
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
    /// Convert one boot of a ring buffer or text that holds the events of several. Default: it is refused
    #[arg(long, value_enum, value_name = "WHICH")]
    boot: Option<Boot>,
    #[command(flatten)]
    survivors: SurvivorOptionArgs,
    /// Raise or lower a limit on the input, such as kallsyms=1G. Names: raw (ring buffers), kallsyms, format, file (each other
    /// file), directory (all files but ring buffers), stream (standard input, pipes), inflated (decompressed bytes), and
    /// those in messages. May be given several times
    #[arg(long, value_name = "NAME=SIZE", value_parser = limit)]
    limit: Vec<(LimitKind, u64)>,
    /// Print only warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

/// Parses the command line and runs the command.
pub fn run() -> Result<Outcome> {
    // Not a command for users, and not worth the memory of a parser.
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == guard::COMMAND) {
        args.next().iter().for_each(|owner| guard::run(owner));
        return Ok(Outcome::Done);
    }
    usage::without_arguments(help::SHORT);
    kmt_common::file_size::report_limit();
    let args: Vec<OsString> = std::env::args_os().collect();
    let cli = whole()
        .try_get_matches_from(&args)
        .map_err(|error| mistakes::explained(error, &args, &whole()))
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .unwrap_or_else(|error| usage::end(&error));
    match cli.command {
        Command::Record(args) => {
            let repeat = args.repeat;
            let options = RecordOptions::from(*args);
            check_after(&options);
            match (repeat, &options.black_box) {
                (Some(times), _) => record::repeat(&options, times),
                (None, Some(black_box)) if black_box.rearm => record::rearm(&options, black_box),
                (None, _) => record::record(&options),
            }
        }
        #[cfg(feature = "convert")]
        Command::Remote(args) => {
            if args.has_options_of_the_script_alone() {
                let message = "-b, -e and -d are options of --script: `kmt-capture remote HOST --script -d 5s`; the program takes them after --: `kmt-capture remote HOST -- record -d 5s`";
                let mut remote = usage::asked(&whole(), &["".into(), "remote".into()]);
                usage::end(&remote.error(clap::error::ErrorKind::ArgumentConflict, message));
            }
            let (words, record) = record_line(&args.record);
            remote::remote(&args.options(words, record))
        }
        Command::Check { boot: true, tracefs, .. } => check::boot(tracefs.as_deref()),
        Command::Check { json, list, cost, tracefs, .. } => {
            let format = match (json, list) {
                (true, _) => check::Format::Json,
                (false, true) => check::Format::List,
                (false, false) => check::Format::Verdict,
            };
            check::check(tracefs.as_deref(), format, cost)
        }
        Command::Snippet => snippet::snippet(),
        Command::Arm(args) => args.run(),
        Command::Collect(args) => args.run(),
        Command::Watch(args) => watch::watch(&args),
        Command::Clean { tracefs } => clean::clean(tracefs.as_deref()),
        #[cfg(feature = "convert")]
        Command::Convert(args) => {
            let ConvertArgs {
                input,
                output,
                force,
                compress,
                symbols,
                verbatim,
                quiet,
                instance,
                boot,
                survivors,
                limit,
            } = args;
            let mut limits = Limits::default();
            for (kind, bytes) in limit {
                limits.set(kind, bytes);
            }
            convert(&ConvertOptions {
                input,
                output,
                force,
                compression: compress.into(),
                symbols,
                verbatim,
                quiet,
                instance,
                boot,
                survivors: survivors.asked(),
                limits,
            })
        }
        #[cfg(feature = "docs")]
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut whole(), "kmt-capture", &mut script);
            print(&script)
        }
        #[cfg(feature = "docs")]
        Command::Man { command } => {
            let mut page = Vec::new();
            clap_mangen::Man::new(manual::subject(whole(), command.as_deref()))
                .render(&mut page)
                .map_err(|e| Failure::new(format!("cannot write the manual page: {e}")))?;
            print(&page)
        }
    }
}

/// Ends the program if `--after` has no condition that it applies to: a trigger stops the buffer at its event.
fn check_after(options: &RecordOptions) {
    let Some(black_box) = options.black_box.as_ref().filter(|black_box| !black_box.after.is_zero()) else {
        return;
    };
    if black_box.stop_when.iter().all(Condition::is_trigger) {
        let message = "--after needs a condition of memory or pressure: the kernel stops at once at oom, alloc-failure and events";
        let mut record = usage::asked(&whole(), &["".into(), "record".into()]);
        usage::end(&record.error(clap::error::ErrorKind::ArgumentConflict, message));
    }
}

/// `record` and its options, after `--` of `remote`: without the name, and parsed. Ends the program if they are wrong.
#[cfg(feature = "convert")]
fn record_line(words: &[OsString]) -> (Vec<OsString>, RecordOptions) {
    let wrong =
        |text: &str| -> ! { usage::end(&whole().error(clap::error::ErrorKind::ValueValidation, text)) };
    let args = match words.split_first() {
        None => &[],
        Some((name, args)) if name == "record" => args,
        Some(_) => {
            wrong("after -- must come `record` and its options: kmt-capture remote HOST -- record -d 10s")
        }
    };
    let line = ["kmt-capture", "record"].map(OsString::from).into_iter().chain(args.iter().cloned());
    let line: Vec<OsString> = line.collect();
    let cli = whole().try_get_matches_from(&line).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = cli.unwrap_or_else(|error| usage::end(&usage::without_false_tips(error, &whole(), &line)));
    let Command::Record(record) = cli.command else { wrong("after -- must come `record` and its options") };
    if record.output.is_some() || record.force || record.line.is_some() {
        wrong("-o and --force are options of remote: give them before --");
    }
    if record.ring.is_some() {
        wrong("--ring is not an option of remote: run kmt-capture on the target");
    }
    if record.rotate.is_some() {
        wrong("--rotate is not an option of remote: run kmt-capture on the target");
    }
    if record.repeat.is_some() {
        wrong("--repeat is not an option of remote: run remote several times");
    }
    (args.to_vec(), (*record).into())
}

/// The command line; `man` accepts the names of its commands.
pub(crate) fn whole() -> clap::Command {
    let cli = help::grouped(Cli::command());
    #[cfg(feature = "docs")]
    let cli = manual::with_names(cli);
    cli
}

/// `kallsyms=1G`.
#[cfg(feature = "convert")]
fn limit(text: &str) -> std::result::Result<(LimitKind, u64), String> {
    let (name, bytes) = text.split_once('=').ok_or_else(|| format!("{text:?} is not NAME=SIZE"))?;
    let (kind, bytes) = (LimitKind::named(name)?, quantity::size_above_zero(bytes)?);
    if Limits::default().set(kind, bytes) {
        Ok((kind, bytes))
    } else {
        Err(format!("the limit {name} cannot be that large"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        whole().debug_assert();
    }
}
