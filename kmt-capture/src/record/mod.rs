//! `record`: a running system's ring buffers to a file, losing nothing silently.

mod adopted;
mod args;
mod baseline;
mod black_box;
pub(crate) mod command;
mod console;
mod cost;
mod cpus;
mod description;
mod direct_map;
mod end_reason;
mod exits;
mod graph;
pub(crate) mod line;
mod plan;
mod preset;
mod rearm;
mod recorder;
mod repeat;
mod ring;
mod rotate;
mod run;
pub(crate) mod samples;
mod series;
mod settings;
mod setup;
mod size;
mod snapshot;
mod symbols;
mod task_filter;
mod tasks;
mod unknown_events;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use kmt_format::Compression;

pub use adopted::TOP;
pub(crate) use args::{EventArgs, RecordArgs};
pub use baseline::Baseline;
pub use black_box::{BlackBoxOptions, Condition, SIZE_DEFAULT};
pub use cost::Cost;
#[cfg(feature = "convert")]
pub(crate) use description::default_name;
pub(crate) use end_reason::EndReason;
pub use line::LineOptions;
pub(crate) use plan::Plan;
pub use preset::Preset;
pub(crate) use rearm::rearm;
#[cfg(feature = "convert")]
pub(crate) use recorder::room::{Bound, room};
pub(crate) use repeat::repeat;
pub(crate) use ring::Ring;
pub use rotate::{RotateAt, RotateOptions};
pub use run::{measure, record};
pub(crate) use series::Series;
pub(crate) use setup::enable_events;
pub use snapshot::{kernel_config, meminfo};
pub use symbols::{Symbols, kallsyms_has_addresses};
pub(crate) use tasks::running_tasks;

use crate::survivors::SurvivorArgs;
use crate::tracefs::{EventSpec, TraceDir};

/// [`RecordOptions`], as callers in other crates name it.
pub type Options = RecordOptions;

/// Events, settings and output of a recording.
#[derive(Debug, Clone, Default)]
pub struct RecordOptions {
    /// A set of events.
    pub preset: Option<Preset>,
    /// Events besides.
    pub events: Vec<EventSpec>,
    /// Events whose stacks are taken.
    pub stacks: Vec<EventSpec>,
    /// Tasks whose allocations are recorded; empty: all.
    pub pids: Vec<i32>,
    /// True if a probe records the objects passed to kfree_rcu.
    pub kfree_rcu: bool,
    /// Functions whose latency is taken.
    pub functions: Vec<String>,
    /// Latency from which a call of these functions is recorded.
    pub threshold: Option<Duration>,
    /// Trace clock.
    pub clock: Option<String>,
    /// Size of each CPU's ring buffer in bytes; `None`: from a probe.
    pub buffer_size: Option<u64>,
    /// True if that size was given without a unit: KiB may have been meant.
    pub is_buffer_size_plain: bool,
    /// How long.
    pub duration: Option<Duration>,
    /// Symbols of the kernel that the file gets.
    pub symbols: Symbols,
    /// Bytes that the file may have.
    pub max_size: Option<u64>,
    /// Which lives are written as sums; `None`: none.
    pub survivors: Option<SurvivorArgs>,
    /// How often /proc/slabinfo is read meanwhile.
    pub snapshot_every: Option<Duration>,
    /// The kernel's own accounts that are read at the begin and the end.
    pub baseline: Vec<Baseline>,
    /// True if sub-buffers are kept as the kernel wrote them.
    pub verbatim: bool,
    /// True if events that name tasks are recorded too.
    pub task_events: bool,
    /// Codec of the bodies.
    pub compression: Compression,
    /// File; `-` is standard output; `None`: a name from host and time.
    pub output: Option<PathBuf>,
    /// True if the file gets the kernel's configuration at once; else a recording of a minute or longer gets it.
    pub kernel_config: bool,
    /// True if an existing file is overwritten.
    pub force: bool,
    /// True if only problems are reported.
    pub quiet: bool,
    /// True if samples from before the recording come on standard input (module `samples`).
    pub samples: bool,
    /// True if the reason of the end is printed as a word, for the program that started the recording.
    pub end_reason: bool,
    /// True if a second process puts tracefs back if this one is killed: the running program, started again with
    /// [`guard::COMMAND`](crate::tracefs::guard::COMMAND), which it has to know.
    pub guard: bool,
    /// Mount point of tracefs.
    pub tracefs: Option<PathBuf>,
    /// True if the outcome is the command's status where the recording succeeded.
    pub exit_status: bool,
    /// True if the command runs on after the recording.
    pub keep_running: bool,
    /// Command to run meanwhile.
    pub command: Vec<OsString>,
    /// The instance to adopt as it is, or `top`; `None`: the recorder makes its own.
    pub adopt: Option<String>,
    /// The ring buffer keeps the newest events and is written when a condition holds; `None`: it is read all the time.
    pub black_box: Option<BlackBoxOptions>,
    /// When the recording continues in a new file; `None`: it has one file.
    pub rotate: Option<RotateOptions>,
    /// The recording is for `kmt-capture remote`: its output goes over a line, in frames.
    pub line: Option<LineOptions>,
}

/// Location of the function_graph tracer, in words; empty if there is none.
pub fn function_graph(top: &TraceDir, instance: &TraceDir) -> &'static str {
    match graph::location(top, instance, None) {
        graph::TracerLocation::Instance => "in an instance",
        graph::TracerLocation::TopLevel => "at the top level only",
        graph::TracerLocation::Nowhere => "",
    }
}
