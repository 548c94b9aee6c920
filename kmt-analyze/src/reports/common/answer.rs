//! A part of a report that may have no answer.

use serde::Serialize;

/// An answer, or the reason why there is none.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum MaybeRefused<T> {
    /// There is none.
    Refused {
        /// The reason.
        refused: String,
    },
    /// The answer.
    Found(Box<T>),
}

impl<T> MaybeRefused<T> {
    /// The answer; `None`: there is none.
    pub fn found(&self) -> Option<&T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Refused { .. } => None,
        }
    }
}
