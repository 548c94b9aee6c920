//! Cells of tables: numbers with their units, names, bars.
//!
//! A cell keeps its number, so that tables are sorted by numbers and exact with `--bytes`; `shown` makes the text for a
//! look. An unknown number is `?`, never 0. Reports make cells in their `screen`, and `layout` fits them into columns.

use kmt_format::kernel::ClockUnit;

use super::Ink;
use crate::render::look::Look;
use crate::render::words::{count, duration, size};
use crate::trace::names::without_size;

/// Mark of a number that is unknown: its events were not recorded, or lack the field.
const UNKNOWN: &str = "?";

/// Cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing: the column does not apply to the row.
    Empty,
    /// A number that is unknown; never 0.
    Unknown,
    Text(String),
    /// A verdict, which is emphasized.
    Verdict(String, Ink),
    /// A function and an offset in it; and, where it is known, the function and the line of its source. Where the terminal is
    /// narrow, the size of the function or its offset and the directory of the source are left out.
    Symbol(String, Option<Box<(String, String)>>),
    /// A number of things.
    Count(u64),
    /// A difference of two numbers.
    Change(i64),
    /// A size in bytes.
    Bytes(u64),
    /// A difference of two sizes, in bytes.
    BytesChange(i64),
    /// Bytes a second.
    BytesPerSecond(u64),
    /// A share in percent.
    Percent(f64),
    /// A length of time, in the clock's unit.
    Duration(u64, ClockUnit),
    /// A bar: a share of 0 to 1 of its column's width.
    Bar(f64),
    /// A sparkline: values at equal steps.
    Sparkline(Vec<u64>),
    /// An estimate of the number.
    About(Box<Cell>),
}

/// Width of a bar, in characters.
const BAR: usize = 10;

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub fn symbol(symbol: impl Into<String>) -> Self {
        Self::Symbol(symbol.into(), None)
    }

    /// A number of things, if it is known.
    pub fn count(number: Option<u64>) -> Self {
        number.map_or(Self::Unknown, Self::Count)
    }

    /// A size, if it is known.
    pub fn bytes(bytes: Option<u64>) -> Self {
        bytes.map_or(Self::Unknown, Self::Bytes)
    }

    /// A share, if it is known.
    pub fn percent(percent: Option<f64>) -> Self {
        percent.map_or(Self::Unknown, Self::Percent)
    }

    /// The share of `part` in `whole`.
    pub fn share(part: u64, whole: u64) -> Self {
        Self::Percent(100.0 * part as f64 / whole.max(1) as f64)
    }

    /// A bar of `part` in `whole`.
    pub fn bar(part: u64, whole: u64) -> Self {
        Self::Bar((part as f64 / whole.max(1) as f64).clamp(0.0, 1.0))
    }

    /// True if it tells nothing: empty, zero, or zero percent.
    pub fn is_nothing(&self) -> bool {
        match self {
            Self::Empty | Self::Count(0) | Self::Bytes(0) | Self::BytesPerSecond(0) => true,
            Self::Change(0) | Self::BytesChange(0) => true,
            Self::Text(text) | Self::Symbol(text, _) => text.is_empty(),
            Self::Percent(percent) => *percent == 0.0,
            Self::About(cell) => cell.is_nothing(),
            _ => false,
        }
    }

    /// True if its number is unknown.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    /// True if it is a number, which is never shortened.
    pub fn is_number(&self) -> bool {
        !matches!(self, Self::Empty | Self::Text(_) | Self::Symbol(..) | Self::Verdict(..))
    }

    /// Number of the cell, by which tables are sorted; a text may be one.
    pub fn number(&self) -> Option<f64> {
        Some(match self {
            Self::Count(number) | Self::Bytes(number) | Self::BytesPerSecond(number) => *number as f64,
            Self::Change(number) | Self::BytesChange(number) => *number as f64,
            Self::Percent(number) | Self::Bar(number) => *number,
            Self::Duration(length, _) => *length as f64,
            Self::Sparkline(values) => values.last().copied()? as f64,
            Self::About(cell) => cell.number()?,
            // Words may look like numbers: `inf`.
            Self::Text(text) if text.contains(|c: char| c.is_ascii_digit()) => {
                text.trim_start_matches(['<', '>', '+', '±', ' ']).replace(',', "").parse().ok()?
            }
            Self::Empty | Self::Unknown | Self::Text(_) | Self::Verdict(..) | Self::Symbol(..) => {
                return None;
            }
        })
    }

    /// Text of the cell if it is a name, else empty.
    pub fn name(&self) -> &str {
        match self {
            Self::Text(text) | Self::Verdict(text, _) | Self::Symbol(text, _) => text,
            _ => "",
        }
    }

    /// Text of the cell on a screen.
    pub fn shown(&self, look: &Look) -> String {
        let bytes = |bytes: u64| match bytes {
            0 => "0".to_owned(),
            bytes if look.exact_bytes => count(bytes),
            bytes => size(bytes),
        };
        let signed = |number: i64, text: String| match number {
            0 => text,
            number if number < 0 => format!("-{text}"),
            _ => format!("+{text}"),
        };
        match self {
            Self::Empty => String::new(),
            Self::Unknown => UNKNOWN.to_owned(),
            Self::Text(text) | Self::Verdict(text, _) => text.clone(),
            Self::Symbol(symbol, None) if look.wide => symbol.clone(),
            Self::Symbol(symbol, None) => without_size(symbol),
            Self::Symbol(symbol, Some(source)) => with_source(symbol, source, look.wide),
            Self::Count(number) => count(*number),
            Self::Change(number) => signed(*number, count(number.unsigned_abs())),
            Self::Bytes(number) => bytes(*number),
            Self::BytesChange(number) => signed(*number, bytes(number.unsigned_abs())),
            Self::BytesPerSecond(number) => format!("{}/s", bytes(*number)),
            Self::Percent(percent) => format!("{percent:.1}%"),
            Self::Duration(length, unit) => duration(*length, *unit),
            Self::Bar(share) => bar(*share),
            Self::Sparkline(values) => sparkline(values),
            Self::About(cell) => format!("~{}", cell.shown(look)),
        }
    }

    pub fn ink(&self) -> Ink {
        match self {
            Self::Verdict(_, ink) => *ink,
            Self::Bar(_) | Self::Sparkline(_) => Ink::Bar,
            _ => Ink::Plain,
        }
    }
}

