//! Merging the CPUs' streams in the order in which the kernel itself would print them.

use core::cmp::Reverse;
use core::fmt;
use core::ops::Range;
use std::collections::BinaryHeap;
use std::rc::Rc;

use super::contents::Contents;
use super::{Damage, EventChunk, Trace};
use crate::Loss;

/// Events that are missing from a CPU's stream just before a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// CPU.
    pub cpu: u32,
    /// Events lost on the target.
    pub loss: Loss,
    /// Events of chunks that are missing from the file or damaged.
    pub events_damaged: u64,
    /// Time of the last event before the gap; `None` if there is none.
    pub after: Option<u64>,
}

impl Gap {
    /// Events missing at least, as far as they were counted: lost on the target, and damaged in the file.
    pub fn counted(&self) -> u64 {
        self.loss.counted.saturating_add(self.events_damaged)
    }

    /// True if nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.loss == Loss::default() && self.events_damaged == 0
    }
}

/// Events of one CPU that follow each other in the merged order.
#[non_exhaustive]
pub struct Run<'m, 'd> {
    /// CPU.
    pub cpu: u32,
    /// Rises with every chunk: equal numbers mean the same chunk, and so the same descriptors.
    pub chunk_number: u64,
    /// The chunk.
    pub chunk: &'m EventChunk<'d>,
    /// The records of the run; may be empty where there is only a gap.
    pub range: Range<usize>,
    /// Events missing just before the run.
    pub gap: Option<Gap>,
    /// Schema, names of tasks, and symbols, for the events.
    pub(super) contents: &'m Contents<'d>,
}

impl fmt::Debug for Run<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, chunk_number, range, gap, .. } = self;
        let mut out = f.debug_struct("Run");
        out.field("cpu", cpu).field("chunk_number", chunk_number).field("range", range).field("gap", gap);
        out.finish_non_exhaustive()
    }
}

/// The cursor of a run, its records, and the gap before them.
type RunParts<'m, 'd> = (&'m Cursor<'d>, Range<usize>, Option<Gap>);

/// The CPUs' streams merged: always on with the CPU whose next event is the oldest, the lowest CPU where several are.
///
/// That is what the kernel does for its `trace` file (`__find_next_entry`, kernel/trace/trace.c 4.4 to 7.2). The
/// order within a CPU never changes, also where a clock steps back. Damaged chunks are skipped and reported as gaps.
///
/// ```
/// use kmt_format::read::Trace;
/// # let file = kmt_format::example()?;
/// let trace = Trace::open(&file)?;
/// let (mut merge, mut events) = (trace.merge(), 0);
/// while let Some(run) = merge.next_run() {
///     run.chunk.for_each_in(run.range, |_time, _record| events += 1);
/// }
/// assert_eq!((events, merge.damages().len()), (4, 0));
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Merge<'t, 'd> {
    trace: &'t Trace<'d>,
    cursors: Vec<Cursor<'d>>,
    /// Time and index of the cursors that wait for their turn; all but the current one and those at their end.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    current: Option<usize>,
    window: Option<(u64, u64)>,
    /// Bits of the requested classes.
    classes: u64,
    chunk_numbers: u64,
    damages: Vec<Damage>,
}

#[derive(Debug)]
struct Cursor<'d> {
    cpu: u32,
    /// Index of the next chunk in the stream.
    next_chunk: usize,
    /// Shared with events still in use when the cursor moves on.
    chunk: Option<Rc<EventChunk<'d>>>,
    chunk_number: u64,
    position: usize,
    end: usize,
    /// Time of the event at `position`; of the chunk where it has none.
    time: u64,
    gap: Gap,
    events_seen: u64,
    last_time: Option<u64>,
    /// End of the chunk before `next_chunk`, also where its last events are behind the window.
    passed: Option<u64>,
}

impl<'t, 'd> Merge<'t, 'd> {
    pub(super) fn new(trace: &'t Trace<'d>, window: Option<(u64, u64)>, classes: u64) -> Self {
        let cursors = trace.streams().keys().map(|&cpu| Cursor {
            cpu,
            next_chunk: 0,
            chunk: None,
            chunk_number: 0,
            position: 0,
            end: 0,
            time: 0,
            gap: Gap { cpu, ..Gap::default() },
            events_seen: 0,
            last_time: None,
            passed: None,
        });
        let mut merge = Self {
            trace,
            cursors: cursors.collect(),
            waiting: BinaryHeap::new(),
            current: None,
            window,
            classes,
            chunk_numbers: 0,
            damages: Vec::new(),
        };
        for index in 0..merge.cursors.len() {
            merge.load(index);
            merge.queue(index);
        }
        merge
    }

