//! A recording: takes events from the kernel to the file, and prints nothing. Its notices are for the program around it.

mod begin;
mod changed;
mod cpu;
mod drain;
mod end;
mod finished;
pub(super) mod room;
mod rotate;
pub(super) mod sink;
mod watch;

use std::time::{Duration, Instant};

use kmt_format::Compression;
use kmt_format::kernel::{ByteOrder, CpuStats, HeaderPage};
use kmt_format::write::{Keep, StatsTaken, Writer, WriterLimits, WriterOptions};

use self::changed::Changes;
use self::cpu::Cpu;
pub(super) use self::finished::Finished;
use self::room::{Bound, Room};
use self::rotate::FileBegin;
use self::sink::Sink;
use self::watch::BlackBox;
use super::adopted::FoundFormats;
use super::command::Running;
use super::console::Totals;
use super::cpus::online;
use super::exits::Exits;
use super::plan::Plan;
use super::rotate::Rotation;
use super::settings::Settings;
use super::setup::Setup;
use super::symbols::{Symbols, UsedSymbols};
use super::task_filter::TaskFilter;
use super::tasks::TaskNames;
use super::{Cost, RecordOptions, description, snapshot};
use crate::failure::{Failure, Result};
use crate::uuid::Identity;
use kmt_common::kmt_file::KmtFile;
use kmt_common::shell;
use kmt_common::text::count;

/// Memory that the file needs while it is written, for each CPU and for the index.
const LIMITS: WriterLimits = WriterLimits::new().chunk_len(128 << 10).index_rows(8_192);
/// Length of the configuration of the kernel in the file, at most about.
const CONFIG_LEN: u64 = 256 << 10;
/// How often buffers are emptied at least, and chunks written that are not full.
const ROUND: Duration = Duration::from_millis(100);
const FLUSH: Duration = Duration::from_secs(1);
/// How often the trace clock is compared with the time of day.
const CLOCK_PAIR: Duration = Duration::from_secs(60);

/// Length of a recording that gets the kernel's configuration unasked: it takes 24 KB, and a short recording is to be small.
const CONFIG_AFTER: Duration = Duration::from_secs(60);

/// Why a recording stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopReason {
    Asked,
    /// By SIGUSR1: the file of a ring is to be written.
    Written,
    /// A condition of `--stop-when` held.
    Condition,
    Command,
    Time,
    Size(Bound),
    /// Another process changed the trace clock.
    Clock,
}

/// Result of one turn of the recording loop.
#[derive(Debug, Default)]
pub(super) struct TurnResult {
    /// Why the recording is to stop now.
    pub stop_reason: Option<StopReason>,
    /// True once a second.
    pub is_heartbeat: bool,
}

/// Times of what is done now and then.
struct Times {
    start: Instant,
    flushed: Instant,
    paired: Instant,
    looked: Instant,
}

impl Times {
    fn from_now() -> Self {
        let now = Instant::now();
        Self { start: now, flushed: now, paired: now, looked: now }
    }
}

pub(super) struct Recorder {
    plan: Plan,
    layout: HeaderPage,
    keep: Keep,
    names: TaskNames,
    /// The filter of --pid, where the kernel cannot take it.
    tasks: TaskFilter,
    cpus: Vec<Cpu>,
    /// CPUs whose buffers cannot be read.
    refused: Vec<u32>,
    buffer: Vec<u8>,
    buffer_len: u64,
    fill_percent: f64,
    /// True if the last round did not empty all buffers.
    has_rest: bool,
    /// Time that this process had run for when the recording began.
    cpu_ns_before: u64,
    times: Times,
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
    /// Settings of the buffer while events come.
    settings: Option<Settings>,
    /// Changes by other processes.
    changes: Changes,
    /// True if the kernel's configuration is in the file.
    has_config: bool,
    /// The files of the recording, if it may have several.
    rotation: Option<Rotation>,
    /// Begin of the current file.
    begin: FileBegin,
    /// The wait of a ring buffer that is not read until a condition holds.
    black_box: Option<BlackBox>,
    /// Formats of a buffer that was found.
    formats: Option<FoundFormats>,
    /// The file being written. Its losses are those that sub-buffers are marked with, damage, and events that others switched off.
    pub(super) file: KmtFile<Sink>,
    /// Messages that are not taken yet.
    pub(super) notices: Vec<String>,
    /// Dropped last: an instance cannot be removed while a buffer of it is open.
    setup: Setup,
}

