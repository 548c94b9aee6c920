//! Events of several data sources: each source has its own copy of an event that several of them record.

use std::collections::{BTreeMap, HashMap};

use kmt_format::write::Loss;

use super::Item;

/// What waits.
#[derive(Debug)]
enum What {
    Event(Vec<u8>),
    Loss(Loss),
}

/// An item of a sequence.
#[derive(Debug)]
struct Waiting {
    time: u64,
    sequence: u32,
    what: What,
}

/// A sequence on a CPU.
#[derive(Debug)]
struct Source {
    /// Bundles with events that are not read yet.
    left: u64,
    /// Time of its last event.
    last: u64,
}

/// A CPU.
#[derive(Debug, Default)]
struct Cpu {
    sources: BTreeMap<u32, Source>,
    waiting: Vec<Waiting>,
    /// Number of items that were left when the CPU was released last.
    left: usize,
}

/// Puts the events of each CPU in the order of time.
#[derive(Debug, Default)]
pub struct Merge {
    /// CPUs with events of several sequences.
    cpus: BTreeMap<u32, Cpu>,
    /// Bytes that wait, and that may.
    bytes: u64,
    most: u64,
    /// Events that another sequence has as well.
    pub copies: u64,
    /// True if more than the limit had to wait.
    pub is_forced: bool,
}

