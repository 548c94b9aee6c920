//! Numbers and foreign text for people: sizes, counts with their nouns, shares, times.
//!
//! All screens, pictures and messages use these, so that a number has one form. Foreign text is escaped and cut
//! (`kmt_common::text`).

pub use kmt_common::text::{escaped, grouped as count, shown, size};

use kmt_format::kernel::ClockUnit;

/// A count and its noun: `1 call site`, `2 call sites`.
pub fn counted(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { several })
}

/// A share in percent, as it reads in a sentence: `11 %`, `0.4 %`, `<0.1 %`.
pub fn share(part: u64, whole: u64) -> String {
    let percent = 100.0 * part as f64 / whole.max(1) as f64;
    match percent {
        _ if part == 0 => "0 %".to_owned(),
        percent if percent < 0.1 => "<0.1 %".to_owned(),
        percent if percent < 9.95 => format!("{percent:.1} %"),
        percent if percent > 99.0 && part < whole => format!("{:.1} %", percent.min(99.9)),
        percent => format!("{percent:.0} %"),
    }
}

/// Joins names as a sentence does: `a`, `a and b`, `a, b and c`.
pub fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A time as the kernel prints it: seconds and microseconds, rounded; ticks as they are.
pub fn time(time: u64, unit: ClockUnit) -> String {
    match unit {
        ClockUnit::Nanoseconds => {
            let micros = time.saturating_add(500) / 1_000;
            format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
        }
        ClockUnit::Ticks => time.to_string(),
    }
}

/// A span of time.
pub fn span(span: u64, unit: ClockUnit) -> String {
    match unit {
        ClockUnit::Nanoseconds => format!("{:.3} s", span as f64 / 1e9),
        ClockUnit::Ticks => format!("{} ticks", count(span)),
    }
}

/// A length of time in a handy unit; ticks as they are.
pub fn duration(length: u64, unit: ClockUnit) -> String {
    match (unit, length) {
        (ClockUnit::Ticks, _) => format!("{} ticks", count(length)),
        (_, 0..1_000) => format!("{length} ns"),
        (_, 1_000..1_000_000) => format!("{:.1} us", length as f64 / 1e3),
        (_, 1_000_000..1_000_000_000) => format!("{:.1} ms", length as f64 / 1e6),
        _ => format!("{:.2} s", length as f64 / 1e9),
    }
}

/// A share in percent.
pub fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        let sizes = [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (568_320, "555 KiB")];
        let larger =
            [(5_033_280, "4.80 MiB"), (1_023_400, "999 KiB"), (1_024_000, "0.98 MiB"), (1 << 34, "16.0 GiB")];
        for (bytes, text) in sizes.into_iter().chain(larger) {
            assert_eq!(size(bytes), text, "{bytes}");
        }
        assert_eq!(size(u64::MAX), "16.0 EiB");
    }

    #[test]
    fn shares_never_round_to_all_or_nothing() {
        let shares =
            [(0, "0 %"), (1, "<0.1 %"), (40, "0.4 %"), (1_128, "11 %"), (9_999, "99.9 %"), (10_000, "100 %")];
        for (part, text) in shares {
            assert_eq!(share(part, 10_000), text);
        }
    }

    #[test]
    fn nouns_agree() {
        assert_eq!(counted(1, "call site", "call sites"), "1 call site");
        assert_eq!(counted(1_200, "call site", "call sites"), "1,200 call sites");
        assert_eq!(listed(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }

    #[test]
    fn numbers() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(time(8_702_992_500, ClockUnit::Nanoseconds), "8.702993");
        assert_eq!(time(77, ClockUnit::Ticks), "77");
    }
}
