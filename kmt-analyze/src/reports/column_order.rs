//! `--sort` of the reports that have no keys of their own: a column by its heading, or a key of JSON. Names of
//! [`SortKey`] are those of its columns in every report, on screens and in documents.
//!
//! A report makes its rows twice: as it always does, and all of them. Tables that have the column get the first rows by it,
//! as many as before; sentences and other tables stay.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use crate::failure::{Failure, Result};
use crate::render::screen::{Cell, Screen, ScreenPart, Table};
use crate::reports::common::sorting::SortKey;
use crate::sort_rows::SortRows;

/// Columns that sort, the most important first; none: the report's own order.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct ColumnOrder {
    /// Sort tables by these columns: headings, with _ for blanks, or keys of docs/json.md. The largest number is the
    /// first, names are in alphabetical order
    #[arg(id = "sort", short, long = "sort", value_name = "COLUMN", value_delimiter = ',')]
    columns: Vec<String>,
}

impl ColumnOrder {
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Sorts the tables of a screen; `whole` is the same screen with all rows.
    pub fn sort_screen(&self, screen: &mut Screen, whole: Screen) -> Result<()> {
        let tables = screen.parts.iter_mut().filter_map(table_of);
        let mut all: Vec<Table> = whole.parts.into_iter().filter_map(into_table).collect();
        let (mut headings, mut is_found) = (Vec::new(), false);
        for table in tables {
            let of = |other: &Table| other.title == table.title && heading(other, 0) == heading(table, 0);
            let with_all = all.iter().position(of).map(|at| all.remove(at));
            headings.extend(table.columns.iter().map(|column| key_of(column.heading)));
            let rows_max = table.rows.len();
            let mut sorted = with_all.unwrap_or_default();
            let columns: Vec<usize> = self.columns.iter().filter_map(|key| place(&sorted, key)).collect();
            if columns.len() < self.columns.len() {
                continue;
            }
            is_found = true;
            let cell = |row: &Vec<Cell>, at: usize| row.get(at).cloned().unwrap_or(Cell::Empty);
            sorted.rows.sort_rows_by(|a, b| {
                let orders = columns.iter().map(|&at| by_cell(&cell(a, at), &cell(b, at)));
                orders.reduce(Ordering::then).unwrap_or(Ordering::Equal)
            });
            sorted.rows.truncate(rows_max);
            (table.rows, table.columns) = (sorted.rows, sorted.columns);
            for &at in &columns {
                table.keep(at);
            }
        }
        self.refuse_unless(is_found || headings.is_empty(), headings)
    }

    /// Sorts the tables of a document; `whole` is the same document with all rows.
    pub fn sort_document(&self, document: &mut Map<String, Value>, whole: Map<String, Value>) -> Result<()> {
        let (mut keys, mut is_found) = (Vec::new(), false);
        self.sort_tables(document, whole, &mut |row| {
            let has_all = self.columns.iter().all(|key| column_at(row, key).is_some());
            is_found |= has_all;
            names(row, "", &mut keys);
            has_all
        });
        self.refuse_unless(is_found || keys.is_empty(), keys)
    }

    fn sort_tables(
        &self,
        document: &mut Map<String, Value>,
        whole: Map<String, Value>,
        is_sorted: &mut impl FnMut(&Map<String, Value>) -> bool,
    ) {
        for (key, mut all) in whole {
            match (document.get_mut(&key), &mut all) {
                (Some(Value::Object(part)), Value::Object(all)) => {
                    self.sort_tables(part, std::mem::take(all), is_sorted);
                }
                (Some(Value::Array(part)), Value::Array(all)) => {
                    let first = all.iter().find_map(Value::as_object);
                    if first.is_some_and(&mut *is_sorted) {
                        all.sort_rows_by(|a, b| self.by_values(a, b));
                        all.truncate(part.len());
                        *part = std::mem::take(all);
                    }
                }
                _ => {}
            }
        }
    }

    fn by_values(&self, a: &Value, b: &Value) -> Ordering {
        let value = |row: &Value, key: &str| row.as_object().and_then(|row| column_at(row, key).cloned());
        let orders = self.columns.iter().map(|key| by_value(value(a, key), value(b, key)));
        orders.reduce(Ordering::then).unwrap_or(Ordering::Equal)
    }

    fn refuse_unless(&self, is_fine: bool, mut names: Vec<String>) -> Result<()> {
        if is_fine {
            return Ok(());
        }
        let mut seen = std::collections::HashSet::new();
        names.retain(|name| !name.is_empty() && seen.insert(name.clone()));
        Err(Failure::new(format!("--sort: no table here has {}", self.columns.join(", ")))
            .hint(format!("--sort takes {}", names.join(", "))))
    }
}

fn table_of(part: &mut ScreenPart) -> Option<&mut Table> {
    if let ScreenPart::Table(table) = part { Some(table) } else { None }
}

fn into_table(part: ScreenPart) -> Option<Table> {
    if let ScreenPart::Table(table) = part { Some(table) } else { None }
}

fn heading(table: &Table, at: usize) -> &str {
    table.columns.get(at).map_or("", |column| column.heading)
}

/// A heading as an option takes it: `waste %` is waste_percent.
fn key_of(heading: &str) -> String {
    heading.to_lowercase().replace('%', "percent").replace([' ', '-'], "_")
}

fn place(table: &Table, key: &str) -> Option<usize> {
    let key = key_of(key);
    let named = |name: &str| table.columns.iter().position(|column| key_of(column.heading) == name);
    named(&key).or_else(|| named(&SortKey::named(&key)?.name()))
}

