//! Sizes and lengths of time on the command line: the one parser of both programs.

use std::fmt;
use std::time::Duration;

/// Units of sizes, for help: all are powers of 1,024.
pub const SIZE_UNITS: &str = "K, M, G, KiB, MiB or GiB";

/// Units of times, for help.
pub const TIME_UNITS: &str = "ns, us, ms, s, min or h";

/// Units of sizes with their factors in bytes; none is the end of another one before it.
const SIZES: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("K", 1 << 10),
    ("k", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
];

/// Units of times with their factors in nanoseconds; `s` is the end of others, so it comes after them.
const TIMES: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a size in bytes: `4096`, `0x1000`, `64K`, `1.5MiB`.
pub fn size(text: &str) -> Result<u64, String> {
    let (number, factor) = split(text, &SIZES)
        .ok_or_else(|| format!("{text:?} is not a size: expected bytes, or a number with {SIZE_UNITS}"))?;
    scaled(number, factor).map_err(|fault| match fault {
        Fault::Number => format!("{text:?} is not a size: expected bytes, or a number with {SIZE_UNITS}"),
        Fault::Range => format!("{text:?} is out of range: the largest size is 16 EiB"),
    })
}

/// Parses a size in bytes that is not 0.
pub fn size_above_zero(text: &str) -> Result<u64, String> {
    size(text)?.checked_sub(1).map(|less| less + 1).ok_or_else(|| format!("{text:?}: the size cannot be 0"))
}

/// A size that is not 0, and if it was given as a plain number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenSize {
    /// Bytes.
    pub bytes: u64,
    /// True if it has no unit: another one may have been meant.
    pub is_plain: bool,
}

impl GivenSize {
    /// Parses the text of the command line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        size_above_zero(text).map(|bytes| Self { bytes, is_plain })
    }
}

/// A length of time as it was given: the unit of a plain number is that of a clock that may not be known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// A plain number.
    Plain(u64),
    /// A number with a unit, in nanoseconds.
    Nanoseconds(u64),
}

impl Span {
    /// Parses `100us`, `1.5ms`, `2min`, or a plain number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fault = |fault| match fault {
            Fault::Number => format!("{text:?} is not a time: expected a number with {TIME_UNITS}"),
            Fault::Range => format!("{text:?} is out of range: the longest time is 584 years"),
        };
        match split(text, &TIMES).ok_or_else(|| fault(Fault::Number))? {
            (number, 1) if number.len() == text.len() => scaled(number, 1).map(Self::Plain).map_err(fault),
            (number, factor) => scaled(number, factor).map(Self::Nanoseconds).map_err(fault),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Nanoseconds(ns) = *self else {
            let Self::Plain(number) = self else { return Ok(()) };
            return write!(f, "{number}");
        };
        let fits = TIMES.iter().rev().find(|(_, factor)| ns % factor == 0).filter(|_| ns > 0);
        let (unit, factor) = fits.unwrap_or(&TIMES[0]);
        write!(f, "{}{unit}", ns / factor)
    }
}

/// Parses a length of time in which a plain number is seconds: `10`, `2.5`, `250ms`, `5min`.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let with_unit = if is_plain { format!("{text}s") } else { text.to_owned() };
    match Span::parse(&with_unit).map_err(|_| Span::parse(text).err().unwrap_or_default())? {
        Span::Nanoseconds(ns) => Ok(Duration::from_nanos(ns)),
        Span::Plain(seconds) => Ok(Duration::from_secs(seconds)),
    }
}

/// Fault of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Number,
    Range,
}

/// A number and the factor of its unit, 1 without one. `None`: a unit that is not in the list.
fn split<'t>(text: &'t str, units: &[(&str, u64)]) -> Option<(&'t str, u64)> {
    if text.starts_with("0x") {
        return Some((text, 1));
    }
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    if unit.is_empty() {
        return Some((number, 1));
    }
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| (number, *factor))
}

