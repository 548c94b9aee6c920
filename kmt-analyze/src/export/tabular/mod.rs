//! CSV and NDJSON of events, objects, call sites, and of the tables of any report.
//!
//! Values of rows have few types ([`ExportCell`]); the writer makes text of them. SQLite and Parquet take the same rows.

mod columns;
pub(super) mod event;
pub(super) mod object;
pub(super) mod report;

use std::borrow::Cow;

use kmt_common::text::{escaped, json_safe};
use serde_json::Value;

use self::object::{CALL_SITE, OBJECT, Resolver, call_sites, lives, next, object};
use super::output::Export;
use super::{ExportOf, ExportOptions, Format, ReportTable, report_trust};
use crate::collect::Collectors;
use crate::failure::{Outcome, Result};
use crate::pass::{self, Needs, Request};
use crate::reports::column_order::ColumnOrder;
use crate::reports::common::basis::Input;
use crate::reports::common::trust;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Writes one table.
pub fn run(session: &Session<'_>, options: &ExportOptions, of: &ExportOf) -> Result<Outcome> {
    let out = Export::open(&options.target(), &session.env)?;
    let mut writer = Writer::new(out, options.format);
    let mut left = RowsLeft(options.rows_max());
    let faults = match of {
        ExportOf::Events => {
            trust::report_of_recording(session, &options.selection);
            writer.head(&names(&event::EVENT))?;
            let mut write =
                |row: Vec<ExportCell>| Ok(left.take() && writer.row(&event::EVENT, &row)? && left.0 > 0);
            event::each(session, &options.selection, &mut write)?
        }
        ExportOf::Objects => {
            let mut lives = lives(session, &options.selection, &options.target(), Input::SlabAllocs)?;
            report_trust(session, &options.selection, &lives.result);
            let resolver = Resolver::new(session, &lives.result);
            writer.head(&names(&OBJECT))?;
            while let Some(life) = next(&mut lives.objects)? {
                if !left.take() || !writer.row(&OBJECT, &object(&life, &lives.result, &resolver))? {
                    break;
                }
            }
            lives.result.faults
        }
        ExportOf::CallSites => {
            let collectors = Collectors::default();
            let request = Request::new(&options.selection, &collectors).with(Needs::CACHE_NAMES);
            let result = pass::run(session, &request);
            report_trust(session, &options.selection, &result);
            let resolver = Resolver::new(session, &result);
            writer.head(&names(&CALL_SITE))?;
            for row in call_sites(&result, &resolver, session.losses.any()).into_iter().take(left.0) {
                writer.row(&CALL_SITE, &row)?;
            }
            result.faults
        }
        ExportOf::Report(report) => {
            let table = ReportTable {
                report: &**report,
                name: options.table.as_deref(),
                lines: options.lines,
                order: &ColumnOrder::default(),
            };
            return table.write(session, &options.selection, writer);
        }
    };
    writer.out.finish()?;
    Ok(outcome(session, &faults))
}

