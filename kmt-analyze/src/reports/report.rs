//! A report: from the results of a pass to rows of numbers, and from these to text.
//!
//! `Report` is the trait that each report implements, with its rows as a type. `AnyReport` and `Pending` are the same
//! without that type, for the command line, `all`, the page and exports, which hold reports of several types. `run`
//! runs them in a pass; the registry has all of them.

use std::fmt;

use clap::Command;
use serde::Serialize;
use serde_json::{Map, Value};

use super::common::basis::Input;
use super::common::stated::Keys;
use super::common::{Context, View};
use super::output::ROWS_SHOWN;
use crate::collect::Collectors;
use crate::failure::Result;
use crate::pass::Needs;
use crate::pass::folded;
use crate::pass::selection::Selection;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;

/// A report: computes rows from a trace, and prints them. Its fields are its options on the command line.
///
/// JSON is the rows that [`Report::compute`] makes; CSV is made of the same. [`Report::screen`] makes text of them, too: what
/// JSON does not need, such as sums for a sentence, is beside the rows, and not serialized.
pub trait Report: clap::Args + 'static {
    /// Handles of its collectors.
    type Handles: 'static;
    /// Rows: plain numbers and texts. Field names are JSON keys.
    type Rows: Serialize + Described + 'static;

    /// The command: `what-if`.
    const NAME: &'static str;
    /// Key in the JSON of `all`.
    const KEY: &'static str = Self::NAME;
    /// Heading in the text of `all`.
    const TITLE: &'static str = Self::NAME;
    /// Description in the list of commands.
    const ABOUT: &'static str;
    /// Version of the rows; raised when the meaning of a key changes.
    const VERSION: u32 = 1;
    /// True if `-l` limits its rows.
    const HAS_LINES: bool = true;
    /// Rows of each table on its screen, unless `-l` says otherwise.
    const ROWS: usize = ROWS_SHOWN;
    /// True if it accounts for memory: refused where the file has fields of a later version of the format.
    const ACCOUNTS: bool = true;
    /// Events that it needs with its default options.
    const RESTS_ON: Input;
    /// Conditions that it supports with its default options.
    const KEYS: Keys = Keys::Slab;
    /// Needs besides its collectors, with its default options.
    const NEEDS: Needs = Needs::empty();

    /// Text behind its options in the help.
    fn details() -> String {
        String::new()
    }

    /// The report with the defaults of a selection for options that are not given.
    fn for_selection(self, _selection: &Selection) -> Self {
        self
    }

    /// Report with default options; `None`: it needs options.
    fn with_defaults() -> Option<Self> {
        let command = Self::augment_args(Command::new(Self::NAME).no_binary_name(true));
        let matches = command.try_get_matches_from([""; 0]).ok()?;
        let report = Self::from_arg_matches(&matches).ok()?;
        Some(report.for_selection(&Selection::default()))
    }

    /// Events that it needs.
    fn rests_on(&self) -> Input {
        Self::RESTS_ON
    }

    /// Conditions that it supports.
    fn keys(&self) -> Keys {
        Self::KEYS
    }

    /// True if it adds lives that are in the file as sums to those of events. Others refuse such a file.
    fn adds_sums(&self) -> bool {
        false
    }

    /// Fails early if the selection is not valid for this report.
    fn check(&self, _context: &Context<'_, '_>) -> Result<()> {
        Ok(())
    }

    /// Needs besides its collectors.
    fn needs(&self) -> Needs {
        Self::NEEDS
    }

    /// Adds its collectors to a pass.
    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles;

    /// Reason to refuse, if any.
    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        context.basis().lacks(self.rests_on())
    }

    /// Rows in place of a refusal, from other sources; `None`: it only refuses.
    fn instead(
        &self,
        _context: &ReportContext<'_, '_>,
        _handles: &Self::Handles,
        _refused: &str,
    ) -> Option<Self::Rows> {
        None
    }

    /// Reason to leave it out of `all`, although it has an answer.
    fn left_out_of_all(_context: &ReportContext<'_, '_>) -> Option<String> {
        None
    }

    /// Reason why rows have no table, if they have none: CSV has only tables.
    fn lacks_table(&self, _rows: &Self::Rows) -> Option<String> {
        None
    }

    /// Computes the rows.
    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> Self::Rows;

    /// The answer for people.
    fn screen(&self, rows: &Self::Rows, view: &View) -> Screen;
}

/// Rows with a schema: docs/json.schema.json is made of it.
#[cfg(test)]
pub trait Described: schemars::JsonSchema {}

#[cfg(test)]
impl<T: schemars::JsonSchema> Described for T {}

