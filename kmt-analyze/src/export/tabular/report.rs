//! Tables of reports as CSV and NDJSON.
//!
//! The document of a report is searched for arrays of objects: each is a table, and values outside of them are the
//! table `totals`. Columns of tables without rows are in `columns`, so that a reader finds the same columns in every
//! file. CSV has one table, NDJSON may have all, with the name of the table in each row.

use std::collections::HashMap;

use kmt_common::tell;
use kmt_common::text::json_safe;
use serde_json::{Map, Value};

use super::Writer;
use super::columns::{self, TableColumns};
use crate::env::Env;
use crate::export::output::Export;
use crate::export::{Format, Target};
use crate::failure::{Failure, Outcome, Result};
use crate::limits;
use crate::pass::selection::Selection;
use crate::render::out::cut;
use crate::reports::column_order::ColumnOrder;
use crate::reports::common::stated::Stated;
use crate::reports::common::{Context, ReportContext, trust};
use crate::reports::report::AnyReport;
use crate::reports::run::table_of;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Name of the table of values outside of tables.
const TOTALS: &str = "totals";
/// Last part of the name of the table of `--by`.
const GROUPS: &str = "groups";

/// Columns of the tables of a report, by the path of the table.
type KnownTables = HashMap<&'static str, TableColumns>;
/// A table, by its path, with flat rows.
type FoundTable = (String, Vec<Map<String, Value>>);

/// A table of a report.
#[derive(Debug, Clone, Copy)]
pub struct ReportTable<'r> {
    pub report: &'r dyn AnyReport,
    /// Name of the table, or its last part; `None`: that of --by, that of the report's name, or the largest.
    pub name: Option<&'r str>,
    /// At most this many rows. `None`: up to the limit `rows`, and a table that is cut is reported.
    pub lines: Option<usize>,
    /// Order of the rows.
    pub order: &'r ColumnOrder,
}

/// Prints a table of a report as CSV.
pub fn csv(session: &Session<'_>, selection: &Selection, table: &ReportTable<'_>) -> Result<Outcome> {
    selection.check(session, table.report.title(), table.report.keys())?;
    let out = Export::open(&Target { path: "-".into(), force: false }, &session.env)?;
    table.write(session, selection, Writer::new(out, Format::Csv))
}

/// Prints the table `name` of rows without a trace as CSV; `empty`: columns of a table without rows.
pub fn csv_of_rows(
    env: &Env,
    title: &str,
    rows: &dyn erased_serde::Serialize,
    (name, empty): (&str, &[&str]),
) -> Result<()> {
    let made = serde_json::to_value(rows).map_err(|e| Failure::new(format!("making CSV: {e}")))?;
    let Value::Object(document) = made else { return Ok(()) };
    let out = Export::open(&Target { path: "-".into(), force: false }, env)?;
    let mut writer = Writer::new(out, Format::Csv);
    match document.get(name) {
        Some(Value::Array(rows)) if rows.is_empty() => {
            writer.head(&empty.iter().map(|&column| column.to_owned()).collect::<Vec<_>>())?;
        }
        _ => write(&mut writer, (title, name), &document, (Some(name), &HashMap::new()))?,
    }
    writer.out.finish()
}

