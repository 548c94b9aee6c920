//! Common to all charts: title, source, and how far the numbers can be trusted.

use kmt_format::kernel::ClockUnit;

use super::svg::{Anchor, Svg, cut};

/// Width of all charts.
pub const WIDTH: f64 = 960.0;
/// Free space at their sides.
pub const MARGIN: f64 = 16.0;
/// Height of the title and the line below it.
pub const HEAD: f64 = 56.0;
/// Characters of a line of text.
const LINE_CHARS: usize = 140;

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
        svg.text((MARGIN, 42.0), "muted", Anchor::Start, &cut(&source, LINE_CHARS));
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
        let is_full = lines.last().is_some_and(|line| {
            !line.is_empty() && line.chars().count() + word.chars().count() >= LINE_CHARS
        });
        if is_full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(&cut(word, LINE_CHARS));
        }
    }
    lines
}
