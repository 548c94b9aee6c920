//! An opened trace with its losses, and metadata on times, nodes and texts.
//!
//! A session is made once for a file by `open` and given to passes, reports, exports and edits. Facts that need no
//! event are computed when it is made; names of tasks and source lines when they are first needed. It has the
//! environment of the command, with its limits.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use kmt_common::shell;
use kmt_format::kernel::{ClockUnit, KernelVersion};
use kmt_format::print::PrintEnv;
use kmt_format::read::{Header, Metadata, SymbolTable, Trace};

use crate::env::Env;
use crate::failure::{Failure, Result};
use crate::limits::RunLimits;
use crate::source::{SourceTable, Wrappers};
use crate::trace::ages::Ages;
use crate::trace::cgroups::Cgroups;
use crate::trace::clock::{self, Clock};
use crate::trace::comms::Comms;
use crate::trace::cpu_nodes::CpuNodes;
use crate::trace::losses::Losses;
use crate::trace::names::Symbolizer;

/// An opened trace.
pub struct Session<'d> {
    /// File.
    pub path: PathBuf,
    /// Contents of the file.
    pub trace: &'d Trace<'d>,
    /// Lost events.
    pub losses: Losses,
    /// Standard output and limits.
    pub(crate) env: Env,
    names: OnceLock<Comms>,
    cgroups: OnceLock<Cgroups>,
    source: OnceLock<SourceTable<'d>>,
}

impl<'d> Session<'d> {
    /// A session for a trace opened from `path`.
    pub fn new(path: &Path, trace: &'d Trace<'d>) -> Self {
        Self::in_env(path, trace, &Env::default())
    }

    /// A session of a command.
    pub(crate) fn in_env(path: &Path, trace: &'d Trace<'d>, env: &Env) -> Self {
        let (path, losses, env) = (path.to_owned(), Losses::of(trace), env.clone());
        let (names, cgroups, source) = Default::default();
        Self { path, trace, losses, env, names, cgroups, source }
    }

    /// The file, or the files of the recording, as words of a command line.
    pub(crate) fn file_arguments(&self) -> String {
        match self.env.parts.as_slice() {
            [] => shell::path(&self.path),
            parts => parts.iter().map(|part| shell::path(part)).collect::<Vec<_>>().join(" "),
        }
    }

    /// Names of tasks over time, looked up when they are first needed.
    pub fn names(&self) -> &Comms {
        self.names.get_or_init(|| Comms::of(self.trace))
    }

    /// Cgroups of tasks over time, looked up when they are first needed.
    pub(crate) fn cgroups(&self) -> &Cgroups {
        self.cgroups.get_or_init(|| Cgroups::of(self.trace))
    }

    /// Refused if no cgroup is known. `what`: what asks for them.
    pub(crate) fn check_cgroups(&self, what: &str) -> Result<()> {
        if !self.cgroups().is_empty() {
            return Ok(());
        }
        Err(Failure::new(format!("{what} needs cgroups of tasks, and {} has none", self.path.display()))
            .hint("`kmt-capture record` records them"))
    }

