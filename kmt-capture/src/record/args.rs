//! Options of `record` on the command line, and the recording that they ask for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use kmt_common::compress::Compress;
use kmt_common::quantity::{self, GivenSize};

use super::{
    Baseline, BlackBoxOptions, Condition, LineOptions, Preset, RecordOptions, RotateAt, RotateOptions,
    SIZE_DEFAULT, Symbols, TOP,
};
use crate::survivors::SurvivorOptionArgs;
use crate::tracefs::EventSpec;

/// Largest number of recordings of one command.
const REPEAT_MAX: i64 = 1_000;

/// Options that select events, of `record` and of `arm`.
#[derive(clap::Args)]
pub struct EventArgs {
    /// A set of events instead of the default ones
    #[arg(short, long, value_enum, value_name = "NAME")]
    preset: Option<Preset>,
    /// Events: SYSTEM or SYSTEM:EVENT, with * and ?; 'SYSTEM:EVENT if FILTER' adds a filter in the kernel's syntax
    #[arg(short, long = "event", value_name = "EVENT", value_parser = EventSpec::parse)]
    event: Vec<EventSpec>,
    /// Record the kernel stack with each of these events; also 'EVENT if FILTER'
    #[arg(long, value_name = "EVENT", value_parser = EventSpec::parse)]
    stack: Vec<EventSpec>,
    /// Record the kernel stack with each allocation of slab memory: --stack 'kmem:kmalloc*' --stack 'kmem:kmem_cache_alloc*'
    #[arg(short = 'g', long)]
    stacks: bool,
}

/// Events of `--stacks`.
const ALLOCATIONS: [&str; 2] = ["kmem:kmalloc*", "kmem:kmem_cache_alloc*"];

impl EventArgs {
    /// Events whose stacks are taken.
    fn stacks(&self) -> Vec<EventSpec> {
        let of_all = ALLOCATIONS.iter().filter(|_| self.stacks);
        let of_all = of_all.filter_map(|pattern| EventSpec::parse(pattern).ok());
        self.stack.iter().cloned().chain(of_all).collect()
    }
}

impl From<EventArgs> for RecordOptions {
    fn from(args: EventArgs) -> Self {
        let stacks = args.stacks();
        Self { preset: args.preset, events: args.event, stacks, task_events: true, ..Self::default() }
    }
}

