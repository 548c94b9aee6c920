//! The trace's clock: its unit, and how long a tick is.
//!
//! The unit comes from the file; the length of a tick of a cycle counter from pairs of trace time and time of day, if
//! two distances between pairs agree. Conditions, windows and reports convert times with it. A time with a unit is
//! refused where the length of a tick is unknown.

use kmt_common::quantity::Span;
use kmt_format::kernel::ClockUnit;
use kmt_format::read::Metadata;

use crate::failure::{Failure, Result};

/// Shortest time between pairs of a tick and a time of day that tells the length of a tick: 0.1 s. Reading a pair takes
/// some microseconds.
const APART_NS_MIN: i64 = 100_000_000;

/// A clock of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Clock {
    /// Unit of times.
    pub unit: ClockUnit,
    name: String,
    /// Nanoseconds a unit, where known.
    unit_ns: Option<f64>,
}

impl Clock {
    /// A clock that counts nanoseconds.
    pub fn nanoseconds() -> Self {
        Self { unit: ClockUnit::Nanoseconds, name: String::new(), unit_ns: Some(1.0) }
    }

    /// A clock that counts ticks of this length in nanoseconds, if it is known.
    pub fn ticks(name: &str, unit_ns: Option<f64>) -> Self {
        Self { unit: ClockUnit::Ticks, name: name.to_owned(), unit_ns }
    }

    /// Clock of a file.
    pub fn of(metadata: &Metadata<'_>) -> Self {
        let Some(clock) = metadata.clock.as_ref().filter(|clock| clock.unit == ClockUnit::Ticks) else {
            return Self::nanoseconds();
        };
        let unit_ns = match clock.name.as_str() {
            // 2^-12 us a tick (z/Architecture Principles of Operation, TOD clock).
            "s390-tod" => Some(1_000.0 / 4_096.0),
            // Ticks of user space, USER_HZ = 100 (kernel/trace/trace_clock.c, trace_clock_jiffies, 6.12).
            "uptime" => Some(10_000_000.0),
            // An event counter: no time passes.
            "counter" => None,
            _ => measured(&pairs(metadata)),
        };
        Self::ticks(&clock.name, unit_ns)
    }

    /// A length of time in the clock's unit. Refused: a time with a unit, where the length of a tick is unknown.
    pub fn units(&self, span: Span) -> Result<u64> {
        match (span, self.unit_ns) {
            (Span::Plain(units), _) => Ok(units),
            (Span::Nanoseconds(ns), Some(unit_ns)) => Ok((ns as f64 / unit_ns).round() as u64),
            (Span::Nanoseconds(_), None) => Err(self.unknown(&span.to_string())),
        }
    }

    /// A length in the clock's unit as seconds, where known.
    pub fn seconds(&self, length: u64) -> Option<f64> {
        Some(length as f64 * self.unit_ns? / 1e9)
    }

    /// Refusal of a time with a unit.
    pub fn unknown(&self, given: &str) -> Failure {
        Failure::new(format!(
            "{given}: the clock {} counts ticks, and the length of a tick is not recorded",
            self.name
        ))
        .hint("give a plain number of ticks")
    }
}

/// Pairs of a time of the trace's clock and a time of day, in nanoseconds since 1970.
pub fn pairs(metadata: &Metadata<'_>) -> Vec<(i64, i64)> {
    let pairs = metadata.pairs.iter().filter(|(key, _)| *key == "clock.pair");
    let parsed = pairs.filter_map(|(_, value)| {
        let mut numbers = std::str::from_utf8(value).ok()?.split(' ').map(|n| n.parse::<i64>().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    parsed.collect()
}

/// Nanoseconds a tick, from pairs. The time of day can be set while it is recorded: at least two distances have to agree
/// within one percent.
fn measured(pairs: &[(i64, i64)]) -> Option<f64> {
    let steps = pairs.windows(2).filter_map(|pair| {
        let [(tick_a, day_a), (tick_b, day_b)] = pair else { return None };
        let (ticks, ns) = (tick_b.checked_sub(*tick_a)?, day_b.checked_sub(*day_a)?);
        (ticks > 0 && ns >= APART_NS_MIN).then(|| ns as f64 / ticks as f64)
    });
    let steps: Vec<f64> = steps.collect();
    let (least, most) = steps.iter().fold((f64::MAX, 0.0_f64), |(a, b), step| (a.min(*step), b.max(*step)));
    (steps.len() >= 2 && most <= least * 1.01).then(|| steps.iter().sum::<f64>() / steps.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_units_become_ticks_where_their_length_is_known() {
        let tsc = Clock::ticks("x86-tsc", Some(0.4));
        assert_eq!(tsc.units(Span::parse("1ms").unwrap()).unwrap(), 2_500_000);
        assert_eq!(tsc.units(Span::parse("77").unwrap()).unwrap(), 77);
        assert_eq!(tsc.seconds(2_500_000_000), Some(1.0));
        let unknown = Clock::ticks("x86-tsc", None);
        assert_eq!(unknown.units(Span::Plain(77)).unwrap(), 77);
        let refusal = unknown.units(Span::parse("1ms").unwrap()).unwrap_err().to_string();
        assert!(
            refusal.contains("1ms: the clock x86-tsc counts ticks") && refusal.contains("hint"),
            "{refusal}"
        );
    }

    #[test]
    fn ticks_are_measured_by_pairs_that_agree() {
        let second = 1_000_000_000;
        let steady = [(0, 0), (3 * second, second), (6 * second, 2 * second)];
        assert_eq!(measured(&steady), Some(1.0 / 3.0));
        // Two pairs alone, a clock that was set, pairs that are too near.
        assert_eq!(measured(&steady[..2]), None);
        assert_eq!(measured(&[(0, 0), (3 * second, second), (6 * second, 9 * second)]), None);
        assert_eq!(measured(&[(0, 0), (3, 1), (6, 2), (9, 3)]), None);
    }
}
