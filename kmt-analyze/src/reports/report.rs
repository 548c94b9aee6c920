//! A report: from the results of a pass to rows of numbers, and from these to text.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use super::common::basis::{Basis, Input};
use super::common::stated::Keys;
use super::common::{Context, View};
use crate::collect::Collectors;
use crate::failure::Result;
use crate::pass::Analysis;
use crate::pass::selection::Selection;

/// A question to a trace, and its answer in rows.
///
/// Numbers are computed by [`Report::compute`] alone. JSON is the rows as they are serialized; CSV is made of the same;
/// text is made by [`Report::text`] of rows and a [`View`], which hold no trace.
pub trait Report: Sized + 'static {
    /// Options on the command line, besides those that all reports have.
    type Options: clap::Args;
    /// Handles of the collectors whose results it computes with.
    type Handles: 'static;
    /// The answer: plain numbers and texts. Field names are the keys of its JSON.
    type Rows: Serialize + Described + 'static;

    /// The command: `what-if`.
    const NAME: &'static str;
    /// Its key in the JSON of `all`.
    const KEY: &'static str;
    /// Its heading in the text of `all`.
    const TITLE: &'static str;
    /// One line for the list of commands.
    const ABOUT: &'static str;
    /// Version of its rows; raised when a key changes its meaning.
    const VERSION: u32 = 1;
    /// `-l` limits its rows.
    const HAS_LINES: bool = true;
    /// It accounts for memory: refused where the file has fields of a later version of the format.
    const ACCOUNTS: bool = true;

    /// As the command line asks for it.
    fn new(options: Self::Options, selection: &Selection) -> Self;

    /// As it is among others; `None`: it has no answer without options.
    fn usual() -> Option<Self>;

    /// Events that it cannot do without.
    fn rests_on(&self) -> Input;

    /// Conditions that it can heed.
    fn keys(&self) -> Keys {
        Keys::Slab
    }

    /// Fails before any work where the selection makes no sense for it.
    fn check(&self, _context: &Context<'_, '_>) -> Result<()> {
        Ok(())
    }

    /// Counts of all events by class and origin are needed.
    fn needs_event_counts(&self) -> bool {
        false
    }

    /// Totals as ranges are needed, where events were lost.
    fn needs_ranges(&self) -> bool {
        false
    }

    /// Adds its collectors to a pass.
    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles;

    /// Why it does not answer, if so.
    fn refuses(&self, context: &Context<'_, '_>, analysis: &Analysis) -> Option<String> {
        Basis::of(context.session, analysis).lacks(self.rests_on())
    }

    /// The answer.
    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, handles: &Self::Handles) -> Self::Rows;

    /// The answer for people.
    fn text(&self, rows: &Self::Rows, view: &View) -> String;
}

/// Rows that describe themselves: docs/json.md is checked against them in tests.
#[cfg(test)]
pub trait Described: schemars::JsonSchema {}

#[cfg(test)]
impl<T: schemars::JsonSchema> Described for T {}

/// Rows that describe themselves: docs/json.md is checked against them in tests.
#[cfg(not(test))]
pub trait Described {}

#[cfg(not(test))]
impl<T> Described for T {}

/// Options of a report that has none of its own.
#[derive(Debug, Default, clap::Args)]
pub struct NoOptions {}

/// A report of any type.
pub trait AnyReport {
    /// See [`Report::NAME`].
    fn name(&self) -> &'static str;
    /// See [`Report::KEY`].
    fn key(&self) -> &'static str;
    /// See [`Report::TITLE`].
    fn title(&self) -> &'static str;
    /// See [`Report::VERSION`].
    fn version(&self) -> u32;
    /// See [`Report::keys`].
    fn keys(&self) -> Keys;
    /// See [`Report::check`].
    fn check(&self, context: &Context<'_, '_>) -> Result<()>;
    /// See [`Report::needs_event_counts`].
    fn needs_event_counts(&self) -> bool;
    /// See [`Report::needs_ranges`].
    fn needs_ranges(&self) -> bool;
    /// See [`Report::collect`].
    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Box<dyn Pending + '_>;
}

/// A report whose pass is to come.
pub trait Pending {
    /// See [`Report::refuses`].
    fn refuses(&self, context: &Context<'_, '_>, analysis: &Analysis) -> Option<String>;
    /// See [`Report::compute`].
    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis) -> Box<dyn Answer + '_>;
}

/// Rows of any type.
pub trait Answer {
    /// Their JSON.
    fn document(&self) -> Map<String, Value>;
    /// Their text.
    fn text(&self, view: &View) -> String;
}

impl fmt::Debug for dyn AnyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl<R: Report> AnyReport for R {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn key(&self) -> &'static str {
        R::KEY
    }

    fn title(&self) -> &'static str {
        R::TITLE
    }

    fn version(&self) -> u32 {
        R::VERSION
    }

    fn keys(&self) -> Keys {
        Report::keys(self)
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        Report::check(self, context)
    }

    fn needs_event_counts(&self) -> bool {
        Report::needs_event_counts(self)
    }

    fn needs_ranges(&self) -> bool {
        Report::needs_ranges(self)
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Box<dyn Pending + '_> {
        let handles = Report::collect(self, context, collectors);
        Box::new(Collecting { report: self, handles })
    }
}

struct Collecting<'r, R: Report> {
    report: &'r R,
    handles: R::Handles,
}

impl<R: Report> Pending for Collecting<'_, R> {
    fn refuses(&self, context: &Context<'_, '_>, analysis: &Analysis) -> Option<String> {
        self.report.refuses(context, analysis)
    }

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis) -> Box<dyn Answer + '_> {
        let rows = self.report.compute(context, analysis, &self.handles);
        Box::new(Answered { report: self.report, rows })
    }
}

struct Answered<'r, R: Report> {
    report: &'r R,
    rows: R::Rows,
}

impl<R: Report> Answer for Answered<'_, R> {
    fn document(&self) -> Map<String, Value> {
        match serde_json::to_value(&self.rows) {
            Ok(Value::Object(document)) => document,
            // Rows are structs of numbers, texts and lists: they are objects, and none of them fails.
            _ => Map::new(),
        }
    }

    fn text(&self, view: &View) -> String {
        self.report.text(&self.rows, view)
    }
}
