//! Free pages that large requests cannot use: the kernel's indices, before and after the trace.

use serde::Serialize;

use super::traced::Traced;
use crate::render::words::escaped;
use crate::trace::buddy::{self, Zone};

/// Free pages of a zone.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ZoneRow {
    /// `before` or `after` the trace; empty: not recorded.
    pub when: &'static str,
    /// Node.
    pub node: u32,
    /// Zone.
    pub zone: String,
    /// Free pages.
    pub free_pages: u64,
    /// Free blocks by order.
    pub free_blocks: Vec<u64>,
    /// Share of the free pages that a request cannot use, by order, in thousandths, as mm/vmstat.c computes it.
    pub unusable_index: Vec<u64>,
    /// By order, in thousandths: -1000 the request would succeed, towards 0 it would fail for lack of memory, towards
    /// 1000 for fragmentation, as mm/vmstat.c computes it.
    pub extfrag_index: Vec<i64>,
}

impl ZoneRow {
    /// Name of the zone for people, escaped: `node 0 DMA32`.
    pub fn name(&self) -> String {
        format!("node {} {}", self.node, escaped(self.zone.as_bytes()))
    }

    /// Free pages in blocks below an order.
    pub fn unusable_pages(&self, order: u8) -> u64 {
        let below = self.free_blocks.iter().enumerate().take(order.into());
        below.fold(0, |sum, (order, &blocks)| sum.saturating_add(blocks.saturating_mul(1 << order)))
    }
}

/// Snapshots of /proc/buddyinfo, and when they were read.
const FILES: [(&str, &str); 3] =
    [("before", "buddyinfo.before"), ("after", "buddyinfo.after"), ("", "buddyinfo")];

/// Rows of a trace; `None` without a snapshot.
pub fn compute(traced: &Traced<'_, '_, '_>) -> Option<Vec<ZoneRow>> {
    let zones = |name: &str| traced.attachment(&[name]).map(buddy::parse).unwrap_or_default();
    let row = |when: &'static str, zone: Zone| {
        let orders = 0..zone.free.len();
        ZoneRow {
            when,
            node: zone.node,
            free_pages: zone.pages(),
            unusable_index: orders.clone().map(|order| zone.unusable_index(order)).collect(),
            extfrag_index: orders.map(|order| zone.extfrag_index(order)).collect(),
            zone: zone.name,
            free_blocks: zone.free,
        }
    };
    let rows =
        FILES.into_iter().flat_map(|(when, name)| zones(name).into_iter().map(move |zone| (when, zone)));
    let rows: Vec<ZoneRow> = rows.map(|(when, zone)| row(when, zone)).collect();
    (!rows.is_empty()).then_some(rows)
}
