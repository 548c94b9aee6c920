//! Keys of a JSON schema as paths: the columns of CSV are made of them (`export/tabular/columns.rs`), and each key must have a
//! meaning (`json_schema.rs`).

use std::collections::BTreeSet;

use serde_json::Value;

/// Keys of one document.
#[derive(Default)]
struct Keys<'s> {
    /// Definitions on the path of the walk: recursive ones are not walked again.
    open: Vec<&'s str>,
    rows: Vec<[String; 3]>,
}

impl<'s> Keys<'s> {
    fn of(schema: &'s Value) -> Vec<[String; 3]> {
        let mut keys = Self::default();
        keys.follow(schema, schema, "");
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
