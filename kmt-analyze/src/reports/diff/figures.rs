//! Differences of one name: allocated and live bytes.

use serde::{Serialize, Serializer};

use crate::reports::diff::difference::Difference;

/// Difference of one name.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NameRow {
    /// `kmalloc`, `cache`, `slab` or `pages`.
    pub kind: &'static str,
    /// Name.
    pub name: String,
    /// Bytes allocated.
    #[serde(serialize_with = "rounded")]
    #[cfg_attr(test, schemars(with = "FigureRow"))]
    pub bytes_alloc: Difference,
    /// Bytes live at the end, of those allocated in the trace.
    #[serde(serialize_with = "rounded")]
    #[cfg_attr(test, schemars(with = "FigureRow"))]
    pub bytes_live: Difference,
    /// Share of the allocated bytes of its kind before: of slab objects, or of pages.
    pub share_before_percent: f64,
    /// Share of the allocated bytes of its kind after: of slab objects, or of pages.
    pub share_after_percent: f64,
}

/// Difference of one figure in JSON; bytes are rounded.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FigureRow {
    /// Mean of the runs of the first side.
    pub before: f64,
    /// Mean of the runs of the second side.
    pub after: f64,
    /// The second less the first.
    pub change: f64,
    /// Standard error of the change.
    pub noise: f64,
    /// The change in standard errors.
    pub score: f64,
    /// Smallest score of a change beyond noise.
    pub score_needed: f64,
    /// Changes of at most this do not matter.
    pub least_that_matters: f64,
    /// Smallest change that would be beyond noise, and would matter.
    pub least_beyond_noise: f64,
    /// True if the change is beyond noise, and matters.
    pub is_real: bool,
}

fn rounded<S: Serializer>(exact: &Difference, serializer: S) -> Result<S::Ok, S::Error> {
    let row = FigureRow {
        before: exact.before.round(),
        after: exact.after.round(),
        change: exact.change().round(),
        noise: exact.noise.round(),
        score: exact.score,
        score_needed: exact.needed,
        least_that_matters: exact.least.round(),
        least_beyond_noise: exact.least_beyond_noise().round(),
        is_real: exact.is_real(),
    };
    row.serialize(serializer)
}

impl NameRow {
    /// True if it differs beyond noise.
    pub fn is_real(&self) -> bool {
        self.bytes_alloc.is_real() || self.bytes_live.is_real()
    }

    /// The larger change of allocated and of live bytes.
    pub fn weight(&self) -> f64 {
        self.bytes_live.change().abs().max(self.bytes_alloc.change().abs())
    }
}
