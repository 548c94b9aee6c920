//! Changes of /proc/zoneinfo.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::reports::common::cells::difference;
use crate::reports::common::rows::text;
use crate::trace::zoneinfo::{self, ZoneInfo};

/// Change of the free pages and watermarks of one zone.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ZoneInfoChange {
    /// Node.
    pub node: u32,
    /// Zone.
    pub zone: String,
    /// Free pages at the begin.
    pub pages_free_before: u64,
    /// Free pages at the end.
    pub pages_free_after: u64,
    /// Difference.
    pub pages_free_change: i64,
    /// Low watermark at the begin, in pages: below it kswapd wakes up.
    pub pages_low_before: u64,
    /// Low watermark at the end.
    pub pages_low_after: u64,
    /// High watermark at the begin, in pages: kswapd stops there.
    pub pages_high_before: u64,
    /// High watermark at the end.
    pub pages_high_after: u64,
}

/// Zones that were there both times and changed, the largest change of free pages first.
pub fn compute(before: &[u8], after: &[u8]) -> Vec<ZoneInfoChange> {
    let after = zoneinfo::parse(after);
    let mut by_name: BTreeMap<(u32, &str), &ZoneInfo> = BTreeMap::new();
    for zone in &after {
        by_name.entry((zone.node, &zone.name)).or_insert(zone);
    }
    let row = |first: ZoneInfo| {
        let last = *by_name.get(&(first.node, first.name.as_str()))?;
        (first != *last).then(|| ZoneInfoChange {
            node: first.node,
            zone: text(first.name.as_bytes()),
            pages_free_before: first.free,
            pages_free_after: last.free,
            pages_free_change: difference(first.free, last.free),
            pages_low_before: first.low,
            pages_low_after: last.low,
            pages_high_before: first.high,
            pages_high_after: last.high,
        })
    };
    let mut rows: Vec<ZoneInfoChange> = zoneinfo::parse(before).into_iter().filter_map(row).collect();
    // Stable: equal ones in the kernel's order.
    rows.sort_by_key(|row| std::cmp::Reverse(row.pages_free_change.unsigned_abs()));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_zones_are_rows() {
        let zone = |node: u32, name: &str, [free, low, high]: [u64; 3]| {
            format!(
                "Node {node}, zone {name}\n  pages free {free}\n    min 1\n    low {low}\n    high {high}\n"
            )
        };
        let before =
            [zone(0, "DMA", [9, 2, 3]), zone(0, "Normal", [50, 5, 6]), zone(1, "Normal", [70, 5, 6])]
                .concat();
        let after = [zone(1, "Normal", [10, 5, 6]), zone(0, "Normal", [50, 5, 8]), zone(0, "DMA", [9, 2, 3])]
            .concat();
        let rows = compute(before.as_bytes(), after.as_bytes());
        let found: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.node,
                    row.zone.as_str(),
                    row.pages_free_change,
                    row.pages_high_before,
                    row.pages_high_after,
                )
            })
            .collect();
        assert_eq!(found, [(1, "Normal", -60, 6, 6), (0, "Normal", 0, 6, 8)]);
    }
}
