//! docs/json.md against the types: its tables of keys are generated from them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use super::account::AccountRows;
use super::compat::{ReconcileRows, TraceCmdMemRows};
use super::diff::DiffRows;
use super::document::ReportDocument;
use super::info::{ChangeRows, InfoRows};
use super::registry::REPORTS;
use crate::allocinfo::AllocinfoRows;
use crate::edit::{AnonymizeRows, VerifyRows};
use crate::footprint::{ComparedRows, FootprintRows};
use crate::render::out::Document;

/// Line after which docs/json.md is generated.
const MARK: &str =
    "<!-- Made of the types from here on: KMT_WRITE=1 cargo test -p kmt-analyze --lib json_keys -->";

/// Description of the keys that are not repeated for each report.
const ABOUT_EVERY_REPORT: &str = "Keys of `all`, of `reconcile` and of every report that can be given a selection, beside \
    their own. The other documents (info, info-diff, diff, allocinfo, account, footprint, footprint-diff, trace-cmd-mem, verify, anonymize) have `schema` and the keys of \
    their own tables";

/// The table of keys of one document.
#[derive(Default)]
struct Keys<'s> {
    /// Definitions on the path of the walk: recursive ones are not walked again.
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
        let meaning = meaning.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
        let row = [path.clone(), type_of(root, property), meaning];
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

/// Keys of a schema: path, type and meaning.
pub fn paths(schema: &Value) -> Vec<[String; 3]> {
    Keys::of(schema)
}

/// Type of the definition that a schema refers to.
fn defined_type<'s>(root: &'s Value, schema: &Value) -> &'s str {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.rsplit('/').next());
    let definition = name.and_then(|name| root.get("$defs")?.get(name));
    definition.and_then(|definition| definition.get("type")?.as_str()).unwrap_or("object")
}

/// Type of a value, as the tables name it.
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

/// A document, or keys that several documents have.
struct Described {
    name: &'static str,
    about: &'static str,
    /// `None`: keys that several documents have.
    version: Option<u32>,
    schema: Value,
}

impl Described {
    /// A document that is not in the registry.
    fn of<R: JsonSchema>(name: &'static str, about: &'static str) -> Self {
        Self { name, about, version: Some(1), schema: schema::<R>() }
    }
}

fn schema<R: JsonSchema>() -> Value {
    value(SchemaGenerator::default().into_root_schema_for::<R>())
}

fn value(schema: Schema) -> Value {
    serde_json::to_value(schema).expect("a schema is JSON")
}

/// Documents that are not in the registry.
fn others() -> [Described; 11] {
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

/// Every document.
fn documents() -> Vec<Described> {
    let every = Described {
        name: "every report",
        about: ABOUT_EVERY_REPORT,
        version: None,
        schema: schema::<Document<ReportDocument<()>>>(),
    };
    let reports = REPORTS.iter().map(|e| Described {
        name: e.name,
        about: e.about,
        version: Some(e.version),
        schema: value((e.schema)()),
    });
    std::iter::once(every).chain(reports).chain(others()).collect()
}

/// Generated part of docs/json.md.
fn made() -> String {
    let mut out = String::new();
    for Described { name, about, version, schema } in documents() {
        let version = version.map_or(String::new(), |version| format!(" Version {version}."));
        write!(out, "\n## {name}\n\n{about}.{version}\n\n").expect("in memory");
        out.push_str("| key | type | meaning |\n|---|---|---|\n");
        for [path, kind, meaning] in Keys::of(&schema) {
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
        "docs/json.md differs from the types: KMT_WRITE=1 writes it again"
    );
}

/// Every key is explained.
#[test]
fn keys_have_meanings() {
    for Described { name, schema, .. } in documents() {
        let rows = Keys::of(&schema);
        assert!(!rows.is_empty(), "{name} has no keys");
        for [path, _, meaning] in rows {
            assert!(!meaning.is_empty(), "{name}: {path} has no meaning");
        }
    }
}
