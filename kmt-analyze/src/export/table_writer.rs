//! Rows as CSV and NDJSON.

use std::borrow::Cow;

use kmt_common::text::{escaped, json_safe};
use serde_json::Value;

use super::Format;
use super::output::Export;
use super::rows::{ColumnKind, ExportCell};
use crate::failure::Result;

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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
