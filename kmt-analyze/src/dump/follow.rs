//! `dump --follow`: the events of a file that grows, or of a stream, while they come.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use kmt_common::tell;
use kmt_format::raw::ChunkKind;
use kmt_format::read::{Arrived, Event, EventChunk, Incremental, Schema, StackJoiner};

use super::{Format, Options, Printer};
use crate::failure::{Failure, Outcome, Result};
use crate::limits;
use crate::render::out::Out;
use crate::stdio;
use crate::trace::event_names::Selected;
use crate::trace::session::print_env;

/// How often a file is looked at that has no more bytes yet.
const LOOK: Duration = Duration::from_millis(200);

/// Prints events until the file is finished or the stream ends.
///
/// Different CPUs' events come in batches. A recorder writes its counters once it has emptied every CPU's buffer: what
/// happened before the counters of the batch before has come from everywhere then, and is printed in the kernel's order.
pub fn run(path: &Path, options: &Options) -> Result<Outcome> {
    let held = stdio::file(path);
    let is_stream = held.is_some() || path == Path::new("-");
    let mut input: Box<dyn Read> = if let Some(bytes) = held {
        Box::new(io::Cursor::new(bytes))
    } else if is_stream {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(|e| Failure::io("opening", path, &e))?)
    };
    let mut follower = Follower::new(options);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let len = match input.read(&mut buffer) {
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::io("reading", path, &error)),
        };
        if len == 0 && !is_stream && !follower.has_end {
            std::thread::sleep(LOOK);
            continue;
        }
        if len == 0 {
            follower.reader.end();
        }
        follower.reader.push(buffer.get(..len).unwrap_or_default());
        let goes_on = follower.take().map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
        if len == 0 || !follower.print()? || !goes_on {
            break;
        }
    }
    follower.finish(path)
}

struct Follower<'o> {
    options: &'o Options,
    selected: Selected<'o>,
    reader: Incremental,
    /// Chunks of each CPU that are not printed to their end, with the next event of the first.
    waiting: BTreeMap<u32, VecDeque<EventChunk<'static>>>,
    position: BTreeMap<u32, usize>,
    /// Times of the counters of the last two batches.
    heartbeats: (Option<u64>, Option<u64>),
    stacks: StackJoiner<(usize, u64)>,
    out: Out,
    left: u64,
    lost: u64,
    is_incomplete: bool,
    /// The last chunk was a trailer: nothing more comes.
    has_end: bool,
}

impl<'o> Follower<'o> {
    fn new(options: &'o Options) -> Self {
        Self {
            options,
            selected: Selected::new(&options.events),
            reader: Incremental::with_limits(limits::of_file()),
            waiting: BTreeMap::new(),
            position: BTreeMap::new(),
            heartbeats: (None, None),
            stacks: StackJoiner::default(),
            out: Out::stdout(),
            left: options.limit.unwrap_or(u64::MAX),
            lost: 0,
            is_incomplete: false,
            has_end: false,
        }
    }

    /// Takes in what has become whole; false once no more is wanted.
    fn take(&mut self) -> kmt_format::Result<bool> {
        while let Some(arrived) = self.reader.next()? {
            self.has_end = matches!(&arrived, Arrived::Chunk(chunk) if chunk.kind == ChunkKind::TRAILER);
            match arrived {
                Arrived::Events(_, chunk) => {
                    let loss = chunk.info().loss;
                    if loss != Default::default() {
                        self.is_incomplete = true;
                        self.stacks.gap(chunk.cpu());
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
                Arrived::Damage(damage) => {
                    self.is_incomplete = true;
                    tell!("warning: {} ({} bytes cannot be used)", damage.error, damage.len);
                }
                _ => {}
            }
        }
        Ok(self.left > 0)
    }

    /// Prints what is complete; false once nobody reads any more.
    fn print(&mut self) -> Result<bool> {
        let Some(until) = self.heartbeats.0 else { return Ok(true) };
        self.print_until(until)
    }

    fn print_until(&mut self, until: u64) -> Result<bool> {
        let Self { reader, waiting, position, stacks, out, left, options, selected, .. } = self;
        let (Some(header), Some(schema), Some(metadata)) =
            (reader.header(), reader.schema(), reader.metadata())
        else {
            return Ok(true);
        };
        let mut printer: Option<Printer<'_>> = None;
        let mut goes_on = true;
        while *left > 0 && goes_on {
            // The oldest event of all CPUs; of several the lowest CPU's.
            let oldest = waiting
                .iter()
                .filter_map(|(cpu, chunks)| {
                    Some((time_of(schema, chunks.front()?, *position.get(cpu).unwrap_or(&0)), *cpu))
                })
                .min();
            let Some((time, cpu)) = oldest.filter(|(time, _)| *time <= until) else { break };
            let (Some(chunks), at) = (waiting.get_mut(&cpu), position.entry(cpu).or_default()) else { break };
            let Some(chunk) = chunks.front() else { break };
            if let Some(event) = Event::new(schema, chunk, *at) {
                let of = stacks.see(&event, (event.class_index(), time));
                if options.selects(&event, of.map(|(class, _)| class), selected, schema) {
                    *left -= 1;
                    let printer = printer.get_or_insert_with(|| {
                        Printer::new(schema, metadata, print_env(header, metadata, reader.symbols()))
                    });
                    let line = match options.format {
                        Format::Kernel => printer.kernel(&event),
                        Format::Jsonl => {
                            printer.json(&event, of.and_then(|(i, t)| Some((schema.class(i)?, t))))
                        }
                    };
                    goes_on = out.write(line)?;
                }
            }
            *at += 1;
            if *at >= chunk.records().len() {
                chunks.pop_front();
                *at = 0;
            }
        }
        Ok(out.flush()? && goes_on)
    }

    fn finish(mut self, path: &Path) -> Result<Outcome> {
        self.print_until(u64::MAX)?;
        let counters = self.reader.metadata().map(|m| &m.counters);
        let lost = counters.into_iter().flatten().filter_map(|(_, c)| c.after.or(c.before)?.lost_events());
        let lost = lost.fold(0, u64::saturating_add).max(self.lost);
        if lost > 0 {
            tell!("warning: {}: {lost} events were lost while recording", path.display());
        }
        if self.left > 0 && !self.reader.is_finished() {
            tell!("warning: {} has no end: its writer was interrupted", path.display());
            self.is_incomplete = true;
        }
        self.out.finish()?;
        Ok(if lost > 0 || self.is_incomplete { Outcome::Incomplete } else { Outcome::Done })
    }
}

/// Time of an event of the chunk; of the chunk itself where it has none.
fn time_of(schema: &Schema, chunk: &EventChunk<'_>, index: usize) -> u64 {
    Event::new(schema, chunk, index).map_or(chunk.info().t_first, |event| event.time())
}
