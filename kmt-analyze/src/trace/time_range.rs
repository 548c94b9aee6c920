//! `--time`: seconds as `dump` prints them, or relative to the start, and numbers of events between two times.
//!
//! Numbers come from the heads of chunks, and from the events of the chunks at the edges.

use kmt_common::quantity::{Span, TIME_UNITS};
use kmt_format::kernel::ClockUnit;
use kmt_format::read::Trace;

use super::clock::Clock;
use crate::failure::Result;

/// A time window of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeRange {
    from: Option<Edge>,
    to: Option<Edge>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Edge {
    relative: bool,
    at: At,
    /// As given.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// A plain number: seconds, or ticks of a clock that counts them.
    Plain {
        whole: u64,
        /// Digits after the decimal point, as nanoseconds.
        nanos: u64,
        is_whole: bool,
    },
    /// With a unit.
    Span(Span),
}

impl TimeRange {
    /// Parses `FROM..TO`; either may be missing, either may start with `+`.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let (from, to) = text.split_once("..").ok_or("expected FROM..TO, such as 12.5..13.0 or +1..+2.5")?;
        let edge = |text: &str| if text.is_empty() { Ok(None) } else { Edge::parse(text).map(Some) };
        Ok(Self { from: edge(from)?, to: edge(to)? })
    }

    /// Parses one time, as the window that begins and ends then.
    pub fn parse_instant(text: &str) -> std::result::Result<Self, String> {
        let edge = Edge::parse(text)?;
        Ok(Self { from: Some(edge.clone()), to: Some(edge) })
    }

    /// First and last time of the window in the clock's unit; `start` is the trace's first time.
    ///
    /// Plain numbers are seconds, or ticks of a clock that counts ticks. Refused: a time with a unit, where the length of
    /// a tick is unknown, and a fraction of a tick.
    pub fn resolve(&self, clock: &Clock, start: u64) -> Result<(u64, u64)> {
        let time =
            |edge: &Option<Edge>, open| edge.as_ref().map_or(Ok(open), |edge| edge.resolve(clock, start));
        Ok((time(&self.from, 0)?, time(&self.to, u64::MAX)?))
    }
}

impl std::fmt::Display for TimeRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |edge: &Option<Edge>| edge.as_ref().map_or(String::new(), |edge| edge.text.clone());
        write!(f, "{}..{}", text(&self.from), text(&self.to))
    }
}

impl Edge {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let (relative, number) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
        let at = At::parse(number).ok_or_else(|| {
            format!(
                "`{text}` is not a time: expected seconds such as 12.5, +0.5 from the start, or {TIME_UNITS}"
            )
        })?;
        Ok(Self { relative, at, text: text.to_owned() })
    }

    fn resolve(&self, clock: &Clock, start: u64) -> Result<u64> {
        let value = match (self.at, clock.unit) {
            (At::Span(span), _) => clock.units(span)?,
            (At::Plain { whole, nanos, .. }, ClockUnit::Nanoseconds) => {
                whole.saturating_mul(1_000_000_000).saturating_add(nanos)
            }
            (At::Plain { whole, is_whole: true, .. }, ClockUnit::Ticks) => whole,
            (At::Plain { .. }, ClockUnit::Ticks) => return Err(clock.unknown(&format!("{} s", self.text))),
        };
        Ok(if self.relative { start.saturating_add(value) } else { value })
    }
}

impl At {
    fn parse(number: &str) -> Option<Self> {
        if number.ends_with(|c: char| c.is_ascii_alphabetic()) {
            return Span::parse(number).ok().map(Self::Span);
        }
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.len() > 9
            || ![whole, fraction].iter().all(|part| part.bytes().all(|b| b.is_ascii_digit()))
        {
            return None;
        }
        let nanos = format!("{fraction:0<9}").parse().ok()?;
        Some(Self::Plain { whole: whole.parse().ok()?, nanos, is_whole: fraction.is_empty() })
    }
}

/// Events from one time to another on some CPUs: whole chunks are counted by their heads.
pub fn events_between(trace: &Trace<'_>, (first, last): (u64, u64), is_on: impl Fn(&u32) -> bool) -> u64 {
    let mut events = 0;
    for (_, stream) in trace.streams().iter().filter(|(cpu, _)| is_on(cpu)) {
        for (at, info) in &stream.chunks {
            if info.event_count == 0 || info.t_last < first || info.t_first > last {
                continue;
            }
            if info.t_first >= first && info.t_last <= last {
                events += u64::from(info.event_count);
                continue;
            }
            let Ok(chunk) = trace.read(at) else { continue };
            let end = last.checked_add(1).map_or(chunk.records().len(), |end| chunk.first_at_or_after(end));
            events += end.saturating_sub(chunk.first_at_or_after(first)) as u64;
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: (u64, u64)) {
        let clock = Clock::nanoseconds();
        assert_eq!(
            TimeRange::parse(text).unwrap().resolve(&clock, 5_000_000_000).unwrap(),
            expected,
            "{text}"
        );
    }

    #[test]
    fn windows_print_as_they_are_given() {
        for text in ["+1..+2.5", "12.000001..", "..0.5", "+250ms..+1min"] {
            assert_eq!(TimeRange::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn windows() {
        check("12.5..13.0", (12_500_000_000, 13_000_000_000));
        check("+1..+2.25", (6_000_000_000, 7_250_000_000));
        check("..7", (0, 7_000_000_000));
        check("+0.000001..", (5_000_001_000, u64::MAX));
        check("+250ms..+1min", (5_250_000_000, 65_000_000_000));
        for bad in ["", "1", "a..b", "1..-2", "1.0000000001..2", "1m..2m", "1..+-2", ".5.."] {
            assert!(TimeRange::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn windows_of_ticks() {
        let resolve = |text: &str, clock: &Clock| TimeRange::parse(text).unwrap().resolve(clock, 1_000);
        let (unknown, tsc) = (Clock::ticks("x86-tsc", None), Clock::ticks("x86-tsc", Some(0.5)));
        assert_eq!(resolve("100..+200", &unknown).unwrap(), (100, 1_200));
        assert_eq!(resolve("+1us..", &tsc).unwrap(), (3_000, u64::MAX));
        for given in ["+1us..", "..0.5"] {
            let refusal = resolve(given, &unknown).unwrap_err().to_string();
            assert!(refusal.contains("counts ticks"), "{refusal}");
        }
    }
}
