//! Records in the order of their times: perf writes the buffers of all CPUs in rounds, and marks the end of each round.

use super::super::cursor::{ImportError, Result};
use super::PerfData;
use super::records::{Record, Records};
use super::sample::{SampleShapes, Trailer};
use super::unpack::Unpack;

/// Bytes of events that wait to be sorted, in a file of `len` bytes; beyond that they are passed on unsorted.
fn waiting_max(len: usize) -> u64 {
    (len as u64 / 4).clamp(64 << 20, 256 << 20)
}

/// Bytes of a task's name that are kept: the kernel has no longer ones, and each task that is made gets a copy.
const COMM_MAX: usize = 16;

/// Records in the order of time.
#[derive(Debug, Clone, Copy)]
pub enum Item<'a> {
    /// A tracepoint was hit.
    Event {
        /// Time.
        time: u64,
        /// CPU.
        cpu: u32,
        /// The kernel's record.
        raw: &'a [u8],
        /// The call chain, as the sample has it.
        chain: &'a [u8],
        /// Events that it represents, if known.
        period: Option<u64>,
    },
    /// Records of a CPU were lost; uncounted where events were throttled.
    Lost {
        /// CPU, if known.
        cpu: Option<u32>,
        /// How many.
        count: Option<u64>,
    },
    /// A task got a name.
    Comm {
        /// Time.
        time: u64,
        /// Process.
        pid: i32,
        /// Task.
        tid: i32,
        /// Name.
        comm: &'a [u8],
    },
    /// A task was made, with its parent's name.
    Fork {
        /// Time.
        time: u64,
        /// Process.
        pid: i32,
        /// Task.
        tid: i32,
        /// The task that made it.
        parent: i32,
    },
    /// A sample without a kernel's record.
    NotTraced,
}

/// One waiting record.
struct Waiting {
    time: u64,
    kind: u32,
    offset: u64,
    start: usize,
    len: usize,
}

/// Reads records in the order of time.
pub struct Rounds<'d> {
    records: Records<'d>,
    shapes: SampleShapes,
    unpack: Unpack,
    queue: Queue,
    waiting_max: u64,
    /// Records lost that were counted sample by sample at the end.
    pub lost_samples: u64,
    /// True if more than the limit had to wait.
    pub is_forced: bool,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Waiting>,
    bytes: Vec<u8>,
    /// Latest time so far, and at the end of the round before.
    newest: u64,
    due: u64,
    /// Set at the end of a round: records up to this time can be shown.
    ended: Option<u64>,
}

impl<'d> Rounds<'d> {
    /// From the first record.
    pub fn new(file: &PerfData<'d>) -> Self {
        Self {
            records: file.records(),
            shapes: SampleShapes::new(&file.attrs, file.order),
            unpack: Unpack::new(file.order, file.inflated_max, file.bounds.compressed_record),
            queue: Queue::default(),
            waiting_max: file.bounds.waiting.unwrap_or_else(|| waiting_max(file.bytes.len())),
            lost_samples: 0,
            is_forced: false,
        }
    }

