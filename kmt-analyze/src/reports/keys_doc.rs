//! docs/json.md against the types: its tables of keys are made of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;

use super::registry::REPORTS;

/// The line behind which docs/json.md is made of the types.
const MARK: &str =
    "<!-- Made of the types from here on: KMT_WRITE=1 cargo test -p kmt-analyze --lib json_keys -->";

/// The table of keys of one document.
#[derive(Default)]
struct Keys<'s> {
    /// Definitions on the way to where the walk is: those that hold themselves are not walked again.
    open: Vec<&'s str>,
    rows: Vec<[String; 3]>,
}

impl<'s> Keys<'s> {
    fn of(schema: &'s Value) -> Vec<[String; 3]> {
        let mut keys = Self::default();
        keys.walk(schema, schema, "");
        keys.rows
    }

    fn walk(&mut self, root: &'s Value, schema: &'s Value, path: &str) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                self.property(root, name, property, path);
            }
        }
        // Alternatives, and parts that are written into the same object.
        for list in ["anyOf", "oneOf", "allOf"] {
            for schema in schema.get(list).and_then(Value::as_array).into_iter().flatten() {
                self.follow(root, schema, path);
            }
        }
        if let Some(items) = schema.get("items") {
            self.follow(root, items, &format!("{path}[]"));
        }
        if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
            self.follow(root, values, &format!("{path}.*"));
        }
    }

    fn property(&mut self, root: &'s Value, name: &str, property: &'s Value, path: &str) {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let meaning = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let meaning = meaning.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
        let row = [path.clone(), type_of(property), meaning];
        if !self.rows.contains(&row) {
            self.rows.push(row);
        }
        self.follow(root, property, &path);
    }

    /// Walks what a schema refers to, or itself.
    fn follow(&mut self, root: &'s Value, schema: &'s Value, path: &str) {
        let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/$defs/"))
        else {
            return self.walk(root, schema, path);
        };
        let Some(definition) = root.get("$defs").and_then(|defs| defs.get(name)) else { return };
        if !self.open.contains(&name) {
            self.open.push(name);
            self.walk(root, definition, path);
            self.open.pop();
        }
    }
}

/// The type of a value, as the tables name it.
fn type_of(schema: &Value) -> String {
    let mut types = BTreeSet::new();
    let mut is_null = false;
    let mut add = |name: &str| match name {
        "null" => is_null = true,
        "integer" | "number" => drop(types.insert("number".to_owned())),
        "string" => drop(types.insert("text".to_owned())),
        "boolean" => drop(types.insert("true or false".to_owned())),
        "array" => drop(types.insert("list".to_owned())),
        other => drop(types.insert(other.to_owned())),
    };
    match schema.get("type") {
        Some(Value::String(name)) => add(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).for_each(&mut add),
        _ => {}
    }
    for list in ["anyOf", "oneOf"] {
        for schema in schema.get(list).and_then(Value::as_array).into_iter().flatten() {
            match schema.get("type").and_then(Value::as_str) {
                Some(name) => add(name),
                None => add("object"),
            }
        }
    }
    if schema.get("$ref").is_some() {
        add("object");
    }
    let text = types.into_iter().collect::<Vec<_>>().join(" or ");
    match (text.is_empty(), is_null) {
        (true, _) => "any".to_owned(),
        (false, true) => format!("{text} or null"),
        (false, false) => text,
    }
}

/// The part of docs/json.md that is made of the types.
fn made() -> String {
    let mut out = String::new();
    for entry in &REPORTS {
        let schema = serde_json::to_value((entry.schema)()).expect("a schema is JSON");
        let rows = Keys::of(&schema);
        write!(out, "\n## {}\n\n{}. Version {}.\n\n", entry.name, entry.about, entry.version)
            .expect("in memory");
        out.push_str("| key | type | meaning |\n|---|---|---|\n");
        for [path, kind, meaning] in rows {
            writeln!(out, "| {path} | {kind} | {meaning} |").expect("in memory");
        }
    }
    out
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/json.md")
}

#[test]
fn json_keys_are_those_of_the_types() {
    let text = std::fs::read_to_string(file()).expect("docs/json.md is there");
    let (written, tables) = text.split_once(MARK).expect("docs/json.md has the mark");
    let made = made();
    if std::env::var_os("KMT_WRITE").is_some() {
        std::fs::write(file(), format!("{written}{MARK}\n{made}")).expect("docs/json.md can be written");
        return;
    }
    assert!(
        tables.trim_start_matches('\n') == made.trim_start_matches('\n'),
        "docs/json.md is not what the types say; write it anew with KMT_WRITE=1"
    );
}

/// Every key is explained.
#[test]
fn keys_have_meanings() {
    for entry in &REPORTS {
        let schema = serde_json::to_value((entry.schema)()).expect("a schema is JSON");
        let rows = Keys::of(&schema);
        assert!(!rows.is_empty(), "{} has no keys", entry.name);
        for [path, _, meaning] in rows {
            assert!(!meaning.is_empty(), "{}: {path} has no meaning", entry.name);
        }
    }
}
