//! Reads and checks chunks ahead, on cores that the ledger does not use.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use kmt_format::read::{ChunkRef, Damage, EventChunk, Trace};

use super::decode::Open;

/// Largest number of chunks that are read ahead.
const AHEAD: usize = 16;
/// Chunks that a worker takes at once, without waking others in between.
const BUNDLE: usize = 4;

/// State of one chunk from the file to the merge.
#[derive(Debug)]
struct Job<'d> {
    chunk: ChunkRef,
    event_count: u32,
    behind_gap: bool,
    state: AtomicU8,
    result: Mutex<Option<Result<EventChunk<'d>, Damage>>>,
}

const WAITING: u8 = 0;
const CLAIMED: u8 = 1;
const READY: u8 = 2;

/// All chunks of a trace, roughly in the order in which the merge needs them.
///
/// A thread that needs a chunk no other has begun reads it itself, so it never waits for a free worker.
#[derive(Debug)]
pub struct Loader<'t, 'd> {
    trace: &'t Trace<'d>,
    jobs: Vec<Job<'d>>,
    /// Jobs of each CPU.
    streams: Vec<(u32, Vec<usize>)>,
    is_ordered: bool,
    ahead: usize,
    next: AtomicUsize,
    taken: AtomicUsize,
    gate: Mutex<Gate>,
    changed: Condvar,
    /// Called before a chunk is read.
    #[cfg(test)]
    before_read: fn(),
}

#[derive(Debug, Default)]
struct Gate {
    stopped: bool,
    waiting: usize,
}

impl<'t, 'd> Loader<'t, 'd> {
    /// A loader of all chunks that start at `last` or before.
    pub fn new(trace: &'t Trace<'d>, last: u64) -> Self {
        let (mut order, mut is_ordered) = (Vec::new(), true);
        for (&cpu, stream) in trace.streams() {
            let (mut wanted_at, mut events_seen, mut behind_gap) = (0, 0, false);
            for (chunk, info) in &stream.chunks {
                behind_gap |= info.loss != Default::default() || info.first_event > events_seen;
                events_seen = info.first_event.max(events_seen).saturating_add(info.event_count.into());
                if info.event_count > 0 && info.t_first <= last {
                    order.push((wanted_at, cpu, *chunk, info.event_count, std::mem::take(&mut behind_gap)));
                    is_ordered &= wanted_at <= info.t_first && info.t_first <= info.t_last;
                    wanted_at = info.t_last.max(wanted_at);
                }
            }
        }
        order.sort_by_key(|&(wanted_at, cpu, chunk, ..)| (wanted_at, cpu, chunk.offset));
        let mut streams = BTreeMap::<u32, Vec<usize>>::new();
        for (job, (_, cpu, ..)) in order.iter().enumerate() {
            streams.entry(*cpu).or_default().push(job);
        }
        let ahead = AHEAD.max(streams.len() * 2);
        let job = |(_, _, chunk, event_count, behind_gap)| Job {
            chunk,
            event_count,
            behind_gap,
            state: AtomicU8::new(WAITING),
            result: Mutex::new(None),
        };
        Self {
            trace,
            jobs: order.into_iter().map(job).collect(),
            streams: streams.into_iter().collect(),
            is_ordered,
            ahead,
            next: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            gate: Mutex::default(),
            changed: Condvar::new(),
            #[cfg(test)]
            before_read: || {},
        }
    }

    /// CPUs and the numbers of their chunks, in order.
    pub fn streams(&self) -> &[(u32, Vec<usize>)] {
        &self.streams
    }

    /// True if the times of no CPU fall.
    pub fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// Number of chunks.
    pub fn chunk_count(&self) -> usize {
        self.jobs.len()
    }

    /// Events of all chunks.
    pub fn event_count(&self) -> u64 {
        self.jobs.iter().map(|j| u64::from(j.event_count)).sum()
    }

