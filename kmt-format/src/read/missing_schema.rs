//! Errors of event chunks that need a later schema chunk.

use crate::error::{Error, ErrorKind};

/// A descriptor has a shape without a schema chunk.
pub(super) const UNKNOWN_SHAPE: &str = "a descriptor has a shape that no schema defines";

/// A chunk of verbatim sub-buffers has classes without a schema chunk.
pub(super) const UNKNOWN_CLASSES: &str = "a chunk of sub-buffers names classes that no schema defines";

/// True if the chunk may be readable after the next schema chunk.
pub(super) fn lacks_schema(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Malformed(what) if *what == UNKNOWN_SHAPE || *what == UNKNOWN_CLASSES)
        || matches!(error.kind(), ErrorKind::UnknownEventId { .. })
}