type See<'s, E> = &'s mut dyn FnMut(Item<'_>) -> Result<(), E>;

impl Merge {
    /// Of CPUs with these numbers of bundles by sequence. At most `most` bytes wait.
    pub fn new(bundles: &BTreeMap<u32, BTreeMap<u32, u64>>, most: u64) -> Self {
        let several = bundles.iter().filter(|(_, sequences)| sequences.len() > 1);
        let sources = |sequences: &BTreeMap<u32, u64>| {
            sequences.iter().map(|(&sequence, &left)| (sequence, Source { left, last: 0 })).collect()
        };
        let cpus = several.map(|(&cpu, s)| (cpu, Cpu { sources: sources(s), ..Cpu::default() })).collect();
        Self { cpus, most, ..Self::default() }
    }

    /// Shows an event, at once or later.
    pub fn event<E>(
        &mut self,
        cpu: u32,
        sequence: u32,
        time: u64,
        record: &[u8],
        see: See<'_, E>,
    ) -> Result<(), E> {
        match self.cpus.get_mut(&cpu) {
            None => see(Item::Event { cpu, time, record }),
            Some(queue) => {
                self.bytes = self.bytes.saturating_add((size_of::<Waiting>() + record.len()) as u64);
                queue.waiting.push(Waiting { time, sequence, what: What::Event(record.to_vec()) });
                self.keep_limit(see)
            }
        }
    }

    /// Shows a loss before an event of that time.
    pub fn loss<E>(
        &mut self,
        cpu: u32,
        sequence: u32,
        time: u64,
        loss: Loss,
        see: See<'_, E>,
    ) -> Result<(), E> {
        match self.cpus.get_mut(&cpu) {
            None => see(Item::Lost { cpu, loss }),
            Some(queue) => {
                self.bytes = self.bytes.saturating_add(size_of::<Waiting>() as u64);
                queue.waiting.push(Waiting { time, sequence, what: What::Loss(loss) });
                self.keep_limit(see)
            }
        }
    }

    /// A bundle with events is over; `last` is the time of its last event.
    pub fn end_bundle<E>(&mut self, cpu: u32, sequence: u32, last: u64, see: See<'_, E>) -> Result<(), E> {
        /// Items for which it is worth to sort.
        const MANY: usize = 1024;
        let Some(queue) = self.cpus.get_mut(&cpu) else { return Ok(()) };
        if let Some(source) = queue.sources.get_mut(&sequence) {
            source.left = source.left.saturating_sub(1);
            source.last = source.last.max(last);
        }
        if queue.waiting.len() < MANY || queue.waiting.len() / 2 < queue.left {
            return Ok(());
        }
        // An event of a source that is not over can still have the time of its last one.
        let open = queue.sources.values().filter(|source| source.left > 0);
        let until = open.map(|source| source.last).min().unwrap_or(u64::MAX);
        self.release(cpu, until, see)
    }

    /// Shows all that waits.
    pub fn end<E>(&mut self, see: See<'_, E>) -> Result<(), E> {
        let cpus: Vec<u32> = self.cpus.keys().copied().collect();
        cpus.into_iter().try_for_each(|cpu| {
            self.release(cpu, u64::MAX, see)?;
            self.release_last(cpu, see)
        })
    }

    fn keep_limit<E>(&mut self, see: See<'_, E>) -> Result<(), E> {
        if self.bytes <= self.most {
            return Ok(());
        }
        self.is_forced = true;
        self.end(see)
    }

    /// Shows the items before a time.
    fn release<E>(&mut self, cpu: u32, until: u64, see: See<'_, E>) -> Result<(), E> {
        let Some(queue) = self.cpus.get_mut(&cpu) else { return Ok(()) };
        queue.waiting.sort_by_key(|w| w.time);
        let count = queue.waiting.partition_point(|w| w.time < until);
        let ready: Vec<Waiting> = queue.waiting.drain(..count).collect();
        queue.left = queue.waiting.len();
        self.show(cpu, ready, see)
    }

    /// Shows the items of the last time that there can be.
    fn release_last<E>(&mut self, cpu: u32, see: See<'_, E>) -> Result<(), E> {
        let Some(queue) = self.cpus.get_mut(&cpu) else { return Ok(()) };
        let ready = std::mem::take(&mut queue.waiting);
        queue.left = 0;
        self.show(cpu, ready, see)
    }

    fn show<E>(&mut self, cpu: u32, ready: Vec<Waiting>, see: See<'_, E>) -> Result<(), E> {
        let len = |w: &Waiting| match &w.what {
            What::Event(record) => (size_of::<Waiting>() + record.len()) as u64,
            What::Loss(_) => size_of::<Waiting>() as u64,
        };
        self.bytes = self.bytes.saturating_sub(ready.iter().map(len).sum());
        for at_once in ready.chunk_by(|a, b| a.time == b.time) {
            let first = at_once.first().map_or(0, |w| w.sequence);
            let is_shared = at_once.iter().any(|w| w.sequence != first);
            // How often each record was shown, and how often it came in each sequence.
            let mut shown: HashMap<&[u8], u64> = HashMap::new();
            let mut came: HashMap<(u32, &[u8]), u64> = HashMap::new();
            for Waiting { time, sequence, what } in at_once {
                let record = match what {
                    What::Loss(loss) => {
                        see(Item::Lost { cpu, loss: *loss })?;
                        continue;
                    }
                    What::Event(record) => record,
                };
                if is_shared {
                    let came = came.entry((*sequence, record)).or_default();
                    let shown = shown.entry(record).or_default();
                    *came += 1;
                    if *came <= *shown {
                        self.copies += 1;
                        continue;
                    }
                    *shown += 1;
                }
                see(Item::Event { cpu, time: *time, record })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items of bundles (sequence, times), all of CPU 0; an event's record is its time.
    fn merged(bundles: &[(u32, &[u64])], most: u64) -> (Vec<u64>, u64, bool) {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        bundles.iter().for_each(|(sequence, _)| *counts.entry(*sequence).or_default() += 1);
        let mut merge = Merge::new(&BTreeMap::from([(0, counts)]), most);
        let mut out = Vec::new();
        let mut see = |item: Item<'_>| -> Result<(), ()> {
            if let Item::Event { time, .. } = item {
                out.push(time);
            }
            Ok(())
        };
        for (sequence, times) in bundles {
            for &time in *times {
                merge.event(0, *sequence, time, &time.to_le_bytes(), &mut see).unwrap();
            }
            merge.end_bundle(0, *sequence, times.last().copied().unwrap_or(0), &mut see).unwrap();
        }
        merge.end(&mut see).unwrap();
        (out, merge.copies, merge.is_forced)
    }

    #[test]
    fn sources_are_merged_and_copies_are_left_out() {
        let (times, copies, _) = merged(&[(1, &[1, 3, 3, 9]), (2, &[2, 3, 4, 9, 9]), (1, &[10])], 1 << 20);
        assert_eq!((times, copies), (vec![1, 2, 3, 3, 4, 9, 9, 10], 2));
        let (times, copies, _) = merged(&[(1, &[5, 5]), (1, &[4])], 1 << 20);
        assert_eq!((times, copies), (vec![5, 5, 4], 0), "one source is left as it is");
    }

    #[test]
    fn a_long_trace_does_not_wait_for_its_end() {
        let times: Vec<u64> = (0..4000).collect();
        let bundles: Vec<(u32, &[u64])> = times.chunks(100).flat_map(|t| [(1, t), (2, t)]).collect();
        // Two thousand events need more.
        let (merged, copies, is_forced) = merged(&bundles, 2000 * 64);
        assert!(merged == times && copies == 4000 && !is_forced, "{} {copies} {is_forced}", merged.len());
    }

    #[test]
    fn the_bytes_that_wait_are_bounded() {
        let (times, _, is_forced) = merged(&[(1, &[5, 6, 7]), (2, &[1, 2, 3])], 100);
        assert!(is_forced && times.len() == 6);
    }
}
