//! Reads and checks chunks ahead, on cores that the ledger does not use.
//!
//! A chunk goes from the file through its checksum and decompression to the merge, which takes it from a channel of its own. A
//! panic while a chunk is read ends the pass: no thread waits for a chunk that is not read.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use kmt_format::read::{ChunkRef, Damage, EventChunk, EventsInfo, Trace};

use super::open_chunk::Open;

/// Smallest number of chunks that are read ahead.
const AHEAD: usize = 16;

/// A chunk that the merge needs.
#[derive(Debug)]
struct Job {
    chunk: ChunkRef,
    event_count: u32,
    t_first: u64,
    behind_gap: bool,
}

/// A chunk as it was read.
type ReadChunk<'d> = Result<EventChunk<'d>, Damage>;

/// All chunks of a trace, roughly in the order in which the merge needs them.
#[derive(Debug)]
pub struct Loader<'t, 'd> {
    trace: &'t Trace<'d>,
    jobs: Vec<Job>,
    /// Jobs of each CPU.
    streams: Vec<(u32, Vec<usize>)>,
    is_ordered: bool,
    /// Called before a chunk is read.
    #[cfg(test)]
    before_read: fn(),
}

/// A chunk that a worker is asked to read, and the channel for it.
struct ReadOrder<'d> {
    number: usize,
    to: SyncSender<ReadChunk<'d>>,
}

/// Orders for workers. With the last worker those that are left go, so that nothing waits for them.
#[derive(Clone)]
pub struct Orders<'d>(Arc<Mutex<Receiver<ReadOrder<'d>>>>);

/// The merge's side: chunks that it takes, and those that are ordered ahead.
pub struct Chunks<'l, 't, 'd> {
    loader: &'l Loader<'t, 'd>,
    orders: Sender<ReadOrder<'d>>,
    /// By number of the chunk, as far as they are ordered; `None`: taken, or not read ahead.
    arriving: Vec<Option<Receiver<ReadChunk<'d>>>>,
    taken: usize,
}

impl<'t, 'd> Loader<'t, 'd> {
    /// A loader of all chunks that start at `last` or before. Where a clock steps back it loads all chunks: those after
    /// `last` have their place in the merge, and chunks that start before `last` may follow them.
    pub fn new(trace: &'t Trace<'d>, last: u64) -> Self {
        let (mut order, mut is_ordered) = (Vec::new(), true);
        for (&cpu, stream) in trace.streams() {
            let (mut wanted_at, mut events_seen, mut behind_gap) = (0, 0, false);
            for (chunk, info) in &stream.chunks {
                behind_gap |= info.loss != Default::default() || info.first_event > events_seen;
                events_seen = info.first_event.max(events_seen).saturating_add(info.event_count.into());
                if info.event_count > 0 {
                    order.push((wanted_at, cpu, *chunk, info, std::mem::take(&mut behind_gap)));
                    is_ordered &= wanted_at <= info.t_first && info.t_first <= info.t_last;
                    wanted_at = info.t_last.max(wanted_at);
                }
            }
        }
        order.retain(|(_, _, _, info, _)| !is_ordered || info.t_first <= last);
        order.sort_by_key(|&(wanted_at, cpu, chunk, ..)| (wanted_at, cpu, chunk.offset));
        let mut streams = BTreeMap::<u32, Vec<usize>>::new();
        for (job, (_, cpu, ..)) in order.iter().enumerate() {
            streams.entry(*cpu).or_default().push(job);
        }
        let job = |(_, _, chunk, info, behind_gap): (_, _, _, &EventsInfo, _)| Job {
            chunk,
            event_count: info.event_count,
            t_first: info.t_first,
            behind_gap,
        };
        Self {
            trace,
            jobs: order.into_iter().map(job).collect(),
            streams: streams.into_iter().collect(),
            is_ordered,
            #[cfg(test)]
            before_read: || {},
        }
    }

    /// True if the times of no CPU fall.
    pub fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// Number of chunks.
    pub fn chunk_count(&self) -> usize {
        self.jobs.len()
    }

    /// Events of all chunks that start at `last` or before.
    pub fn event_count_until(&self, last: u64) -> u64 {
        self.jobs.iter().filter(|job| job.t_first <= last).map(|job| u64::from(job.event_count)).sum()
    }

    /// The chunks, and orders for this number of workers; without any, chunks are read by the thread that takes them.
    pub fn with_workers(&self, workers: usize) -> (Chunks<'_, 't, 'd>, Vec<Orders<'d>>) {
        let (orders, received) = channel();
        let chunks = Chunks { loader: self, orders, arriving: Vec::new(), taken: 0 };
        (chunks, vec![Orders(Arc::new(Mutex::new(received))); workers])
    }

    fn read(&self, job: &Job) -> ReadChunk<'d> {
        #[cfg(test)]
        (self.before_read)();
        let read = self.trace.read(&job.chunk);
        read.map_err(|error| Damage::new(job.chunk.offset, job.chunk.total_len, error))
    }
}

