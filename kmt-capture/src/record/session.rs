//! One recording from begin to end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kmt_format::kernel::{ByteOrder, CpuStats, HeaderPage, TraceClock, parse_modules};
use kmt_format::write::{Loss, StatsTaken, Writer, WriterLimits, WriterOptions, WriterStats};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::command::{Running, Signals};
use super::plan::Plan;
use super::ring::{Access, Ring};
use super::setup::Setup;
use super::snapshot::When;
use super::status::{Status, Totals};
use super::tasks::TaskNames;
use super::{Options, description, size, snapshot, status, symbols};
use crate::decode::Decoder;
use crate::failure::{Failure, Outcome, Result};
use crate::output::Output;
use crate::tracefs::Event;
use crate::uuid::Identity;

/// The byte order of the machine we run on, which is the kernel's.
const ORDER: ByteOrder = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
/// Memory that the file needs while it is written, for each CPU and for the index.
const LIMITS: WriterLimits = WriterLimits { chunk_len: 128 << 10, index_rows: 8_192 };
/// How often buffers are emptied at least, and chunks written that are not full.
const ROUND: Duration = Duration::from_millis(100);
const FLUSH: Duration = Duration::from_secs(1);
/// Sub-buffers of one CPU before the next one's turn.
const TURN: usize = 256;
/// How often the trace clock is compared with the time of day.
const CLOCK_PAIR: Duration = Duration::from_secs(60);

/// Records as `options` say.
pub fn record(options: &Options) -> Result<Outcome> {
    let path = options.output.clone().unwrap_or_else(|| PathBuf::from(description::default_name()));
    let signals = Signals::new()?;
    let output = Output::record(&path, options.force)?;
    let (mut setup, mut plan) = Setup::new(options)?;
    warn_of_tmpfs(&path, options);
    let cpus = online_cpus(&setup);
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
    let mut session = Session::new(setup, plan, options, Sink { output, signals }, buffer_kb)?;
    session.describe(options)?;
    session.open_rings(options);
    session.announce(&path, options, buffer_kb);
    let ended = session.run(options);
    session.finish(&path, options, ended)
}

/// Where the file goes, and what may interrupt a reader of it that does not read.
struct Sink {
    output: Output,
    signals: Signals,
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Self { output, signals } = self;
        output.write_unless(bytes, &mut || signals.asked() > 1)
    }
}

struct Session {
    plan: Plan,
    decoder: Decoder,
    names: TaskNames,
    rings: Vec<Ring>,
    /// What was read of each CPU; CPUs that went away are kept.
    stats: Vec<(u32, WriterStats)>,
    /// The kernel's counters as they were read last.
    counters: Vec<(u32, CpuStats)>,
    buffer: Vec<u8>,
    buffer_len: u64,
    fill_percent: f64,
    /// Time that this process had run for when the recording began.
    cpu_ns_before: u64,
    sink: Sink,
    status: Status,
    symbols: symbols::Symbols,
    /// Dropped last: an instance cannot be removed while a buffer of it is open.
    setup: Setup,
}

impl Session {
    fn new(setup: Setup, plan: Plan, options: &Options, sink: Sink, buffer_kb: u64) -> Result<Self> {
        let text = match setup.dir.read("events/header_page") {
            Some(text) => text,
            None => setup.top.must_read("events/header_page")?,
        };
        let header_page = HeaderPage::parse(&text)
            .map_err(|e| Failure::new(format!("{}/events/header_page: {e}", setup.top.path().display())))?;
        let long_size = header_page.long_size();
        let writer_options = WriterOptions {
            order: ORDER,
            long_size,
            align_u64: Some(if cfg!(target_arch = "x86") { 4 } else { 8 }),
            page_size: Some(rustix::param::page_size() as u64),
            trace_uuid: identity(),
            compression: options.compression,
        };
        let failed = |e: kmt_format::Error| Failure::new(e.to_string());
        let writer = Writer::with_limits(writer_options, LIMITS).map_err(failed)?;
        let names = TaskNames::new(&setup.dir, ORDER, long_size, &options.pids);
        Ok(Self {
            names,
            rings: Vec::new(),
            stats: Vec::new(),
            counters: Vec::new(),
            buffer: vec![0; header_page.sub_buffer_len()],
            buffer_len: buffer_kb << 10,
            fill_percent: 0.0,
            cpu_ns_before: 0,
            sink,
            status: Status::new(options.quiet),
            symbols: symbols::Symbols::Missing,
            decoder: Decoder {
                writer,
                header_page,
                order: ORDER,
                verbatim: options.verbatim,
                flagged: Loss::default(),
            },
            setup,
            plan,
        })
    }

