//! Texts in JSON.

use serde_json::Value;

use super::text::escaped;

/// Text from the target.
pub fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::String(text.to_owned()),
        Err(_) => Value::String(escaped(bytes)),
    }
}