impl ReportTable<'_> {
    /// Writes a table of a report over one pass.
    pub fn write(&self, session: &Session<'_>, selection: &Selection, mut writer: Writer) -> Result<Outcome> {
        let title = self.report.title();
        let most = usize::try_from(session.env.limits.rows).unwrap_or(usize::MAX);
        // One more row shows that the table is cut; all rows are sorted.
        let all = most.saturating_add(1).max(self.lines.unwrap_or(0));
        let limit = self.lines.filter(|_| self.order.is_empty()).unwrap_or(all);
        let context = Context { session, selection, limit };
        self.report.check(&context)?;
        let (analysis, rows) = table_of(&context, self.report);
        let analysed = ReportContext::new(&context, &analysis);
        trust::report(&analysed);
        let mut document = match rows {
            Ok(document) => document,
            Err(reason) => {
                self.write_head(&mut writer)?;
                writer.out.finish()?;
                return Err(Failure::new(format!("{}: no {title}: {reason}", session.path.display())));
            }
        };
        if !self.order.is_empty() {
            let whole = document.clone();
            self.order.sort_document(&mut document, whole)?;
        }
        let rows_max = self.lines.unwrap_or(most);
        let cuts = document.iter_mut().fold(false, |is_cut, (_, value)| cut(value, rows_max) || is_cut);
        let is_cut = cuts && self.lines.is_none();
        if is_cut {
            tell!("warning: {}: {title} has more rows: the limit `rows` is {most}", session.path.display());
            tell!("hint: {}", limits::REMEDY);
        }
        let known = columns::of_report(self.report.name());
        write(&mut writer, (title, self.report.name()), &document, (self.name, &known))?;
        writer.out.finish()?;
        Stated::of(&analysed).iter().for_each(Stated::report_nothing);
        let outcome = outcome(session, &analysis.faults);
        Ok(if is_cut { Outcome::Incomplete } else { outcome })
    }
}

impl ReportTable<'_> {
    /// Writes the columns alone, as CSV, of a report that has no answer: its readers expect them.
    fn write_head(&self, writer: &mut Writer) -> Result<()> {
        let report = self.report.name();
        // Groups are there with `--by` only.
        let names = columns::names(report);
        let names =
            names.into_iter().filter(|name| self.name.is_some() || name.rsplit('.').next() != Some(GROUPS));
        let tables: Vec<FoundTable> = names.map(|name| (name.to_owned(), Vec::new())).collect();
        let found = match self.name {
            Some(name) => named_table(&tables, name),
            None => main_table(&tables, report),
        };
        let known = columns::of_report(report);
        match found.and_then(|(name, _)| known.get(name.as_str())).filter(|_| writer.format == Format::Csv) {
            Some(columns) => writer.head(&columns.with(&[], &[])).map(|_| ()),
            None => Ok(()),
        }
    }
}

/// Writes a table of a report; as NDJSON each row has the name of its table. `known`: columns of its tables.
fn write(
    writer: &mut Writer,
    (title, report): (&str, &str),
    document: &Map<String, Value>,
    (wanted, known): (Option<&str>, &KnownTables),
) -> Result<()> {
    let mut tables = Vec::new();
    find(document, "", known, &mut tables);
    // Values outside of tables are a table of their own.
    let mut single = Map::new();
    flatten(document, "", &mut single);
    if !single.is_empty() {
        tables.push((TOTALS.to_owned(), vec![single]));
    }
    let list = || tables.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let found = match wanted {
        Some(name) => named_table(&tables, name),
        None => main_table(&tables, report),
    };
    let Some((name, rows)) = found else {
        return match wanted {
            Some(name) => Err(Failure::new(format!("{title} has no table {name:?}"))
                .hint(format!("--table takes one of: {}", list()))
                .usage()),
            None => Ok(()),
        };
    };
    if wanted.is_none() && tables.len() > 1 {
        tell!("note: table {name} of {title}; --table NAME gives another: {}", list());
    }
    if writer.format == Format::Csv {
        let none = TableColumns::default();
        let columns = known.get(name.as_str()).unwrap_or(&none).with(&keys_of(document, name), rows);
        writer.head(&columns)?;
        for row in rows {
            writer.values(columns.iter().map(|column| row.get(column).unwrap_or(&Value::Null)))?;
        }
        return Ok(());
    }
    for row in rows {
        let mut whole = Map::new();
        whole.insert("table".to_owned(), name.as_str().into());
        whole.extend(row.clone());
        writer.out.write(format!("{}\n", json_safe(&Value::Object(whole).to_string())).as_bytes())?;
    }
    Ok(())
}

/// The table of a path, or the first one of which it is the last part.
fn named_table<'t>(tables: &'t [FoundTable], name: &str) -> Option<&'t FoundTable> {
    let is_last = |table: &&FoundTable| table.0.rsplit('.').next() == Some(name);
    tables.iter().find(|table| table.0 == name).or_else(|| tables.iter().find(is_last))
}

