//! A report as people read it: the answer, the evidence, how far to trust it, the next command.
//!
//! A report makes a [`Screen`] of its rows, with tables whose columns bring their heading and their cells. The layout here fits
//! it to the width of the terminal and computes nothing. Colour carries no meaning alone.

mod cell;
mod command;
mod layout;
mod names;
mod page;
mod wrap;

pub use cell::Cell;
pub use command::CommandLine;
pub use layout::{Column, Table};
pub use page::page;
pub use wrap::{split_at, width_of};

use anstyle::{AnsiColor, Style};

/// A report as people read it.
#[derive(Debug, Default)]
pub struct Screen {
    /// Findings, the most important first; only the first screen has several.
    pub leads: Vec<Lead>,
    /// One or two sentences with numbers and names.
    pub answer: Vec<String>,
    /// Tables, and text beside them.
    pub parts: Vec<ScreenPart>,
    /// Sentences that a reader of the tables needs.
    pub notes: Vec<String>,
    /// Commands that show more.
    pub next: Vec<Next>,
    /// True if it says whether events were lost.
    pub says_losses: bool,
}

/// A part of the evidence.
#[derive(Debug)]
pub enum ScreenPart {
    Table(Table),
    /// Lines under a heading, wrapped at the width of the terminal.
    Lines {
        /// Heading; empty: none.
        heading: String,
        lines: Vec<String>,
    },
    /// Facts, each beside its name; long ones are wrapped under their beginning.
    Facts(Vec<(&'static str, String)>),
    /// Text that is printed as it is: events, layouts of other tools.
    Verbatim(String),
}

/// A finding and the command that shows more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lead {
    /// One or two sentences.
    pub sentence: String,
    /// The command.
    pub command: CommandLine,
}

/// A command that shows more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// The command: `callers --sort wasted`.
    pub command: CommandLine,
    /// The reader's reason to run it: `who wastes it`.
    pub reason: String,
}

impl Screen {
    /// A screen that begins with this answer.
    pub fn new(answer: impl Into<String>) -> Self {
        Self { answer: vec![answer.into()], ..Self::default() }
    }

    /// A screen of text that is printed as it is.
    pub fn verbatim(text: String) -> Self {
        Self { parts: vec![ScreenPart::Verbatim(text)], ..Self::default() }
    }

    /// Adds a sentence to the answer.
    pub fn answer(&mut self, sentence: impl Into<String>) {
        self.answer.push(sentence.into());
    }

    /// Adds findings.
    pub fn leads(&mut self, leads: Vec<Lead>) {
        self.leads.extend(leads);
    }

    /// Adds a table; one without rows is left out.
    pub fn table(&mut self, table: impl Into<Table>) {
        let table = table.into();
        if !table.rows.is_empty() {
            self.parts.push(ScreenPart::Table(table));
        }
    }

    /// Adds lines under a heading; none are left out.
    pub fn lines(&mut self, heading: impl Into<String>, lines: Vec<String>) {
        if !lines.is_empty() {
            self.parts.push(ScreenPart::Lines { heading: heading.into(), lines });
        }
    }

    /// Adds facts, each beside its name; none are left out.
    pub fn facts(&mut self, facts: Vec<(&'static str, String)>) {
        if !facts.is_empty() {
            self.parts.push(ScreenPart::Facts(facts));
        }
    }

    /// Adds a note; an empty one is left out.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !note.is_empty() {
            self.notes.push(note);
        }
    }

    /// Adds a command that shows more.
    pub fn next(&mut self, command: impl Into<CommandLine>, reason: impl Into<String>) {
        self.next.push(Next { command: command.into(), reason: reason.into() });
    }
}

/// Kinds of text that stand out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// As the terminal has it.
    Plain,
    Answer,
    /// Headings of tables and columns.
    Heading,
    /// A verdict that needs attention.
    Bad,
    /// A verdict that reassures.
    Good,
    /// Bars and sparklines.
    Bar,
    /// Facts that reduce trust.
    Warning,
    /// Commands, and what is less important.
    Dim,
}

impl Ink {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Answer | Self::Heading => Style::new().bold(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bar => AnsiColor::Cyan.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Dim => Style::new().dimmed(),
        }
    }
}

/// A text in that ink, if there is colour.
pub fn paint(text: &str, ink: Ink, colour: bool) -> String {
    if !colour || ink == Ink::Plain || text.is_empty() {
        return text.to_owned();
    }
    let style = ink.style();
    format!("{style}{text}{style:#}")
}

/// A table of these rows, which gets its columns one after the other.
#[derive(Debug)]
pub struct RowTable<R> {
    rows: Vec<R>,
    table: Table,
}

impl Table {
    /// A table with a row for each of these.
    pub fn of_rows<R>(title: impl Into<String>, rows: impl IntoIterator<Item = R>) -> RowTable<R> {
        let rows: Vec<R> = rows.into_iter().collect();
        let mut table = Self::new(title, []);
        table.rows = rows.iter().map(|_| Vec::new()).collect();
        RowTable { rows, table }
    }
}

impl<R> RowTable<R> {
    /// Noun of a row and of several, and the number of rows that there are, shown or not.
    #[must_use]
    pub fn of(self, one: &'static str, several: &'static str, rows_total: usize) -> Self {
        Self { table: self.table.of(one, several, rows_total), ..self }
    }

    /// Adds a column.
    #[must_use]
    pub fn column(self, column: Column, cell: impl Fn(&R) -> Cell) -> Self {
        self.columns([column], |row| [cell(row)])
    }

    /// Adds a column if the condition is true.
    #[must_use]
    pub fn column_if(self, is_there: bool, column: Column, cell: impl Fn(&R) -> Cell) -> Self {
        if is_there { self.column(column, cell) } else { self }
    }

    /// Adds columns that other tables have too; the cells are in their order.
    #[must_use]
    pub fn columns<C: IntoIterator<Item = Cell>>(
        mut self,
        columns: impl IntoIterator<Item = Column>,
        cells: impl Fn(&R) -> C,
    ) -> Self {
        self.table.columns.extend(columns);
        self.table.rows.iter_mut().zip(&self.rows).for_each(|(to, row)| to.extend(cells(row)));
        self
    }

    /// Explains a column: the note is shown where the column is.
    #[must_use]
    pub fn explain(mut self, heading: &'static str, note: impl Into<String>) -> Self {
        self.table.explain(heading, note);
        self
    }
}

impl<R> From<RowTable<R>> for Table {
    fn from(RowTable { mut table, .. }: RowTable<R>) -> Self {
        table.rows_total = table.rows_total.max(table.rows.len());
        table
    }
}
