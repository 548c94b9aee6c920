//! CSV and NDJSON: of events, objects, call sites, and of the tables of any report.

use std::borrow::Cow;

use kmt_common::tell;
use kmt_common::text::{escaped, json_safe};
use serde_json::{Map, Value};

use super::objects::{Resolver, lives, next};
use super::output::Export;
use super::rows::{CALL_SITE, Cell, Kind, OBJECT, call_sites, object};
use super::{Format, Of, Options, events};
use crate::failure::{Failure, Outcome, Result};
use crate::limits;
use crate::pass::selection::analyse;
use crate::reports::common::Context;
use crate::reports::common::basis::Input;
use crate::reports::run::rows_of;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Writes one table.
pub fn run(session: &Session<'_>, options: &Options) -> Result<Outcome> {
    let out = Export::open(&options.target)?;
    let mut writer = Writer { out, format: options.format, line: String::new() };
    let mut is_cut = false;
    let damages = match &options.of {
        Of::Events => {
            writer.head(&names(&events::EVENT))?;
            events::each(session, &options.selection, &mut |row| writer.row(&events::EVENT, &row))?
        }
        Of::Objects => {
            let mut lives = lives(session, &options.selection, &options.target, Input::SlabAllocs)?;
            let resolver = Resolver::new(session, &lives.result);
            writer.head(&names(&OBJECT))?;
            while let Some(life) = next(&mut lives.objects)? {
                if !writer.row(&OBJECT, &object(&life, &lives.result, &resolver))? {
                    break;
                }
            }
            lives.result.damages
        }
        Of::CallSites => {
            let result = analyse(session, &options.selection);
            let resolver = Resolver::new(session, &result);
            writer.head(&names(&CALL_SITE))?;
            for row in call_sites(&result, &resolver, session.losses.any()) {
                writer.row(&CALL_SITE, &row)?;
            }
            result.damages
        }
        Of::Report(report) => {
            let rows_max = usize::try_from(limits::rows()).unwrap_or(usize::MAX);
            // One more tells whether there are more.
            let limit = rows_max.saturating_add(1);
            let context = Context { session, selection: &options.selection, limit };
            let (analysis, rows) = rows_of(&context, &**report);
            let mut document = rows.map_err(|reason| {
                Failure::new(format!("{}: no {}: {reason}", session.path.display(), report.title()))
            })?;
            is_cut = cut(&mut document, rows_max);
            if is_cut {
                tell!(
                    "warning: {}: {} has more rows: the limit `rows` is {rows_max}",
                    session.path.display(),
                    report.title()
                );
                tell!("hint: {}", limits::REMEDY);
            }
            writer.report(report.title(), &document, options.table.as_deref())?;
            analysis.damages
        }
    };
    writer.out.finish()?;
    Ok(outcome(&session.path, session.trace, &damages, session.losses.any() || is_cut))
}

