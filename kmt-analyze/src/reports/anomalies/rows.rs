//! Kinds of anomalies, and the places of each.

use serde::Serialize;

use crate::reports::common::rows::Address;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnomalyRows {
    /// Kinds of anomalies, also those that did not happen.
    pub anomalies: Vec<AnomalyKind>,
}

/// One kind of anomaly.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnomalyKind {
    /// `undersized`, `freed_again_or_born_unseen`, `born_unseen`, `mixed_api`, `late_free`, `ambiguous_free`, `inverted`,
    /// `freed_unseen`, `alloc_failures`, `double_report`.
    pub kind: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Its meaning.
    pub explanation: &'static str,
    /// It is a fault of the traced kernel, if it is anything.
    pub may_be_a_fault: bool,
    /// How often it happened.
    pub count: u64,
    /// Places in all.
    pub rows_total: usize,
    /// Places, those with most first.
    pub rows: Vec<AnomalyRow>,
}

/// One place of an anomaly.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnomalyRow {
    /// Site of the allocation.
    pub call_site: Option<Site>,
    /// Site of the free.
    pub freed_by: Option<Site>,
    /// How often it happened there.
    pub count: u64,
    /// More about it, for people.
    pub detail: String,
}

/// A site of allocations or frees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Site {
    /// Its address.
    pub address: Address,
    /// Function and offset, or the address.
    pub symbol: String,
}