    /// Functions and source lines of addresses: those that the file has, or that were looked up.
    pub(crate) fn source(&self) -> &SourceTable<'d> {
        self.source.get_or_init(|| SourceTable::of_file(self.trace, Wrappers::default()))
    }

    /// Refused if no source line is known. `what`: what asks for them.
    pub(crate) fn check_source(&self, what: &str) -> Result<()> {
        if !self.source().is_empty() {
            return Ok(());
        }
        Err(Failure::new(format!("{what} needs source lines, and {} has none", self.path.display()))
            .hint("--vmlinux FILE looks them up, and `kmt-analyze symbolize` puts them into a file"))
    }

    /// Refused if no directory is known. `what`: what asks for them.
    pub(crate) fn check_directories(&self, what: &str) -> Result<()> {
        if self.source().has_directories() {
            return Ok(());
        }
        Err(Failure::new(format!("{what} needs names of functions, and {} has none", self.path.display()))
            .hint("record or convert it with /proc/kallsyms, which root can read"))
    }

    /// This session with these source lines.
    pub(crate) fn with_source(self, source: SourceTable<'d>) -> Self {
        Self { source: OnceLock::from(source), ..self }
    }

    /// Version of the traced kernel.
    pub fn version(&self) -> Option<KernelVersion> {
        self.trace.metadata().kernel_version()
    }

    /// Sampled events: name, samples, number of events that they stand for. From perf, with -F or -c.
    pub fn sampled(&self) -> Vec<(&'d str, u64, u64)> {
        let text = self.trace.metadata().text("perf/sampled").unwrap_or_default();
        let row = |line: &'d str| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        };
        text.lines().filter_map(row).collect()
    }

    /// Reason why addresses have no meaning, if so: a text may have hashes of them.
    pub fn no_addresses(&self) -> Option<&'static str> {
        let is_hashed = self.trace.metadata().text("pointers") == Some("hashed");
        is_hashed.then_some("the trace was made of text whose pointers are hashes of addresses")
    }

    /// The clock's unit.
    pub fn unit(&self) -> ClockUnit {
        clock_unit(self.trace.metadata())
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        Clock::of(self.trace.metadata())
    }

    /// Time of the first event.
    pub fn first_time(&self) -> Option<u64> {
        let infos = self.trace.streams().values().flat_map(|s| &s.chunks).map(|(_, info)| info);
        infos.filter(|i| i.event_count > 0).map(|i| i.t_first).min()
    }

    /// Lengths of lives.
    pub fn ages(&self) -> Ages {
        Ages::of(self.trace.metadata(), self.first_time())
    }

    /// True if the first events are of a boot, before its trace clock ran.
    pub fn begins_before_clock(&self) -> bool {
        self.first_time().is_some_and(|first| !self.ages().is_known(first))
    }

    /// Time of day of a time of the trace's clock, in nanoseconds since 1970, by the nearest pair of times in the
    /// recording. `None`: no pairs, or the clock does not count nanoseconds.
    pub fn time_of_day(&self, time: u64) -> Option<i64> {
        if self.unit() != ClockUnit::Nanoseconds {
            return None;
        }
        let time = i64::try_from(time).ok()?;
        let pairs = clock::pairs(self.trace.metadata());
        let (trace, day) = pairs.into_iter().min_by_key(|(trace, _)| trace.abs_diff(time))?;
        day.checked_add(time.checked_sub(trace)?)
    }

    /// Time of the last event.
    pub fn last_time(&self) -> Option<u64> {
        let infos = self.trace.streams().values().flat_map(|s| &s.chunks).map(|(_, info)| info);
        infos.filter(|i| i.event_count > 0).map(|i| i.t_last).max()
    }

    /// log2 of the pages of a pageblock, from /proc/pagetypeinfo; or true and an assumed value: most kernels use the
    /// size of a huge page, 9 with pages of 4 KiB.
    pub fn pageblock_order(&self) -> (u32, bool) {
        let recorded = self.trace.metadata().pageblock_order().and_then(|o| u32::try_from(o).ok());
        recorded.filter(|&o| o < 32).map_or((9, true), |order| (order, false))
    }

    /// Node of each CPU; `None`: not in the file.
    pub fn cpu_nodes(&self) -> Option<CpuNodes> {
        CpuNodes::of(self.trace.metadata())
    }

    /// Environment for names of flags alone, which need neither symbols nor strings.
    pub fn flag_env(&self) -> PrintEnv<'d> {
        let header = self.trace.header();
        PrintEnv::new(header.order, header.long_size).with_limits(self.env.limits.print)
    }

    /// Environment for texts of events: symbols, strings and constants.
    pub fn print_env(&self) -> PrintEnv<'d> {
        let trace = self.trace;
        print_env(trace.header(), trace.metadata(), trace.symbols(), &self.env.limits)
    }

    /// Symbols of addresses.
    pub(crate) fn symbolizer(&self) -> Symbolizer<'d> {
        Symbolizer::new(self.print_env())
    }
}

/// The clock's unit.
pub fn clock_unit(metadata: &Metadata<'_>) -> ClockUnit {
    metadata.clock.as_ref().map_or(ClockUnit::Nanoseconds, |clock| clock.unit)
}

/// Environment for texts of events: symbols, strings and constants.
pub fn print_env<'d>(
    header: &Header,
    metadata: &'d Metadata<'d>,
    symbols: Option<&'d SymbolTable<'d>>,
    limits: &RunLimits,
) -> PrintEnv<'d> {
    PrintEnv::of(header, metadata, symbols).with_limits(limits.print)
}