/// Options of `record`.
#[derive(clap::Args)]
pub struct RecordArgs {
    /// File to write; - is standard output. Default: kmt-HOST-TIME.kmt
    #[arg(short, long, value_name = "FILE|-")]
    pub output: Option<PathBuf>,
    /// Overwrite FILE if it exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    events: EventArgs,
    /// Record allocations of this process or thread only, but all frees. A process includes its threads. May be given several times
    #[arg(long, value_name = "PID")]
    pid: Vec<i32>,
    /// Record objects passed to kfree_rcu with a kprobe: most frees without an event. Needs kprobe_events
    #[arg(long)]
    kfree_rcu: bool,
    /// Record the latency of this function; may be given several times
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,
    /// Record function calls that take at least this time: 100us, 5ms
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    threshold: Option<Duration>,
    /// Trace clock. Default: mono, or another clock that is the same on all CPUs. boot: also counts while the machine is suspended.
    /// mono_raw: not adjusted by NTP
    #[arg(long, value_name = "NAME")]
    clock: Option<String>,
    /// Ring buffer of each CPU: 512K, 64M. Default: by the event rate, at most 1/16 of the memory for all CPUs
    #[arg(short, long, value_name = "SIZE", value_parser = GivenSize::parse)]
    buffer_size: Option<GivenSize>,
    /// Stop after this time: 10s, 5min
    #[arg(short, long, value_name = "TIME", value_parser = quantity::seconds)]
    duration: Option<Duration>,
    /// Stop before the file exceeds this size: 100M, 2G. Events left in the ring buffers are counted as lost
    #[arg(long, value_name = "SIZE", value_parser = quantity::size_above_zero)]
    max_size: Option<u64>,
    /// Kernel symbols to store
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Symbols::Used)]
    symbols: Symbols,
    #[command(flatten)]
    survivors: SurvivorOptionArgs,
    /// Also read /proc/slabinfo, meminfo, zoneinfo and vmstat at this interval: 5s. slabinfo limits the error of live figures if
    /// frees have no event; the others show where memory is, over time
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    snapshot_every: Option<Duration>,
    /// Also read the kernel's own accounts at the begin and the end, as far as it has them
    #[arg(long, value_enum, value_name = "WHICH", value_delimiter = ',')]
    baseline: Vec<Baseline>,
    /// Compression of the file: none, lz4 (a third of the size) or zstd (a quarter)
    #[arg(long, value_parser = Compress::by_name(), default_value = "none")]
    compress: Compress,
    /// Keep sub-buffers as the kernel wrote them: less CPU time, three times the size
    #[arg(conflicts_with = "survivors")]
    #[arg(long)]
    raw: bool,
    /// Store the kernel's configuration, also in a recording of less than a minute
    #[arg(long)]
    kernel_config: bool,
    /// Do not record events with names of tasks
    #[arg(long)]
    no_task_events: bool,
    /// Where tracefs is mounted, if not at /sys/kernel/tracing
    #[arg(long, value_name = "DIR")]
    tracefs: Option<PathBuf>,
    /// Print only warnings and errors
    #[arg(short, long)]
    quiet: bool,
    /// For `watch`: store samples of memory that come on standard input
    #[arg(long, hide = true)]
    samples: bool,
    /// For `watch`: print why the recording ended
    #[arg(long, hide = true)]
    end_reason: bool,
    /// Exit with the status of COMMAND (128 + N if signal N ended it) if the recording succeeded
    #[arg(long, requires = "command")]
    exit_status: bool,
    /// Leave COMMAND running after the recording; else it is ended as Ctrl-C ends it
    #[arg(long, requires = "command")]
    keep_running: bool,
    /// Record COMMAND this many times, into FILE-1.kmt, FILE-2.kmt and so on: one side of a comparison for `kmt-analyze diff`
    #[arg(long, value_name = "N", requires = "command", conflicts_with_all = ["line", "keep_running"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=REPEAT_MAX))]
    pub repeat: Option<u32>,
    /// Take over a ring buffer that records already, since boot or by other means: this instance, or the top level of tracefs.
    /// Its events, clock and size stay as they are; -d 0 takes only what it holds. One file: neither --ring nor --rotate.
    /// Default: top
    #[arg(long, value_name = "INSTANCE|top", num_args = 0..=1, default_missing_value = TOP)]
    #[arg(conflicts_with_all = [
        "preset", "event", "stack", "stacks", "pid", "kfree_rcu", "function", "threshold", "clock", "buffer_size", "no_task_events",
        "repeat", "ring", "stop_when", "after", "rearm", "rotate", "max_files", "survivors",
    ])]
    adopt: Option<String>,
    /// Keep the newest events in ring buffers of this size for all CPUs together, and do not read them until a condition of
    /// --stop-when holds, SIGUSR1 comes, or the recording ends. Default: 64M
    #[arg(long, value_name = "SIZE", num_args = 0..=1, default_missing_value = SIZE_DEFAULT)]
    #[arg(value_parser = quantity::size_above_zero)]
    #[arg(conflicts_with_all = ["buffer_size", "snapshot_every", "pid", "repeat", "line", "survivors"])]
    pub ring: Option<u64>,
    /// End the wait of --ring at: oom, alloc-failure, 'SYSTEM:EVENT if FILTER', 'MemAvailable<SIZE', 'slab>SIZE', or
    /// psi:some:STALL/WINDOW. May be given several times. SIGUSR1 writes the file at any time
    #[arg(long, value_name = "CONDITION", requires = "ring", value_parser = Condition::parse)]
    stop_when: Vec<Condition>,
    /// Record for this time after a condition of memory or pressure
    #[arg(long, value_name = "TIME", requires = "stop_when", value_parser = quantity::seconds)]
    after: Option<Duration>,
    /// Wait again after each file: FILE-1.kmt, FILE-2.kmt and so on
    #[arg(long, requires = "stop_when", conflicts_with = "command", group = "several")]
    rearm: bool,
    /// Continue in a new file at this size or after this time, 100M or 10m: FILE-1.kmt, FILE-2.kmt and so on, each readable
    /// alone. No event is lost between them; kmt-analyze reads several as one trace
    #[arg(long, value_name = "SIZE|TIME", value_parser = RotateAt::parse, group = "several")]
    #[arg(conflicts_with_all = ["ring", "max_size", "repeat", "line", "survivors"])]
    pub rotate: Option<RotateAt>,
    /// With --rearm or --rotate, keep at most this many files: the oldest are removed
    #[arg(long, value_name = "N", requires = "several", value_parser = clap::value_parser!(u32).range(1..))]
    max_files: Option<u32>,
    /// For `remote`: send frames on standard output, end with standard input, and remove this folder of the program
    #[arg(long, value_name = "DIR", hide = true)]
    pub line: Option<PathBuf>,
    /// For `remote`: end after this silence of the line
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds, default_value = "1s", hide = true)]
    line_timeout: Duration,
    /// Record while this command runs, on all CPUs
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl From<RecordArgs> for RecordOptions {
    fn from(args: RecordArgs) -> Self {
        Self {
            stacks: args.events.stacks(),
            preset: args.events.preset,
            events: args.events.event,
            pids: args.pid,
            kfree_rcu: args.kfree_rcu,
            functions: args.function,
            threshold: args.threshold,
            clock: args.clock,
            buffer_size: args.buffer_size.map(|size| size.bytes),
            is_buffer_size_plain: args.buffer_size.is_some_and(|size| size.is_plain),
            duration: args.duration,
            symbols: args.symbols,
            max_size: args.max_size,
            survivors: args.survivors.asked(),
            snapshot_every: args.snapshot_every,
            baseline: args.baseline,
            verbatim: args.raw,
            kernel_config: args.kernel_config,
            task_events: !args.no_task_events,
            compression: args.compress.into(),
            output: args.output,
            force: args.force,
            quiet: args.quiet,
            samples: args.samples,
            end_reason: args.end_reason,
            guard: true,
            tracefs: args.tracefs,
            exit_status: args.exit_status,
            keep_running: args.keep_running,
            command: args.command,
            adopt: args.adopt,
            black_box: args.ring.map(|size| BlackBoxOptions {
                size,
                stop_when: args.stop_when,
                after: args.after.unwrap_or_default(),
                rearm: args.rearm,
                max_files: args.max_files,
                is_again: false,
            }),
            rotate: args.rotate.map(|at| RotateOptions { at, max_files: args.max_files }),
            line: args.line.map(|folder| LineOptions { folder, silence_max: args.line_timeout }),
        }
    }
}
