//! Machine-readable reports. Their shape is written down in docs/json.md; it only ever grows.

use kmt_format::read::Trace;
use serde_json::{Map, Value, json};

use super::head::{CpuHead, Head};
use super::text::escaped;
use crate::ledger::page_totals::FrameTotals;
use crate::ledger::totals::{EventCounts, Totals};
use crate::trace::losses::Losses;

/// An address.
pub fn address(value: u64) -> Value {
    Value::String(format!("{value:#x}"))
}

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

/// Sums and counts of one interface, or of both.
pub fn slab_part(totals: &Totals, counts: &EventCounts) -> Map<String, Value> {
    let value = json!({
        "alloc_events": totals.alloc_events,
        "free_events": totals.frees_matched + counts.unmatched_frees(),
        "alloc_failures": counts.alloc_failures,
        "bytes_req": totals.bytes_req,
        "bytes_alloc": totals.bytes_alloc,
        "bytes_freed": totals.bytes_freed,
        "bytes_live": totals.bytes_live,
        "bytes_wasted": totals.bytes_wasted(),
        "bytes_wasted_live": totals.bytes_wasted_live(),
        "internal_fragmentation_percent": totals.internal_fragmentation_percent(),
        "live": totals.live,
        "frees_matched": totals.frees_matched,
        "frees_unmatched": counts.unmatched_frees(),
        "frees_allocated_before": counts.allocated_before,
        "frees_untraced_birth": counts.untraced_birth,
        "freed_unseen": totals.freed_unseen,
        "bytes_freed_unseen": totals.bytes_freed_unseen,
        "late_frees": counts.late_frees,
        "double_reports": counts.double_reports,
        "null_frees": counts.null_frees,
        "zero_size_frees": counts.zero_size_frees,
        "cross_cpu_frees": counts.cross_cpu_frees,
        "mixed_api_frees": counts.mixed_api_frees,
        "uncertain": totals.uncertain,
        "bytes_live_uncertain": totals.bytes_live_uncertain,
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Sums over allocations of pages.
pub fn frames(totals: &FrameTotals, page_size: u64) -> Map<String, Value> {
    let bytes = |frames: u64| frames.saturating_mul(page_size);
    let value = json!({
        "alloc_events": totals.alloc_events,
        "alloc_failures": totals.alloc_failures,
        "pages_alloc": totals.frames_alloc,
        "bytes_alloc": bytes(totals.frames_alloc),
        "pages_freed": totals.frames_freed,
        "bytes_freed": bytes(totals.frames_freed),
        "pages_freed_unseen": totals.frames_freed_unseen,
        "bytes_freed_unseen": bytes(totals.frames_freed_unseen),
        "pages_live": totals.frames_live,
        "bytes_live": bytes(totals.frames_live),
        "pages_uncertain": totals.frames_uncertain,
        "bytes_live_uncertain": bytes(totals.frames_live_uncertain),
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// The sums of a row of a table.
pub fn row(totals: &Totals) -> Map<String, Value> {
    let value = json!({
        "alloc_events": totals.alloc_events,
        "bytes_req": totals.bytes_req,
        "bytes_alloc": totals.bytes_alloc,
        "bytes_wasted": totals.bytes_wasted(),
        "internal_fragmentation_percent": totals.internal_fragmentation_percent(),
        "frees_matched": totals.frees_matched,
        "bytes_freed": totals.bytes_freed,
        "freed_unseen": totals.freed_unseen,
        "bytes_freed_unseen": totals.bytes_freed_unseen,
        "live": totals.live,
        "bytes_live": totals.bytes_live,
        "bytes_wasted_live": totals.bytes_wasted_live(),
        "uncertain": totals.uncertain,
        "bytes_live_uncertain": totals.bytes_live_uncertain,
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