    /// Damage found in event chunks so far.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
    }

    /// The next run; `None` at the end.
    pub fn next_run(&mut self) -> Option<Run<'_, 'd>> {
        let contents = self.trace.contents();
        let (cursor, range, gap) = self.advance()?;
        let (cpu, chunk_number, chunk) = (cursor.cpu, cursor.chunk_number, cursor.chunk.as_deref()?);
        Some(Run { cpu, chunk_number, chunk, range, gap, contents })
    }

    /// The next run, with a share of its chunk.
    pub(super) fn next_shared(&mut self) -> Option<(Rc<EventChunk<'d>>, Range<usize>, Option<Gap>)> {
        let (cursor, range, gap) = self.advance()?;
        Some((Rc::clone(cursor.chunk.as_ref()?), range, gap))
    }

    #[inline(always)]
    fn advance(&mut self) -> Option<RunParts<'_, 'd>> {
        let (index, limit) = self.oldest()?;
        let cursor = self.cursors.get_mut(index)?;
        let empty = Gap { cpu: cursor.cpu, ..Gap::default() };
        let gap = (!cursor.gap.is_empty()).then(|| core::mem::replace(&mut cursor.gap, empty));
        let (start, chunk) = (cursor.position, cursor.chunk.as_deref()?);
        if start >= cursor.end {
            // Only a gap is left of this chunk, or nothing at all.
            return Some((cursor, start..start, gap));
        }
        let end = match limit {
            None => cursor.end,
            Some(limit) => chunk.run_end(start, cursor.end, limit),
        };
        cursor.time = chunk.time(end).unwrap_or(cursor.time);
        cursor.last_time = chunk.time(end.saturating_sub(1));
        cursor.position = end;
        Some((cursor, start..end, gap))
    }

    /// The cursor with the oldest event, and the time at which another one is older.
    fn oldest(&mut self) -> Option<(usize, Option<u64>)> {
        if let Some(index) = self.current.take() {
            if self.cursors.get(index).is_some_and(|c| c.position >= c.end && c.gap.is_empty()) {
                self.load(index);
            }
            self.queue(index);
        }
        let Reverse((_, index)) = self.waiting.pop()?;
        self.current = Some(index);
        // The run continues while (time, CPU) stays below the next one's; a higher CPU index wins ties.
        let limit = self.waiting.peek().map(
            |Reverse((time, other))| {
                if *other < index { *time } else { time.saturating_add(1) }
            },
        );
        Some((index, limit))
    }

    /// Lets a cursor wait for its turn, unless it is at its end.
    fn queue(&mut self, index: usize) {
        if let Some(cursor) = self.cursors.get(index).filter(|c| c.chunk.is_some()) {
            self.waiting.push(Reverse((cursor.time, index)));
        }
    }

    /// Makes the next sound chunk of a cursor current; drops the old one.
    fn load(&mut self, index: usize) {
        let Some(cursor) = self.cursors.get_mut(index) else { return };
        let carrier = cursor.chunk.take();
        let Some(stream) = self.trace.streams().get(&cursor.cpu) else { return };
        while let Some((chunk, info)) = stream.chunks.get(cursor.next_chunk) {
            cursor.next_chunk = cursor.next_chunk.saturating_add(1);
            let missing = info.first_event.saturating_sub(cursor.events_seen);
            cursor.events_seen =
                info.first_event.max(cursor.events_seen).saturating_add(info.event_count.into());
            let outside = self.window.is_some_and(|(first, last)| info.t_last < first || info.t_first > last);
            // An index cannot hide a chunk from the window by giving it other times.
            let head = self.trace.check_head(chunk, info);
            let is_other = info.classes & self.classes == 0 && self.classes != u64::MAX;
            let has_events = info.event_count > 0;
            let after = if has_events { cursor.passed.replace(info.t_last) } else { cursor.passed };
            // Where a gap ends before the window or begins behind it, nothing is missing in between.
            let has_gap = (missing > 0 || info.loss != Loss::default())
                && self.window.is_none_or(|(first, last)| {
                    (!has_events || info.t_first >= first) && after.is_none_or(|after| after <= last)
                });
            if (outside || is_other) && !has_gap && head.is_ok() {
                cursor.last_time = Some(info.t_last);
                continue;
            }
            if has_gap {
                cursor.gap.events_damaged = cursor.gap.events_damaged.saturating_add(missing);
                cursor.gap.after = cursor.last_time;
                // A loss before a damaged chunk is reported with the next sound one.
                cursor.gap.loss = cursor.gap.loss.and(info.loss);
            }
            match head.and_then(|()| self.trace.read(chunk)) {
                Ok(read) => {
                    (cursor.position, cursor.end) = match self.window {
                        None => (0, read.records().len()),
                        Some((first, last)) => (
                            read.first_at_or_after(first),
                            last.checked_add(1).map_or(read.records().len(), |l| read.first_at_or_after(l)),
                        ),
                    };
                    cursor.time = read.time(cursor.position).unwrap_or(info.t_last);
                    self.chunk_numbers = self.chunk_numbers.saturating_add(1);
                    cursor.chunk_number = self.chunk_numbers;
                    let is_silent = cursor.position >= cursor.end && cursor.gap.is_empty();
                    cursor.chunk = Some(Rc::new(read));
                    if is_silent {
                        continue;
                    }
                    return;
                }
                Err(error) => {
                    let damaged = cursor.gap.events_damaged.saturating_add(info.event_count.into());
                    cursor.gap.events_damaged = damaged;
                    self.damages.push(Damage { offset: chunk.offset, len: chunk.total_len, error });
                }
            }
        }
        // A gap after the last sound chunk is reported with an empty run of that chunk.
        cursor.chunk = carrier.filter(|_| !cursor.gap.is_empty());
        cursor.position = cursor.end;
        cursor.time = cursor.last_time.unwrap_or(cursor.time);
    }
}
