//! Common to all charts: title, source, and how far the numbers can be trusted; and numbers at the axes.
//!
//! Numbers at an axis are few and round, with units. The sentences are those of the lines above a report.

use kmt_format::kernel::ClockUnit;

use super::svg::{Anchor, Svg, cut};
use crate::render::screen::width_of;
use crate::render::words::size;

/// Width of all charts.
pub const WIDTH: f64 = 960.0;
/// Free space at their sides.
pub const MARGIN: f64 = 16.0;
/// Height of the title and the line below it.
pub const HEAD: f64 = 56.0;
/// Columns of a line of text: a wide letter takes two.
const LINE_COLUMNS: usize = 140;

/// Source and trust of a chart.
pub struct Frame {
    /// Name of the file, escaped.
    pub file: String,
    /// Release of the kernel.
    pub release: Option<String>,
    /// Command that prints the same numbers.
    pub command: String,
    /// Time of the first event.
    pub start: u64,
    /// Unit of times.
    pub unit: ClockUnit,
    pub selection: Vec<String>,
    /// Warnings.
    pub trust: Vec<String>,
}

impl Frame {
    /// Of a command that reads no trace.
    #[cfg(feature = "dwarf")]
    pub fn of_command(command: &str) -> Self {
        Self {
            file: String::new(),
            release: None,
            command: command.to_owned(),
            start: 0,
            unit: ClockUnit::Nanoseconds,
            selection: Vec::new(),
            trust: Vec::new(),
        }
    }

    /// Writes the title and what the chart is of.
    pub fn head(&self, svg: &mut Svg, title: &str) {
        svg.text((MARGIN, 24.0), "title", Anchor::Start, title);
        let release = self.release.as_ref().map_or(String::new(), |release| format!(", Linux {release}"));
        let source = match self.file.as_str() {
            "" => format!("kmt-analyze {}", self.command),
            file => format!("{file}{release}   ·   kmt-analyze {} FILE", self.command),
        };
        svg.text((MARGIN, 42.0), "muted", Anchor::Start, &cut(&source, LINE_COLUMNS));
    }

    /// Writes warnings from `y` on; returns where they end.
    pub fn foot(&self, svg: &mut Svg, y: f64) -> f64 {
        let parts = [("muted", &self.selection), ("warn", &self.trust)];
        let lines = parts.into_iter().flat_map(|(class, texts)| texts.iter().map(move |text| (class, text)));
        let lines = lines.flat_map(|(class, text)| wrapped(text).into_iter().map(move |line| (class, line)));
        lines.fold(y, |y, (class, line)| {
            svg.text((MARGIN, y + 14.0), class, Anchor::Start, &line);
            y + 16.0
        })
    }
}

/// A sentence in lines that fit.
pub fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let is_full = lines
            .last()
            .is_some_and(|line| !line.is_empty() && width_of(line) + width_of(word) >= LINE_COLUMNS);
        if is_full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(&cut(word, LINE_COLUMNS));
        }
    }
    lines
}

/// Places of the numbers on an axis, with their text.
pub type Ticks = Vec<(f64, String)>;

/// Sizes from `least` to `most`, at multiples of a power of two.
pub fn axis_sizes(least: i64, most: i64) -> Ticks {
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
pub fn axis_times(first: u64, last: u64, start: u64, unit: ClockUnit) -> (Ticks, &'static str) {
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
    fn lines_have_at_most_their_columns() {
        let sentence = "The task 日本語の名前 has most of them. ".repeat(20);
        let lines = wrapped(&sentence);
        assert!(lines.len() > 4 && lines.iter().all(|line| width_of(line) <= LINE_COLUMNS), "{lines:?}");
        assert_eq!(wrapped(&"日".repeat(80)), [format!("{}…", "日".repeat(69))]);
    }

    #[test]
    fn numbers_are_round() {
        assert_eq!(
            texts(axis_sizes(0, 5 << 20)),
            ["0", "1.00 MiB", "2.00 MiB", "3.00 MiB", "4.00 MiB", "5.00 MiB"]
        );
        assert_eq!(texts(axis_sizes(-600, 600)), ["-512 B", "-256 B", "0", "256 B", "512 B"]);
        assert_eq!(texts(axis_sizes(0, 0)), ["0"]);
        let (ticks, name) = axis_times(5_000_000_000, 7_000_000_000, 5_000_000_000, ClockUnit::Nanoseconds);
        assert_eq!(texts(ticks), ["0.0", "0.5", "1.0", "1.5", "2.0"]);
        assert!(name.starts_with("seconds"));
        let (ticks, _) = axis_times(0, 800_000, 0, ClockUnit::Nanoseconds);
        assert_eq!(texts(ticks), ["0", "100", "200", "300", "400", "500", "600", "700", "800"]);
    }
}