fn names(columns: &[(&'static str, Kind)]) -> Vec<String> {
    columns.iter().map(|(name, _)| (*name).to_owned()).collect()
}

struct Writer {
    out: Export,
    format: Format,
    line: String,
}

/// A value as CSV or JSON.
fn push(line: &mut String, value: &Cell, is_csv: bool) {
    use std::fmt::Write as _;
    let _ = match value {
        Cell::Null => Ok(()),
        Cell::Int(number) => write!(line, "{number}"),
        Cell::Uint(number) => write!(line, "{number}"),
        Cell::Bool(truth) => write!(line, "{truth}"),
        Cell::Address(address) if is_csv => write!(line, "{address:#x}"),
        Cell::Address(address) => write!(line, "\"{address:#x}\""),
        Cell::Text(text) if is_csv => write!(line, "{}", csv_text(text)),
        Cell::Text(text) if text.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\') => {
            write!(line, "\"{text}\"")
        }
        Cell::Text(text) => write!(line, "{}", json_safe(&Value::String(text.clone()).to_string())),
    };
}

impl Writer {
    fn head(&mut self, names: &[String]) -> Result<bool> {
        match self.format {
            Format::Csv => {
                let line: Vec<String> =
                    names.iter().map(|name| quoted(&escaped(name.as_bytes())).into_owned()).collect();
                self.out.write(format!("{}\r\n", line.join(",")).as_bytes())
            }
            _ => Ok(true),
        }
    }

    fn row(&mut self, columns: &[(&'static str, Kind)], row: &[Cell]) -> Result<bool> {
        let line = &mut self.line;
        line.clear();
        let is_csv = self.format == Format::Csv;
        line.push_str(if is_csv { "" } else { "{" });
        let mut is_first = true;
        for ((name, _), value) in columns.iter().zip(row) {
            // A key without a value says nothing; a column has to be there.
            if !is_csv && *value == Cell::Null {
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

    fn values(&mut self, names: &[String], values: &[Value]) -> Result<bool> {
        let line = match self.format {
            Format::Csv => {
                let cells: Vec<String> = values.iter().map(cell).collect();
                format!("{}\r\n", cells.join(","))
            }
            _ => {
                let object: Map<String, Value> = names.iter().cloned().zip(values.iter().cloned()).collect();
                format!("{}\n", json_safe(&Value::Object(object).to_string()))
            }
        };
        self.out.write(line.as_bytes())
    }

    /// The tables of a report: one as CSV, all of them as NDJSON, each row with the name of its table.
    fn report(&mut self, title: &str, document: &Map<String, Value>, wanted: Option<&str>) -> Result<()> {
        let mut tables = Vec::new();
        find(document, "", &mut tables);
        // Values that are in no table are one of their own.
        let mut single = Map::new();
        flatten(document, "", &mut single);
        if !single.is_empty() {
            tables.push(("totals".to_owned(), vec![single]));
        }
        let list = || tables.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        if let Some(name) = wanted.filter(|name| tables.iter().all(|(n, _)| n != name)) {
            return Err(Failure::new(format!("{title} has no table {name:?}"))
                .hint(format!("--table takes one of: {}", list())));
        }
        if self.format == Format::Csv {
            let main = || tables.iter().filter(|(n, _)| n != "totals").max_by_key(|(_, rows)| rows.len());
            let found = match wanted {
                Some(name) => tables.iter().find(|(n, _)| n == name),
                None => main().or(tables.first()),
            };
            let Some((name, rows)) = found else { return Ok(()) };
            if wanted.is_none() && tables.len() > 1 {
                tell!("note: table {name} of {title}; --table NAME gives another: {}", list());
            }
            let columns = columns(rows);
            self.head(&columns)?;
            for row in rows {
                let values: Vec<Value> =
                    columns.iter().map(|c| row.get(c).cloned().unwrap_or(Value::Null)).collect();
                self.values(&columns, &values)?;
            }
            return Ok(());
        }
        for (name, rows) in tables.iter().filter(|(n, _)| wanted.is_none_or(|w| w == n)) {
            for row in rows {
                let mut whole = Map::new();
                whole.insert("table".to_owned(), name.as_str().into());
                whole.extend(row.clone());
                self.out.write(format!("{}\n", json_safe(&Value::Object(whole).to_string())).as_bytes())?;
            }
        }
        Ok(())
    }
}

/// Cuts tables to that many rows; whether there were more.
fn cut(document: &mut Map<String, Value>, rows_max: usize) -> bool {
    document.iter_mut().fold(false, |is_cut, (_, value)| match value {
        Value::Object(inner) => cut(inner, rows_max) || is_cut,
        Value::Array(items) if items.len() > rows_max && items.iter().any(Value::is_object) => {
            items.truncate(rows_max);
            true
        }
        _ => is_cut,
    })
}

/// All arrays of objects, by their path, with their rows made flat.
fn find(document: &Map<String, Value>, path: &str, out: &mut Vec<(String, Vec<Map<String, Value>>)>) {
    for (key, value) in document {
        let path = join(path, key);
        match value {
            Value::Object(inner) => find(inner, &path, out),
            Value::Array(items) if items.iter().any(Value::is_object) => {
                let flat = |item: &Value| {
                    let mut row = Map::new();
                    if let Value::Object(object) = item {
                        flatten(object, "", &mut row);
                        // Tables inside of rows stay what they are.
                        for (key, value) in object.iter().filter(|(_, v)| v.is_array()) {
                            row.insert(key.clone(), value.to_string().into());
                        }
                    }
                    row
                };
                out.push((path, items.iter().map(flat).collect()));
            }
            _ => {}
        }
    }
}

/// All that is no array, with dots between the keys.
fn flatten(object: &Map<String, Value>, path: &str, out: &mut Map<String, Value>) {
    for (key, value) in object {
        let path = join(path, key);
        match value {
            Value::Object(inner) => flatten(inner, &path, out),
            Value::Array(_) => {}
            value => drop(out.insert(path, value.clone())),
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// Columns of all rows, in the order in which they come up.
fn columns(rows: &[Map<String, Value>]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for key in rows.iter().flat_map(Map::keys) {
        if !columns.contains(key) {
            columns.push(key.clone());
        }
    }
    columns
}

/// A value as CSV (RFC 4180).
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => csv_text(&escaped(text.as_bytes())).into_owned(),
        other => other.to_string(),
    }
}

/// Text that a spreadsheet would run as a formula gets an apostrophe.
fn csv_text(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
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
        assert_eq!(cell(&json!("a,\"b\"")), "\"a,\"\"b\"\"\"");
        assert_eq!((cell(&json!(-3)), cell(&Value::Null)), ("-3".to_owned(), String::new()));
    }

    #[test]
    fn tables_are_found_and_made_flat() {
        let document = json!({"a": {"rows": [{"x": 1, "y": {"z": 2}}, {"w": [1]}]}, "b": 3, "c": [1, 2]});
        let Value::Object(document) = document else { unreachable!() };
        let mut tables = Vec::new();
        find(&document, "", &mut tables);
        assert_eq!(tables.len(), 1);
        let (name, rows) = &tables[0];
        assert_eq!((name.as_str(), rows.len()), ("a.rows", 2));
        assert_eq!(columns(rows), ["x", "y.z", "w"]);
    }
}
