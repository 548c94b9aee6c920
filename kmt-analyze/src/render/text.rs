//! Numbers and foreign text for people.

pub use kmt_common::text::{escaped, grouped as count, shown};
use kmt_format::kernel::ClockUnit;

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
    fn numbers() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(time(8_702_992_500, ClockUnit::Nanoseconds), "8.702993");
        assert_eq!(time(77, ClockUnit::Ticks), "77");
    }
}