    /// Everything that an analysis elsewhere needs, before the first event: any prefix of the file can be understood.
    fn describe(&mut self, options: &Options) -> Result<()> {
        let failed = |e: kmt_format::Error| Failure::new(e.to_string());
        self.formats()?;
        let sub_buffer_len = self.decoder.header_page.sub_buffer_len();
        let writer = &mut self.decoder.writer;
        writer.clock(&TraceClock::named(&self.setup.clock)).map_err(failed)?;
        description::write(writer, &self.setup, &self.plan, options, sub_buffer_len).map_err(failed)?;
        let missing = snapshot::write(writer, When::Before).map_err(failed)?;
        if !missing.is_empty() {
            self.plan.notes.push(format!("no snapshots of {}", missing.join(", ")));
        }
        self.names.running();
        writer.tasks(&self.names.take()).map_err(failed)?;
        self.emit()?;
        let modules = std::fs::read_to_string("/proc/modules").unwrap_or_default();
        if !modules.is_empty() {
            self.decoder.writer.file("modules", modules.as_bytes()).map_err(failed)?;
        }
        let modules = parse_modules(&modules);
        let Self { decoder, sink, .. } = self;
        let page_size = rustix::param::page_size() as u64;
        self.symbols = symbols::write(&mut decoder.writer, &modules, page_size, |writer| {
            sink.write(writer.pending())?;
            writer.clear_pending();
            Ok(())
        })?;
        match self.symbols {
            symbols::Symbols::Zeroed => self.plan.notes.push(
                "/proc/kallsyms holds only zeros, so call sites will print as addresses; \
                 `echo 0 > /proc/sys/kernel/kptr_restrict` as root, then record again"
                    .to_owned(),
            ),
            symbols::Symbols::Missing => self
                .plan
                .notes
                .push("no /proc/kallsyms (CONFIG_KALLSYMS): call sites will print as addresses".to_owned()),
            symbols::Symbols::Written(_) => {}
        }
        self.clock_pair()?;
        self.emit()
    }

    /// Makes the formats known of what can occur: the events asked for, and what ftrace writes by itself.
    fn formats(&mut self) -> Result<()> {
        let mut ids = Vec::new();
        for event in self.plan.events.keys() {
            let name = event.file("format");
            let text = self.setup.dir.read(&name).or_else(|| self.setup.top.read(&name));
            let id = text.and_then(|text| self.decoder.writer.add_format(&event.system, &text).ok());
            match id {
                Some(id) => ids.push(id),
                None => {
                    return Err(Failure::new(format!(
                        "{} cannot be understood",
                        self.setup.top.file(&name).display()
                    ))
                    .hint(format!("leave {event} out, and send us that file")));
                }
            }
        }
        for entry in std::fs::read_dir(self.setup.top.file("events/ftrace")).into_iter().flatten().flatten() {
            if let Ok(text) = std::fs::read_to_string(entry.path().join("format")) {
                // Whatever of these we cannot read hardly ever occurs, and is told as damage where it does.
                let _ = self.decoder.writer.add_format("ftrace", &text);
            }
        }
        let declared = ids.into_iter().try_for_each(|id| self.decoder.writer.declare(id));
        declared.map_err(|e| Failure::new(e.to_string()))
    }

