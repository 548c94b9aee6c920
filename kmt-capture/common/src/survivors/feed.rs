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

/// Events and losses of a CPU that were read and are not merged yet.
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

    /// True if its next event is known, as far as one at a time could come before it. The last one of its CPU waits for the one
    /// behind it.
    fn is_known(&self, time: u64) -> bool {
        self.items.len() > 1 || self.known_until > time
    }

    /// Gives the memory of records back that were merged.
    fn forget_merged(&mut self) {
        self.records.drain(..self.start);
        self.start = 0;
    }
}

/// Events of all CPUs on their way to a file.
#[derive(Debug)]
pub struct Feed {
    survivors: Survivors,
    queues: Vec<Queue>,
}

impl Feed {
    /// Without events.
    pub fn new(options: SurvivorOptions) -> Self {
        Self { survivors: Survivors::new(options), queues: Vec::new() }
    }

    /// How lives are folded.
    pub fn options(&self) -> &SurvivorOptions {
        &self.survivors.options
    }

    /// Events that were folded, by CPU.
    pub fn folded(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.survivors.folded()
    }

    /// Events that are neither in the file nor in sums, by CPU.
    pub fn left_out(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.survivors.left_out()
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
        while let Some((at, until)) = self.next(false) {
            self.merge(writer, at, until, false)?;
        }
        self.queues.iter_mut().for_each(Queue::forget_merged);
        let until = self.queues.iter().map(|queue| queue.next_time().unwrap_or(queue.known_until)).min();
        self.survivors.advance(writer, until.unwrap_or(0))
    }

    /// Merges everything, and ends the file: nothing comes any more.
    pub fn finish(&mut self, writer: &mut Writer) -> Result<()> {
        while let Some((at, until)) = self.next(true) {
            self.merge(writer, at, until, true)?;
        }
        for queue in &mut self.queues {
            if let Some(Item::Loss(loss)) = queue.items.pop_front() {
                self.survivors.end_loss(queue.number, loss, std::mem::take(&mut queue.is_in_loss));
            }
        }
        self.survivors.finish(writer)
    }

    /// Index of the CPU whose next event is the next of all, if that is known, and the time before which its events behind it
    /// are the next ones, too.
    fn next(&self, is_end: bool) -> Option<(usize, u64)> {
        let mut next: Option<(u64, usize)> = None;
        for (at, queue) in self.queues.iter().enumerate() {
            match queue.next_time() {
                Some(time) if next.is_none_or(|(least, _)| time < least) => next = Some((time, at)),
                _ => {}
            }
        }
        let (time, at) = next?;
        let is_known = |queue: &Queue| is_end || queue.is_known(time);
        let until = |queue: &Queue| {
            let known = if is_end || queue.items.len() > 1 { u64::MAX } else { queue.known_until };
            queue.next_time().unwrap_or(u64::MAX).min(known)
        };
        let others = self.queues.iter().enumerate().filter(|(other, _)| *other != at);
        let until = others.map(|(_, queue)| until(queue)).min().unwrap_or(u64::MAX);
        self.queues.iter().all(is_known).then_some((at, until))
    }

    /// Merges the next event of a CPU, and those behind it until a time or a loss.
    fn merge(&mut self, writer: &mut Writer, at: usize, until: u64, is_end: bool) -> Result<()> {
        let Some(queue) = self.queues.get_mut(at) else { return Ok(()) };
        let mut is_edge = false;
        if let Some(Item::Loss(loss)) = queue.items.front().copied() {
            queue.items.pop_front();
            self.survivors.end_loss(queue.number, loss, std::mem::take(&mut queue.is_in_loss));
            is_edge = true;
        }
        // Of the others, only the first event can be at the time of one of another CPU.
        let time = queue.next_time();
        is_edge |= time.is_some_and(|time| self.queues.iter().any(|queue| queue.loses_at(time)));
        let Self { survivors, queues, .. } = self;
        let Some(queue) = queues.get_mut(at) else { return Ok(()) };
        while let Some(Item::Event(time, len)) = queue.items.pop_front() {
            let begins_loss = matches!(queue.items.front(), Some(Item::Loss(_)));
            is_edge |= queue.items.is_empty() || begins_loss || queue.loses_at(time);
            let start = queue.start;
            queue.start += len as usize;
            let record = queue.records.get(start..queue.start).unwrap_or_default();
            survivors.event(writer, queue.number, time, record, is_edge)?;
            if begins_loss {
                queue.is_in_loss = true;
                survivors.begin_loss();
                return Ok(());
            }
            let is_next = |time: u64| time < until && (is_end || queue.is_known(time));
            if !matches!(queue.items.front(), Some(Item::Event(time, _)) if is_next(*time)) {
                return Ok(());
            }
            is_edge = false;
        }
        Ok(())
    }
}
