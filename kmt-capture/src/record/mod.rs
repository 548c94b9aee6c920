//! `record`: a running system's ring buffers to a file, losing nothing silently.

mod command;
mod cpus;
mod description;
mod graph;
mod mapped;
mod plan;
mod ring;
mod session;
mod setup;
mod size;
mod snapshot;
mod status;
mod symbols;
mod tasks;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use kmt_format::Compression;

use kmt_format::kernel::{ByteOrder, HeaderPage};

pub use plan::Preset;
pub use session::record;
pub use snapshot::{kernel_config, meminfo};
pub use symbols::{Symbols, kallsyms_has_addresses};

use crate::tracefs::{EventSpec, TraceDir};

/// What to record, how, and to where.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// A set of events.
    pub preset: Option<Preset>,
    /// Events besides.
    pub events: Vec<EventSpec>,
    /// Events whose stacks are taken.
    pub stacks: Vec<EventSpec>,
    /// Tasks whose allocations are recorded; empty: all.
    pub pids: Vec<i32>,
    /// Whether a probe shows what kfree_rcu is given.
    pub kfree_rcu: bool,
    /// Functions whose latency is taken.
    pub functions: Vec<String>,
    /// Latency from which a call of these functions is recorded.
    pub threshold: Option<Duration>,
    /// Trace clock.
    pub clock: Option<String>,
    /// Size of each CPU's ring buffer in bytes; `None`: from a probe.
    pub buffer_size: Option<u64>,
    /// How long.
    pub duration: Option<Duration>,
    /// Which symbols of the kernel get into the file.
    pub symbols: Symbols,
    /// Bytes that the file may have.
    pub max_size: Option<u64>,
    /// How often /proc/slabinfo is read meanwhile.
    pub snapshot_every: Option<Duration>,
    /// Whether sub-buffers are kept as they are.
    pub verbatim: bool,
    /// Whether ring buffers are mapped where the kernel offers it. Reading them takes less time (benches/record/).
    pub mmap: bool,
    /// Whether events that tell the names of tasks are recorded along.
    pub task_events: bool,
    /// How bodies are stored.
    pub compression: Compression,
    /// File; `-` is standard output; `None`: a name from host and time.
    pub output: Option<PathBuf>,
    /// Whether an existing file is overwritten.
    pub force: bool,
    /// Whether nothing but problems is told.
    pub quiet: bool,
    /// Whether a second process puts tracefs back if this one is killed: the running program, started again with
    /// [`guard::COMMAND`](crate::tracefs::guard::COMMAND), which it has to know.
    pub guard: bool,
    /// Where tracefs is.
    pub tracefs: Option<PathBuf>,
    /// Whether the outcome is the command's status where the recording succeeded.
    pub exit_status: bool,
    /// What to run meanwhile.
    pub command: Vec<OsString>,
}

/// Whether ring buffers of that instance can be mapped.
pub fn can_map(dir: &TraceDir, header: &HeaderPage, order: ByteOrder) -> bool {
    let cpu = dir.cpus().first().copied().unwrap_or(0);
    let ring = ring::Ring::open(dir, cpu, header, order, ring::Access::Mapped);
    ring.is_ok_and(|ring| ring.access() == ring::Access::Mapped)
}

/// Where latencies of functions can be taken, in words; empty: nowhere.
pub fn function_graph(top: &TraceDir, instance: &TraceDir) -> &'static str {
    match graph::place(top, instance, None) {
        graph::Place::Instance => "in an instance",
        graph::Place::TopLevel => "at the top level only",
        graph::Place::Nowhere => "",
    }
}
