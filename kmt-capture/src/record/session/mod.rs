//! One recording from begin to end.

mod begin;
mod drain;
mod end;
mod room;
mod sink;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kmt_format::Compression;
use kmt_format::kernel::{CpuStats, HeaderPage};
use kmt_format::write::{StatsTaken, Writer, WriterLimits, WriterOptions, WriterStats};

use self::end::{Ending, tell};
use self::room::{Room, is_in_memory};
use self::sink::Sink;
use super::command::Running;
use super::cpus::online;
use super::exits::Exits;
use super::line;
use super::plan::Plan;
use super::ring::Ring;
use super::setup::Setup;
use super::status::{Status, Totals};
use super::symbols::{Symbols, UsedSymbols};
use super::task_filter::TaskFilter;
use super::tasks::TaskNames;
use super::{Cost, RecordOptions, description, size, snapshot};
use crate::decode::{NATIVE_ORDER, SubBufferDecoder};
use crate::failure::{Failure, Outcome, Result};
use crate::uuid::Identity;
use kmt_common::text::count;

/// Memory that the file needs while it is written, for each CPU and for the index.
const LIMITS: WriterLimits = WriterLimits::new().chunk_len(128 << 10).index_rows(8_192);
/// Length of the configuration of the kernel in the file, at most about.
const CONFIG_LEN: u64 = 256 << 10;
/// How often buffers are emptied at least, and chunks written that are not full.
const ROUND: Duration = Duration::from_millis(100);
const FLUSH: Duration = Duration::from_secs(1);
/// Buffers that are so full when their turn comes have no time for anything else.
const BUSY_PERCENT: f64 = 30.0;
/// How often the trace clock is compared with the time of day.
const CLOCK_PAIR: Duration = Duration::from_secs(60);

/// Length of a recording that gets the kernel's configuration unasked: it takes 24 KB, and a short recording is to be small.
const CONFIG_AFTER: Duration = Duration::from_secs(60);

/// Records as `options` say.
pub fn record(options: &RecordOptions) -> Result<Outcome> {
    measure(options).map(|(outcome, _)| outcome)
}

/// Records as `options` say, and returns the cost too.
pub fn measure(options: &RecordOptions) -> Result<(Outcome, Cost)> {
    let path = options.output.clone().unwrap_or_else(|| PathBuf::from(description::own_default_name()));
    let mut sink = Sink::open(&path, options)?;
    let (mut setup, mut plan) = Setup::new(options)?;
    options.line.iter().for_each(|line| line::remove(&line.folder));
    sink.check_line()?;
    warn_of_tmpfs(&path, options);
    let cpus = online(&setup);
    let buffer_kb = match options.buffer_size {
        Some(bytes) => (bytes >> 10).max(1),
        None => {
            setup.enable(&mut plan)?;
            size::probe(&mut setup, cpus.len())?
        }
    };
    setup.buffer_size_kb(buffer_kb)?;
    if options.buffer_size.is_some() {
        setup.enable(&mut plan)?;
    }
    sink.check_line()?;
    let mut session = Session::new(setup, plan, options, sink, buffer_kb)?;
    let ended = session.describe(options).and_then(|()| {
        session.open_rings();
        session.announce(&path, options, buffer_kb);
        session.run(options)
    });
    session.finish(&path, options, ended)
}

