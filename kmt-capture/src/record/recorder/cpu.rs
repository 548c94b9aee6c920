//! One CPU of a recording.

use kmt_format::kernel::CpuStats;
use kmt_format::write::WriterStats;

use crate::record::ring::Ring;

/// Counters that only grow.
fn cumulative(stats: &CpuStats) -> [Option<u64>; 4] {
    [stats.overrun, stats.commit_overrun, stats.dropped, stats.read]
}

/// `now` with these counters of `before` added.
fn plus(mut now: CpuStats, before: &CpuStats) -> CpuStats {
    let add =
        |to: &mut Option<u64>, from: Option<u64>| *to = to.map(|to| to.saturating_add(from.unwrap_or(0)));
    add(&mut now.overrun, before.overrun);
    add(&mut now.commit_overrun, before.commit_overrun);
    add(&mut now.dropped, before.dropped);
    add(&mut now.read, before.read);
    now
}

/// The kernel's counters of one CPU.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// As they were read last, with those before resets of the buffer.
    pub sums: Option<CpuStats>,
    /// As the kernel showed them last.
    shown: CpuStats,
    /// Sums at resets; `None`: none was seen.
    before_reset: Option<CpuStats>,
    /// Events that were read before the recording, of a buffer that was found; and, if there are any, those that were
    /// overwritten before: what was between them belongs to another recording.
    before: (u64, u64),
}

impl Counts {
    /// True if events were read before the recording: those that were overwritten before it are not counted then.
    pub fn was_read_before(&self) -> bool {
        self.before.0 > 0
    }

    /// Takes over counters that were read; returns true if they stepped back: the buffer was reset.
    pub fn add(&mut self, read: Option<CpuStats>) -> bool {
        let Some(now) = read else {
            self.sums = None;
            return false;
        };
        let mut both = cumulative(&now).into_iter().zip(cumulative(&self.shown));
        let is_reset = both.any(|(now, before)| now < before);
        if is_reset {
            self.before_reset = Some(plus(self.shown, &self.before_reset.unwrap_or_default()));
        }
        self.shown = now;
        let mut sums = plus(now, &self.before_reset.unwrap_or_default());
        sums.read = sums.read.map(|read| read.saturating_sub(self.before.0));
        sums.overrun = sums.overrun.map(|overrun| overrun.saturating_sub(self.before.1));
        self.sums = Some(sums);
        is_reset
    }
}

/// A CPU: its ring buffer, and its counts. It stays when the CPU goes offline.
#[derive(Debug)]
pub(super) struct Cpu {
    pub ring: Ring,
    /// The kernel's counters.
    pub counters: Counts,
    /// Time at the start of the last sub-buffer.
    pub page_time: u64,
    /// Events that another process has read.
    pub taken: u64,
    /// Bytes read since all buffers were empty.
    pub drained: u64,
    /// Events that were overwritten by design, before the first sub-buffer of a ring.
    pub overwritten: u64,
    /// Time at the start of the first sub-buffer.
    pub first_time: Option<u64>,
    /// Time of the last event.
    pub last_time: u64,
}

impl Cpu {
    /// Nothing is read yet.
    pub fn new(ring: Ring) -> Self {
        Self {
            ring,
            counters: Counts::default(),
            page_time: 0,
            taken: 0,
            drained: 0,
            overwritten: 0,
            first_time: None,
            last_time: 0,
        }
    }

    /// Events lost, by the kernel's counters, and those that another process has read.
    pub fn lost(&self) -> u64 {
        let counted = self.counters.sums.and_then(|counters| counters.lost_events()).unwrap_or(0);
        counted.saturating_sub(self.overwritten).saturating_add(self.taken)
    }

    /// Events that another process has read from the buffer: by the kernel's count of those that were read, and ours.
    pub fn read_by_others(&self, stats: &WriterStats) -> u64 {
        let is_exact = self.counters.before_reset.is_none() && stats.sub_buffers_damaged == 0;
        let read = self.counters.sums.and_then(|counters| counters.read).filter(|_| is_exact);
        read.map_or(0, |read| read.saturating_sub(stats.events))
    }

    /// Takes over a buffer with these counters.
    pub fn adopt(mut self, counters: Option<CpuStats>) -> Self {
        let read = counters.and_then(|counters| counters.read).unwrap_or(0);
        let overrun = counters.and_then(|counters| counters.overrun).filter(|_| read > 0).unwrap_or(0);
        self.counters.before = (read, overrun);
        self
    }

    /// Number of the CPU.
    pub fn number(&self) -> u32 {
        self.ring.cpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums over resets of the buffer are what the kernel counted in all.
    #[test]
    fn counters_that_step_back_are_added_up() {
        let read = |overrun, read| {
            CpuStats::parse(&format!("entries: 3\noverrun: {overrun}\nread events: {read}\n")).unwrap()
        };
        let mut counts = Counts::default();
        let steps = [((5, 10), false), ((9, 20), false), ((0, 1), true), ((2, 4), false), ((1, 9), true)];
        for (at, ((overrun, events), is_reset)) in steps.into_iter().enumerate() {
            assert_eq!(counts.add(Some(read(overrun, events))), is_reset, "step {at}");
        }
        let sum = counts.sums.unwrap();
        assert_eq!((sum.overrun, sum.read, sum.entries), (Some(9 + 2 + 1), Some(20 + 4 + 9), Some(3)));
        assert!(!counts.add(None) && counts.sums.is_none());
        let mut found = Counts { before: (7, 100), ..Counts::default() };
        for (overrun, events, own) in [(100, 7, (0, 0)), (102, 9, (2, 2)), (1, 1, (3, 3))] {
            found.add(Some(read(overrun, events)));
            let sums = found.sums.unwrap();
            assert_eq!(
                (sums.overrun, sums.read),
                (Some(own.0), Some(own.1)),
                "what was before does not count"
            );
        }
    }
}
