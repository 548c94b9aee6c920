//! Columns of the tables of reports: a table without rows has the headings of one with rows.
//!
//! `table_columns.txt` is generated from the types of the reports, as docs/json.schema.json is (`reports/json_schema.rs`), since schemas
//! are made in tests only. One line a table: report, table, columns of texts, `|`, columns of numbers and lists.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::reports::grouped;

/// The generated file.
const TABLES: &str = include_str!("table_columns.txt");

/// Tables whose rows have a list of values, one for each step of a time: as a table they have a row for each step.
const BY_STEP: [&str; 1] = ["timeline.lines"];

/// Columns that such a table has besides: number and end of the step, and what is of the step on all rows.
const STEP_COLUMNS: [&str; 3] = ["step", "until", "lost_percent"];

/// Rows of a table by step, by the steps of the object that has the table; `None`: it has none.
pub fn by_step(path: &str, parent: &Map<String, Value>, items: &[Value]) -> Option<Vec<Value>> {
    let number = |key: &str| parent.get(key).and_then(Value::as_u64);
    let ((start, length), steps) = number("start").zip(number("step")).zip(number("steps"))?;
    let at = |value: &Value, step: u64| -> Value {
        let list = value.as_array();
        list.map_or(value.clone(), |list| list.get(step as usize).cloned().unwrap_or_default())
    };
    let row = |item: &Map<String, Value>, step: u64| {
        let until = start.saturating_add(length.saturating_mul(step + 1));
        let lost = parent.get("lost_percent").map_or(Value::Null, |lost| at(lost, step));
        let of_step = STEP_COLUMNS.map(str::to_owned).into_iter().zip([step.into(), until.into(), lost]);
        Value::Object(of_step.chain(item.iter().map(|(key, value)| (key.clone(), at(value, step)))).collect())
    };
    let items = items.iter().filter_map(Value::as_object).filter(|_| BY_STEP.contains(&path));
    let rows: Vec<Value> = items.flat_map(|item| (0..steps).map(move |step| row(item, step))).collect();
    (!rows.is_empty()).then_some(rows)
}

/// Columns of a table.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct TableColumns {
    /// Columns with text, as names are.
    texts: Vec<&'static str>,
    /// Columns with numbers, truth and lists.
    numbers: Vec<&'static str>,
}

/// Columns of the tables of a report, by the path of the table.
pub fn of_report(report: &str) -> HashMap<&'static str, TableColumns> {
    let line = |line: &'static str| {
        let mut words = line.split_ascii_whitespace();
        let table = (words.next() == Some(report)).then(|| words.next())??;
        let texts = words.by_ref().take_while(|&word| word != "|").collect();
        let of_step = STEP_COLUMNS.into_iter().filter(|_| BY_STEP.contains(&table));
        Some((table, TableColumns { texts, numbers: of_step.chain(words).collect() }))
    };
    TABLES.lines().filter_map(line).collect()
}

/// Paths of the tables of a report, in their order.
pub fn names(report: &str) -> Vec<&'static str> {
    let name = |line: &'static str| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some(report)).then(|| words.next())?
    };
    TABLES.lines().filter_map(name).collect()
}

impl TableColumns {
    /// All columns: those with text first, then numbers. In each the keys of `--by` are the first, and keys that the types do
    /// not have the last.
    pub fn with(&self, by: &[String], rows: &[Map<String, Value>]) -> Vec<String> {
        let (mut texts, mut numbers): (Vec<String>, Vec<String>) =
            by.iter().cloned().partition(|key| !grouped::is_number(key));
        texts.extend(self.texts.iter().map(|&column| column.to_owned()));
        numbers.extend(self.numbers.iter().map(|&column| column.to_owned()));
        let mut places: HashMap<&str, Option<usize>> = HashMap::new();
        for column in texts.iter().chain(&numbers) {
            places.insert(column, None);
        }
        // Known tables have all columns that can have values; null can be an object, whose columns are known.
        let has_nulls = texts.is_empty() && numbers.is_empty();
        let mut others: Vec<(&str, bool)> = Vec::new();
        for (key, value) in rows.iter().flat_map(Map::iter).filter(|(_, value)| has_nulls || !value.is_null())
        {
            let place = places.entry(key).or_insert_with(|| {
                others.push((key, false));
                Some(others.len() - 1)
            });
            // Lists are text of many characters.
            let is_text = value.as_str().is_some_and(|text| !text.starts_with('['));
            if let Some((_, other)) = place.and_then(|place| others.get_mut(place)) {
                *other |= is_text;
            }
        }
        let of = |is_text: bool| -> Vec<String> {
            others.iter().filter(|other| other.1 == is_text).map(|(key, _)| (*key).to_owned()).collect()
        };
        let (more_texts, more_numbers) = (of(true), of(false));
        let mut columns = [texts, more_texts, numbers, more_numbers].concat();
        let mut seen = HashSet::new();
        columns.retain(|column| seen.insert(column.clone()));
        columns
    }
}