    /// Opens the buffers of CPUs that are there and were not before.
    fn open_rings(&mut self, options: &Options) {
        let access = if options.mmap { Access::Mapped } else { Access::Read };
        for cpu in online_cpus(&self.setup) {
            if self.rings.iter().any(|ring| ring.cpu == cpu) {
                continue;
            }
            match Ring::open(&self.setup.dir, cpu, &self.decoder.header_page, ORDER, access) {
                Ok(ring) => {
                    self.rings.push(ring);
                    self.stats.push((cpu, WriterStats::default()));
                }
                Err(error) => self.plan.notes.push(format!("CPU {cpu} cannot be read: {error}")),
            }
        }
    }

    fn announce(&mut self, path: &Path, options: &Options, buffer_kb: u64) {
        let notes: Vec<String> = self.setup.notes.drain(..).chain(self.plan.notes.drain(..)).collect();
        if !options.quiet {
            notes.iter().for_each(|note| eprintln!("note: {note}"));
            let until = match (&options.duration, options.command.first()) {
                (Some(duration), _) => format!("for {} s; Ctrl-C stops earlier", duration.as_secs_f64()),
                (None, Some(command)) => {
                    format!("while {} runs; Ctrl-C stops earlier", command.to_string_lossy())
                }
                (None, None) => "until Ctrl-C".to_owned(),
            };
            eprintln!(
                "recording {} of {} CPUs to {}, {} of buffer a CPU, clock {}, {until}",
                self.plan.summary(),
                self.rings.len(),
                path.display(),
                status::bytes(buffer_kb << 10),
                self.setup.clock,
            );
        }
    }

    /// Records until something ends it: says what, if it was no error.
    fn run(&mut self, options: &Options) -> Result<Ending> {
        self.cpu_ns_before = description::own_cpu_ns().unwrap_or(0);
        self.setup.start()?;
        let start = Instant::now();
        let mut command = Running::start(&options.command)?;
        let (mut flushed, mut paired) = (start, start);
        let can_wait = self.setup.dir.has("buffer_percent");
        let ending = loop {
            let left = options.duration.map(|d| d.saturating_sub(start.elapsed()));
            self.wait(left.map_or(ROUND, |left| left.min(ROUND)), can_wait);
            self.drain_round()?;
            if self.sink.signals.asked() > 0 {
                break Ending::Asked;
            }
            if command.as_mut().is_some_and(Running::has_ended) {
                break Ending::Command;
            }
            if left.is_some_and(|left| left.is_zero()) {
                break Ending::Time;
            }
            if options.max_size.is_some_and(|max| self.sink.output.len() >= max) {
                break Ending::Size;
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
        };
        self.status.clear();
        if let Some(command) = &command {
            let outcome =
                command.outcome().unwrap_or_else(|| format!("{} is still running", command.describe()));
            if !options.quiet {
                eprintln!("{outcome}");
            }
            let pairs = [("record.command_outcome", outcome.as_bytes())];
            self.decoder.writer.meta(&pairs).map_err(|e| Failure::new(e.to_string()))?;
        }
        Ok(ending)
    }

    /// Waits until a buffer fills, something else happens, or the time is over. Kernels that cannot wait for a
    /// buffer to fill would wake us at every event.
    fn wait(&self, timeout: Duration, can_wait: bool) {
        let mut fds: Vec<PollFd<'_>> = self
            .sink
            .signals
            .fds()
            .into_iter()
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        if can_wait {
            fds.extend(self.rings.iter().map(|ring| PollFd::new(ring, PollFlags::IN)));
        }
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        // An interruption is as good as a timeout: everything is looked at afterwards.
        let _ = poll(&mut fds, Some(&timeout));
    }

    /// Empties all buffers as far as they were filled when their turn came.
    fn drain_round(&mut self) -> Result<()> {
        let mut drained = vec![0u64; self.rings.len()];
        loop {
            let mut again = false;
            for (index, drained) in drained.iter_mut().enumerate() {
                let count = self.drain_turn(index, drained)?;
                again |= count == TURN;
            }
            if !again || drained.iter().any(|&d| d > 2 * self.buffer_len.max(1 << 20)) {
                break;
            }
        }
        self.follow_threads()?;
        let most = drained.into_iter().max().unwrap_or(0);
        let fill = 100.0 * most as f64 / self.buffer_len.max(1) as f64;
        self.fill_percent = self.fill_percent.max(fill.min(100.0));
        Ok(())
    }

    /// Lets in the allocations of threads that the tasks of --pid have started.
    fn follow_threads(&mut self) -> Result<()> {
        let threads = self.names.new_threads();
        if threads.is_empty() {
            return Ok(());
        }
        self.plan.pids.extend(threads);
        self.setup.filter_tasks(&self.plan)
    }

    /// Reads some sub-buffers of one CPU; returns how many there were.
    fn drain_turn(&mut self, index: usize, drained: &mut u64) -> Result<usize> {
        let Self { rings, stats, decoder, names, buffer, sink, .. } = self;
        let (Some(ring), Some((cpu, stats))) = (rings.get_mut(index), stats.get_mut(index)) else {
            return Ok(0);
        };
        let header = decoder.header_page;
        for count in 0..TURN {
            let bytes = match ring.next(buffer) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(count),
                Err(error) => {
                    return Err(Failure::new(format!("reading the ring buffer of CPU {cpu}: {error}"))
                        .hint("with or without --mmap it is read in another way"));
                }
            };
            *drained += bytes.len() as u64;
            let is_full = is_full(bytes, &header);
            if let Err(error) = decoder.sub_buffer(*cpu, bytes, stats, |time, record| names.see(time, record))
            {
                stats.sub_buffers_damaged += 1;
                if stats.sub_buffers_damaged == 1 {
                    eprintln!("warning: a sub-buffer of CPU {cpu} cannot be decoded to its end: {error}");
                }
                decoder.damaged(*cpu).map_err(|e| Failure::new(e.to_string()))?;
            }
            if decoder.writer.pending_len() > 0 {
                sink.write(decoder.writer.pending())?;
                decoder.writer.clear_pending();
            }
            // The kernel is writing to this one: to go after it would be a system call for a handful of events.
            if !is_full {
                return Ok(count);
            }
        }
        Ok(TURN)
    }