struct Session {
    plan: Plan,
    writer: Writer,
    decoder: SubBufferDecoder,
    names: TaskNames,
    /// The filter of --pid, where the kernel cannot take it.
    tasks: TaskFilter,
    rings: Vec<Ring>,
    /// CPUs whose buffers cannot be read.
    refused: Vec<u32>,
    /// Counts of each CPU, also of CPUs that went offline.
    stats: Vec<(u32, WriterStats)>,
    /// The kernel's counters as they were read last.
    counters: Vec<(u32, CpuStats)>,
    buffer: Vec<u8>,
    buffer_len: u64,
    fill_percent: f64,
    /// How full the fullest buffer was in the last rounds.
    recent_fill_percent: f64,
    /// Time that this process had run for when the recording began.
    cpu_ns_before: u64,
    /// Begin of the recording.
    started: Instant,
    cost: Cost,
    /// Time that reading /proc/slabinfo took meanwhile.
    snapshots: Duration,
    /// Exits of tasks, where a command is recorded.
    exits: Option<Exits>,
    /// The command that runs meanwhile.
    command: Option<Running>,
    /// The symbols that events need, where only these get into the file.
    used: Option<UsedSymbols>,
    room: Room,
    /// Events that are left in the ring buffers because the file has no room for them.
    left: u64,
    /// True if the kernel's configuration is in the file.
    has_config: bool,
    sink: Sink,
    status: Status,
    /// Dropped last: an instance cannot be removed while a buffer of it is open.
    setup: Setup,
}

impl Session {
    fn new(setup: Setup, plan: Plan, options: &RecordOptions, sink: Sink, buffer_kb: u64) -> Result<Self> {
        let text = setup.header_page()?;
        let header_page = HeaderPage::parse(&text)
            .map_err(|e| Failure::new(format!("{}/events/header_page: {e}", setup.top.path().display())))?;
        let long_size = header_page.long_size();
        let writer_options = WriterOptions::new(NATIVE_ORDER, long_size)
            .align_u64(if cfg!(target_arch = "x86") && long_size == 4 { 4 } else { 8 })
            .page_size(rustix::param::page_size() as u64)
            .trace_uuid(identity())
            .compression(options.compression);
        let mut writer = Writer::with_limits(writer_options, LIMITS)?;
        if options.compression == Compression::None {
            let zstd = Compression::Zstd;
            writer.compress_besides(if zstd.is_available() { zstd } else { Compression::Lz4 })?;
        }
        let room = Room::new(sink.output.file().ok(), options.max_size);
        let names = TaskNames::new(&setup.dir, NATIVE_ORDER, long_size, &options.pids);
        let tasks = TaskFilter::new(&plan, &setup.dir, NATIVE_ORDER, long_size);
        let exits = (!options.command.is_empty()).then(|| Exits::new(&setup.dir, NATIVE_ORDER, long_size));
        Ok(Self {
            names,
            exits,
            tasks,
            rings: Vec::new(),
            refused: Vec::new(),
            stats: Vec::new(),
            counters: Vec::new(),
            buffer: vec![0; header_page.sub_buffer_len()],
            buffer_len: buffer_kb << 10,
            fill_percent: 0.0,
            recent_fill_percent: 0.0,
            cpu_ns_before: 0,
            started: Instant::now(),
            cost: Cost::default(),
            snapshots: Duration::ZERO,
            command: None,
            used: (options.symbols == Symbols::Used).then(UsedSymbols::default),
            room,
            left: 0,
            has_config: false,
            sink,
            status: Status::new(options.quiet, options.line.is_some()),
            writer,
            decoder: SubBufferDecoder::new(header_page, NATIVE_ORDER, options.verbatim),
            setup,
            plan,
        })
    }

    /// Records until something ends it: says what, if it was no error.
    fn run(&mut self, options: &RecordOptions) -> Result<Ending> {
        self.cpu_ns_before = description::own_cpu_ns().unwrap_or(0);
        self.setup.start()?;
        let start = Instant::now();
        self.started = start;
        self.command = Running::start(options)?;
        let (mut flushed, mut paired, mut looked) = (start, start, start);
        let can_wait = self.setup.dir.has("buffer_percent");
        let ending = loop {
            let left = options.duration.map(|d| d.saturating_sub(start.elapsed()));
            self.wait(left.map_or(ROUND, |left| left.min(ROUND)), can_wait);
            self.drain_round()?;
            if self.sink.signals.asked() > 0 {
                break Ending::Asked;
            }
            if self.command.as_mut().is_some_and(Running::has_ended) {
                break Ending::Command;
            }
            if left.is_some_and(|left| left.is_zero()) {
                break Ending::Time;
            }
            self.symbols_if_due()?;
            // Buffers are read also while symbols are looked for.
            if let Some(bound) = self.room.reached {
                break Ending::Size(bound);
            }
            let now = Instant::now();
            if now - flushed >= FLUSH {
                flushed = now;
                self.heartbeat(options)?;
            }
            if now - paired >= CLOCK_PAIR {
                paired = now;
                self.clock_pair()?;
            }
            let is_due = options.snapshot_every.is_some_and(|every| now - looked >= every);
            if is_due && self.room.has_room_before_end(&mut self.writer, self.room.end_len) {
                looked = now;
                self.snapshot(now)?;
            }
        };
        Ok(ending)
    }