impl Recorder {
    pub(super) fn new(
        setup: Setup,
        plan: Plan,
        options: &RecordOptions,
        sink: Sink,
        buffer_kb: u64,
        rotation: Option<Rotation>,
    ) -> Result<Self> {
        let text = setup.header_page()?;
        let header_page = HeaderPage::parse(&text)
            .map_err(|e| Failure::new(format!("{}/events/header_page: {e}", setup.top.path().display())))?;
        let long_size = header_page.long_size();
        let writer_options = WriterOptions::new(ByteOrder::NATIVE, long_size)
            .align_u64(if cfg!(target_arch = "x86") && long_size == 4 { 4 } else { 8 })
            .page_size(rustix::param::page_size() as u64)
            .trace_uuid(identity())
            .compression(options.compression);
        let mut writer = Writer::with_limits(writer_options, LIMITS)?;
        if options.compression == Compression::None {
            let zstd = Compression::Zstd;
            writer.compress_besides(if zstd.is_available() { zstd } else { Compression::Lz4 })?;
        }
        let room = Room::new(sink.out.file().ok(), options.max_size);
        let names = TaskNames::new(&setup.dir, ByteOrder::NATIVE, long_size, &options.pids);
        let tasks = TaskFilter::new(&plan, &setup.dir, ByteOrder::NATIVE, long_size);
        let exits =
            (!options.command.is_empty()).then(|| Exits::new(&setup.dir, ByteOrder::NATIVE, long_size));
        Ok(Self {
            names,
            exits,
            tasks,
            cpus: Vec::new(),
            refused: Vec::new(),
            buffer: vec![0; header_page.sub_buffer_len()],
            buffer_len: buffer_kb << 10,
            fill_percent: 0.0,
            has_rest: false,
            cpu_ns_before: 0,
            times: Times::from_now(),
            cost: Cost::default(),
            snapshots: Duration::ZERO,
            command: None,
            used: (options.symbols == Symbols::Used).then(UsedSymbols::default),
            room,
            left: 0,
            settings: None,
            changes: Changes::default(),
            has_config: false,
            rotation,
            begin: FileBegin::now(),
            black_box: None,
            formats: setup.adopted.as_ref().map(|_| FoundFormats::new(&setup.dir)),
            notices: Vec::new(),
            file: KmtFile::new(writer, sink),
            layout: header_page,
            keep: if options.verbatim { Keep::Verbatim } else { Keep::Decoded },
            setup,
            plan,
        })
    }

    /// Lets events come.
    pub(super) fn start(&mut self, options: &RecordOptions) -> Result<()> {
        self.cpu_ns_before = description::own_cpu_ns().unwrap_or(0);
        let cpus: Vec<u32> = self.cpus.iter().map(Cpu::number).collect();
        let mut settings = Settings::new(&self.setup.dir, &self.plan, &cpus);
        self.setup.start()?;
        settings.set_by_us(["tracing_on"]);
        self.settings = Some(settings);
        if self.setup.adopted.is_some() {
            self.read_counters()?;
        }
        self.changes.looked = self.trace_now().unwrap_or(0);
        self.times = Times::from_now();
        self.begin = FileBegin::now();
        self.rotation.iter_mut().for_each(Rotation::start);
        self.command = Running::start(options)?;
        Ok(())
    }

