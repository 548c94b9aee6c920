//! Tables that fit the terminal: names are shortened in the middle, columns leave by priority, numbers stay whole.
//!
//! A report makes a `Table` of typed cells; `fit` chooses the columns and widths for a terminal and returns text, of
//! which `page` makes lines. Rows that differ do not read the same where there is room, because a reader takes equal
//! names for one thing. Widths are in columns of the terminal (`wrap::width_of`).

use std::collections::HashMap;

use kmt_common::text::{TEXT_MAX, cut, tame};

use super::cell::Cell;
use super::names::{shorten_end, shorten_middle, shortened};
use super::wrap::width_of;
use super::{Ink, paint};
use crate::render::look::Look;
use crate::sort_rows::SortRows;

/// Blanks between two columns.
const GAP: usize = 2;

/// Fewest columns of the terminal for a name that is shortened.
const NAME_MIN: usize = 22;

/// Fewest columns of the terminal for a text that is shortened.
const TEXT_MIN: usize = 10;

/// Column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Heading; no two of a table are equal.
    pub heading: &'static str,
    kind: CellKind,
    /// Columns of the highest number leave first; those of 0 stay.
    leaves: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellKind {
    /// Left, shortened in the middle.
    Name,
    /// Left, shortened at the end.
    Text,
    /// Left, never shortened.
    Whole,
    /// Right, never shortened.
    Number,
}

impl Column {
    /// Names of functions, caches, tasks: shortened in the middle.
    pub const fn name(heading: &'static str) -> Self {
        Self { heading, kind: CellKind::Name, leaves: 0 }
    }

    /// Text: shortened at its end.
    pub const fn text(heading: &'static str) -> Self {
        Self { heading, kind: CellKind::Text, leaves: 0 }
    }

    /// Short words, bars, sparklines: on the left, never shortened.
    pub const fn whole(heading: &'static str) -> Self {
        Self { heading, kind: CellKind::Whole, leaves: 0 }
    }

    /// Numbers: on the right, never shortened.
    pub const fn number(heading: &'static str) -> Self {
        Self { heading, kind: CellKind::Number, leaves: 0 }
    }

    /// This column, which leaves where the terminal is narrow: those of the highest number first. Such a column is
    /// also left out where all its cells are empty or zero.
    #[must_use]
    pub const fn leaves(self, order: u8) -> Self {
        Self { leaves: order, ..self }
    }

    /// True for columns of numbers, which are on the right.
    pub fn is_number(&self) -> bool {
        self.kind == CellKind::Number
    }

    fn width_min(&self, natural: usize) -> usize {
        match self.kind {
            CellKind::Name => natural.min(NAME_MIN.max(self.heading.len())),
            CellKind::Text => natural.min(TEXT_MIN.max(self.heading.len())),
            CellKind::Whole | CellKind::Number => natural,
        }
    }

    fn fit_heading(&self, width: usize) -> String {
        match self.kind {
            CellKind::Name | CellKind::Text => shorten_end(self.heading, width),
            CellKind::Whole | CellKind::Number => self.heading.to_owned(),
        }
    }
}

/// Text of a cell; nothing in it steers the terminal. A very long one is cut, also with `--wide`: the other rows have as
/// many blanks.
fn harmless(cell: &Cell, look: &Look) -> String {
    match tame(&cut(&cell.shown(look), TEXT_MAX)) {
        text if text.contains(['\n', '\t']) => text.replace(['\n', '\t'], " "),
        text => text.into_owned(),
    }
}

