//! Machine-readable reports. Their shape is written down in docs/json.md; it only ever grows.

use serde::Serialize;
use serde_json::{Map, Value};

use super::text::escaped;

/// Text from the target.
pub fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::String(text.to_owned()),
        Err(_) => Value::String(escaped(bytes)),
    }
}

/// Rows as an object, in the order of their keys.
pub fn object(rows: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(rows) {
        Ok(Value::Object(object)) => object,
        // Rows are structs of numbers, texts and lists: they are objects, and none of them fails.
        _ => Map::new(),
    }
}
