//! The refusal of a text without events.

use std::path::Path;

use kmt_common::foreign::Foreign;

use super::opened::INPUTS;
use crate::failure::Failure;
use crate::import::text::missing;

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
    let first = bytes.split(|&b| b == b'\n').find(|l| !l.trim_ascii().is_empty() && !l.starts_with(b"#"));
    let first = String::from_utf8_lossy(first.unwrap_or_default()).chars().take(60).collect::<String>();
    let what = format!("{} is a text without events: {first:?} is not a line of a trace", path.display());
    Failure::new(what).hint(INPUTS)
}
