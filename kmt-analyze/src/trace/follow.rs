//! Events of a growing file, or of a stream, in their order as they arrive.
//!
//! Bytes are read as they arrive and go to the incremental reader of kmt-format.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use kmt_common::interrupt::Interrupt;
use kmt_common::tell;
use kmt_format::Loss;
use kmt_format::print::PrintEnv;
use kmt_format::raw::ChunkKind;
use kmt_format::read::{
    Arrived, Event, EventChunk, EventsInfo, Header, Incremental, Metadata, Schema, SymbolTable,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::env::Env;
use crate::failure::{Failure, Outcome, Result};
use crate::limits::RunLimits;
use crate::trace::session::print_env;

/// Contents of a file so far.
#[derive(Clone, Copy)]
pub struct Source<'r> {
    header: &'r Header,
    /// Classes of events.
    pub schema: &'r Schema,
    /// Tasks, clock, files of the target.
    pub metadata: &'r Metadata<'r>,
    symbols: Option<&'r SymbolTable<'r>>,
    limits: RunLimits,
}

impl<'r> Source<'r> {
    fn of(reader: &'r Incremental, limits: RunLimits) -> Option<Self> {
        Some(Self {
            header: reader.header()?,
            schema: reader.schema()?,
            metadata: reader.metadata()?,
            symbols: reader.symbols(),
            limits,
        })
    }

    /// Environment for texts of events.
    pub fn print_env(&self) -> PrintEnv<'r> {
        print_env(self.header, self.metadata, self.symbols, &self.limits)
    }
}

/// Receiver of events in their order.
pub trait Sink {
    /// Made from the contents so far when it is first needed, and again when more have arrived.
    type Cache<'r>;

    /// Takes the next event; false if it needs no more.
    fn see<'r>(
        &mut self,
        source: &Source<'r>,
        cache: &mut Option<Self::Cache<'r>>,
        event: &Event<'_>,
    ) -> Result<bool>;

    /// Events of this CPU are missing before the next one.
    fn gap(&mut self, cpu: u32);

    /// All events that have arrived are there; false if it needs no more.
    fn pause(&mut self) -> Result<bool>;

    /// There are no more events. `source` is `None` if the file has no header.
    fn end(&mut self, source: Option<&Source<'_>>) -> Result<()>;
}

/// Passes events on until the file is finished, the stream ends, SIGINT comes, or the sink needs no more.
///
/// Events of different CPUs arrive in batches. A recorder writes its counters after it has emptied the buffers of all
/// CPUs: all events before the counters of the previous batch have arrived then, and are in the kernel's order. Where objects that
/// die young are sums, an allocation is written when its object has lived longer than the threshold: events arrive that much later.
pub fn run(path: &Path, sink: impl Sink, env: &Env) -> Result<Outcome> {
    let mut arrivals = Arrivals::open(path, env)?;
    let mut follower = Follower::new(sink, env.limits);
    let mut buffer = vec![0; 1 << 16];
    let mut needs_more = true;
    while needs_more && !follower.is_interrupted {
        let len = match arrivals.next(&mut buffer, follower.has_end)? {
            Arrival::Bytes(len) => len,
            Arrival::End => 0,
            Arrival::Interrupted => {
                follower.is_interrupted = true;
                0
            }
        };
        if len == 0 {
            follower.reader.end();
        }
        follower.reader.push(buffer.get(..len).unwrap_or_default());
        follower.take().map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
        needs_more = follower.pass_on()?;
        if len == 0 {
            break;
        }
    }
    follower.finish(path, needs_more)
}

struct Follower<S> {
    sink: S,
    reader: Incremental,
    limits: RunLimits,
    /// Chunks of each CPU that are not completely passed on; the first has the next event.
    waiting: BTreeMap<u32, VecDeque<EventChunk<'static>>>,
    position: BTreeMap<u32, usize>,
    /// Number of the next event of each CPU, if none is missing.
    next_event: BTreeMap<u32, u64>,
    /// Times of the counters of the last two batches.
    heartbeats: (Option<u64>, Option<u64>),
    /// Longest life of an object that is in sums only. Longer-lived ones are written after that time.
    threshold: Option<u64>,
    lost: u64,
    is_incomplete: bool,
    /// True if the last chunk was a trailer: the file is complete.
    has_end: bool,
    /// True if SIGINT came before the end.
    is_interrupted: bool,
}

