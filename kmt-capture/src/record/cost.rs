//! Cost of a recording.

use std::time::Duration;

/// Length of a recording from which its cost is reported.
const LENGTH_MIN: Duration = Duration::from_secs(1);

/// Events, bytes and CPU time of a recorder.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Events in the file.
    pub events: u64,
    /// Events that the kernel counted as lost.
    pub lost: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Length of the recording.
    pub length: Duration,
    /// CPU time of the recorder, in nanoseconds; `None`: /proc cannot be read.
    pub cpu_ns: Option<u64>,
}

impl Cost {
    /// CPU time as `46 ns an event, 0.8 % of one CPU`; empty where it is unknown, and below a second, where most of it
    /// is spent on the begin and the end.
    pub fn of_recorder(&self) -> String {
        let (Some(cpu_ns), length) = (self.cpu_ns, self.length.as_nanos()) else { return String::new() };
        if self.length < LENGTH_MIN {
            return String::new();
        }
        let share = 100.0 * cpu_ns as f64 / length as f64;
        match self.events {
            0 => format!("{share:.1} % of one CPU"),
            events => format!("{:.0} ns an event, {share:.1} % of one CPU", cpu_ns as f64 / events as f64),
        }
    }

    /// Rates as `54,321 events/s, 0.9 MB/s`.
    pub fn rates(&self) -> String {
        let seconds = self.length.as_secs_f64().max(0.001);
        let events = (self.events.saturating_add(self.lost)) as f64 / seconds;
        format!("{events:.0} events/s, {:.2} MB/s", self.bytes as f64 / seconds / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_by_event_and_by_time() {
        let cost = Cost {
            events: 1_000_000,
            lost: 0,
            bytes: 16_000_000,
            length: Duration::from_secs(10),
            cpu_ns: Some(50_000_000),
        };
        assert_eq!(cost.of_recorder(), "50 ns an event, 0.5 % of one CPU");
        assert_eq!(cost.rates(), "100000 events/s, 1.60 MB/s");
        assert_eq!(Cost { events: 0, ..cost }.of_recorder(), "0.5 % of one CPU");
        assert_eq!(Cost { cpu_ns: None, ..cost }.of_recorder(), "");
        assert_eq!(Cost { length: Duration::from_millis(999), ..cost }.of_recorder(), "");
    }
}