    /// Reads chunks until all are begun or [`Loader::stop`] is called; called on worker threads.
    pub fn work(&self) {
        loop {
            let first = self.next.fetch_add(BUNDLE, Ordering::Relaxed);
            if first >= self.jobs.len() || !self.may_begin(first) {
                return;
            }
            for job in self.jobs.iter().skip(first).take(BUNDLE) {
                if job.claim() {
                    let claim = Claim { loader: self, job };
                    let read = self.read(job);
                    *lock(&job.result) = Some(read);
                    claim.end();
                }
            }
            self.wake();
        }
    }

    /// Waits until the merge is near enough; false if the loader was stopped.
    fn may_begin(&self, number: usize) -> bool {
        let mut gate = lock(&self.gate);
        while !gate.stopped && number >= self.taken.load(Ordering::Relaxed).saturating_add(self.ahead) {
            gate = self.wait(gate);
        }
        !gate.stopped
    }

    fn wait<'g>(&self, mut gate: MutexGuard<'g, Gate>) -> MutexGuard<'g, Gate> {
        gate.waiting += 1;
        let mut gate = self.changed.wait(gate).unwrap_or_else(PoisonError::into_inner);
        gate.waiting -= 1;
        gate
    }

    /// Wakes waiting threads.
    fn wake(&self) {
        if lock(&self.gate).waiting > 0 {
            self.changed.notify_all();
        }
    }

    /// Ends the worker threads.
    pub fn stop(&self) {
        lock(&self.gate).stopped = true;
        self.changed.notify_all();
    }

    /// The chunk of that number.
    pub fn take(&self, number: usize) -> Result<Option<Open<'d>>, Damage> {
        let Some(job) = self.jobs.get(number) else { return Ok(None) };
        let result = if self.claims(job) { Some(self.read(job)) } else { lock(&job.result).take() };
        let taken = self.taken.fetch_add(1, Ordering::Relaxed) + 1;
        if taken % BUNDLE == 0 {
            self.wake();
        }
        result.transpose().map(|chunk| chunk.map(|c| Open::new(c, job.behind_gap)))
    }

    /// Claims a chunk, or waits until another thread has read it; false in this case. If that thread panics, the chunk
    /// is free again: then the caller reads it, and panics itself if the chunk is the cause.
    fn claims(&self, job: &Job<'d>) -> bool {
        if job.claim() {
            return true;
        }
        let mut gate = lock(&self.gate);
        while job.state.load(Ordering::Acquire) != READY {
            if job.claim() {
                return true;
            }
            gate = self.wait(gate);
        }
        false
    }

    fn read(&self, job: &Job<'d>) -> Result<EventChunk<'d>, Damage> {
        #[cfg(test)]
        (self.before_read)();
        let read = self.trace.read(&job.chunk);
        read.map_err(|error| Damage::new(job.chunk.offset, job.chunk.total_len, error))
    }
}

impl Job<'_> {
    /// True for the first caller.
    fn claim(&self) -> bool {
        self.state.compare_exchange(WAITING, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A chunk that a worker reads. If the worker panics, others must not wait for it.
struct Claim<'l, 't, 'd> {
    loader: &'l Loader<'t, 'd>,
    job: &'l Job<'d>,
}

impl Claim<'_, '_, '_> {
    /// Ends the claim: the chunk was read. The caller wakes waiting threads.
    fn end(self) {
        self.job.state.store(READY, Ordering::Release);
        std::mem::forget(self);
    }
}

impl Drop for Claim<'_, '_, '_> {
    fn drop(&mut self) {
        self.job.state.store(WAITING, Ordering::Release);
        self.loader.wake();
    }
}

/// Stops the loader's threads when it is dropped, also during a panic.
pub struct StopOnDrop<'l, 't, 'd>(pub &'l Loader<'t, 'd>);

impl Drop for StopOnDrop<'_, '_, '_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
