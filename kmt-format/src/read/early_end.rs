//! Recordings that ended unexpectedly: the time until which a file has all events of each CPU.
//!
//! A killed recorder leaves a file without a trailer, and events in ring buffers that are not read any more. A rewritten copy has
//! a trailer; the pair `recovery.end` keeps the fact (format-spec/registry.md).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Trace;
use super::contents::Contents;
use crate::kernel::ClockUnit;

/// Time that may be between two lines of one `stats` file, in nanoseconds: the reader may be preempted. The kernel prints the
/// number of unread events some lines above the time (`tracing_stats_read`, kernel/trace/trace.c).
const STATS_NS_MAX: u64 = 100_000_000;

/// A recording, or a copy of its file, that ended unexpectedly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EarlyEnd {
    /// Time of the trace clock until which the events of each CPU are in the file, or counted as lost; `None`: the file has no
    /// event of that CPU. Later events may be missing.
    pub complete_until: BTreeMap<u32, Option<u64>>,
}

impl Trace<'_> {
    /// The unexpected end of the recording: of a file without a trailer, or one that was made of such a file. `None`: its writer
    /// finished it.
    pub fn early_end(&self) -> Option<EarlyEnd> {
        EarlyEnd::of(self.contents())
    }
}

impl EarlyEnd {
    /// Key of the pair that keeps it in a copy.
    pub const KEY: &'static str = "recovery.end";

    pub(crate) fn of(contents: &Contents<'_>) -> Option<Self> {
        let pairs = contents.metadata.pairs.iter().filter(|(key, _)| key == Self::KEY);
        let cpus_max = contents.limits.streams as usize;
        let recorded = pairs.map(|(_, value)| Self::parse(value, cpus_max));
        recorded.chain((!contents.finished).then(|| Self::measured(contents))).reduce(Self::earlier)
    }

    /// The end of an unfinished file: the last event of each CPU, or the last time when all its events had been read and written.
    fn measured(contents: &Contents<'_>) -> Self {
        let is_ns = contents.metadata.clock.as_ref().is_none_or(|clock| clock.unit == ClockUnit::Nanoseconds);
        let mut end = Self::default();
        for (&cpu, stream) in &contents.streams {
            let last = stream.chunks.iter().rev().find(|(_, info)| info.event_count > 0);
            end.complete_until.insert(cpu, last.map(|(_, info)| info.t_last));
        }
        for (&cpu, counters) in &contents.metadata.counters {
            // A recorder writes what it has read before it reads the counters.
            let emptied = counters.before.filter(|stats| stats.entries == Some(0) && is_ns);
            let until = emptied.and_then(|stats| stats.now_time?.checked_sub(STATS_NS_MAX));
            let known = end.complete_until.entry(cpu).or_default();
            *known = until.max(*known);
        }
        end
    }

    fn earlier(self, other: Self) -> Self {
        let mut complete_until = self.complete_until;
        for (cpu, until) in other.complete_until {
            complete_until.entry(cpu).and_modify(|known| *known = until.min(*known)).or_insert(until);
        }
        Self { complete_until }
    }

    /// The value of the pair, with as many CPUs as a file may have: each costs readers a row. Lines that are none of it are
    /// passed over.
    fn parse(value: &[u8], cpus_max: usize) -> Self {
        let text = core::str::from_utf8(value).unwrap_or_default();
        let row = |line: &str| {
            let (cpu, until) = line.split_once(' ')?;
            Some((cpu.parse().ok()?, until.parse().ok()))
        };
        Self { complete_until: text.lines().filter_map(row).take(cpus_max).collect() }
    }

    /// The value of the pair `recovery.end`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (cpu, until) in &self.complete_until {
            let _ = match until {
                Some(until) => writeln!(text, "{cpu} {until}"),
                None => writeln!(text, "{cpu} -"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_reads_back_and_the_earlier_end_counts() {
        let end = |rows: &[(u32, Option<u64>)]| EarlyEnd { complete_until: rows.iter().copied().collect() };
        let one = end(&[(0, Some(5)), (1, None), (7, Some(u64::MAX))]);
        assert_eq!(one.to_text(), "0 5\n1 -\n7 18446744073709551615\n");
        assert_eq!(EarlyEnd::parse(one.to_text().as_bytes(), 3), one);
        assert_eq!(EarlyEnd::parse(b"x\n3 4\n\xff", 9), EarlyEnd::default(), "not UTF-8");
        assert_eq!(EarlyEnd::parse(b"x\n3 4\n-1 2", 9), end(&[(3, Some(4))]));
        assert_eq!(EarlyEnd::parse(one.to_text().as_bytes(), 1), end(&[(0, Some(5))]), "a limit on CPUs");
        let both = one.earlier(end(&[(0, Some(9)), (1, Some(2)), (2, Some(1)), (7, Some(8))]));
        assert_eq!(both, end(&[(0, Some(5)), (1, None), (2, Some(1)), (7, Some(8))]));
    }
}