    /// Notes events that somebody else switched off, or that went away with their module, while we recorded.
    fn disturbed(&mut self) -> Result<()> {
        let is_on =
            |event: &Event| self.setup.dir.read(&event.file("enable")).is_some_and(|t| t.starts_with('1'));
        let off: Vec<String> =
            self.plan.events.keys().filter(|event| !is_on(event)).map(Event::to_string).collect();
        if off.is_empty() {
            return Ok(());
        }
        self.status.clear();
        eprintln!(
            "warning: {} went away or was disabled by somebody else during the recording",
            off.join(", ")
        );
        self.decoder.flagged.uncounted = true;
        let pairs = [("record.disabled", off.join(" ").into_bytes())];
        let pairs = pairs.each_ref().map(|(key, value)| (*key, value.as_slice()));
        self.decoder.writer.meta(&pairs).map_err(|e| Failure::new(e.to_string()))
    }

    /// Writes what was made.
    fn emit(&mut self) -> Result<()> {
        if self.decoder.writer.pending_len() > 0 {
            self.sink.write(self.decoder.writer.pending())?;
            self.decoder.writer.clear_pending();
        }
        Ok(())
    }

    /// Once a second: writes open chunks, names, and counters, so that whoever follows is not far behind.
    fn heartbeat(&mut self, options: &Options) -> Result<()> {
        self.open_rings(options);
        self.flush()?;
        self.read_counters();
        self.counters(StatsTaken::Before)?;
        self.emit()?;
        let totals = self.totals();
        self.status.show(&totals);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let failed = |e: kmt_format::Error| Failure::new(e.to_string());
        for (cpu, _) in &self.stats {
            self.decoder.writer.flush(*cpu).map_err(failed)?;
        }
        if self.names.pending() > 0 {
            self.decoder.writer.tasks(&self.names.take()).map_err(failed)?;
        }
        self.emit()
    }

    fn read_counters(&mut self) {
        let read = |cpu: &u32| CpuStats::parse(&self.setup.dir.read(&format!("per_cpu/cpu{cpu}/stats"))?);
        self.counters = self.stats.iter().filter_map(|(cpu, _)| Some((*cpu, read(cpu)?))).collect();
    }