/// A function with the line of its source.
fn with_source(symbol: &str, (function, line): &(String, String), is_wide: bool) -> String {
    let is_own = symbol.split(['+', ' ']).next() == Some(function.as_str());
    match is_wide {
        true if is_own => format!("{symbol} {line}"),
        true => format!("{symbol} {function} {line}"),
        false => format!("{function} {}", line.rsplit('/').next().unwrap_or_default()),
    }
}

/// A bar in eighths of characters.
fn bar(share: f64) -> String {
    const PARTS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share * (BAR * 8) as f64).round() as usize;
    let mut out = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        out.extend(PARTS.get(eighths % 8));
    }
    out
}

/// A small chart: one character for two values. A value above 0 is never blank.
fn sparkline(values: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = u128::from(values.iter().max().copied().unwrap_or(0).max(1));
    let step = if values.len() > 20 { 2 } else { 1 };
    let of = |values: &[u64]| {
        let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
        let level = (sum * 7).div_ceil(most * step as u128).min(7);
        if sum == 0 { ' ' } else { BARS.get(level as usize).copied().unwrap_or('█') }
    };
    values.chunks(step).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_units() {
        let look = Look::default();
        let exact = Look { exact_bytes: true, ..look };
        assert_eq!(Cell::Bytes(568_320).shown(&look), "555 KiB");
        assert_eq!(Cell::Bytes(568_320).shown(&exact), "568,320");
        assert_eq!(Cell::BytesChange(-2048).shown(&look), "-2.00 KiB");
        assert_eq!(Cell::BytesPerSecond(545_260).shown(&look), "532 KiB/s");
        assert_eq!(Cell::count(None).shown(&look), "?");
        assert_eq!(Cell::About(Box::new(Cell::Count(1_000))).shown(&look), "~1,000");
        assert_eq!(Cell::symbol("kfree+0x1/0x2").shown(&look), "kfree+0x1");
        let source = ("open_it".to_owned(), "fs/open.c:7".to_owned());
        assert_eq!(with_source("do_open+0x1/0x2", &source, false), "open_it open.c:7");
        assert_eq!(with_source("do_open+0x1/0x2", &source, true), "do_open+0x1/0x2 open_it fs/open.c:7");
        assert_eq!(with_source("open_it+0x1/0x2 [m]", &source, true), "open_it+0x1/0x2 [m] fs/open.c:7");
    }

    #[test]
    fn bars_and_courses() {
        assert_eq!(Cell::bar(1, 2).shown(&Look::default()), "█████");
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(0.06), "▋");
        assert_eq!(sparkline(&[0, 1, 7]), " ▂█");
    }

    #[test]
    fn unknown_is_not_nothing() {
        assert!(Cell::Count(0).is_nothing() && Cell::Percent(0.0).is_nothing());
        assert!(!Cell::Unknown.is_nothing());
    }
}
