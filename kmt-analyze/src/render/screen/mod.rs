//! A report as people read it: the answer, the evidence, how far to trust it, the next command.
//!
//! A report makes a [`Screen`] of its rows; the layout here fits it to the width of the terminal. Nothing in it is
//! computed by the layout.

mod cell;
mod command;
mod layout;
mod names;
mod page;
mod row_table;
mod style;
mod width;
mod wrap;

pub use cell::Cell;
pub use command::CommandLine;
pub use layout::{Column, Table};
pub use page::page;
pub use row_table::RowTable;
pub use style::{Ink, paint};

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