/// Rows with a schema: docs/json.schema.json is made of it.
#[cfg(not(test))]
pub trait Described {}

#[cfg(not(test))]
impl<T> Described for T {}

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
    /// See [`Report::ROWS`].
    fn rows_shown(&self) -> usize;
    /// See [`Report::keys`].
    fn keys(&self) -> Keys;
    /// See [`Report::check`].
    fn check(&self, context: &Context<'_, '_>) -> Result<()>;
    /// See [`Report::needs`].
    fn needs(&self) -> Needs;
    /// See [`Report::refuses`].
    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String>;
    /// See [`Report::left_out_of_all`].
    fn left_out_of_all(&self, context: &ReportContext<'_, '_>) -> Option<String>;
    /// Adds its collectors to a pass; returned is the report of the results of that pass.
    fn collect<'r>(&'r self, context: &Context<'_, '_>, collectors: &mut Collectors)
    -> Box<dyn Pending + 'r>;
}

/// A report of any type whose collectors are in a pass. From the results of the pass it has its rows or its screen, or the
/// reason why it refuses.
pub trait Pending {
    /// The rows, to be written in some form.
    fn rows(&self, context: &ReportContext<'_, '_>) -> Refusable<Box<dyn erased_serde::Serialize>>;
    /// The rows as a JSON object in memory: several times what its text takes.
    fn document(&self, context: &ReportContext<'_, '_>) -> Refusable<Map<String, Value>>;
    /// The rows for tables, likewise; refused if they have none.
    fn table(&self, context: &ReportContext<'_, '_>) -> Refusable<Map<String, Value>>;
    /// Screen of the rows.
    fn screen(&self, context: &ReportContext<'_, '_>, view: &View) -> Refusable<Screen>;
}

/// A result of a report, or the reason why it refuses.
pub type Refusable<T> = std::result::Result<T, String>;

impl fmt::Debug for dyn AnyReport + '_ {
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

    fn rows_shown(&self) -> usize {
        R::ROWS
    }

    fn keys(&self) -> Keys {
        Report::keys(self)
    }

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        Report::check(self, context)
    }

    fn needs(&self) -> Needs {
        Report::needs(self)
    }

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        refusal(self, context)
    }

    fn left_out_of_all(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        R::left_out_of_all(context)
    }

    fn collect<'r>(
        &'r self,
        context: &Context<'_, '_>,
        collectors: &mut Collectors,
    ) -> Box<dyn Pending + 'r> {
        Box::new(Collected { report: self, handles: Report::collect(self, context, collectors) })
    }
}

/// Reason why a report has no answer, if there is one.
pub fn refusal<R: Report>(report: &R, context: &ReportContext<'_, '_>) -> Option<String> {
    if context.session.trace.header().folded {
        let reason = if report.adds_sums() {
            folded::needs_events(context.selection)
        } else {
            Some(folded::not_of_sums(R::TITLE))
        };
        if reason.is_some() {
            return reason;
        }
    }
    Report::refuses(report, context)
}

/// A report and the handles of its collectors.
struct Collected<'r, R: Report> {
    report: &'r R,
    handles: R::Handles,
}

impl<R: Report> Collected<'_, R> {
    fn computed(&self, context: &ReportContext<'_, '_>) -> Refusable<R::Rows> {
        match refusal(self.report, context) {
            Some(reason) => self.report.instead(context, &self.handles, &reason).ok_or(reason),
            None => Ok(self.report.compute(context, &self.handles)),
        }
    }
}

impl<R: Report> Pending for Collected<'_, R> {
    fn rows(&self, context: &ReportContext<'_, '_>) -> Refusable<Box<dyn erased_serde::Serialize>> {
        Ok(Box::new(self.computed(context)?))
    }

    fn document(&self, context: &ReportContext<'_, '_>) -> Refusable<Map<String, Value>> {
        Ok(object(&self.computed(context)?))
    }

    fn table(&self, context: &ReportContext<'_, '_>) -> Refusable<Map<String, Value>> {
        let rows = self.computed(context)?;
        self.report.lacks_table(&rows).map_or_else(|| Ok(object(&rows)), Err)
    }

    fn screen(&self, context: &ReportContext<'_, '_>, view: &View) -> Refusable<Screen> {
        Ok(self.report.screen(&self.computed(context)?, view))
    }
}

/// Rows as a JSON object. Not generic: the code of each kind of rows would be compiled once more.
fn object(rows: &dyn erased_serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(rows) {
        Ok(Value::Object(document)) => document,
        // Rows are structs of numbers, texts and lists: they serialize to objects, and without errors.
        _ => Map::new(),
    }
}
