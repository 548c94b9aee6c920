//! `--time`: seconds as `dump` prints them, or relative to the start.

use kmt_format::kernel::ClockUnit;

/// A time window of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeRange {
    from: Option<Edge>,
    to: Option<Edge>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Edge {
    relative: bool,
    whole: u64,
    /// Digits after the decimal point, as nanoseconds.
    nanos: u64,
}

impl TimeRange {
    /// Parses `FROM..TO`; either may be missing, either may start with `+`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").ok_or("expected FROM..TO, such as 12.5..13.0 or +1..+2.5")?;
        let edge = |text: &str| if text.is_empty() { Ok(None) } else { Edge::parse(text).map(Some) };
        Ok(Self { from: edge(from)?, to: edge(to)? })
    }

    /// Parses one time, as the window that begins and ends then.
    pub fn parse_instant(text: &str) -> Result<Self, String> {
        let edge = Edge::parse(text)?;
        Ok(Self { from: Some(edge.clone()), to: Some(edge) })
    }

    /// First and last time of the window in the clock's unit; `start` is the trace's first time.
    ///
    /// For clocks that do not count nanoseconds, numbers are in the clock's own unit.
    pub fn resolve(&self, unit: ClockUnit, start: u64) -> (u64, u64) {
        let time = |edge: &Edge| {
            let value = match unit {
                ClockUnit::Nanoseconds => edge.whole.saturating_mul(1_000_000_000).saturating_add(edge.nanos),
                ClockUnit::Ticks => edge.whole,
            };
            if edge.relative { start.saturating_add(value) } else { value }
        };
        (self.from.as_ref().map_or(0, time), self.to.as_ref().map_or(u64::MAX, time))
    }
}

impl std::fmt::Display for TimeRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let edge = |f: &mut std::fmt::Formatter<'_>, edge: &Option<Edge>| match edge {
            Some(e) => {
                let fraction = format!("{:09}", e.nanos);
                let fraction = fraction.trim_end_matches('0');
                let point = if fraction.is_empty() { "" } else { "." };
                write!(f, "{}{}{point}{fraction}", if e.relative { "+" } else { "" }, e.whole)
            }
            None => Ok(()),
        };
        edge(f, &self.from)?;
        f.write_str("..")?;
        edge(f, &self.to)
    }
}

impl Edge {
    fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a time: expected seconds such as 12.5, or +0.5 from the start");
        let (relative, number) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        let whole = whole.parse().map_err(|_| bad())?;
        let nanos = format!("{fraction:0<9}").parse().map_err(|_| bad())?;
        Ok(Self { relative, whole, nanos })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: (u64, u64)) {
        assert_eq!(
            TimeRange::parse(text).unwrap().resolve(ClockUnit::Nanoseconds, 5_000_000_000),
            expected,
            "{text}"
        );
    }

    #[test]
    fn windows_print_as_they_are_given() {
        for text in ["+1..+2.5", "12.000001..", "..0.5"] {
            assert_eq!(TimeRange::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn windows() {
        check("12.5..13.0", (12_500_000_000, 13_000_000_000));
        check("+1..+2.25", (6_000_000_000, 7_250_000_000));
        check("..7", (0, 7_000_000_000));
        check("+0.000001..", (5_000_001_000, u64::MAX));
        assert_eq!(TimeRange::parse("100..200").unwrap().resolve(ClockUnit::Ticks, 0), (100, 200));
        for bad in ["", "1", "a..b", "1..-2", "1.0000000001..2"] {
            assert!(TimeRange::parse(bad).is_err(), "{bad}");
        }
    }
}