impl<'d> Orders<'d> {
    /// Reads chunks until there are no more orders; called on worker threads.
    pub fn work(self, loader: &Loader<'_, 'd>) {
        let next = || self.0.lock().unwrap_or_else(PoisonError::into_inner).recv();
        while let Ok(ReadOrder { number, to }) = next() {
            if let Some(job) = loader.jobs.get(number) {
                // The merge may have ended.
                let _ = to.send(loader.read(job));
            }
        }
    }
}

impl<'l, 't, 'd> Chunks<'l, 't, 'd> {
    /// CPUs and the numbers of their chunks, in order.
    pub fn streams(&self) -> &'l [(u32, Vec<usize>)] {
        &self.loader.streams
    }

    /// The chunk of that number. If its worker panics, it is read here, with a panic if the chunk is the cause.
    pub fn take(&mut self, number: usize) -> Result<Option<Open<'d>>, Damage> {
        let Some(job) = self.loader.jobs.get(number) else { return Ok(None) };
        self.order();
        self.taken += 1;
        let ordered = self.arriving.get_mut(number).and_then(Option::take);
        let read = match ordered.map(|from| from.recv()) {
            Some(Ok(read)) => read,
            Some(Err(_)) | None => self.loader.read(job),
        };
        read.map(|chunk| Some(Open::new(chunk, job.behind_gap)))
    }

    /// Orders chunks as far ahead as their memory allows.
    fn order(&mut self) {
        let ahead = AHEAD.max(self.loader.streams.len() * 2);
        for number in self.arriving.len()..self.loader.jobs.len().min(self.taken.saturating_add(ahead)) {
            let (to, from) = sync_channel(1);
            let is_sent = self.orders.send(ReadOrder { number, to }).is_ok();
            self.arriving.push(is_sent.then_some(from));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use kmt_format::kernel::ByteOrder;
    use kmt_format::write::{Writer, WriterOptions};

    use super::*;
    use crate::stream::Interests;
    use crate::stream::decode::Decoder;
    use crate::stream::pipe;

    const KFREE: &str = "name: kfree\nID: 1\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:const void * ptr;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n";

    /// A trace of 40 chunks of one CPU, which lives as long as the program.
    fn trace() -> &'static Trace<'static> {
        let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8)).unwrap();
        writer.add_format("kmem", KFREE).unwrap();
        for time in 0..40 {
            writer.add_event(0, time, &[1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]).unwrap();
            writer.flush(0).unwrap();
        }
        let file: &'static [u8] = Vec::leak(writer.finish().unwrap());
        Box::leak(Box::new(Trace::open(file).unwrap()))
    }

    /// The result of `work`, on a thread of its own; `None` if it takes too long.
    fn in_time<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
        let (done, result) = channel();
        thread::spawn(move || done.send(work()));
        result.recv_timeout(Duration::from_secs(20)).ok()
    }

    /// Panics on a thread of that name, once others wait for it.
    fn panic_late_on_workers() {
        if thread::current().name() == Some("worker") {
            thread::sleep(Duration::from_millis(200));
            panic!("a worker cannot read");
        }
    }

    #[test]
    fn events_until_a_time_are_those_of_any_loader_that_has_them() {
        let counts = [9, 20, u64::MAX].map(|last| Loader::new(trace(), last).event_count_until(9));
        assert_eq!(counts, [10; 3]);
        assert_eq!(Loader::new(trace(), u64::MAX).event_count_until(u64::MAX), 40);
    }

    #[test]
    fn a_chunk_that_a_worker_cannot_read_is_read_by_the_thread_that_waits() {
        let loader = Box::leak(Box::new(Loader::new(trace(), u64::MAX)));
        loader.before_read = panic_late_on_workers;
        let loader = &*loader;
        let (mut chunks, orders) = loader.with_workers(1);
        let [orders] = <[_; 1]>::try_from(orders).ok().unwrap();
        let worker = thread::Builder::new().name("worker".into()).spawn(|| orders.work(loader)).unwrap();
        // The worker leaves all others.
        let taken = in_time(move || (0..40).all(|number| matches!(chunks.take(number), Ok(Some(_)))));
        assert_eq!(taken, Some(true));
        assert!(worker.join().is_err());
    }

    #[test]
    fn a_panic_while_reading_ends_the_pass() {
        for threads in [1, 2, 4] {
            let passed = in_time(move || {
                let trace = trace();
                let mut loader = Loader::new(trace, u64::MAX);
                loader.before_read = || panic!("nothing can be read");
                let decoder = Decoder::new(trace, Interests::empty());
                let pass = || pipe::run(&loader, decoder, threads, u64::MAX, |_, _| {}).1.len();
                catch_unwind(AssertUnwindSafe(pass)).is_ok()
            });
            assert_eq!(passed, Some(false), "{threads} threads");
        }
    }

    /// The other panic: of the side that takes operations.
    #[test]
    fn a_panic_of_the_ledger_ends_the_pass() {
        let passed = in_time(|| {
            let trace = trace();
            let loader = Loader::new(trace, u64::MAX);
            let decoder = Decoder::new(trace, Interests::empty());
            let pass = || pipe::run(&loader, decoder, 4, u64::MAX, |_, _| panic!("no room")).1.len();
            catch_unwind(AssertUnwindSafe(pass)).is_ok()
        });
        assert_eq!(passed, Some(false));
    }
}
