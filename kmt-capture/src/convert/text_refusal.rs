//! The refusal of a text without events.

use std::path::Path;

use kmt_common::foreign::Foreign;

use super::opened::INPUTS;
use crate::failure::Failure;
use crate::import::text::missing;

/// Bytes that are looked at.
const START_LEN: usize = 4096;

/// Begins sequences of colour.
const ESCAPE: u8 = 0x1b;

/// Largest share of control characters in a text, as 1/N.
const CONTROLS_MAX: usize = 20;

/// What the text is, or what its lines lack.
pub fn without_events(path: &Path, bytes: &[u8]) -> Failure {
    if let Some(kind) = Foreign::of(bytes) {
        return kind.refuse(path);
    }
    if let Some(missing) = missing(bytes) {
        let what = format!("{}: its lines lack {}", path.display(), missing.columns);
        return Failure::new(what).hint(missing.hint);
    }
    if let Some(kind) = Foreign::in_general(bytes) {
        return kind.refuse(path);
    }
    // A binary file may have no zero in its beginning.
    let start = bytes.get(..bytes.len().min(START_LEN)).unwrap_or_default();
    let is_control = |byte: &&u8| byte.is_ascii_control() && !byte.is_ascii_whitespace() && **byte != ESCAPE;
    if start.iter().filter(is_control).count() * CONTROLS_MAX > start.len() {
        return Failure::new(format!("{} is neither a recording nor text", path.display())).hint(INPUTS);
    }
    let first = bytes.split(|&b| b == b'\n').find(|l| !l.trim_ascii().is_empty() && !l.starts_with(b"#"));
    let first = String::from_utf8_lossy(first.unwrap_or_default()).chars().take(60).collect::<String>();
    let what = format!("{}: no line is an event of a trace; the first is {first:?}", path.display());
    Failure::new(what).hint(INPUTS)
}
