//! Kinds of ends.

use serde::Serialize;

/// Kind of the end of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LifeEnd {
    /// A free event.
    Freed,
    /// Implied free: the address or page was reused, and no free event was recorded.
    FreedUnseen,
    /// Still allocated at the end of the trace.
    Live,
}