impl<S: Sink> Follower<S> {
    fn new(sink: S, limits: RunLimits) -> Self {
        Self {
            sink,
            reader: Incremental::with_limits(limits.file),
            limits,
            waiting: BTreeMap::new(),
            position: BTreeMap::new(),
            next_event: BTreeMap::new(),
            heartbeats: (None, None),
            threshold: None,
            lost: 0,
            is_incomplete: false,
            has_end: false,
            is_interrupted: false,
        }
    }

    /// Reads complete chunks.
    fn take(&mut self) -> kmt_format::Result<()> {
        while let Some(arrived) = self.reader.next()? {
            self.has_end = matches!(&arrived, Arrived::Chunk(chunk) if chunk.kind == ChunkKind::TRAILER);
            match arrived {
                Arrived::Events(_, chunk) => {
                    let loss = chunk.info().loss;
                    if loss != Loss::default() {
                        self.is_incomplete = true;
                        if loss.counted > 0 {
                            self.lost = self.lost.saturating_add(loss.counted);
                            tell!("CPU {}: {} events lost", chunk.cpu(), loss.counted);
                        } else {
                            tell!("CPU {}: events lost, uncounted", chunk.cpu());
                        }
                    }
                    self.waiting.entry(chunk.cpu()).or_default().push_back(chunk);
                }
                Arrived::Chunk(chunk) if chunk.kind == ChunkKind::STATS => {
                    let counters = self.reader.metadata().map(|m| &m.counters);
                    let times = counters.into_iter().flatten().filter_map(|(_, c)| c.before?.now_time);
                    if let Some(now) = times.max() {
                        self.heartbeats = (self.heartbeats.1, Some(now));
                    }
                }
                Arrived::Folded(_, fold) => {
                    self.threshold = self.threshold.max(Some(fold.info().threshold));
                }
                Arrived::Damage(damage) => {
                    self.is_incomplete = true;
                    tell!("warning: {} ({} bytes cannot be used)", damage.error, damage.len);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Passes on complete events; false if the sink needs no more.
    fn pass_on(&mut self) -> Result<bool> {
        let Some(until) = self.heartbeats.0 else { return Ok(true) };
        if !self.reader.header().is_some_and(|header| header.folded) {
            return self.pass_on_until(until);
        }
        // Until the first interval of sums has arrived, it is unknown how long events wait for the end of their objects.
        let Some(threshold) = self.threshold else { return Ok(true) };
        self.pass_on_until(until.saturating_sub(threshold))
    }

    fn pass_on_until(&mut self, until: u64) -> Result<bool> {
        let Self { sink, reader, waiting, position, next_event, .. } = self;
        let Some(source) = Source::of(reader, self.limits) else { return Ok(true) };
        let mut cache = None;
        let mut needs_more = true;
        while needs_more {
            // The oldest event of all CPUs, of the lowest CPU on ties.
            let oldest = waiting
                .iter()
                .filter_map(|(cpu, chunks)| {
                    let at = *position.get(cpu).unwrap_or(&0);
                    Some((time_of(source.schema, chunks.front()?, at), *cpu))
                })
                .min();
            let Some((_, cpu)) = oldest.filter(|(time, _)| *time <= until) else { break };
            let (Some(chunks), at) = (waiting.get_mut(&cpu), position.entry(cpu).or_default()) else { break };
            let Some(chunk) = chunks.front() else { break };
            if *at == 0 && is_behind_gap(chunk.info(), next_event.entry(cpu).or_default()) {
                sink.gap(cpu);
            }
            if let Some(event) = Event::new(source.schema, chunk, *at) {
                needs_more = sink.see(&source, &mut cache, &event)?;
            }
            *at += 1;
            if *at >= chunk.records().len() {
                chunks.pop_front();
                *at = 0;
            }
        }
        Ok(sink.pause()? && needs_more)
    }

    fn finish(mut self, path: &Path, needs_more: bool) -> Result<Outcome> {
        let needs_more = needs_more && self.pass_on_until(u64::MAX)?;
        let counters = self.reader.metadata().map(|m| &m.counters);
        let lost = counters.into_iter().flatten().filter_map(|(_, c)| c.after.or(c.before)?.lost_events());
        let lost = lost.fold(0, u64::saturating_add).max(self.lost);
        if lost > 0 {
            tell!("warning: {}: {lost} events were lost while recording", path.display());
        }
        if needs_more && !self.is_interrupted && !self.reader.is_finished() {
            tell!("warning: {} has no end: its writer was interrupted", path.display());
            self.is_incomplete = true;
        }
        self.sink.end(Source::of(&self.reader, self.limits).as_ref())?;
        Ok(if lost > 0 || self.is_incomplete { Outcome::Incomplete } else { Outcome::Done })
    }
}

/// True if events are missing before the chunk: lost while recording, or in chunks that are damaged or missing.
/// `next_event` is the number of the CPU's next event, and is moved behind the chunk.
fn is_behind_gap(info: &EventsInfo, next_event: &mut u64) -> bool {
    let is_behind = info.loss != Loss::default() || info.first_event > *next_event;
    *next_event = info.first_event.max(*next_event).saturating_add(info.event_count.into());
    is_behind
}

/// Time of an event of the chunk; of the chunk itself if the event does not exist.
fn time_of(schema: &Schema, chunk: &EventChunk<'_>, index: usize) -> u64 {
    Event::new(schema, chunk, index).map_or(chunk.info().t_first, |event| event.time())
}

/// Interval of polling a file at its end, and of looking for SIGINT.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Time after SIGINT in which the writer of a stream, which got it too, may finish its file.
const GRACE: Duration = Duration::from_secs(2);

/// A file that may grow, or a stream.
pub struct Arrivals<'p> {
    path: &'p Path,
    input: ArrivalInput,
    /// `None` for bytes in memory, which never wait.
    interrupt: Option<Interrupt>,
    /// When SIGINT was first seen.
    interrupted: Option<Instant>,
}

enum ArrivalInput {
    Held(io::Cursor<Vec<u8>>),
    Stream(io::StdinLock<'static>),
    File(File),
}

/// Bytes, or why there are no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// This many bytes are in the buffer.
    Bytes(usize),
    /// The end of a stream, or of a finished file.
    End,
    /// SIGINT came before the end.
    Interrupted,
}

impl<'p> Arrivals<'p> {
    /// Opens a file; `-` is standard input.
    pub fn open(path: &'p Path, env: &Env) -> Result<Self> {
        let input = match env.files.get(path) {
            Some(bytes) => ArrivalInput::Held(io::Cursor::new(bytes)),
            None if path == Path::new("-") => ArrivalInput::Stream(io::stdin().lock()),
            None => ArrivalInput::File(File::open(path).map_err(|e| Failure::io("opening", path, &e))?),
        };
        let waits = !matches!(input, ArrivalInput::Held(_));
        let interrupt = waits.then(Interrupt::watch).transpose();
        let interrupt = interrupt.map_err(|e| Failure::os("cannot watch for signals", &e))?;
        Ok(Self { path, input, interrupt, interrupted: None })
    }

    /// Waits for bytes; `is_finished` is true if the file has its end.
    pub fn next(&mut self, buffer: &mut [u8], is_finished: bool) -> Result<Arrival> {
        loop {
            if self.interrupt.as_ref().is_some_and(Interrupt::is_received) {
                let since = *self.interrupted.get_or_insert_with(Instant::now);
                // A file is read as far as it is there; a stream for a moment longer.
                if matches!(self.input, ArrivalInput::Stream(_)) && since.elapsed() > GRACE {
                    return Ok(Arrival::Interrupted);
                }
            }
            if !self.is_ready()? {
                continue;
            }
            let read = match &mut self.input {
                ArrivalInput::Held(bytes) => bytes.read(buffer),
                ArrivalInput::Stream(stream) => stream.read(buffer),
                ArrivalInput::File(file) => file.read(buffer),
            };
            match read {
                Ok(0) if matches!(self.input, ArrivalInput::File(_)) && !is_finished => {
                    if self.interrupted.is_some() {
                        return Ok(Arrival::Interrupted);
                    }
                    std::thread::sleep(POLL_INTERVAL);
                }
                Ok(0) => return Ok(Arrival::End),
                Ok(len) => return Ok(Arrival::Bytes(len)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::io("reading", self.path, &error)),
            }
        }
    }

    /// False if a stream had nothing for a moment.
    fn is_ready(&self) -> Result<bool> {
        let ArrivalInput::Stream(stream) = &self.input else { return Ok(true) };
        let wait = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL.subsec_nanos().into() };
        let mut fds = [PollFd::new(stream, PollFlags::IN)];
        match poll(&mut fds, Some(&wait)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(Failure::io("reading", self.path, &error.into())),
        }
    }
}
