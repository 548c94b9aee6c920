//! The CPUs' events as they are read, merged for [`Survivors`].
//!
//! An event is merged once no CPU can have an older one: each CPU's next event is known, or its ring buffer was found empty at a
//! later time. The last event that is known of a CPU may be followed by a loss, so it is never folded; where more of it is about
//! to be read, it waits.

use std::collections::VecDeque;

use kmt_format::write::Writer;
use kmt_format::{Loss, Result};

use super::{SurvivorOptions, Survivors};

/// What comes from a CPU.
#[derive(Debug, Clone, Copy)]
enum Item {
    /// An event: its time, and the length of its record.
    Event(u64, u32),
    /// Events that are missing before the next one.
    Loss(Loss),
}

/// What was read of a CPU and is not merged yet.
#[derive(Debug, Default)]
struct Queue {
    number: u32,
    items: VecDeque<Item>,
    /// Records of the events, from `start` on.
    records: Vec<u8>,
    start: usize,
    /// No event before this time comes any more, but those of the queue.
    known_until: u64,
    /// True if events are missing after the last one that was merged.
    is_in_loss: bool,
}

impl Queue {
    /// Time of the next event; `None`: it is not known.
    fn next_time(&self) -> Option<u64> {
        self.items.iter().find_map(|item| match item {
            Item::Event(time, _) => Some(*time),
            Item::Loss(_) => None,
        })
    }

    /// True if events are missing behind its next one, which has this time: lives that end then touch the loss.
    fn loses_at(&self, time: u64) -> bool {
        let at = self.items.iter().position(|item| !matches!(item, Item::Event(of, _) if *of == time));
        at.is_some_and(|at| at > 0 && matches!(self.items.get(at), Some(Item::Loss(_))))
    }

    fn take_record(&mut self, len: u32, record: &mut Vec<u8>) {
        let end = self.start + len as usize;
        record.clear();
        record.extend_from_slice(self.records.get(self.start..end).unwrap_or_default());
        self.start = end;
        if self.start >= self.records.len() / 2 && self.start >= 4_096 || self.start == self.records.len() {
            self.records.drain(..self.start);
            self.start = 0;
        }
    }
}

/// Events of all CPUs on their way to a file.
#[derive(Debug)]
pub struct Feed {
    survivors: Survivors,
    queues: Vec<Queue>,
    record: Vec<u8>,
}

impl Feed {
    /// Without events.
    pub fn new(options: SurvivorOptions) -> Self {
        Self { survivors: Survivors::new(options), queues: Vec::new(), record: Vec::new() }
    }

    /// How lives are folded.
    pub fn options(&self) -> &SurvivorOptions {
        &self.survivors.options
    }

    /// Events that were folded, by CPU.
    pub fn folded(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.survivors.folded()
    }

    /// Adds a CPU, for whose events the others wait.
    pub fn cpu(&mut self, number: u32) {
        self.queue(number);
    }

    fn queue(&mut self, number: u32) -> &mut Queue {
        let at = self.queues.partition_point(|queue| queue.number < number);
        if self.queues.get(at).is_none_or(|queue| queue.number != number) {
            self.queues.insert(at, Queue { number, ..Queue::default() });
        }
        &mut self.queues[at]
    }

    /// Adds the next event of a CPU.
    pub fn event(&mut self, cpu: u32, time: u64, record: &[u8]) {
        let queue = self.queue(cpu);
        queue.items.push_back(Item::Event(time, record.len() as u32));
        queue.records.extend_from_slice(record);
    }

    /// Adds a loss behind the last event of a CPU.
    pub fn loss(&mut self, cpu: u32, loss: Loss) {
        let queue = self.queue(cpu);
        match queue.items.back_mut() {
            Some(Item::Loss(before)) => *before = before.and(loss),
            _ => queue.items.push_back(Item::Loss(loss)),
        }
    }

    /// No event of that CPU before a time comes any more.
    pub fn until(&mut self, cpu: u32, time: u64) {
        let queue = self.queue(cpu);
        queue.known_until = queue.known_until.max(time);
    }

    /// Merges what can be merged.
    pub fn run(&mut self, writer: &mut Writer) -> Result<()> {
        while let Some(at) = self.next(false) {
            self.merge(writer, at)?;
        }
        let until = self.queues.iter().map(|queue| queue.next_time().unwrap_or(queue.known_until)).min();
        self.survivors.advance(writer, until.unwrap_or(0))
    }

    /// Merges everything, and ends the file: nothing comes any more.
    pub fn finish(&mut self, writer: &mut Writer) -> Result<()> {
        while let Some(at) = self.next(true) {
            self.merge(writer, at)?;
        }
        for queue in &mut self.queues {
            if let Some(Item::Loss(loss)) = queue.items.pop_front() {
                self.survivors.end_loss(queue.number, loss, std::mem::take(&mut queue.is_in_loss));
            }
        }
        self.survivors.finish(writer)
    }

    /// Index of the CPU whose next event is the next of all, if that is known.
    fn next(&self, is_end: bool) -> Option<usize> {
        let mut next: Option<(u64, usize)> = None;
        for (at, queue) in self.queues.iter().enumerate() {
            match queue.next_time() {
                Some(time) if next.is_none_or(|(least, _)| time < least) => next = Some((time, at)),
                _ => {}
            }
        }
        let (time, at) = next?;
        let is_known = |queue: &Queue| match queue.items.len() {
            // The last one of its CPU waits for the one behind it.
            0 | 1 => queue.known_until > time,
            _ => true,
        };
        (is_end || self.queues.iter().all(is_known)).then_some(at)
    }

    /// Merges the next event of a CPU.
    fn merge(&mut self, writer: &mut Writer, at: usize) -> Result<()> {
        let Some(queue) = self.queues.get_mut(at) else { return Ok(()) };
        let mut is_edge = false;
        if let Some(Item::Loss(loss)) = queue.items.front().copied() {
            queue.items.pop_front();
            self.survivors.end_loss(queue.number, loss, std::mem::take(&mut queue.is_in_loss));
            is_edge = true;
        }
        let Some(Item::Event(time, len)) = queue.items.pop_front() else { return Ok(()) };
        queue.take_record(len, &mut self.record);
        let begins_loss = matches!(queue.items.front(), Some(Item::Loss(_)));
        is_edge |= queue.items.is_empty() || begins_loss;
        let number = queue.number;
        is_edge |= self.queues.iter().any(|queue| queue.loses_at(time));
        self.survivors.event(writer, number, time, &self.record, is_edge)?;
        if begins_loss {
            self.queue(number).is_in_loss = true;
            self.survivors.begin_loss();
        }
        Ok(())
    }
}