#[cfg(all(test, feature = "dwarf"))]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::super::report::is_range;
    use super::*;
    use crate::reports::json_schema::paths;
    use crate::reports::registry::REPORTS;

    fn rows(rows: Value) -> Vec<Map<String, Value>> {
        serde_json::from_value(rows).unwrap()
    }

    #[test]
    fn columns_do_not_depend_on_rows() {
        let tables = of_report("callers");
        let callers = &tables["callers"];
        let none = callers.with(&[], &[]);
        assert!(
            none.iter().position(|c| c == "symbol") < none.iter().position(|c| c == "bytes_alloc"),
            "{none:?}"
        );
        assert!(none.contains(&"live_range.low".to_owned()) && !none.contains(&"live_range".to_owned()));
        let some =
            rows(json!([{"bytes_alloc": 3, "symbol": null, "estimated": null}, {"symbol": "[x] f+0x1/0x2"}]));
        assert_eq!(callers.with(&[], &some), none);
        let by = ["size".to_owned(), "comm".to_owned()];
        let groups = tables["groups"].with(&by, &[]);
        assert_eq!(groups[0], "comm");
        assert!(groups.iter().position(|c| c == "size") < groups.iter().position(|c| c == "bytes_alloc"));
        assert_eq!(tables["groups"].with(&by, &rows(json!([{"size": 8, "comm": "sh"}]))), groups);
    }

    #[test]
    fn keys_that_no_type_has_are_columns_too() {
        let rows = rows(json!([{"x": 1, "y": "a", "w": "[1]"}, {"x": 2, "z": null}, {"x": null, "y": null}]));
        assert_eq!(TableColumns::default().with(&[], &rows), ["y", "x", "w", "z"]);
        let known = TableColumns { texts: vec!["a"], numbers: vec!["x"] };
        assert_eq!(known.with(&[], &rows), ["a", "y", "x", "w"]);
    }

    /// Columns of the rows whose paths begin so, as a line of the file has them.
    fn columns(keys: &[[String; 3]], begin: &str) -> String {
        let (mut texts, mut numbers, mut lists) = (Vec::new(), Vec::new(), Vec::new());
        for [path, kind, _] in keys {
            let Some(path) = path.strip_prefix(begin).filter(|path| !path.contains(['[', '*'])) else {
                continue;
            };
            let is_table = !begin.is_empty();
            match kind {
                kind if kind.starts_with("object") => {}
                kind if kind.starts_with("list") && is_range(path) => {
                    numbers.extend(["low", "high"].map(|end| format!("{path}.{end}")));
                }
                // Lists in rows are a column, those of objects in rows are left out.
                kind if kind.starts_with("list") => {
                    lists.extend((is_table && !path.contains('.')).then(|| path.to_owned()));
                }
                kind if kind.contains("text") => texts.push(path.to_owned()),
                _ => numbers.push(path.to_owned()),
            }
        }
        let mut columns = texts;
        columns.push("|".to_owned());
        columns.extend(numbers.into_iter().chain(lists));
        let mut seen = HashSet::new();
        columns.retain(|column| seen.insert(column.clone()));
        columns.join(" ")
    }

    /// The generated file.
    fn made() -> String {
        let mut out = String::from(
            "# Made of the types of the reports: KMT_WRITE=1 cargo test -p kmt-analyze --lib json_\n",
        );
        for entry in REPORTS {
            let mut generator = schemars::SchemaGenerator::default();
            let mut schema = (entry.schema)(&mut generator);
            schema.insert("$defs".to_owned(), generator.take_definitions(true).into());
            let keys = paths(schema.as_value());
            let mut tables: Vec<&str> =
                keys.iter().filter(|key| key[1].starts_with("list")).map(|key| key[0].as_str()).collect();
            let has_rows = |table: &str| keys.iter().any(|key| key[0].starts_with(&format!("{table}[].")));
            tables.retain(|table| !table.contains(['[', '*']) && has_rows(table));
            for table in tables {
                out.push_str(&format!("{} {table} {}\n", entry.name, columns(&keys, &format!("{table}[]."))));
            }
            out.push_str(&format!("{} totals {}\n", entry.name, columns(&keys, "")));
        }
        out
    }

    #[test]
    fn json_keys_are_the_columns_of_csv() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/export/tabular/table_columns.txt");
        if std::env::var_os("KMT_WRITE").is_some() {
            std::fs::write(file, made()).unwrap();
            return;
        }
        assert!(
            TABLES == made(),
            "{} differs from the types: KMT_WRITE=1 cargo test -p kmt-analyze --lib json_",
            file.display()
        );
    }
}
