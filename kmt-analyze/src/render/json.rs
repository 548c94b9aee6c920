//! Machine-readable reports. Their shape is written down in docs/json.md; it only ever grows.

use kmt_format::read::Trace;
use serde_json::{Map, Value};

use super::head::{CpuHead, Head};
use super::text::escaped;
use crate::trace::losses::Losses;

/// Text from the target.
pub fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::String(text.to_owned()),
        Err(_) => Value::String(escaped(bytes)),
    }
}

/// `trace` and `clock`, which every report has.
pub fn head(trace: &Trace<'_>, losses: &Losses) -> Map<String, Value> {
    match serde_json::to_value(Head::<CpuHead>::of(trace, losses)) {
        Ok(Value::Object(head)) => head,
        // It is a struct of numbers and texts: an object, and it does not fail.
        _ => Map::new(),
    }
}