    /// Waits for events, and takes them; does what is due.
    pub(super) fn turn(&mut self, options: &RecordOptions) -> Result<TurnResult> {
        let left = options.duration.map(|d| d.saturating_sub(self.times.start.elapsed()));
        if !self.has_rest {
            self.wait(left.map_or(ROUND, |left| left.min(ROUND)), self.setup.dir.has("buffer_percent"));
        }
        self.notice_writes()?;
        self.drain_round()?;
        let is_over = left.is_some_and(|left| left.is_zero());
        if let Some(reason) = self.stop_reason(is_over) {
            return Ok(TurnResult { stop_reason: Some(reason), is_heartbeat: false });
        }
        self.symbols_if_due()?;
        if let Some(bound) = self.room.reached {
            return Ok(TurnResult { stop_reason: Some(StopReason::Size(bound)), is_heartbeat: false });
        }
        let now = Instant::now();
        let is_heartbeat = now - self.times.flushed >= FLUSH;
        if is_heartbeat {
            self.times.flushed = now;
            self.heartbeat(options)?;
        }
        if now - self.times.paired >= CLOCK_PAIR {
            self.times.paired = now;
            self.clock_pair()?;
        }
        let is_due = options.snapshot_every.is_some_and(|every| now - self.times.looked >= every);
        if is_due && self.room.has_room_before_end(&mut self.file.writer, self.room.end_len) {
            self.times.looked = now;
            self.snapshot(now)?;
        }
        self.rotate_if_due(options)?;
        Ok(TurnResult { stop_reason: None, is_heartbeat })
    }

    /// Why the recording stops now, if it does.
    fn stop_reason(&mut self, is_over: bool) -> Option<StopReason> {
        if self.changes.of_clock {
            return Some(StopReason::Clock);
        }
        if self.file.output.signals.asked() > 0 {
            return Some(StopReason::Asked);
        }
        if self.file.output.signals.is_file_wanted() {
            return Some(StopReason::Written);
        }
        if self.command.as_mut().is_some_and(Running::has_ended) {
            return Some(StopReason::Command);
        }
        is_over.then_some(StopReason::Time)
    }

    /// Writes symbols that events need, as they are found.
    fn symbols_if_due(&mut self) -> Result<()> {
        let Some(used) = &mut self.used else { return Ok(()) };
        if used.advance(&mut self.file.writer)? {
            self.file.write()?;
        }
        Ok(())
    }

    /// Once a second: writes open chunks, names, and counters, so that a reader that follows is up to date.
    fn heartbeat(&mut self, options: &RecordOptions) -> Result<()> {
        self.file.output.out.check_name()?;
        self.open_rings();
        let is_due = options.kernel_config || self.times.start.elapsed() >= CONFIG_AFTER;
        if !self.has_config && is_due && self.room.has_room_before_end(&mut self.file.writer, CONFIG_LEN) {
            self.has_config = true;
            snapshot::write_config(&mut self.file.writer)?;
        }
        self.flush()?;
        self.read_counters()?;
        self.write_counters(StatsTaken::Before)?;
        self.read_settings()?;
        self.file.write()
    }

    fn flush(&mut self) -> Result<()> {
        for cpu in &self.cpus {
            self.file.writer.flush(cpu.number())?;
        }
        if self.names.pending() > 0 {
            self.file.writer.add_tasks(&self.names.take())?;
        }
        self.file.write()
    }

    fn read_counters(&mut self) -> Result<()> {
        self.notice_writes()?;
        let dir = &self.setup.dir;
        let read = |cpu: u32| CpuStats::parse(&dir.read(&format!("per_cpu/cpu{cpu}/stats"))?);
        let mut is_reset = false;
        for cpu in &mut self.cpus {
            is_reset |= cpu.counters.add(read(cpu.number()));
        }
        let sees_writes = self.settings.as_ref().is_some_and(|settings| settings.fd().is_some());
        if is_reset && !sees_writes { self.cleared() } else { Ok(()) }
    }

    /// The kernel's counters of the whole recording.
    fn counters(&self) -> Vec<(u32, CpuStats)> {
        self.cpus.iter().filter_map(|cpu| Some((cpu.number(), cpu.counters.sums?))).collect()
    }

    fn write_counters(&mut self, taken: StatsTaken) -> Result<()> {
        let rows = self.cpus.iter().filter_map(|cpu| Some((cpu.number(), cpu.of_file()?)));
        let rows: Vec<(u32, CpuStats)> = rows.collect();
        Ok(self.file.writer.add_stats(taken, &rows)?)
    }

    fn clock_pair(&mut self) -> Result<()> {
        let cpu = online(&self.setup).first().copied().unwrap_or(0);
        let Some(pair) = description::clock_pair(&self.setup, cpu) else { return Ok(()) };
        let pairs = [("clock.pair", pair.as_bytes())];
        Ok(self.file.writer.add_metadata(&pairs)?)
    }

