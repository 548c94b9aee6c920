//! One CPU of a recording.

use kmt_format::kernel::CpuStats;
use kmt_format::write::{Loss, WriterStats};

use super::shortage::Shortage;
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

/// `now` without what these counters of `before` had.
fn minus(mut now: CpuStats, before: &CpuStats) -> CpuStats {
    let take =
        |from: &mut Option<u64>, n: Option<u64>| *from = from.map(|from| from.saturating_sub(n.unwrap_or(0)));
    take(&mut now.overrun, before.overrun);
    take(&mut now.commit_overrun, before.commit_overrun);
    take(&mut now.dropped, before.dropped);
    take(&mut now.read, before.read);
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
    /// Losses that sub-buffers of this file are marked with.
    pub marked: Loss,
    /// What the buffer lacked.
    pub shortage: Shortage,
    /// The kernel's counters of the files before this one of the recording.
    before_file: CpuStats,
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
            marked: Loss::default(),
            shortage: Shortage::default(),
            before_file: CpuStats::default(),
        }
    }

    /// The kernel's counters since this file of the recording began.
    pub fn of_file(&self) -> Option<CpuStats> {
        Some(minus(self.counters.sums?, &self.before_file))
    }

    /// The kernel's counters of the file that ends now, of which nothing is unread; the next file has those from here on.
    ///
    /// Overwritten events count in the file that has the mark of them: the sub-buffer behind them may not be read yet.
    pub fn end_file(&mut self) -> Option<CpuStats> {
        let mut stats = self.of_file()?;
        let marked = std::mem::take(&mut self.marked);
        if !marked.uncounted {
            stats.overrun = stats.overrun.map(|overrun| overrun.min(marked.counted));
        }
        self.before_file = plus(stats, &self.before_file);
        (stats.entries, stats.bytes) = (stats.entries.map(|_| 0), stats.bytes.map(|_| 0));
        Some(stats)
    }

    /// Events lost, by the kernel's counters, and those that another process has read.
    pub fn lost(&self) -> u64 {
        let counted = self.counters.sums.and_then(|counters| counters.lost_events()).unwrap_or(0);
        counted.saturating_sub(self.overwritten).saturating_add(self.taken)
    }

    /// Events that another process has read from the buffer since this file began: by the kernel's count of those that were
    /// read, and ours.
    pub fn read_by_others(&self, stats: &WriterStats) -> u64 {
        let is_exact = self.counters.before_reset.is_none() && stats.sub_buffers_damaged == 0;
        let read = self.of_file().and_then(|counters| counters.read).filter(|_| is_exact);
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

    /// Counts of the files add up to those of the kernel, and each loss is where its mark is.
    #[test]
    fn counters_of_files_add_up_to_those_of_the_kernel() {
        let folder = std::env::temp_dir().join(format!("kmt-cpu-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("per_cpu/cpu0")).unwrap();
        std::fs::write(folder.join("per_cpu/cpu0/trace_pipe_raw"), "").unwrap();
        let ring = Ring::open(&crate::tracefs::TraceDir::at(&folder), 0).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let mut cpu = Cpu::new(ring);
        let read = |overrun: u64, read: u64, entries: u64| {
            let text = format!("entries: {entries}\noverrun: {overrun}\nbytes: 9\nread events: {read}\n");
            CpuStats::parse(&text)
        };
        // 5 of 12 overwritten events are before a sub-buffer that is not read yet.
        cpu.counters.add(read(12, 100, 40));
        cpu.marked = Loss::counted(7);
        let first = cpu.end_file().unwrap();
        assert_eq!((first.overrun, first.read, first.entries), (Some(7), Some(100), Some(0)));
        // The kernel had no room for a count: what it counted so far is of this file.
        cpu.counters.add(read(30, 250, 0));
        cpu.marked = Loss::counted(5).and(Loss::uncounted());
        let second = cpu.end_file().unwrap();
        assert_eq!((second.overrun, second.read), (Some(23), Some(150)));
        cpu.counters.add(read(31, 260, 0));
        let last = cpu.of_file().unwrap();
        assert_eq!((last.overrun, last.read), (Some(1), Some(10)));
        let sums = [first, second, last].map(|stats| (stats.overrun.unwrap(), stats.read.unwrap()));
        let sum = sums.iter().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        assert_eq!(sum, (31, 260));
    }
}
