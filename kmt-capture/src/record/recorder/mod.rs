//! A recording: takes events from the kernel to the file, and prints nothing. Its notices are for the program around it.
//!
//! Here is what all parts share: the state, its begin, and counters. `begin` and `end` write the chunks before the first and
//! after the last event, `turn` is the loop between them, `drain` empties the ring buffers, `rotate` is between two files,
//! `watch` waits for a condition, and `finished` closes the recording.

mod begin;
mod changed;
mod cpu;
mod drain;
mod end;
mod finished;
pub(super) mod room;
mod rotate;
mod shortage;
pub(super) mod sink;
mod turn;
mod watch;

use std::path::Path;
use std::time::Duration;

use kmt_format::Compression;
use kmt_format::kernel::{ByteOrder, CpuStats, HeaderPage, TraceClock};
use kmt_format::write::{Keep, StatsTaken, Writer, WriterLimits, WriterOptions};

use self::changed::Changes;
use self::cpu::Cpu;
pub(super) use self::finished::Finished;
use self::room::{Bound, Room};
use self::rotate::FileBegin;
use self::sink::Sink;
use self::turn::Times;
pub(super) use self::turn::TurnResult;
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
use super::{Cost, RecordOptions, description, direct_map};
use crate::failure::{Failure, Result};
use crate::survivors::SurvivorArgs;
use crate::uuid::Identity;
use kmt_common::kmt_file::KmtFile;
use kmt_common::survivors::{KnownMap, SurvivorOptions};

/// Memory that the file needs while it is written, for each CPU and for the index.
const LIMITS: WriterLimits = WriterLimits::new().chunk_len(128 << 10).index_rows(8_192);

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
            .compression(options.compression)
            .folded(options.survivors.is_some());
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
        if let Some(survivors) = &options.survivors {
            self.file.fold(self.folding(survivors));
        }
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

    /// How lives are folded.
    fn folding(&self, survivors: &SurvivorArgs) -> SurvivorOptions {
        let (millisecond, _) = TraceClock::named(&self.setup.clock).millisecond();
        let direct_map = direct_map::base(Path::new("/proc/kcore"), ByteOrder::NATIVE);
        SurvivorOptions {
            threshold: survivors.in_clock(survivors.threshold, millisecond),
            interval: survivors.in_clock(survivors.interval, millisecond).max(1),
            millisecond,
            memory: survivors.memory,
            order: ByteOrder::NATIVE,
            long_size: self.layout.long_size(),
            page_shift: rustix::param::page_size().trailing_zeros(),
            map: direct_map.map_or(KnownMap::Learning, KnownMap::Base),
            narrowed: self.plan.narrowed(),
        }
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

    pub(super) fn totals(&self) -> Totals {
        Totals {
            events: self.begin.events.saturating_add(self.file.events()),
            lost: self.cpus.iter().map(Cpu::lost).fold(0, u64::saturating_add),
            bytes: self.begin.bytes.saturating_add(self.file.output.out.len()),
            fill_percent: self.fill_percent,
        }
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