fn names(columns: &[(&'static str, ColumnKind)]) -> Vec<String> {
    columns.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// Writes rows as CSV or NDJSON.
pub struct Writer {
    /// Output.
    pub out: Export,
    /// Csv or ndjson.
    pub format: Format,
    line: String,
}

/// Appends a value as CSV or JSON.
fn push(line: &mut String, value: &ExportCell, is_csv: bool) {
    use std::fmt::Write as _;
    let _ = match value {
        ExportCell::Null => Ok(()),
        ExportCell::Int(number) => write!(line, "{number}"),
        ExportCell::Uint(number) => write!(line, "{number}"),
        ExportCell::Bool(truth) => write!(line, "{truth}"),
        ExportCell::Address(address) if is_csv => write!(line, "{address:#x}"),
        ExportCell::Address(address) => write!(line, "\"{address:#x}\""),
        ExportCell::Text(text) if is_csv => write!(line, "{}", csv_text(text)),
        ExportCell::Text(text)
            if text.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\') =>
        {
            write!(line, "\"{text}\"")
        }
        ExportCell::Text(text) => write!(line, "{}", json_safe(&Value::String(text.clone()).to_string())),
    };
}

impl Writer {
    /// No row yet.
    pub fn new(out: Export, format: Format) -> Self {
        Self { out, format, line: String::new() }
    }

    /// Writes the names of columns, if the format has them.
    pub fn head(&mut self, names: &[String]) -> Result<bool> {
        match self.format {
            Format::Csv => {
                let line: Vec<String> =
                    names.iter().map(|name| quoted(&escaped(name.as_bytes())).into_owned()).collect();
                self.out.write(format!("{}\r\n", line.join(",")).as_bytes())
            }
            _ => Ok(true),
        }
    }

    /// Writes a row; false if the reader is gone.
    pub fn row(&mut self, columns: &[(&'static str, ColumnKind)], row: &[ExportCell]) -> Result<bool> {
        let line = &mut self.line;
        line.clear();
        let is_csv = self.format == Format::Csv;
        line.push_str(if is_csv { "" } else { "{" });
        let mut is_first = true;
        for ((name, _), value) in columns.iter().zip(row) {
            // NDJSON leaves out empty values; CSV needs every column.
            if !is_csv && *value == ExportCell::Null {
                continue;
            }
            if !is_first {
                line.push(',');
            }
            is_first = false;
            if !is_csv {
                line.push('"');
                line.push_str(name);
                line.push_str("\":");
            }
            push(line, value, is_csv);
        }
        line.push_str(if is_csv { "\r\n" } else { "}\n" });
        self.out.write(self.line.as_bytes())
    }

    /// Writes a row of CSV.
    pub fn values<'v>(&mut self, values: impl Iterator<Item = &'v Value>) -> Result<bool> {
        let cells: Vec<String> = values.map(cell).collect();
        self.out.write(format!("{}\r\n", cells.join(",")).as_bytes())
    }
}

/// A value as CSV (RFC 4180).
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => csv_text(&escaped(text.as_bytes())).into_owned(),
        other => other.to_string(),
    }
}

/// First characters of a formula, also in their full width, which some spreadsheets read alike.
const FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

/// Text that a spreadsheet would run as a formula gets an apostrophe.
fn csv_text(text: &str) -> Cow<'_, str> {
    if text.starts_with(FORMULA) {
        return Cow::Owned(quoted(&format!("'{text}")).into_owned());
    }
    quoted(text)
}

fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum ExportCell {
    /// No value.
    Null,
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    Address(u64),
    /// True or false.
    Bool(bool),
    Text(String),
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// [`ExportCell::Int`].
    Int,
    /// [`ExportCell::Uint`].
    Uint,
    /// [`ExportCell::Address`].
    Address,
    /// [`ExportCell::Bool`].
    Bool,
    /// [`ExportCell::Text`].
    Text,
}

impl ExportCell {
    /// A text, or null if it is empty.
    pub fn text(text: &str) -> Self {
        if text.is_empty() { Self::Null } else { Self::Text(text.to_owned()) }
    }
}

/// Rows that `-l` leaves.
#[derive(Debug)]
pub struct RowsLeft(pub usize);

impl RowsLeft {
    /// Takes a row; false if none is left.
    pub fn take(&mut self) -> bool {
        let is_left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        is_left
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hostile_text_is_tamed() {
        assert_eq!(cell(&json!("=1+1")), "'=1+1");
        for text in ["＝1", "＋1", "－1", "＠SUM(1)"] {
            assert_eq!(cell(&json!(text)), format!("'{text}"));
        }
        assert_eq!(cell(&json!("a,\"b\"")), "\"a,\"\"b\"\"\"");
        assert_eq!((cell(&json!(-3)), cell(&Value::Null)), ("-3".to_owned(), String::new()));
    }
}