    /// Shows everything to `see`. What the file says wrong ends it: all before that is shown, and the fault returned.
    ///
    /// # Errors
    ///
    /// Returns what `see` fails with.
    pub fn read<E>(
        &mut self,
        see: &mut dyn FnMut(Item<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<Option<ImportError>, E> {
        let fault = loop {
            match self.records.next_record() {
                Ok(None) => break None,
                Err(fault) => break Some(fault),
                Ok(Some(record)) => {
                    if let Err(fault) = self.take_in(&record) {
                        break Some(fault);
                    }
                    let is_full = self.queue.len() as u64 > self.waiting_max;
                    self.is_forced |= is_full;
                    let ended = self.queue.ended.take();
                    if let Some(due) = if is_full { Some(self.queue.newest) } else { ended } {
                        self.release(due, see)?;
                    }
                }
            }
        };
        self.release(u64::MAX, see)?;
        let left = self.unpack.left();
        let torn = (left > 0).then(|| {
            ImportError::at(self.records.offset(), format!("the last record is cut off after {left} bytes"))
        });
        Ok(fault.or(torn))
    }

    fn take_in(&mut self, record: &Record<'_>) -> Result<()> {
        let Self { unpack, queue, shapes, lost_samples, .. } = self;
        match record.kind {
            Record::COMPRESSED | Record::COMPRESSED2 => {
                unpack.feed(record, &mut |inner| queue.add(inner, shapes, lost_samples))
            }
            _ => queue.add(record, shapes, lost_samples),
        }
    }

    /// Shows everything up to that time.
    fn release<E>(
        &mut self,
        due: u64,
        see: &mut dyn FnMut(Item<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let queue = &mut self.queue;
        queue.waiting.sort_by_key(|w| w.time);
        let count = queue.waiting.partition_point(|w| w.time <= due);
        for waiting in queue.waiting.get(..count).unwrap_or_default() {
            let body =
                queue.bytes.get(waiting.start..waiting.start.saturating_add(waiting.len)).unwrap_or_default();
            let record = Record {
                kind: waiting.kind,
                misc: 0,
                offset: waiting.offset,
                body,
                tail: &[],
                tail_offset: 0,
            };
            if let Some(item) = item(&record, waiting.time, &self.shapes) {
                see(item)?;
            }
        }
        queue.forget(count);
        Ok(())
    }
}

impl Queue {
    /// Bytes of memory.
    fn len(&self) -> usize {
        self.bytes.len().saturating_add(self.waiting.len().saturating_mul(size_of::<Waiting>()))
    }

    fn add(&mut self, record: &Record<'_>, shapes: &SampleShapes, lost_samples: &mut u64) -> Result<()> {
        /// Samples that a BPF program filtered out.
        const LOST_SAMPLES_BPF: u16 = 1 << 15;
        let time = match record.kind {
            Record::SAMPLE => shapes.sample(record)?.time,
            Record::COMM | Record::FORK => shapes.trailer(record).time,
            // Without a time of its own a loss is at its place in the file.
            Record::LOST | Record::THROTTLE => match shapes.trailer(record).time {
                0 => self.newest,
                time => time,
            },
            Record::LOST_SAMPLES => {
                if record.misc & LOST_SAMPLES_BPF == 0 {
                    let lost = shapes.word(record.body);
                    *lost_samples = lost_samples.saturating_add(lost);
                }
                return Ok(());
            }
            // A compressed record may hold several rounds, and records after the last one.
            Record::FINISHED_ROUND => {
                self.ended = Some(std::mem::replace(&mut self.due, self.newest));
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.newest = self.newest.max(time);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record.body);
        self.waiting.push(Waiting {
            time,
            kind: record.kind,
            offset: record.offset,
            start,
            len: record.body.len(),
        });
        Ok(())
    }

    /// Forgets the first of those that wait, and moves the others together.
    fn forget(&mut self, count: usize) {
        self.waiting.drain(..count);
        let mut kept = Vec::with_capacity(self.waiting.iter().map(|w| w.len).sum());
        for waiting in &mut self.waiting {
            let bytes =
                self.bytes.get(waiting.start..waiting.start.saturating_add(waiting.len)).unwrap_or_default();
            waiting.start = kept.len();
            kept.extend_from_slice(bytes);
        }
        self.bytes = kept;
    }
}

/// Item of a record; `None` for records of other types.
fn item<'a>(record: &Record<'a>, time: u64, shapes: &SampleShapes) -> Option<Item<'a>> {
    let int = |at: usize| shapes.int(record.body, at);
    match record.kind {
        Record::SAMPLE => {
            let sample = shapes.sample(record).ok()?;
            if sample.raw.is_empty() {
                return Some(Item::NotTraced);
            }
            Some(Item::Event {
                time,
                cpu: sample.cpu,
                raw: sample.raw,
                chain: sample.chain,
                period: sample.period,
            })
        }
        Record::LOST => {
            let Trailer { cpu, .. } = shapes.trailer(record);
            Some(Item::Lost { cpu, count: Some(shapes.word(record.body.get(8..)?)) })
        }
        Record::THROTTLE => Some(Item::Lost { cpu: shapes.trailer(record).cpu, count: None }),
        Record::COMM => {
            let comm = record.body.get(8..)?.split(|&b| b == 0).next()?;
            let comm = comm.get(..comm.len().min(COMM_MAX))?;
            Some(Item::Comm { time, pid: int(0)?, tid: int(4)?, comm })
        }
        Record::FORK => Some(Item::Fork { time, pid: int(0)?, tid: int(8)?, parent: int(12)? }),
        _ => None,
    }
}
