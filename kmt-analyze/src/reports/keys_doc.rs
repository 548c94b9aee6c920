//! docs/json.md against the types: its tables of keys are made of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use super::account::AccountRows;
use super::diff::DiffRows;
use super::info::InfoRows;
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
        let row = [path.clone(), type_of(root, property), meaning];
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

/// The type of the definition that a schema refers to.
fn defined_type<'s>(root: &'s Value, schema: &Value) -> &'s str {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.rsplit('/').next());
    let definition = name.and_then(|name| root.get("$defs")?.get(name));
    definition.and_then(|definition| definition.get("type")?.as_str()).unwrap_or("object")
}

/// The type of a value, as the tables name it.
fn type_of(root: &Value, schema: &Value) -> String {
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
            add(schema.get("type").and_then(Value::as_str).unwrap_or_else(|| defined_type(root, schema)));
        }
    }
    if schema.get("$ref").is_some() {
        add(defined_type(root, schema));
    }
    let text = types.into_iter().collect::<Vec<_>>().join(" or ");
    match (text.is_empty(), is_null) {
        (true, _) => "any".to_owned(),
        (false, true) => format!("{text} or null"),
        (false, false) => text,
    }
}

/// Name, description, version and schema of every document.
fn documents() -> Vec<(&'static str, &'static str, u32, Value)> {
    fn schema<R: JsonSchema>() -> Value {
        serde_json::to_value(SchemaGenerator::default().into_root_schema_for::<R>())
            .expect("a schema is JSON")
    }
    let value = |schema: Schema| serde_json::to_value(schema).expect("a schema is JSON");
    let reports = REPORTS.iter().map(|e| (e.name, e.about, e.version, value((e.schema)())));
    let others = [
        ("info", "What the file holds, its losses, its integrity", 1, schema::<InfoRows>()),
        ("diff", "Two runs, or two windows of one: what differs beyond noise", 1, schema::<DiffRows>()),
        (
            "account",
            "The account file of trace_analyze.py: bytes by caller, by its rules",
            1,
            schema::<AccountRows>(),
        ),
    ];
    reports.chain(others).collect()
}

/// The part of docs/json.md that is made of the types.
fn made() -> String {
    let mut out = String::new();
    for (name, about, version, schema) in documents() {
        let rows = Keys::of(&schema);
        write!(out, "\n## {name}\n\n{about}. Version {version}.\n\n").expect("in memory");
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
    for (name, _, _, schema) in documents() {
        let rows = Keys::of(&schema);
        assert!(!rows.is_empty(), "{name} has no keys");
        for [path, _, meaning] in rows {
            assert!(!meaning.is_empty(), "{name}: {path} has no meaning");
        }
    }
}
