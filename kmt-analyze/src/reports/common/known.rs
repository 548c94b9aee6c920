//! Numbers that are unknown because the events that would tell were not recorded: `null` in JSON, a mark in tables.

use serde_json::{Map, Value, json};

use super::basis::Basis;
use crate::pass::weights::Estimate;
use crate::render::text::count;
use crate::stream::Api;

/// Which numbers of a part are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Those of allocations.
    pub allocs: bool,
    /// Those of frees.
    pub frees: bool,
    /// Those of lives: both were recorded.
    pub lives: bool,
}

/// Keys of numbers that rest on allocations.
const OF_ALLOCS: [&str; 9] = [
    "alloc_events",
    "alloc_failures",
    "bytes_req",
    "bytes_alloc",
    "bytes_wasted",
    "internal_fragmentation_percent",
    "double_reports",
    "pages_alloc",
    "alloc_events_inferred",
];
/// Keys of numbers that rest on frees.
const OF_FREES: [&str; 3] = ["free_events", "null_frees", "zero_size_frees"];
/// Keys of numbers that rest on both.
const OF_LIVES: [&str; 21] = [
    "frees_matched",
    "frees_unmatched",
    "frees_partial",
    "frees_allocated_before",
    "frees_untraced_birth",
    "pages_free_only",
    "bytes_freed",
    "freed_unseen",
    "bytes_freed_unseen",
    "live",
    "bytes_live",
    "bytes_wasted_live",
    "late_frees",
    "cross_cpu_frees",
    "mixed_api_frees",
    "uncertain",
    "bytes_live_uncertain",
    "pages_freed",
    "pages_freed_unseen",
    "pages_live",
    "pages_uncertain",
];

impl Known {
    /// Numbers of slab objects: of one interface, or of all that were recorded.
    pub fn slab(basis: &Basis, api: Option<Api>) -> Self {
        let both = || Api::ALL.iter().map(|&api| (basis.allocs(Some(api)), basis.frees(Some(api))));
        // A sum over both interfaces is unknown where it leaves one out of which the other event was recorded.
        let lacks_allocs = api.is_none() && both().any(|(allocs, frees)| frees && !allocs);
        let lacks_frees = api.is_none() && both().any(|(allocs, frees)| allocs && !frees);
        Self {
            allocs: basis.allocs(api) && !lacks_allocs,
            frees: basis.frees(api) && !lacks_frees,
            lives: basis.ends(api) && !lacks_allocs,
        }
    }

    /// Numbers of pages.
    pub fn pages(basis: &Basis) -> Self {
        Self { allocs: basis.page_allocs, frees: basis.page_frees, lives: basis.page_ends() }
    }

    /// Whether all of them are.
    pub fn all(self) -> bool {
        self.allocs && self.frees && self.lives
    }

    /// How many rows a table of allocations has; `null` where none could be.
    pub fn rows(self, rows: usize) -> Value {
        if self.allocs { json!(rows) } else { Value::Null }
    }

    /// A document with null for what is not known.
    pub fn mask(self, mut out: Map<String, Value>) -> Map<String, Value> {
        let unknown = OF_ALLOCS.iter().filter(|_| !self.allocs);
        let unknown = unknown.chain(OF_FREES.iter().filter(|_| !self.frees));
        for key in unknown.chain(OF_LIVES.iter().filter(|_| !self.lives)) {
            if let Some(value) = out.get_mut(*key) {
                *value = Value::Null;
            }
        }
        if let Some(Value::Object(raw)) = out.get_mut("raw") {
            *raw = self.mask(std::mem::take(raw));
        }
        out
    }
}

/// A sum over allocations for people: what samples stand for, marked, where only samples were recorded.
pub fn about(estimate: Option<f64>, exact: u64) -> String {
    estimate.map_or_else(|| count(exact), |estimate| format!("~{}", count(estimate.round() as u64)))
}

/// The same for JSON; `null` where all were recorded.
pub fn estimated(estimate: Option<Estimate>) -> Value {
    let whole = |number: f64| number.round() as u64;
    estimate.map_or(Value::Null, |e| {
        json!({
            "alloc_events": whole(e.alloc_events),
            "bytes_req": whole(e.bytes_req),
            "bytes_alloc": whole(e.bytes_alloc),
        })
    })
}

/// A cell, or a mark that its events were not recorded.
pub fn cell(is_recorded: bool, text: String) -> String {
    if is_recorded { text } else { NOT_RECORDED.to_owned() }
}

/// What stands for a number whose events were not recorded.
pub const NOT_RECORDED: &str = "?";

/// The line under a table that has such marks.
pub fn legend(is_known: bool) -> &'static str {
    if is_known { "" } else { "?: the events that would tell were not recorded\n" }
}
