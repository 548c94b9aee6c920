//! Columns of a text: decided once, from many lines. A task can be called anything, also as the columns of a line look.

use std::collections::HashMap;

use super::columns::without_end;
use super::frame::chain;
use super::line_types::{Parsed, Style, TextLine};
use super::prefix::{Prefix, without_console};
use super::readings::{Reading, readings, readings_of};

/// Columns that the events of a text have; the default is one of which nothing is known.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TextLayout {
    style: Option<Style>,
    /// Text that a log or another program has put before each line.
    prefix: Prefix,
    /// Offset at which all names end: those of tools are padded on the left.
    column: Option<usize>,
    /// True if they do in all lines that were looked at; else in most.
    is_strict: bool,
}

impl TextLayout {
    /// True if all names end in the same column.
    pub(super) fn has_column(&self) -> bool {
        self.column.is_some()
    }

    /// A line without the prefix of the text.
    pub(super) fn part<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        self.prefix.strip(line).unwrap_or(line)
    }

    /// The event of a line whose name ends in the column of the text.
    pub(super) fn in_column<'a>(&self, line: &'a [u8]) -> Option<TextLine<'a>> {
        let (style, column) = (self.style?, self.column?);
        let line = self.part(line);
        let (mut found, mut is_last) = (None, true);
        readings_of(style, line, &mut |reading: Reading<'a>| {
            if reading.ends_at(column) {
                found = Some(reading.with_end(line, column).line);
            }
            is_last &= reading.ends.0 <= column;
        });
        found.filter(|_| self.is_strict || is_last)
    }

    /// The reading of a line that is right-most: of the style of the text, or else of any.
    pub(super) fn rightmost<'a>(&self, line: &'a [u8]) -> Option<Parsed<'a>> {
        // A console may have put its time before some lines only.
        let part = self.part(line);
        self.rightmost_of(part).or_else(|| self.rightmost_of(without_console(part)))
    }

    fn rightmost_of<'a>(&self, line: &'a [u8]) -> Option<Parsed<'a>> {
        let mut best: Option<((bool, usize), Reading<'a>)> = None;
        let mut is_ambiguous = false;
        readings(line, &mut |reading| {
            let rank = (Some(reading.style) == self.style, reading.ends.1);
            let Some((had, _)) = &best else {
                best = Some((rank, reading));
                return;
            };
            // Of two styles that of the text is right.
            is_ambiguous = had.0 == rank.0 || is_ambiguous && had.0;
            if rank > *had {
                best = Some((rank, reading));
            }
        });
        best.map(|(_, reading)| Parsed { line: reading.line, is_ambiguous })
    }
}

/// Readings of many lines.
#[derive(Debug, Default)]
pub(super) struct Votes {
    lines: u64,
    /// Lines with a reading, by the prefix that is taken off and the style.
    styles: HashMap<(Prefix, Style), u64>,
    /// The same, by the end of the name, too.
    columns: HashMap<(Prefix, Style, usize), u64>,
}

impl Votes {
    /// Lines with a reading.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Adds a line.
    pub(super) fn add(&mut self, line: &[u8]) {
        let line = without_end(line);
        let (mut styles, mut columns, mut is_other) = (Vec::new(), Vec::new(), line.starts_with(b"#"));
        Prefix::each(line, &mut |prefix, part| {
            // Frames of perf: symbols of programs are texts of others, too.
            is_other = is_other || chain(part).is_some();
            if is_other {
                return;
            }
            readings(part, &mut |reading| {
                styles.push((prefix, reading.style));
                columns.extend((reading.ends.0..=reading.ends.1).map(|end| (prefix, reading.style, end)));
            });
        });
        if is_other {
            return;
        }
        // A line has one vote for each.
        styles.sort_unstable();
        styles.dedup();
        columns.sort_unstable();
        columns.dedup();
        self.lines += u64::from(!styles.is_empty());
        styles.into_iter().for_each(|style| *self.styles.entry(style).or_default() += 1);
        columns.into_iter().for_each(|column| *self.columns.entry(column).or_default() += 1);
    }

    /// The column that most lines share, the right-most of several: another one is within names. Else the style of most.
    pub(super) fn layout(&self) -> TextLayout {
        let is_most = |count: u64| count >= self.lines - self.lines / 8;
        // Behind a prefix no line has a name: what would be all names is the prefix.
        let is_nameless = self
            .styles
            .iter()
            .any(|((prefix, style), count)| *style == Style::Tid && !prefix.is_empty() && is_most(*count));
        let columns = self
            .columns
            .iter()
            .filter(|((_, style, _), count)| is_most(**count) && (!is_nameless || *style == Style::Tid));
        if let Some((&(prefix, style, mut column), &count)) =
            columns.max_by_key(|((prefix, style, end), count)| {
                // Where names end as tools print them, nothing stands before them: a task may be called as a prefix looks.
                let is_plain = prefix.is_empty() && *end == padding(*style);
                (**count, is_plain, *prefix, *end, *style)
            })
        {
            let is_shared = |column| self.columns.get(&(prefix, style, column)) == Some(&count);
            // Blanks between name and number are not part of the name.
            while style == Style::Blank && column > 0 && is_shared(column - 1) {
                column -= 1;
            }
            let is_strict = count == self.lines;
            return TextLayout { style: Some(style), prefix, column: Some(column), is_strict };
        }
        let most = self.styles.iter().max_by_key(|(key, count)| (**count, **key));
        most.map_or_else(TextLayout::default, |(&(prefix, style), _)| TextLayout {
            style: Some(style),
            prefix,
            ..TextLayout::default()
        })
    }
}

/// Width to which tools pad the name of a task.
fn padding(style: Style) -> usize {
    if style == Style::Latency { 8 } else { 16 }
}
