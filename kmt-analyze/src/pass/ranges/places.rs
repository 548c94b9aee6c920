//! Positions of a CPU's operations among its events, and the sample of operations for thinning.
//!
//! Losses are counted in events, and not every event is an operation of the ledger: in a storm of `rss_stat` a gap of a thousand
//! events has few. The density of operations is computed for each chunk.

use std::collections::BTreeMap;

use crate::int_hash::spread;
use crate::ledger::Rules;
use crate::ledger::lives::ADDRESS_BITS;
use crate::stream::NewItems;
use crate::stream::op::{Kind, Op};
use crate::trace::losses::{CpuLosses, Piece};

/// A run of events, with operations evenly spread.
#[derive(Debug, Clone, Copy, PartialEq)]
struct EventRun {
    /// Time of its first event.
    start: u64,
    /// Events of the CPU before it.
    before: f64,
    events: f64,
    /// Operations.
    ops: u32,
}

/// The runs of a CPU.
#[derive(Debug, Clone, Default)]
pub struct Places {
    runs: Vec<EventRun>,
}

impl Places {
    /// Positions for each CPU of `streams`, for events in the window.
    pub fn of(streams: &Streams, cpu_losses: &[Option<&CpuLosses>], window: (u64, u64)) -> Vec<Self> {
        let mut all: Vec<Self> =
            cpu_losses.iter().map(|cpu_losses| Self::chunks(*cpu_losses, window)).collect();
        let mut at = vec![0; all.len()];
        for (op, &cpu) in streams.ops.iter().zip(&streams.cpu_of) {
            let cpu = usize::from(cpu);
            let (Some(places), Some(at)) = (all.get_mut(cpu), at.get_mut(cpu)) else { continue };
            while places.runs.get(*at + 1).is_some_and(|next| next.start <= op.time) {
                *at += 1;
            }
            if let Some(run) = places.runs.get_mut(*at) {
                run.ops += 1;
            }
        }
        for run in all.iter_mut().flat_map(|places| &mut places.runs) {
            // Without chunks the operations are the events.
            run.events = run.events.max(run.ops.into());
        }
        all
    }

    /// Runs without operations.
    pub fn chunks(cpu_losses: Option<&CpuLosses>, window: (u64, u64)) -> Self {
        let pieces = cpu_losses.map_or(&[][..], |cpu_losses| &cpu_losses.pieces);
        let inside = pieces.iter().filter(|p| p.span.0 <= window.1 && p.span.1 >= window.0);
        let run = |p: &Piece| {
            let length = |from: u64, to: u64| to.saturating_sub(from).saturating_add(1) as f64;
            let inside = length(p.span.0.max(window.0), p.span.1.min(window.1));
            let events = p.events as f64 * inside / length(p.span.0, p.span.1);
            EventRun { start: p.span.0, before: p.events_before as f64, events, ops: 0 }
        };
        let mut runs: Vec<EventRun> = inside.map(run).collect();
        if runs.is_empty() {
            runs.push(EventRun { start: 0, before: 0.0, events: 0.0, ops: 0 });
        }
        Self { runs }
    }

    /// Number of events.
    pub fn events(&self) -> f64 {
        self.runs.iter().map(|run| run.events).sum()
    }

    /// Position of the first event, and that after the last.
    pub fn range(&self) -> (f64, f64) {
        let first = self.runs.first().map_or(0.0, |run| run.before);
        (first, self.runs.last().map_or(first, |run| run.before + run.events))
    }

    /// Iterates over the positions of the operations.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { runs: &self.runs, done: 0 }
    }
}

/// Iterator over the positions of a CPU's operations.
#[derive(Debug)]
pub struct Cursor<'p> {
    runs: &'p [EventRun],
    /// Operations of the first run that were returned.
    done: u32,
}

impl Cursor<'_> {
    /// Position of the next operation.
    pub fn next(&mut self) -> f64 {
        while let Some((run, rest)) = self.runs.split_first() {
            if self.done < run.ops {
                let position = (f64::from(self.done) + 0.5) / f64::from(run.ops);
                self.done += 1;
                return run.before + position * run.events;
            }
            (self.runs, self.done) = (rest, 0);
        }
        f64::MAX
    }
}

/// Operations in their order, with their CPUs.
#[derive(Debug, Default)]
pub struct Streams {
    /// The operations.
    pub ops: Vec<Op>,
    /// Index in `cpus` of the CPU of each operation.
    pub cpu_of: Vec<u16>,
    pub cpus: Vec<u32>,
}