/// A whole or decimal number times a factor, rounded down.
fn scaled(number: &str, factor: u64) -> Result<u64, Fault> {
    let digits = |text: &str, radix| {
        let all = !text.is_empty() && text.chars().all(|c| c.is_digit(radix));
        // What are digits but no number is too long.
        if all { u64::from_str_radix(text, radix).map_err(|_| Fault::Range) } else { Err(Fault::Number) }
    };
    if let Some(hex) = number.strip_prefix("0x") {
        return digits(hex, 16)?.checked_mul(factor).ok_or(Fault::Range);
    }
    let Some((whole, fraction)) = number.split_once('.') else {
        return digits(number, 10)?.checked_mul(factor).ok_or(Fault::Range);
    };
    // A fraction of a byte or of a clock's tick is none.
    if factor == 1 || fraction.len() > 18 {
        return Err(Fault::Number);
    }
    let scale = 10_u128.pow(fraction.len() as u32);
    let part = u128::from(digits(fraction, 10)?) * u128::from(factor) / scale;
    let whole = digits(whole, 10)?.checked_mul(factor).ok_or(Fault::Range)?;
    u64::try_from(part).ok().and_then(|part| whole.checked_add(part)).ok_or(Fault::Range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_without_a_unit_is_known_as_such() {
        let is_plain = |text| GivenSize::parse(text).map(|size| (size.bytes, size.is_plain));
        assert_eq!(is_plain("4096"), Ok((4096, true)));
        assert_eq!(is_plain("32K"), Ok((32 << 10, false)));
        assert_eq!(is_plain("0x1000"), Ok((4096, false)));
        assert!(is_plain("0").is_err());
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        let sizes = [
            ("9", 9),
            ("0x1000", 4096),
            ("512K", 512 << 10),
            ("512k", 512 << 10),
            ("512KiB", 512 << 10),
            ("64M", 64 << 20),
            ("64MiB", 64 << 20),
            ("1G", 1 << 30),
            ("1GiB", 1 << 30),
            ("1.5GiB", 3 << 29),
            ("0", 0),
        ];
        for (text, bytes) in sizes {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        assert_eq!(size_above_zero("1K"), Ok(1 << 10));
        assert!(size_above_zero("0").unwrap_err().contains("cannot be 0"));
    }

    #[test]
    fn sizes_without_a_meaning_are_refused_with_the_units() {
        for text in
            ["", "K", "x", "1T", "1KB", "1B", "-1", "1.5", "1..5K", "0x", "0x1K", " 1", "é", "1.K", ".5K"]
        {
            assert!(size(text).unwrap_err().contains("K, M, G, KiB, MiB or GiB"), "{text}");
        }
        for text in ["99999999999G", "18446744073709551616"] {
            assert!(size(text).unwrap_err().contains("out of range"), "{text}");
        }
    }

    #[test]
    fn times_keep_their_unit() {
        let ns = Span::Nanoseconds;
        let times = [
            ("7", Span::Plain(7)),
            ("7ns", ns(7)),
            ("100us", ns(100_000)),
            ("1.5ms", ns(1_500_000)),
            ("2s", ns(2_000_000_000)),
            ("3min", ns(180_000_000_000)),
            ("0.5h", ns(1_800_000_000_000)),
        ];
        for (text, span) in times {
            assert_eq!(Span::parse(text), Ok(span), "{text}");
        }
        for (text, printed) in
            [("1500us", "1500us"), ("0.1ms", "100us"), ("60s", "1min"), ("7", "7"), ("0s", "0ns")]
        {
            assert_eq!(Span::parse(text).unwrap().to_string(), printed);
        }
        for text in ["", "s", "1d", "5m", "1.5", "-1s", "1.5ns", "1 s", "1e3s"] {
            assert!(Span::parse(text).unwrap_err().contains("ns, us, ms, s, min or h"), "{text}");
        }
        assert!(Span::parse("99999999999h").unwrap_err().contains("out of range"));
    }

    #[test]
    fn plain_numbers_are_seconds_where_no_clock_is_meant() {
        let millis = |n| Ok(Duration::from_millis(n));
        for (text, length) in
            [("10", 10_000), ("2.5", 2_500), ("250ms", 250), ("1.5min", 90_000), ("1h", 3_600_000)]
        {
            assert_eq!(seconds(text), millis(length), "{text}");
        }
        for text in ["", "x", "5m", "1d", "-1", "."] {
            assert!(seconds(text).unwrap_err().contains("ns, us, ms, s, min or h"), "{text}");
        }
    }
}
