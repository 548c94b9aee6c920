//! `per_cpu/cpuN/stats`: the kernel's own counters of one ring buffer.

/// Counters of one CPU's ring buffer; `None` where the kernel does not print one.
///
/// Source: `tracing_stats_read`, kernel/trace/trace.c 4.4 to 7.2. All are cumulative since the buffer was reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuStats {
    /// Events not yet read.
    pub entries: Option<u64>,
    /// Events overwritten before they were read.
    pub overrun: Option<u64>,
    /// Events lost in nested storms.
    pub commit_overrun: Option<u64>,
    /// Unread bytes, padding included.
    pub bytes: Option<u64>,
    /// Events refused because the buffer was full (`overwrite=0`).
    pub dropped: Option<u64>,
    /// Events read.
    pub read: Option<u64>,
    /// Time of the oldest unread event, in the clock's unit (microsecond steps for clocks in nanoseconds).
    pub oldest_time: Option<u64>,
    /// Time when the counters were read, likewise.
    pub now_time: Option<u64>,
}

impl CpuStats {
    /// Parses a `stats` file; `None` if no counter is found in it.
    pub fn parse(text: &str) -> Option<Self> {
        let mut stats = Self::default();
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            let slot = match key.trim() {
                "entries" => &mut stats.entries,
                "overrun" => &mut stats.overrun,
                "commit overrun" => &mut stats.commit_overrun,
                "bytes" => &mut stats.bytes,
                "dropped events" => &mut stats.dropped,
                "read events" => &mut stats.read,
                "oldest event ts" => &mut stats.oldest_time,
                "now ts" => &mut stats.now_time,
                _ => continue,
            };
            *slot = parse_number_or_seconds(value);
        }
        (stats != Self::default()).then_some(stats)
    }

    /// Events that the kernel says were lost on this CPU; `None` where it prints none of the counters.
    pub fn lost_events(&self) -> Option<u64> {
        if self.overrun.is_none() && self.dropped.is_none() && self.commit_overrun.is_none() {
            return None;
        }
        let counters = [self.overrun, self.dropped, self.commit_overrun];
        Some(counters.into_iter().flatten().fold(0, u64::saturating_add))
    }
}

/// `123` as it is, `12.345678` seconds as nanoseconds.
fn parse_number_or_seconds(text: &str) -> Option<u64> {
    match text.split_once('.') {
        None => text.parse().ok(),
        Some((seconds, micros)) if micros.len() == 6 => {
            let seconds: u64 = seconds.trim().parse().ok()?;
            let micros: u64 = micros.parse().ok()?;
            seconds.checked_mul(1_000_000_000)?.checked_add(micros.saturating_mul(1_000))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_text() {
        let text = "entries: 1382\noverrun: 66799\ncommit overrun: 1\nbytes: 67524\noldest event ts:     9.827937\n\
            now ts:    18.444883\ndropped events: 2\nread events: 2430\n";
        let stats = CpuStats::parse(text).unwrap();
        assert_eq!(stats.lost_events(), Some(66_802));
        assert_eq!(stats.oldest_time, Some(9_827_937_000));
        assert_eq!(CpuStats::parse("now ts: 77\n").unwrap().now_time, Some(77));
        assert_eq!(CpuStats::parse("nothing\n"), None);
    }
}