/// Tables of reports that have none of their name, and several: the first that has rows, or else the first. They have the same
/// columns, which do not depend on the file.
const MAIN: [(&str, &[&str]); 2] =
    [("leaks", &["leaks.callers", "leaks.page_callers", "leaks.pages"]), ("waste", &["waste.places"])];

/// The table without `--table`: that of `--by`, that with the report's name, that of [`MAIN`], or the largest; if none has
/// rows, the first.
fn main_table<'t>(tables: &'t [FoundTable], report: &str) -> Option<&'t FoundTable> {
    let grouped = tables.iter().find(|(name, _)| name.rsplit('.').next() == Some(GROUPS));
    let main = MAIN.iter().find(|(of, _)| *of == report).map_or(&[][..], |(_, names)| *names);
    let mut main = main.iter().filter_map(|name| tables.iter().find(|table| table.0 == *name));
    let main = main.clone().find(|(_, rows)| !rows.is_empty()).or_else(|| main.next());
    let others = || tables.iter().filter(|(name, _)| name != TOTALS);
    let largest = || others().filter(|(_, rows)| !rows.is_empty()).max_by_key(|(_, rows)| rows.len());
    grouped
        .or_else(|| tables.iter().find(|table| table.0 == report))
        .or(main)
        .or_else(largest)
        .or_else(|| others().next())
        .or(tables.first())
}

/// Keys of `--by`, if the table has its groups.
fn keys_of(document: &Map<String, Value>, table: &str) -> Vec<String> {
    let Some(path) = table.strip_suffix(GROUPS).filter(|path| path.is_empty() || path.ends_with('.')) else {
        return Vec::new();
    };
    let mut steps = path.split('.').filter(|step| !step.is_empty());
    let parent = steps.try_fold(document, |object, step| object.get(step)?.as_object());
    let keys = parent.and_then(|parent| parent.get("by")?.as_array());
    keys.into_iter().flatten().filter_map(|key| key.as_str().map(str::to_owned)).collect()
}

/// Finds all arrays of objects, by their path, with flattened rows, and those without rows that are known.
fn find(document: &Map<String, Value>, path: &str, known: &KnownTables, out: &mut Vec<FoundTable>) {
    for (key, value) in document {
        let path = join(path, key);
        match value {
            Value::Object(inner) => find(inner, &path, known, out),
            Value::Array(items)
                if items.iter().any(Value::is_object)
                    || items.is_empty() && known.contains_key(path.as_str()) =>
            {
                let flat = |item: &Value| {
                    let mut row = Map::new();
                    if let Value::Object(object) = item {
                        flatten(object, "", &mut row);
                        // Tables in rows stay arrays.
                        let is_table = |(key, value): &(&String, &Value)| value.is_array() && !is_range(key);
                        for (key, value) in object.iter().filter(is_table) {
                            row.insert(key.clone(), value.to_string().into());
                        }
                    }
                    row
                };
                let of_steps = columns::by_step(&path, document, items);
                let rows = of_steps.as_ref().unwrap_or(items);
                out.push((path, rows.iter().map(flat).collect()));
            }
            _ => {}
        }
    }
}

/// True for a number that is known within bounds: at least, at most.
pub(super) fn is_range(path: &str) -> bool {
    path.ends_with("_range") || path.split('.').rev().nth(1) == Some("ranges")
}