    fn snapshot(&mut self, start: Instant) -> Result<()> {
        let cpu = online(&self.setup).first().copied().unwrap_or(0);
        let now = || description::trace_now(&self.setup, cpu);
        if !snapshot::write_slabinfo(&mut self.file.writer, now)? {
            self.notices
                .push("warning: /proc/slabinfo could not be read; this snapshot is missing".to_owned());
        }
        self.snapshots += start.elapsed();
        self.file.write()
    }

    pub(super) fn totals(&self) -> Totals {
        Totals {
            events: self.begin.events.saturating_add(self.file.events()),
            lost: self.cpus.iter().map(Cpu::lost).fold(0, u64::saturating_add),
            bytes: self.begin.bytes.saturating_add(self.file.output.out.len()),
            fill_percent: self.fill_percent,
        }
    }

    /// Stops, empties the buffers, and closes the file. Tracefs is put back before a message is printed: a user who reads that the
    /// recording ended may rely on it.
    pub(super) fn finish(
        mut self,
        options: &RecordOptions,
        stopped: Result<StopReason>,
    ) -> (Finished, Result<StopReason>) {
        let is_unwanted = stopped.as_ref().is_ok_and(|reason| reason.is_unwanted(options));
        let closed = match stopped {
            Ok(reason) if is_unwanted => Ok(reason),
            stopped => stopped.and_then(|reason| self.close(options, reason).map(|()| reason)),
        };
        let (window, cause) = (self.window(), self.cause());
        let overwritten_before = if self.setup.adopted.is_some() { self.file.overwritten } else { 0 };
        let command = self.command.as_ref().filter(|command| !command.is_signalled());
        let status = command.and_then(Running::code).filter(|_| options.exit_status);
        let totals = self.totals();
        let counters = self.counters();
        let Self { setup, file, cpus, left, command, cost, changes, settings, black_box, .. } = self;
        let (mut notices, mut rotation) = (self.notices, self.rotation);
        // The file before this one gets its name however this one ends.
        let mut removed = rotation.as_mut().map_or_else(|| Ok(Vec::new()), Rotation::wait);
        let (part, events_written, lost) = (file.output.out.part_name(), file.events_written, file.lost);
        let named = match closed {
            Ok(reason) if is_unwanted => {
                file.output.out.discard();
                Ok(reason)
            }
            Ok(reason) => file.finish().map(|()| reason),
            Err(failure) => {
                // A file without events is worth nothing.
                if events_written == 0 {
                    file.output.out.discard();
                }
                Err(failure)
            }
        };
        if let (Ok(_), Some(rotation), Ok(removed)) = (&named, &rotation, &mut removed) {
            removed.extend(rotation.finish().unwrap_or_default());
        }
        let named = match removed {
            Ok(removed) => {
                let removed = removed.iter().map(|path| format!("removed {}: --max-files", path.display()));
                notices.extend(removed);
                named
            }
            Err(failure) => named.and(Err(failure)),
        };
        drop((cpus, settings, black_box));
        drop(setup);
        if let (Err(_), Some(mut command)) = (&named, command.filter(|_| !options.keep_running)) {
            command.end();
        }
        // Not what another process has put in its place.
        let reason = named.map_err(|failure| match part.as_ref().and_then(|part| part.path()) {
            Some(part) => failure.hint(format!(
                "{} has the {} recorded until then: kmt-analyze {}",
                part.display(),
                count(events_written, "event"),
                shell::path(part)
            )),
            None => failure,
        });
        let changes = changes.count;
        let finished = Finished {
            totals,
            cost,
            counters,
            lost,
            left,
            status,
            notices,
            changes,
            window,
            cause,
            overwritten_before,
            is_unwanted,
            files: rotation.map(|rotation| rotation.files()).unwrap_or_default(),
        };
        (finished, reason)
    }
}

impl StopReason {
    /// True if no file is to be written: a wait that begins again after each file was ended from outside.
    fn is_unwanted(self, options: &RecordOptions) -> bool {
        let is_rearmed = options.black_box.as_ref().is_some_and(|options| options.rearm);
        is_rearmed && !matches!(self, Self::Condition | Self::Written)
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
            let mut recorder = Recorder::new(setup, plan, &options, sink, 64, None).unwrap();
            recorder.open_rings();
            recorder.setup.start().unwrap();
            assert!(path.exists() && !recorder.cpus.is_empty());
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
