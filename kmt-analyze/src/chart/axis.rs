//! Numbers at the axes: few, round, and with units.

use kmt_format::kernel::ClockUnit;

use crate::render::words::size;

/// Places of the numbers on an axis, with their text.
pub type Ticks = Vec<(f64, String)>;

/// Sizes from `least` to `most`, at multiples of a power of two.
pub fn sizes(least: i64, most: i64) -> Ticks {
    let length = (most as f64 - least as f64).max(1.0);
    let step = 2f64.powf((length / 6.0).log2().ceil().max(0.0));
    multiples(least as f64, most as f64, step)
        .map(|value| {
            let sign = if value < 0.0 { "-" } else { "" };
            (value, format!("{sign}{}", if value == 0.0 { "0".to_owned() } else { size(value.abs() as u64) }))
        })
        .collect()
}

/// Times since the start, in a unit that fits their length.
pub fn times(first: u64, last: u64, start: u64, unit: ClockUnit) -> (Ticks, &'static str) {
    let (from, to) = (first.saturating_sub(start) as f64, last.saturating_sub(start) as f64);
    let length = (to - from).max(1.0);
    let (scale, name) = match unit {
        ClockUnit::Ticks => (1.0, "ticks of the clock since the first event"),
        _ if to >= 1e9 => (1e9, "seconds since the first event"),
        _ if to >= 1e6 => (1e6, "milliseconds since the first event"),
        _ => (1e3, "microseconds since the first event"),
    };
    let rough = length / scale / 8.0;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|&step| step >= rough).unwrap_or(rough);
    let digits = (-step.log10().floor()).max(0.0) as usize;
    let ticks = multiples(from / scale, to / scale, step);
    (ticks.map(|value| (value * scale + start as f64, format!("{value:.digits$}"))).collect(), name)
}

fn multiples(from: f64, to: f64, step: f64) -> impl Iterator<Item = f64> {
    let (first, last) = ((from / step).ceil() as i64, (to / step).floor() as i64);
    (first..=last.min(first + 40)).map(move |n| n as f64 * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: Ticks) -> Vec<String> {
        ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn numbers_are_round() {
        assert_eq!(
            texts(sizes(0, 5 << 20)),
            ["0", "1.00 MiB", "2.00 MiB", "3.00 MiB", "4.00 MiB", "5.00 MiB"]
        );
        assert_eq!(texts(sizes(-600, 600)), ["-512 B", "-256 B", "0", "256 B", "512 B"]);
        assert_eq!(texts(sizes(0, 0)), ["0"]);
        let (ticks, name) = times(5_000_000_000, 7_000_000_000, 5_000_000_000, ClockUnit::Nanoseconds);
        assert_eq!(texts(ticks), ["0.0", "0.5", "1.0", "1.5", "2.0"]);
        assert!(name.starts_with("seconds"));
        let (ticks, _) = times(0, 800_000, 0, ClockUnit::Nanoseconds);
        assert_eq!(texts(ticks), ["0", "100", "200", "300", "400", "500", "600", "700", "800"]);
    }
}