/// Operations for thinning: all of a small trace, those of some pages of a large one.
///
/// Pages are independent of each other except for page events on the same page, so a part of the pages behaves as all
/// do.
#[derive(Debug)]
pub struct OpSample {
    /// The sample.
    pub streams: Streams,
    /// One in this number of pages is in the sample.
    one_in: u64,
    page_shift: u32,
    base: u64,
    /// Operations after this time are not in the sample: only some passes read them.
    last: u64,
    /// Index in `streams.cpus`.
    cpus: BTreeMap<u32, u16>,
    /// CPU of each origin, and its index in `streams.cpus` once it has an operation.
    origins: Vec<(u32, Option<u16>)>,
}

/// Approximate limit of the sample: about 100 MiB.
const KEPT_MAX: u64 = 3_000_000;
/// log2 of the pages that are sampled together: slabs have up to this number.
const TOGETHER_LOG2: u32 = 3;

impl OpSample {
    /// A sample of a trace with this number of events until the last that every pass reads.
    pub fn new(events: u64, rules: &Rules) -> Self {
        Self {
            streams: Streams::default(),
            one_in: events.div_ceil(KEPT_MAX).max(1),
            page_shift: rules.page_size.trailing_zeros().min(63),
            base: rules.direct_map.map_or(0, |m| m.base),
            last: rules.last_read(),
            cpus: BTreeMap::new(),
            origins: Vec::new(),
        }
    }

    /// Adds operations, in their order, and items that they number first.
    pub fn add(&mut self, ops: &[Op], new_items: &NewItems) {
        self.origins.extend(new_items.origins.iter().map(|(origin, _)| (origin.cpu, None)));
        let is_balanced = |op: &&Op| !matches!(op.code.kind(), Kind::Stack | Kind::SideEvent);
        let last = self.last;
        for op in ops.iter().filter(is_balanced).filter(|op| op.time <= last) {
            let page = if op.code.is_slab() {
                (op.value & ADDRESS_BITS).wrapping_sub(self.base) >> self.page_shift
            } else {
                op.value
            };
            let group = (page & ADDRESS_BITS) >> TOGETHER_LOG2;
            if self.one_in > 1 && spread(group) % self.one_in != 0 {
                continue;
            }
            let Some(&(number, index)) = self.origins.get(op.origin as usize) else { continue };
            let cpu = index.unwrap_or_else(|| self.index_of(op.origin as usize, number));
            self.streams.ops.push(*op);
            self.streams.cpu_of.push(cpu);
        }
    }

    /// Index of the CPU of an origin, by its first operation: events that only some passes read number none.
    fn index_of(&mut self, origin: usize, cpu: u32) -> u16 {
        let next = self.cpus.len() as u16;
        let index = *self.cpus.entry(cpu).or_insert(next);
        if index == next {
            self.streams.cpus.push(cpu);
        }
        if let Some(known) = self.origins.get_mut(origin) {
            known.1 = Some(index);
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::op::Op;

    #[test]
    fn operations_lie_where_their_chunks_are() {
        let op = |time| Op { time, ..Op::default() };
        // An operation of another CPU in between.
        let streams = Streams {
            ops: vec![op(10), op(12), op(15), op(200), op(210)],
            cpu_of: vec![0, 1, 0, 0, 0],
            cpus: vec![4, 5],
        };
        let piece = |span, events_before, events| Piece { span, events_before, events };
        let cpu_losses = CpuLosses {
            cpu: 4,
            pieces: vec![piece((10, 19), 0, 4), piece((100, 150), 4, 1_000), piece((200, 299), 1_004, 2)],
            ..CpuLosses::default()
        };
        let of = |window| Places::of(&streams, &[Some(&cpu_losses), None], window);
        let all = of((0, u64::MAX));
        let places = &all[0];
        let mut cursor = places.cursor();
        let found: Vec<f64> = (0..5).map(|_| cursor.next()).collect();
        assert_eq!(found, [1.0, 3.0, 1_004.5, 1_005.5, f64::MAX], "a chunk without operations counts");
        assert_eq!((places.events(), places.range()), (1_006.0, (0.0, 1_006.0)));
        assert_eq!((all[1].events(), all[1].cursor().next()), (1.0, 0.5));
        assert_eq!(of((15, 100))[0].range(), (0.0, 4.0 + 1_000.0 / 51.0));
    }
}