/// All values except tables, with dots between the keys; of a range both ends.
fn flatten(object: &Map<String, Value>, path: &str, out: &mut Map<String, Value>) {
    for (key, value) in object {
        let path = join(path, key);
        match value {
            Value::Array(_) | Value::Null if is_range(&path) => {
                for (at, end) in ["low", "high"].into_iter().enumerate() {
                    out.insert(join(&path, end), value.get(at).cloned().unwrap_or_default());
                }
            }
            Value::Object(inner) => flatten(inner, &path, out),
            Value::Array(_) => {}
            value => drop(out.insert(path, value.clone())),
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn columns(rows: &[Map<String, Value>]) -> Vec<String> {
        TableColumns::default().with(&[], rows)
    }

    #[test]
    fn a_table_has_its_path_or_the_last_part_of_it() {
        let tables = ["callers", "leaks.callers", "leaks.families"].map(|name| (name.to_owned(), Vec::new()));
        let found = |name| named_table(&tables, name).map(|table| table.0.as_str());
        assert_eq!(found("families"), Some("leaks.families"));
        assert_eq!((found("callers"), found("leaks.callers")), (Some("callers"), Some("leaks.callers")));
        assert_eq!((found("leaks"), found("amilies")), (None, None));
        let most = [("uses".to_owned(), vec![Map::new()]), ("findings".to_owned(), Vec::new())];
        assert_eq!(main_table(&most, "findings").unwrap().0, "findings");
        assert_eq!(main_table(&most, "other").unwrap().0, "uses");
        let leaks = |callers: usize, pages: usize| {
            let rows = |number: usize| vec![Map::new(); number];
            let tables =
                [("leaks.pages".to_owned(), rows(pages)), ("leaks.callers".to_owned(), rows(callers))];
            main_table(&tables, "leaks").unwrap().0.clone()
        };
        assert_eq!([leaks(1, 2), leaks(0, 0)], ["leaks.callers", "leaks.callers"]);
        assert_eq!(leaks(0, 1), "leaks.pages", "a recording of pages alone");
    }

    #[test]
    fn tables_are_found_and_made_flat() {
        let document = json!({"a": {"rows": [{"x": 1, "y": {"z": 2}}, {"w": [1]}]}, "b": 3, "c": [1, 2]});
        let Value::Object(document) = document else { unreachable!() };
        let mut tables = Vec::new();
        find(&document, "", &HashMap::new(), &mut tables);
        assert_eq!(tables.len(), 1);
        let (name, rows) = &tables[0];
        assert_eq!((name.as_str(), rows.len()), ("a.rows", 2));
        assert_eq!(columns(rows), ["x", "y.z", "w"]);
    }

    #[test]
    fn a_table_by_step_has_a_row_for_each_step() {
        let document = json!({"timeline": {"start": 100, "step": 10, "steps": 2, "lost_percent": [null, 50.0], "lines": [
            {"name": "cache", "bytes_live": [1, 2], "bytes_live_least": null},
            {"name": "pages", "bytes_live": [3, 4], "bytes_live_least": null},
        ]}});
        let Value::Object(document) = document else { unreachable!() };
        let mut tables = Vec::new();
        find(&document, "", &HashMap::new(), &mut tables);
        let (name, rows) = &tables[0];
        assert_eq!((name.as_str(), rows.len()), ("timeline.lines", 4));
        let row = json!({"step": 1, "until": 120, "lost_percent": 50.0, "name": "cache", "bytes_live": 2, "bytes_live_least": null});
        assert_eq!(Value::Object(rows[1].clone()), row);
        let columns = columns::of_report("timeline")["timeline.lines"].with(&[], &[]);
        assert_eq!(columns[..4], ["name", "step", "until", "lost_percent"]);
    }

    #[test]
    fn names_come_first_and_ranges_are_two_columns() {
        let document = json!({"rows": [
            {"allocs": 3, "live_range": [1, 2], "sums": {"bytes_live_range": null}, "symbol": "kfree+0x1/0x2", "by_step": [1, 2]},
            {"allocs": 4, "live_range": null, "symbol": null, "api": "kmalloc", "sums": {"ranges": {"allocs": [4, 9]}}},
        ]});
        let Value::Object(document) = document else { unreachable!() };
        let mut tables = Vec::new();
        find(&document, "", &HashMap::new(), &mut tables);
        let rows = &tables[0].1;
        let names = ["symbol", "api"];
        let ranges =
            ["live_range.low", "live_range.high", "sums.bytes_live_range.low", "sums.bytes_live_range.high"];
        let found = columns(rows);
        assert_eq!(found[..2], names);
        for name in ranges.iter().chain(&["allocs", "by_step", "sums.ranges.allocs.low"]) {
            assert!(found.contains(&(*name).to_owned()), "{name}: {found:?}");
        }
        assert!(!found.iter().any(|name| name == "live_range"), "{found:?}");
        assert_eq!((&rows[0]["live_range.high"], &rows[1]["live_range.high"]), (&json!(2), &Value::Null));
        assert_eq!(rows[1]["sums.ranges.allocs.high"], json!(9));
    }
}