    fn counters(&mut self, taken: StatsTaken) -> Result<()> {
        self.decoder.writer.stats(taken, &self.counters).map_err(|e| Failure::new(e.to_string()))
    }

    fn clock_pair(&mut self) -> Result<()> {
        let cpu = online_cpus(&self.setup).first().copied().unwrap_or(0);
        let Some(pair) = description::clock_pair(&self.setup, cpu) else { return Ok(()) };
        let pairs = [("clock.pair", pair.as_bytes())];
        self.decoder.writer.meta(&pairs).map_err(|e| Failure::new(e.to_string()))
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
    fn finish(mut self, path: &Path, options: &Options, ended: Result<Ending>) -> Result<Outcome> {
        self.status.clear();
        let finished = ended.and_then(|ending| self.close().map(|()| ending));
        let totals = self.totals();
        let Self { setup, decoder, mut sink, rings, counters, .. } = self;
        let unfinished = sink.output.unfinished().map(Path::to_owned);
        let named = finished.and_then(|ending| {
            let end = decoder.writer.finish().map_err(|e| Failure::new(e.to_string()))?;
            sink.write(&end)?;
            sink.output.finish().map(|()| ending)
        });
        // Tracefs is put back before anything is told: whoever reads that it ended may rely on it.
        drop(rings);
        drop(setup);
        let ending = named.map_err(|failure| match unfinished.filter(|part| part.exists()) {
            Some(part) => failure.hint(format!(
                "{} holds what was recorded until then, {} events: kmt-analyze {}",
                part.display(),
                totals.events,
                part.display()
            )),
            None => failure,
        })?;
        Ok(tell(path, options, &totals, &counters, decoder.flagged, ending))
    }

    /// What is written behind the last event.
    fn close(&mut self) -> Result<()> {
        let failed = |e: kmt_format::Error| Failure::new(e.to_string());
        self.setup.stop()?;
        self.disturbed()?;
        self.read_counters();
        self.counters(StatsTaken::Before)?;
        while {
            let before: u64 = self.stats.iter().map(|(_, s)| s.bytes).sum();
            self.drain_round()?;
            before != self.stats.iter().map(|(_, s)| s.bytes).sum()
        } {}
        self.read_counters();
        let is_lossy = self.totals().lost > 0 || self.decoder.flagged != Loss::default();
        let now = self.counters.iter().filter_map(|(_, c)| c.now_time).max();
        self.names.saved(&self.setup.top, now.filter(|_| is_lossy));
        self.flush()?;
        self.counters(StatsTaken::After)?;
        self.decoder.writer.writer_stats(&self.stats).map_err(failed)?;
        snapshot::write(&mut self.decoder.writer, When::After).map_err(failed)?;
        self.clock_pair()?;
        self.own_cost()?;
        self.emit()
    }

    /// What recording took: whoever measures memory has to know what the measuring did.
    fn own_cost(&mut self) -> Result<()> {
        let mapped: usize = self.rings.iter().map(Ring::mapped_len).sum();
        let cpu_ns = description::own_cpu_ns().map(|now| now.saturating_sub(self.cpu_ns_before));
        let pairs = [
            ("recorder.cpu_ns", cpu_ns),
            ("recorder.rss_peak_kib", description::own_rss_peak_kib()),
            ("recorder.mapped_kib", Some(mapped as u64 >> 10)),
        ];
        let pairs = pairs.map(|(key, value)| (key, value.map_or_else(String::new, |v| v.to_string())));
        let pairs = pairs.each_ref().map(|(key, value)| (*key, value.as_bytes()));
        self.decoder.writer.meta(&pairs).map_err(|e| Failure::new(e.to_string()))
    }
}

/// Why a recording ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Asked,
    Command,
    Time,
    Size,
}