    /// Writes symbols that are missing in front of the chunks that need them, as far as these are not written yet.
    fn symbols_if_due(&mut self) -> Result<()> {
        let Some(mut used) = self.used.take() else { return Ok(()) };
        // A pass takes a tenth of a second: where buffers are nearly full at every turn, it waits for the end.
        if self.recent_fill_percent < BUSY_PERCENT && used.is_due(&mut self.writer) {
            used.pass(|| self.drain_round())?;
            used.write(&mut self.writer)?;
            self.emit()?;
        }
        self.used = Some(used);
        Ok(())
    }

    /// Writes what was made.
    fn emit(&mut self) -> Result<()> {
        self.sink.emit(&mut self.writer)
    }

    /// Once a second: writes open chunks, names, and counters, so that whoever follows is not far behind.
    fn heartbeat(&mut self, options: &RecordOptions) -> Result<()> {
        self.open_rings();
        let is_due = options.kernel_config || self.started.elapsed() >= CONFIG_AFTER;
        if !self.has_config && is_due && self.room.has_room_before_end(&mut self.writer, CONFIG_LEN) {
            self.has_config = true;
            snapshot::write_config(&mut self.writer)?;
        }
        self.flush()?;
        self.read_counters();
        self.counters(StatsTaken::Before)?;
        self.emit()?;
        let totals = self.totals();
        match self.status.show(&totals) {
            Some(text) => self.sink.frame(line::STATUS, text.as_bytes()),
            None => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        for (cpu, _) in &self.stats {
            self.writer.flush(*cpu)?;
        }
        if self.names.pending() > 0 {
            self.writer.tasks(&self.names.take())?;
        }
        self.emit()
    }

    fn read_counters(&mut self) {
        let read = |cpu: &u32| CpuStats::parse(&self.setup.dir.read(&format!("per_cpu/cpu{cpu}/stats"))?);
        self.counters = self.stats.iter().filter_map(|(cpu, _)| Some((*cpu, read(cpu)?))).collect();
    }

    fn counters(&mut self, taken: StatsTaken) -> Result<()> {
        Ok(self.writer.stats(taken, &self.counters)?)
    }

    fn clock_pair(&mut self) -> Result<()> {
        let cpu = online(&self.setup).first().copied().unwrap_or(0);
        let Some(pair) = description::clock_pair(&self.setup, cpu) else { return Ok(()) };
        let pairs = [("clock.pair", pair.as_bytes())];
        Ok(self.writer.meta(&pairs)?)
    }

    fn snapshot(&mut self, start: Instant) -> Result<()> {
        let cpu = online(&self.setup).first().copied().unwrap_or(0);
        let now = || description::trace_now(&self.setup, cpu);
        if !snapshot::write_slabinfo(&mut self.writer, now)? {
            self.status.clear();
            kmt_common::message!("warning: /proc/slabinfo could not be read; this snapshot is missing");
        }
        self.snapshots += start.elapsed();
        self.emit()
    }

    fn totals(&self) -> Totals {
        Totals {
            events: self.stats.iter().map(|(_, s)| s.events).sum(),
            lost: self.counters.iter().filter_map(|(_, c)| c.lost_events()).fold(0, u64::saturating_add),
            bytes: self.sink.output.len(),
            fill_percent: self.fill_percent,
        }
    }

    /// Stops, empties the buffers, and closes the file.
    fn finish(
        mut self,
        path: &Path,
        options: &RecordOptions,
        ended: Result<Ending>,
    ) -> Result<(Outcome, Cost)> {
        self.status.clear();
        let finished = ended.and_then(|ending| self.close(options, ending).map(|()| ending));
        let ended = self.command.as_ref().filter(|command| !command.is_signalled());
        let status = ended.and_then(Running::code).filter(|_| options.exit_status);
        let (totals, cost) = (self.totals(), self.cost);
        let Self { setup, writer, decoder, mut sink, rings, counters, left, command, .. } = self;
        let (unfinished, events_written) = (sink.output.unfinished().map(Path::to_owned), sink.events);
        let named = match finished {
            Ok(ending) => (|| {
                let end = writer.finish()?;
                sink.write(&end)?;
                sink.frame(line::END, &[])?;
                sink.output.finish().map(|()| ending)
            })(),
            Err(failure) => {
                // A file without events is worth nothing to anybody.
                if sink.events == 0 {
                    sink.output.discard();
                }
                Err(failure)
            }
        };
        // Tracefs is put back before anything is told: whoever reads that it ended may rely on it.
        drop(rings);
        drop(setup);
        if let (Err(_), Some(mut command)) = (&named, command.filter(|_| !options.keep_running)) {
            command.end();
        }
        let ending = named.map_err(|failure| match unfinished.filter(|part| part.exists()) {
            Some(part) => failure.hint(format!(
                "{} has the {} recorded until then: kmt-analyze {}",
                part.display(),
                count(events_written, "event"),
                part.display()
            )),
            None => failure,
        })?;
        let outcome = tell(path, options, &totals, &cost, &counters, decoder.lost, (ending, left));
        let outcome = match (outcome, status) {
            (Outcome::Done, Some(status)) => Outcome::Command(status),
            _ => outcome,
        };
        Ok((outcome, cost))
    }
}

fn identity() -> [u8; 16] {
    let mut identity = Identity::new();
    let boot = std::fs::read("/proc/sys/kernel/random/uuid").unwrap_or_default();
    identity.add(&boot);
    identity.add(&std::process::id().to_le_bytes());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    identity.add(&now.map_or(0, |d| d.as_nanos()).to_le_bytes());
    identity.finish()
}

/// A file on a tmpfs takes the memory that is being looked at.
fn warn_of_tmpfs(path: &Path, options: &RecordOptions) {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !options.quiet && path != Path::new("-") && is_in_memory(folder) {
        kmt_common::message!(
            "warning: {} is in memory (tmpfs): the file uses memory that is being measured, and is lost at a reboot",
            folder.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::alone::Alone;
    use crate::tracefs;

    /// Unwinding closes the buffers before the instance is removed.
    #[test]
    fn a_panic_leaves_nothing_in_tracefs() {
        let Some(_alone) = Alone::or_skip() else { return };
        let options = RecordOptions { quiet: true, buffer_size: Some(64 << 10), ..RecordOptions::default() };
        let (mut setup, mut plan) = Setup::new(&options).unwrap();
        let path = setup.dir.path().to_owned();
        setup.enable(&mut plan).unwrap();
        let file = std::env::temp_dir().join(format!("kmt-panic-{}.kmt", std::process::id()));
        let sink = Sink::open(&file, &RecordOptions { force: true, ..RecordOptions::default() }).unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut session = Session::new(setup, plan, &options, sink, 64).unwrap();
            session.open_rings();
            session.setup.start().unwrap();
            assert!(path.exists() && !session.rings.is_empty());
            panic!("in the middle of a recording");
        }));
        assert!(panicked.is_err() && !path.exists());
        assert!(
            tracefs::mounted()
                .is_some_and(|top| tracefs::orphans(&top).iter().all(|name| top.file(name) != path))
        );
        let _ = std::fs::remove_file(file.with_extension("kmt.part"));
    }
}