/// Table with typed cells.
#[derive(Debug, Default)]
pub struct Table {
    /// Heading above it; empty: none.
    pub title: String,
    pub columns: Vec<Column>,
    /// Rows: a cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Rows that there are, shown or not.
    pub rows_total: usize,
    /// Noun of a row, and of several.
    pub noun: (&'static str, &'static str),
    /// Meanings of columns, by their headings.
    explanations: Vec<(&'static str, String)>,
}

/// Table as it is shown.
#[derive(Debug)]
pub struct Fitted {
    /// Heading and rows.
    pub lines: Vec<String>,
    /// Headings of columns that did not fit.
    pub hidden: Vec<&'static str>,
    /// Meanings of the columns that are shown.
    pub explanations: Vec<String>,
    /// A number that is shown is unknown.
    pub has_unknown: bool,
}

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, columns: impl IntoIterator<Item = Column>) -> Self {
        Self {
            title: title.into(),
            columns: columns.into_iter().collect(),
            noun: ("row", "rows"),
            ..Self::default()
        }
    }

    /// Noun of a row and of several, and the number of rows that there are, shown or not.
    #[must_use]
    pub fn of(self, one: &'static str, several: &'static str, rows_total: usize) -> Self {
        Self { noun: (one, several), rows_total, ..self }
    }

    /// Explains a column: the note is shown where the column is.
    pub fn explain(&mut self, heading: &'static str, note: impl Into<String>) {
        self.explanations.push((heading, note.into()));
    }

    /// The column at that place no longer leaves.
    pub fn keep(&mut self, at: usize) {
        if let Some(column) = self.columns.get_mut(at) {
            column.leaves = 0;
        }
    }

    /// Meanings of columns.
    pub fn explanations(&self) -> impl Iterator<Item = &str> {
        self.explanations.iter().map(|(_, note)| note.as_str())
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
        self.rows_total = self.rows_total.max(self.rows.len());
    }

    /// Columns that tell something: the others are all empty or zero and may leave.
    fn telling(&self, kept: &[usize]) -> Vec<usize> {
        let tells = |at: &usize| {
            !self.may_leave(*at, kept)
                || self.rows.iter().any(|row| row.get(*at).is_some_and(|cell| !cell.is_nothing()))
        };
        (0..self.columns.len()).filter(tells).collect()
    }

    fn may_leave(&self, at: usize, kept: &[usize]) -> bool {
        self.columns[at].leaves > 0 && !kept.contains(&at)
    }

    /// The table at the width of the terminal. Rows that differ do not read the same, if there is room for it.
    pub fn fit(&self, look: &Look) -> Fitted {
        let shown: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(|cell| harmless(cell, look)).collect()).collect();
        let natural: Vec<usize> = (0..self.columns.len()).map(|at| self.natural_width(at, &shown)).collect();
        let mut kept = Vec::new();
        loop {
            let mut columns = if look.wide { (0..self.columns.len()).collect() } else { self.telling(&kept) };
            let hidden = self.leave(&mut columns, &kept, &natural, look.width);
            let widths = self.widths(&columns, &natural, look.width);
            let texts = self.texts(&shown, &columns, &widths);
            let needed = |at| look.width != Look::NO_LIMIT && self.has_room(at, &kept, &natural, look.width);
            match self.telling_apart(&shown, &texts, &columns).find(|at| needed(*at)) {
                Some(at) => kept.push(at),
                None => return self.fitted(&texts, (&columns, &widths), hidden, look),
            }
        }
    }

    /// Texts of the rows in their columns; those that differ stay different where they are shortened.
    fn texts(&self, shown: &[Vec<String>], columns: &[usize], widths: &[usize]) -> Vec<Vec<String>> {
        let mut texts = vec![Vec::with_capacity(columns.len()); shown.len()];
        for (&at, &width) in columns.iter().zip(widths) {
            let column: Vec<&str> = shown.iter().map(|row| row.get(at).map_or("", String::as_str)).collect();
            let fitted = match self.columns[at].kind {
                CellKind::Name => shortened(&column, width, shorten_middle),
                CellKind::Text => shortened(&column, width, shorten_end),
                CellKind::Whole | CellKind::Number => column.into_iter().map(str::to_owned).collect(),
            };
            texts.iter_mut().zip(fitted).for_each(|(row, text)| row.push(text));
        }
        texts
    }

    /// Columns that are not shown, in which the first two rows that read the same differ; the last to leave first.
    fn telling_apart(
        &self,
        shown: &[Vec<String>],
        texts: &[Vec<String>],
        columns: &[usize],
    ) -> impl Iterator<Item = usize> {
        let mut seen: HashMap<&[String], usize> = HashMap::new();
        let same = texts.iter().enumerate().find_map(|(row, texts)| {
            let first = *seen.entry(texts).or_insert(row);
            (first != row && shown[first] != shown[row]).then_some((first, row))
        });
        let hidden = (0..self.columns.len()).filter(|at| !columns.contains(at));
        let differs = |at: &usize| same.is_some_and(|(a, b)| shown[a].get(*at) != shown[b].get(*at));
        let mut differing: Vec<usize> = hidden.filter(differs).collect();
        differing.sort_rows_by_key(|&at| self.columns[at].leaves);
        differing.into_iter()
    }

    /// True if the column fits beside those that stay.
    fn has_room(&self, at: usize, kept: &[usize], natural: &[usize], width: usize) -> bool {
        let stays = |other: &usize| *other == at || !self.may_leave(*other, kept);
        let stay = (0..self.columns.len()).filter(stays);
        let narrowest = stay.map(|at| self.columns[at].width_min(natural[at]).saturating_add(GAP));
        narrowest.fold(0, usize::saturating_add) <= width.saturating_add(GAP)
    }

    fn fitted(
        &self,
        texts: &[Vec<String>],
        (columns, widths): (&[usize], &[usize]),
        hidden: Vec<&'static str>,
        look: &Look,
    ) -> Fitted {
        let mut lines = vec![self.heading(columns, widths, look)];
        for (cells, texts) in self.rows.iter().zip(texts) {
            let ink = |at: usize| cells.get(at).map_or(Ink::Plain, Cell::ink);
            lines.push(self.line(columns, widths, look, |index, at| (&texts[index], ink(at))));
        }
        let is_shown = |heading: &str| columns.iter().any(|&at| self.columns[at].heading == heading);
        let explanations = self.explanations.iter().filter(|(heading, _)| is_shown(heading));
        let unknown = |row: &Vec<Cell>| columns.iter().any(|&at| row.get(at).is_some_and(Cell::is_unknown));
        Fitted {
            lines,
            hidden,
            explanations: explanations.map(|(_, note)| note.clone()).collect(),
            has_unknown: self.rows.iter().any(unknown),
        }
    }

    fn natural_width(&self, at: usize, shown: &[Vec<String>]) -> usize {
        let cells = shown.iter().filter_map(|row| row.get(at)).map(|cell| width_of(cell));
        cells.max().unwrap_or(0).max(width_of(self.columns[at].heading))
    }

    /// Takes out columns until the rest fits at its narrowest.
    fn leave(
        &self,
        columns: &mut Vec<usize>,
        kept: &[usize],
        natural: &[usize],
        width: usize,
    ) -> Vec<&'static str> {
        let mut hidden = Vec::new();
        loop {
            let narrowest: usize = columns.iter().map(|&at| self.columns[at].width_min(natural[at])).sum();
            let gaps = GAP * columns.len().saturating_sub(1);
            if narrowest.saturating_add(gaps) <= width {
                break;
            }
            let leaving = columns.iter().enumerate().filter(|&(_, &at)| self.may_leave(at, kept));
            let Some((index, &at)) = leaving.max_by_key(|&(index, &at)| (self.columns[at].leaves, index))
            else {
                break;
            };
            columns.remove(index);
            hidden.push((at, self.columns[at].heading));
        }
        hidden.sort_unstable();
        hidden.into_iter().map(|(_, heading)| heading).collect()
    }

    /// Widths of the columns: at their narrowest, then wider from the left while there is room.
    fn widths(&self, columns: &[usize], natural: &[usize], width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> =
            columns.iter().map(|&at| self.columns[at].width_min(natural[at])).collect();
        let used: usize = widths.iter().sum::<usize>() + GAP * columns.len().saturating_sub(1);
        let mut room = width.saturating_sub(used);
        for kind in [CellKind::Name, CellKind::Text] {
            for (&at, width) in
                columns.iter().zip(&mut widths).filter(|(at, _)| self.columns[**at].kind == kind)
            {
                let more = natural[at].saturating_sub(*width).min(room);
                *width += more;
                room -= more;
            }
        }
        // Where even that is too wide, the first name gives what is missing.
        let over = used.saturating_sub(width);
        let first =
            columns.iter().position(|&at| matches!(self.columns[at].kind, CellKind::Name | CellKind::Text));
        if let Some(first) = first.and_then(|index| widths.get_mut(index)) {
            *first = first.saturating_sub(over).max(4);
        }
        widths
    }

    fn heading(&self, columns: &[usize], widths: &[usize], look: &Look) -> String {
        let headings: Vec<String> =
            columns.iter().zip(widths).map(|(&at, &width)| self.columns[at].fit_heading(width)).collect();
        let line = self.line(columns, widths, &Look { colour: false, ..*look }, |index, _| {
            (&headings[index], Ink::Plain)
        });
        paint(&line, Ink::Heading, look.colour)
    }

    fn line<'t>(
        &self,
        columns: &[usize],
        widths: &[usize],
        look: &Look,
        cell: impl Fn(usize, usize) -> (&'t str, Ink),
    ) -> String {
        let mut line = String::new();
        let mut blanks = 0;
        for (index, (&at, &width)) in columns.iter().zip(widths).enumerate() {
            let column = &self.columns[at];
            let (text, ink) = cell(index, at);
            let fill = width.saturating_sub(width_of(text));
            let before = if column.kind == CellKind::Number { fill } else { 0 };
            blanks += before + if index == 0 { 0 } else { GAP };
            if !text.is_empty() {
                // Blanks at the end of a line are left out.
                line.push_str(&" ".repeat(blanks));
                line.push_str(&paint(text, ink, look.colour));
                blanks = 0;
            }
            blanks += fill - before;
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = [
            Column::name("call site"),
            Column::number("allocs").leaves(2),
            Column::number("wasted"),
            Column::number("failed").leaves(1),
        ];
        let mut table = Table::new("", columns);
        let site = "getname_flags.part.0.constprop.0+0x2b/0x1c0 [module]";
        table.row([Cell::symbol(site), Cell::Count(2_665), Cell::Bytes(1_367_936), Cell::Count(0)]);
        table.row([Cell::symbol("kfree+0x1/0x2"), Cell::Count(1), Cell::Unknown, Cell::Count(0)]);
        table
    }

    #[test]
    fn names_give_way_before_numbers() {
        let Fitted { lines, hidden, .. } = table().fit(&Look { width: 44, ..Look::default() });
        assert!(hidden.is_empty());
        assert_eq!(
            lines,
            [
                "call site                   allocs    wasted",
                "getname_flags.par…[module]   2,665  1.30 MiB",
                "kfree+0x1                        1         ?"
            ]
        );
    }

    #[test]
    fn columns_leave_by_priority() {
        let Fitted { lines, hidden, .. } = table().fit(&Look { width: 34, ..Look::default() });
        assert_eq!(hidden, ["allocs"]);
        assert!(lines.iter().all(|line| line.chars().count() <= 34), "{lines:?}");
        assert!(lines[1].ends_with("1.30 MiB"));
    }

    #[test]
    fn rows_that_differ_do_not_read_the_same() {
        let columns = [Column::name("call site"), Column::text("cache").leaves(2), Column::number("allocs")];
        let mut table = Table::new("", columns);
        for (site, cache) in [
            ("a_function_with_a_long_name_one_of_two+0x2b", "dentry"),
            ("a_function_with_a_long_name_two_of_two+0x2b", "dentry"),
            ("a_function_with_a_long_name_two_of_two+0x2b", "filp"),
        ] {
            table.row([Cell::text(site), Cell::text(cache), Cell::Count(7)]);
        }
        for width in [40, 44, 60, 80] {
            let Fitted { lines, .. } = table.fit(&Look { width, ..Look::default() });
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
            let mut distinct = lines.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), 4, "{lines:#?}");
        }
    }

    #[test]
    fn wide_letters_do_not_move_columns() {
        let mut table = Table::new("", [Column::name("task"), Column::number("allocs")]);
        table.row([Cell::text("日本語"), Cell::Count(7)]);
        table.row([Cell::text("kfree"), Cell::Count(12)]);
        table.row([Cell::text("e\u{301}🦀"), Cell::Count(3)]);
        let Fitted { lines, .. } = table.fit(&Look::default());
        assert_eq!(lines, ["task    allocs", "日本語       7", "kfree       12", "e\u{301}🦀          3"]);
        let mut table = Table::new("", [Column::name("call site"), Column::number("allocs")]);
        table.row([Cell::text("日本語".repeat(20)), Cell::Count(7)]);
        let Fitted { lines, .. } = table.fit(&Look { width: 40, ..Look::default() });
        assert_eq!(lines[1], "日本語日本語日本語日…本語日本語        7");
    }

    #[test]
    fn wide_shows_all() {
        let Fitted { lines, hidden, .. } =
            table().fit(&Look { width: Look::NO_LIMIT, wide: true, ..Look::default() });
        assert!(
            hidden.is_empty() && lines[0].ends_with("failed") && lines[1].contains("+0x2b/0x1c0 [module]")
        );
    }

    #[test]
    fn colour_does_not_move_columns() {
        let mut table = Table::new("", [Column::whole("verdict"), Column::number("n")]);
        table.row([Cell::Verdict("grows".into(), Ink::Bad), Cell::Count(7)]);
        let Fitted { lines, .. } = table.fit(&Look { colour: true, ..Look::default() });
        assert_eq!(lines[1], "\u{1b}[1m\u{1b}[31mgrows\u{1b}[0m    7");
    }
}