/// Says what was recorded and what to do with it.
fn tell(
    path: &Path,
    options: &Options,
    totals: &Totals,
    counters: &[(u32, CpuStats)],
    flagged: Loss,
    ending: Ending,
) -> Outcome {
    if totals.lost > 0 {
        let of = |(cpu, c): &(u32, CpuStats)| Some((*cpu, c.lost_events().filter(|&n| n > 0)?));
        let by_cpu: Vec<String> =
            counters.iter().filter_map(of).map(|(cpu, lost)| format!("{lost} on CPU {cpu}")).collect();
        let share = 100.0 * totals.lost as f64 / (totals.lost + totals.events) as f64;
        eprintln!(
            "warning: {} events were lost ({share:.1} %): {}; a larger --buffer-size, fewer events, or --raw help",
            totals.lost,
            by_cpu.join(", ")
        );
    }
    if flagged.damaged_input {
        eprintln!(
            "warning: part of the ring buffers could not be decoded; the places are marked in the file"
        );
    }
    if !options.quiet {
        let why = match ending {
            Ending::Size => ", which is --max-size",
            _ => "",
        };
        eprintln!(
            "{} events, {} lost, {}{why}; the fullest buffer was {:.0} % full",
            totals.events,
            totals.lost,
            status::bytes(totals.bytes),
            totals.fill_percent
        );
        if path != Path::new("-") {
            eprintln!("kmt-analyze {}", path.display());
        }
    }
    if totals.lost > 0 || flagged != Loss::default() { Outcome::Incomplete } else { Outcome::Done }
}

/// Whether the kernel is done with a sub-buffer: nearly all of it is used.
fn is_full(bytes: &[u8], header: &HeaderPage) -> bool {
    let commit = ORDER.uint_at(bytes, header.commit_offset, header.commit_size).unwrap_or(0);
    (commit & 0x07ff_ffff) as usize > header.data_size / 4 * 3
}

/// CPUs that are there now; all that have a buffer where the kernel does not tell.
fn online_cpus(setup: &Setup) -> Vec<u32> {
    let all = setup.dir.cpus();
    let Ok(text) = std::fs::read_to_string("/sys/devices/system/cpu/online") else { return all };
    let ranges: Vec<(u32, u32)> = text
        .trim()
        .split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some((first.parse().ok()?, last.parse().ok()?))
        })
        .collect();
    if ranges.is_empty() {
        return all;
    }
    all.into_iter().filter(|cpu| ranges.iter().any(|(first, last)| (first..=last).contains(&cpu))).collect()
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
fn warn_of_tmpfs(path: &Path, options: &Options) {
    const TMPFS: u32 = 0x0102_1994;
    const RAMFS: u32 = 0x8584_58f6;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let kind = rustix::fs::statfs(folder).map(|s| s.f_type as u32);
    if !options.quiet && path != Path::new("-") && kind.is_ok_and(|k| k == TMPFS || k == RAMFS) {
        eprintln!(
            "warning: {} is in memory (tmpfs): the file takes from what is being measured, and is gone after a reboot",
            folder.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracefs;

    /// Unwinding closes the buffers before the instance is removed.
    #[test]
    fn a_panic_leaves_nothing_in_tracefs() {
        let options = Options { quiet: true, buffer_size: Some(64 << 10), ..Options::default() };
        let Ok((mut setup, mut plan)) = Setup::new(&options) else {
            eprintln!("skipped: not root, or no tracefs");
            return;
        };
        let path = setup.dir.path().to_owned();
        setup.enable(&mut plan).unwrap();
        let file = std::env::temp_dir().join(format!("kmt-panic-{}.kmt", std::process::id()));
        let output = Output::record(&file, true).unwrap();
        let sink = Sink { output, signals: Signals::new().unwrap() };
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut session = Session::new(setup, plan, &options, sink, 64).unwrap();
            session.open_rings(&options);
            session.setup.start().unwrap();
            assert!(path.exists() && !session.rings.is_empty());
            panic!("in the middle of a recording");
        }));
        assert!(panicked.is_err() && !path.exists());
        assert!(tracefs::mounted().is_some_and(|top| tracefs::orphans(&top).iter().all(|p| *p != path)));
        let _ = std::fs::remove_file(file.with_extension("kmt.part"));
    }
}
