//! A chunk that is decoded block by block, with the codes of its descriptors and the origins of its contexts found so far.
//!
//! The origin of a context holds until its task has another name or cgroup, where these are needed. Times ascend in a chunk, so
//! that the next such time gives the record at which an origin must be found again.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use kmt_format::read::EventChunk;

use super::op::OpCode;
use crate::int_hash::IntHash;

/// An origin that must be found.
pub const UNKNOWN: u32 = u32::MAX;

/// A chunk that is decoded block by block.
#[derive(Debug)]
pub struct Open<'d> {
    /// The chunk.
    pub chunk: EventChunk<'d>,
    /// True if events of its CPU are missing just before it.
    pub behind_gap: bool,
    /// Number of the next record.
    pub(super) next: usize,
    /// Operation code of each descriptor, [`OpCode::UNKNOWN`] until it is resolved.
    pub(super) codes: Vec<OpCode>,
    /// Origin of each context.
    pub(super) origins: Origins,
    /// Of each descriptor, if events are counted.
    pub(super) counts: Vec<DescriptorCount>,
}

impl<'d> Open<'d> {
    /// A chunk of which nothing is decoded.
    pub fn new(chunk: EventChunk<'d>, behind_gap: bool) -> Self {
        let codes = vec![OpCode::UNKNOWN; chunk.descriptor_count()];
        Self { chunk, behind_gap, next: 0, codes, origins: Origins::default(), counts: Vec::new() }
    }

    /// True if all of it is decoded.
    pub fn is_done(&self) -> bool {
        self.next >= self.chunk.records().len()
    }

    /// The number of the record behind `index` at which an origin may change, `end` at most.
    #[inline]
    pub(super) fn same_origins_until(&mut self, index: usize, end: usize) -> usize {
        if index >= self.origins.changes_at {
            self.origins.forget(&self.chunk, index);
        }
        end.min(self.origins.changes_at)
    }
}

/// Origins of the contexts of a chunk, as far as they are known.
#[derive(Debug)]
pub(super) struct Origins {
    /// By context, [`UNKNOWN`] for those that must be found.
    known: Vec<u32>,
    /// Times at which origins change, and their contexts.
    changes: BinaryHeap<Reverse<(u64, usize)>>,
    /// Number of the record of the first of these times.
    changes_at: usize,
}

impl Default for Origins {
    fn default() -> Self {
        Self { known: Vec::new(), changes: BinaryHeap::new(), changes_at: usize::MAX }
    }
}

impl Origins {
    /// By context.
    #[inline]
    pub fn known(&self) -> &[u32] {
        &self.known
    }

    /// The origin of a context; [`UNKNOWN`] if it must be found.
    #[inline]
    pub fn of(&self, context: u16) -> u32 {
        self.known.get(usize::from(context)).copied().unwrap_or(UNKNOWN)
    }

    /// Stores the origin of a context that was unknown; it holds until a time.
    pub fn put(&mut self, chunk: &EventChunk<'_>, context: u16, origin: u32, until: u64) {
        let info = chunk.info();
        // The clock wraps within the chunk: times do not ascend.
        if info.t_last < info.t_first && until < u64::MAX {
            return;
        }
        let context = usize::from(context);
        if self.known.len() <= context {
            self.known.resize(context + 1, UNKNOWN);
        }
        if let Some(slot) = self.known.get_mut(context) {
            *slot = origin;
        }
        if until <= info.t_last {
            self.changes.push(Reverse((until, context)));
            self.changes_at = self.changes_at.min(chunk.first_at_or_after(until));
        }
    }

    /// Forgets origins that do not hold at a record.
    #[cold]
    fn forget(&mut self, chunk: &EventChunk<'_>, index: usize) {
        let now = chunk.time(index).unwrap_or(u64::MAX);
        self.changes_at = usize::MAX;
        while let Some(Reverse((time, context))) = self.changes.peek().copied() {
            if time > now {
                self.changes_at = chunk.first_at_or_after(time).max(index + 1);
                break;
            }
            self.changes.pop();
            if let Some(origin) = self.known.get_mut(context) {
                *origin = UNKNOWN;
            }
        }
    }
}

/// Events of one descriptor and one origin after the last event of another origin: mostly many.
#[derive(Debug)]
pub(super) struct DescriptorCount {
    pub class: u32,
    pub origin: u32,
    pub events: u64,
}

/// Number of events by class and origin.
pub type EventCounts = HashMap<(u32, u32), u64, IntHash>;

impl DescriptorCount {
    /// Counts an event.
    #[inline]
    pub fn count(&mut self, origin: u32, sums: &mut EventCounts) {
        if self.origin != origin {
            self.add_to(sums);
            self.origin = origin;
        }
        self.events += 1;
    }

    /// Adds its events to the sums.
    pub fn add_to(&mut self, sums: &mut EventCounts) {
        if self.events > 0 {
            *sums.entry((self.class, self.origin)).or_default() += self.events;
            self.events = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use kmt_format::kernel::ByteOrder;
    use kmt_format::read::Trace;
    use kmt_format::write::{Task, Writer, WriterOptions};

    use super::*;
    use crate::stream::decode::Decoder;
    use crate::stream::{Interests, Op};
    use crate::trace::cgroups::TaskStates;
    use crate::trace::comms::Comms;

    const KFREE: &str = "name: kfree\nID: 1\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:const void * ptr;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n";

    /// Each task has another name from time to time, some at the time of an event and some before or after all events.
    #[test]
    fn an_event_has_the_name_of_its_time_within_a_chunk() {
        let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8)).unwrap();
        writer.add_format("kmem", KFREE).unwrap();
        let name = |pid: i32, number: u64| {
            let since = number * (10 + pid as u64 * 7);
            Task::new(pid, format!("name {number}").into_bytes()).since(since)
        };
        let names: Vec<Task> = (0..5).flat_map(|pid| (0..40).map(move |number| name(pid, number))).collect();
        writer.add_tasks(&names).unwrap();
        for time in 0..1_000u64 {
            let (pid, flags) = ((time * 7 % 11 % 6) as u8, (time % 3) as u8 * 8);
            let record = [1, 0, flags, 0, pid, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            writer.add_event(0, time / 2, &record).unwrap();
        }
        let file = writer.finish().unwrap();
        let trace = Trace::open(&file).unwrap();
        let comms = Comms::of(&trace);
        let states = TaskStates { names: Some(&comms), cgroups: None };
        let mut decoder = Decoder::new(&trace, Interests::empty()).with_task_states(states);
        let (at, _) = &trace.streams()[&0].chunks[0];
        let mut open = Open::new(trace.read(at).unwrap(), false);
        let (mut ops, mut found) = (vec![Op::default(); 64], Vec::new());
        while !open.is_done() {
            let len = decoder.decode(&mut open, &mut ops);
            found.extend_from_slice(&ops[..len]);
        }
        assert_eq!(found.len(), 1_000);
        let mut numbers = std::collections::BTreeSet::new();
        for op in found {
            let origin = decoder.interner.origins.get(op.origin).unwrap();
            assert_eq!(origin.name, comms.number_at(origin.pid, op.time), "{origin:?} at {}", op.time);
            numbers.insert((origin.pid, origin.name));
        }
        assert!(numbers.len() > 100, "{numbers:?}");
    }
}