/// The largest number first, then texts by the alphabet, then what is unknown.
fn by_cell(a: &Cell, b: &Cell) -> Ordering {
    match (a.number(), b.number()) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => (a.is_unknown(), a.name()).cmp(&(b.is_unknown(), b.name())),
    }
}

fn by_value(a: Option<Value>, b: Option<Value>) -> Ordering {
    let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_f64);
    match (number(&a), number(&b)) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => {
            let text = |value: &Option<Value>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
            let (a, b) = (text(&a), text(&b));
            a.is_none().cmp(&b.is_none()).then(a.cmp(&b))
        }
    }
}

/// The value of a column: of a name that all reports have, else under a key.
fn column_at<'v>(row: &'v Map<String, Value>, column: &str) -> Option<&'v Value> {
    let named = SortKey::named(column).filter(|key| key.name() == column);
    let keys = named.map_or(Vec::new(), SortKey::json_keys);
    let of_survivors =
        named.filter(|_| row.contains_key("survivors")).map_or(&[][..], SortKey::keys_of_survivors);
    let own = || of_survivors.iter().find_map(|key| value_at(row, key));
    keys.iter().find_map(|key| value_at(row, key)).or_else(own).or_else(|| value_at(row, column))
}

/// The value under a key; those of values in values have dots.
fn value_at<'v>(row: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    match row.get(key) {
        Some(value) => Some(value),
        None => {
            let (first, rest) = key.split_once('.')?;
            value_at(row.get(first)?.as_object()?, rest)
        }
    }
}

/// All keys of a row under which no table stands.
fn names(row: &Map<String, Value>, path: &str, out: &mut Vec<String>) {
    for (key, value) in row {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match value {
            Value::Object(inner) => names(inner, &path, out),
            Value::Array(_) => {}
            _ => out.push(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::screen::Column;

    fn order(columns: &[&str]) -> ColumnOrder {
        ColumnOrder { columns: columns.iter().map(|&column| column.to_owned()).collect() }
    }

    fn screen(rows: &[(&str, Cell)]) -> Screen {
        let mut screen = Screen::default();
        let table = Table::of_rows("sites", rows.to_vec())
            .column(Column::name("call site"), |row| Cell::text(row.0))
            .column(Column::number("waste %").leaves(3), |row| row.1.clone());
        screen.table(table);
        screen
    }

    fn names_of(screen: &Screen) -> Vec<String> {
        let ScreenPart::Table(table) = &screen.parts[0] else { panic!() };
        table.rows.iter().map(|row| row[0].name().to_owned()).collect()
    }

    #[test]
    fn a_table_has_the_first_of_all_rows() {
        let all = [
            ("b", Cell::Percent(1.0)),
            ("a", Cell::Unknown),
            ("d", Cell::Percent(1.0)),
            ("c", Cell::Percent(9.0)),
        ];
        for (columns, expected) in [
            (&["waste_percent"][..], ["c", "b"]),
            (&["waste %", "call-site"], ["c", "b"]),
            (&["call_site"], ["a", "b"]),
        ] {
            let mut part = screen(&all[..2]);
            order(columns).sort_screen(&mut part, screen(&all)).unwrap();
            assert_eq!(names_of(&part), expected, "{columns:?}");
        }
        let failure = order(&["freed"]).sort_screen(&mut screen(&all), screen(&all)).unwrap_err();
        let told = format!("{failure:?}");
        assert!(
            told.contains("no table here has freed") && told.contains("call_site, waste_percent"),
            "{told}"
        );
        assert!(order(&["freed"]).sort_screen(&mut Screen::default(), Screen::default()).is_ok());
    }

    /// `live` is of bytes, on screens and in documents.
    #[test]
    fn names_of_all_reports_are_those_of_their_columns() {
        let rows = json!([{"live": 9, "bytes_live": 1}, {"live": 2, "bytes_live": 3}]);
        let Value::Object(all) = json!({ "rows": rows }) else { unreachable!() };
        for (name, first) in [("live", 2), ("bytes_live", 2), ("live_objects", 9)] {
            let mut part = all.clone();
            order(&[name]).sort_document(&mut part, all.clone()).unwrap();
            assert_eq!(part["rows"][0]["live"], first, "{name}");
        }
        let all = [("a", Cell::Percent(1.0)), ("b", Cell::Percent(9.0))];
        let mut part = screen(&all);
        order(&["internal_fragmentation_percent"]).sort_screen(&mut part, screen(&all)).unwrap();
        assert_eq!(names_of(&part), ["b", "a"]);
    }

    #[test]
    fn documents_are_sorted_by_their_keys() {
        let rows = |rows: Value| match json!({"report": {"rows": rows}, "n": 1}) {
            Value::Object(document) => document,
            _ => unreachable!(),
        };
        let all = json!([{"x": 1, "y": {"z": 5}}, {"x": null, "y": {"z": 7}}, {"x": 3, "y": {"z": 6}}]);
        let mut part = rows(json!([{"x": 1, "y": {"z": 5}}]));
        order(&["x"]).sort_document(&mut part, rows(all.clone())).unwrap();
        assert_eq!(part["report"]["rows"], json!([{"x": 3, "y": {"z": 6}}]));
        let mut part = rows(all.clone());
        order(&["y.z"]).sort_document(&mut part, rows(all.clone())).unwrap();
        let sorted: Vec<_> =
            part["report"]["rows"].as_array().unwrap().iter().map(|row| &row["y"]["z"]).collect();
        assert_eq!(sorted, [7, 6, 5]);
        let told = format!("{:?}", order(&["w"]).sort_document(&mut part, rows(all)).unwrap_err());
        assert!(told.contains("no table here has w") && told.contains("x, y.z"), "{told}");
    }
}
