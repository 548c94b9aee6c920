//! docs/json.schema.json: the JSON Schema of every document, generated from the types of the rows; and its keys as paths, each of
//! which must have a meaning.
//!
//! `KMT_WRITE=1 cargo test -p kmt-analyze --lib json_` writes it; without the variable the test fails where the file differs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize as _;
use serde_json::{Map, Value, json};

use super::account::AccountRows;
use super::balance::BalanceRows;
use super::compat::{ReconcileRows, TraceCmdMemRows};
use super::diff::DiffRows;
use super::document::ReportDocument;
use super::info::{ChangeRows, InfoRows};
use super::registry::{Entry, REPORTS};
use crate::allocinfo::AllocinfoRows;
use crate::edit::{AnonymizeRows, VerifyRows};
use crate::footprint::{ComparedRows, FootprintRows};
use crate::render::out;
use crate::slab_copies::SlabCopiesRows;

/// Definition of the keys that reports of a trace share.
const EVERY_REPORT: &str = "every-report";

const ABOUT_EVERY_REPORT: &str =
    "Keys of every report that takes a selection, of `all` and of `reconcile`, beside their own";

const ABOUT: &str = "Documents that kmt-analyze prints with --json; docs/json.md has the conventions. Each document is a \
    definition with the name of its report. Names of other definitions may change.";

/// Definition of a document that has no answer.
const REFUSED: &str = "refused";

/// A document: its keys besides `schema`.
struct Described {
    name: &'static str,
    about: &'static str,
    version: u32,
    /// True if it has the keys of [`EVERY_REPORT`].
    is_of_trace: bool,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl Described {
    /// A document that is not in the registry.
    fn of<R: JsonSchema>(name: &'static str, about: &'static str) -> Self {
        let is_of_trace = name == "reconcile";
        Self { name, about, version: 1, is_of_trace, schema: SchemaGenerator::subschema_for::<R> }
    }

    /// Definition of the document, in the file.
    fn definition(&self, generator: &mut SchemaGenerator) -> Value {
        let own = (self.schema)(generator);
        let parts = match self.is_of_trace {
            true => json!([refers(EVERY_REPORT), { "anyOf": [own, refers(REFUSED)] }]),
            false => json!([own]),
        };
        definition(self.name, self.about, self.version, parts)
    }
}

/// Definition of a document of these parts.
fn definition(name: &str, about: &str, version: u32, parts: Value) -> Value {
    let schema = json!({
        "description": "Name and version of the document.",
        "type": "object",
        "properties": { "report": { "const": name }, "version": { "const": version } },
        "required": ["report", "version"],
    });
    json!({
        "description": format!("{about}."),
        "type": "object",
        "properties": { "schema": schema },
        "required": ["schema"],
        "allOf": parts,
    })
}

fn refers(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Documents that are not in the registry.
fn others() -> [Described; 13] {
    [
        Described::of::<InfoRows>("info", "What the file holds, its losses, its integrity"),
        Described::of::<ChangeRows>(
            "info-diff",
            "Output of `info --diff`: changes of the kernel's own counts",
        ),
        Described::of::<DiffRows>("diff", "Two runs, or two windows of one: what differs beyond noise"),
        Described::of::<AllocinfoRows>(
            "allocinfo",
            "Copies of /proc/allocinfo: memory by call site, and changes between two copies",
        ),
        Described::of::<SlabCopiesRows>(
            "slabinfo-copies",
            "Two copies of /proc/slabinfo (`slabinfo BEFORE AFTER`): caches that changed",
        ),
        Described::of::<BalanceRows>(
            "balance",
            "MemTotal by account at two times, and what is in no account",
        ),
        Described::of::<AccountRows>(
            "account",
            "The account file of trace_analyze.py: bytes by caller, by its rules",
        ),
        Described::of::<TraceCmdMemRows>(
            "trace-cmd-mem",
            "Output of `summary --compat trace-cmd-mem`: sums by function, by the rules of trace-cmd mem",
        ),
        Described::of::<ReconcileRows>(
            "reconcile",
            "Differences of the totals of trace-cmd mem and perf kmem from the exact ones, term by term",
        ),
        Described::of::<FootprintRows>(
            "footprint",
            "Code and data by directory, and what was allocated there",
        ),
        Described::of::<ComparedRows>(
            "footprint-diff",
            "`footprint --against`: symbols that differ between two builds",
        ),
        Described::of::<VerifyRows>("verify", "Checks of every chunk, every checksum and every event"),
        Described::of::<AnonymizeRows>(
            "anonymize",
            "The manifest: counts of the contents that were kept, replaced and left out",
        ),
    ]
}

/// Every document but `all`.
fn documents() -> impl Iterator<Item = Described> {
    let reports = REPORTS.iter().map(|entry: &Entry| Described {
        name: entry.name,
        about: entry.about,
        version: entry.version,
        is_of_trace: true,
        schema: entry.schema,
    });
    reports.chain(others())
}

/// Definition of `all`: each report that needs no options under its key, or `null` and the reason in `refused`.
fn all(generator: &mut SchemaGenerator) -> Value {
    let (mut keys, mut versions) = (Map::new(), Map::new());
    for entry in REPORTS {
        let Some(report) = (entry.with_defaults)() else { continue };
        let own = (entry.schema)(generator);
        let rows = json!({ "description": format!("Rows of `{}`.", entry.name), "anyOf": [own, { "type": "null" }] });
        keys.insert(report.key().to_owned(), rows);
        versions.insert(report.key().to_owned(), json!({ "const": entry.version }));
    }
    let required: Vec<&String> = keys.keys().collect();
    let required = json!(required);
    keys.insert(
        "versions".to_owned(),
        json!({ "description": "Version of the keys of each report.", "type": "object", "properties": versions }),
    );
    keys.insert(
        "refused".to_owned(),
        json!({
            "description": "Reasons of the reports that have no answer, by their keys; missing if all have one.",
            "type": "object",
            "additionalProperties": { "type": "string" },
        }),
    );
    let own = json!({ "type": "object", "properties": keys, "required": required });
    definition("all", "All reports of one trace", 1, json!([refers(EVERY_REPORT), own]))
}

/// Puts each description on one line.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            if let Some(Value::String(text)) = keys.get_mut("description") {
                *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            keys.values_mut().for_each(tidy);
        }
        Value::Array(values) => values.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// The file: one definition for each document, then those that they refer to.
fn made() -> Value {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut definitions = Map::new();
    definitions.insert("all".to_owned(), all(&mut generator));
    for document in documents() {
        definitions.insert(document.name.to_owned(), document.definition(&mut generator));
    }
    let every_document: Vec<Value> = definitions.keys().map(|name| refers(name)).collect();
    let mut every = out::Document::<ReportDocument<()>>::json_schema(&mut generator);
    every.insert("description".to_owned(), format!("{ABOUT_EVERY_REPORT}.").into());
    definitions.insert(EVERY_REPORT.to_owned(), every.to_value());
    let refused = json!({
        "description": "Keys of a report that has no answer (exit code 1).",
        "type": "object",
        "properties": { "refused": { "description": "The reason.", "type": "string" } },
        "required": ["refused"],
    });
    definitions.insert(REFUSED.to_owned(), refused);
    for (name, definition) in generator.take_definitions(true) {
        assert!(definitions.insert(name.clone(), definition).is_none(), "two definitions of {name}");
    }
    let mut file = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "JSON of kmt-analyze",
        "description": ABOUT,
        "oneOf": every_document,
        "$defs": definitions,
    });
    tidy(&mut file);
    file
}

/// The text of the file: a key a line, indented by one blank, since the file is large.
fn text_of(file: &Value) -> String {
    let mut text = Vec::new();
    let form = serde_json::ser::PrettyFormatter::with_indent(b" ");
    file.serialize(&mut serde_json::Serializer::with_formatter(&mut text, form)).expect("in memory");
    text.push(b'\n');
    String::from_utf8(text).expect("JSON is UTF-8")
}

/// Keys of a schema as paths, with their types and meanings: columns of CSV are made of them (`export/tabular/columns.rs`).
pub fn paths(schema: &Value) -> Vec<[String; 3]> {
    let mut keys = Keys::default();
    keys.follow(schema, schema, "");
    keys.rows
}

/// Keys of one document.
#[derive(Default)]
struct Keys<'s> {
    /// Definitions on the path of the walk: recursive ones are not walked again.
    open: Vec<&'s str>,
    rows: Vec<[String; 3]>,
}

impl<'s> Keys<'s> {
    fn walk(&mut self, root: &'s Value, schema: &'s Value, path: &str) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                self.property(root, name, property, path);
            }
        }
        // Alternatives, and parts flattened into the same object.
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
        let row = [path.clone(), type_of(root, property), meaning.to_owned()];
        if !self.rows.contains(&row) {
            self.rows.push(row);
        }
        self.follow(root, property, &path);
    }

    /// Walks the target of a reference, or the schema itself.
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

/// Type of the definition that a schema refers to.
fn defined_type<'s>(root: &'s Value, schema: &Value) -> &'s str {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.rsplit('/').next());
    let definition = name.and_then(|name| root.get("$defs")?.get(name));
    definition.and_then(|definition| definition.get("type")?.as_str()).unwrap_or("object")
}

/// Type of a value in words.
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

#[test]
fn json_schema_is_that_of_the_types() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/json.schema.json");
    let made = text_of(&made());
    if std::env::var_os("KMT_WRITE").is_some() {
        std::fs::write(file, made).expect("docs/json.schema.json can be written");
        return;
    }
    let text = std::fs::read_to_string(file).expect("docs/json.schema.json is there");
    assert!(text == made, "docs/json.schema.json differs from the types: KMT_WRITE=1 writes it again");
}

/// Every key is explained.
#[test]
fn keys_have_meanings() {
    let file = made();
    let definitions = file["$defs"].as_object().expect("definitions");
    for name in documents().map(|document| document.name).chain(["all"]) {
        let mut root = definitions[name].clone();
        root["$defs"] = file["$defs"].clone();
        let keys = paths(&root);
        assert!(keys.len() > 1, "{name} has no keys");
        for [path, _, meaning] in keys {
            let is_constant = path.starts_with("versions.") || path.starts_with("schema.");
            assert!(!meaning.is_empty() || is_constant, "{name}: {path} has no meaning");
        }
    }
}
