//! `info --diff`: changes of the kernel's own counts from the begin of the recording to its end.
//!
//! Snapshots of /proc/meminfo, /proc/slabinfo, /proc/buddyinfo, /proc/vmstat and /proc/zoneinfo are compared.

use std::collections::BTreeMap;

use kmt_format::read::Metadata;
use serde::Serialize;

use crate::reports::common::cells::difference;
use crate::reports::common::rows::text;
use crate::sort_rows::SortRows;
use crate::trace::meminfo::{self, ZoneInfo};
use crate::trace::session::Session;
use crate::trace::slabinfo::{self, SlabCaches};

/// Changes of the kernel's counts.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangeRows {
    /// Lines of /proc/meminfo that changed, the largest change first; `null`: not read twice.
    pub meminfo: Option<Vec<ByteChange>>,
    /// Caches of /proc/slabinfo that changed, the largest change of bytes first; `null`: not read twice.
    pub slabinfo: Option<Vec<CacheChange>>,
    /// Zones of /proc/buddyinfo; `null`: not read twice.
    pub buddyinfo: Option<Vec<ZoneChange>>,
    /// Numbers of /proc/vmstat that changed, the largest change first; `null`: not read twice.
    pub vmstat: Option<Vec<CountChange>>,
    /// Zones of /proc/zoneinfo whose free pages or watermarks changed, the largest change first; `null`: not read twice.
    pub zoneinfo: Option<Vec<ZoneInfoChange>>,
}

/// Change of one line of /proc/meminfo.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ByteChange {
    /// Name.
    pub name: String,
    /// Bytes at the begin.
    pub bytes_before: u64,
    /// Bytes at the end.
    pub bytes_after: u64,
    /// Bytes at the end less those at the begin.
    pub bytes_change: i64,
}

/// Change of one cache.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheChange {
    /// Cache.
    pub cache: String,
    /// Active objects at the begin; 0: the cache was not there.
    pub active_before: u64,
    /// Active objects at the end.
    pub active_after: u64,
    /// Active objects at the end less those at the begin.
    pub active_change: i64,
    /// True if the kernel may have estimated the active objects: more than 10,000 slabs, since 6.10.
    pub active_estimated: bool,
    /// Bytes of its slabs at the begin.
    pub bytes_before: u64,
    /// Bytes of its slabs at the end.
    pub bytes_after: u64,
    /// Bytes of its slabs at the end less those at the begin.
    pub bytes_change: i64,
}

/// Change of the free memory of one zone.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ZoneChange {
    /// Node.
    pub node: u32,
    /// Zone.
    pub zone: String,
    /// Free blocks by order at the begin.
    pub free_before: Vec<u64>,
    /// Free blocks by order at the end.
    pub free_after: Vec<u64>,
    /// Bytes free at the begin, without per-CPU lists.
    pub bytes_before: u64,
    /// Bytes free at the end, without per-CPU lists.
    pub bytes_after: u64,
    /// Bytes free at the end less those at the begin.
    pub bytes_change: i64,
}

/// Change of one number.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CountChange {
    /// Name.
    pub name: String,
    /// Number at the begin.
    pub before: u64,
    /// Number at the end.
    pub after: u64,
    /// Number at the end less that at the begin.
    pub change: i64,
}

impl ChangeRows {
    /// True if nothing was read twice.
    pub fn is_empty(&self) -> bool {
        let Self { meminfo, slabinfo, buddyinfo, vmstat, zoneinfo } = self;
        let is_first_empty = meminfo.is_none() && slabinfo.is_none() && buddyinfo.is_none();
        is_first_empty && vmstat.is_none() && zoneinfo.is_none()
    }
}

/// Changes of a file.
pub fn compute(session: &Session<'_>) -> ChangeRows {
    let metadata = session.trace.metadata();
    let page_size = session.trace.header().page_size.unwrap_or(4096);
    ChangeRows {
        meminfo: twice(metadata, "meminfo").map(|(before, after)| meminfo(before, after)),
        slabinfo: twice(metadata, "slabinfo").map(|(before, after)| {
            cache_changes(&slabinfo::parse(before), &slabinfo::parse(after), page_size)
        }),
        buddyinfo: twice(metadata, "buddyinfo").map(|(before, after)| zones(before, after, page_size)),
        vmstat: twice(metadata, "vmstat").map(|(before, after)| vmstat(before, after)),
        zoneinfo: twice(metadata, "zoneinfo").map(|(before, after)| zone_changes(before, after)),
    }
}

/// A file of the target at the begin and at the end.
fn twice<'m>(metadata: &'m Metadata<'_>, name: &str) -> Option<(&'m [u8], &'m [u8])> {
    let at = |when: &str| metadata.attachment(&format!("{name}.{when}"));
    at("before").zip(at("after"))
}

/// Numbers by name, each true if it is in kB: `MemFree:  123 kB`, `nr_free_pages 123`.
fn numbers(file: &[u8]) -> BTreeMap<String, (u64, bool)> {
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?.trim_end_matches(':');
        let number = words.next()?.parse().ok()?;
        Some((text(name.as_bytes()), (number, words.next() == Some("kB"))))
    };
    String::from_utf8_lossy(file).lines().filter_map(line).collect()
}

/// Names of both files, each with its two values.
fn joined<V: Clone>(before: &BTreeMap<String, V>, after: &BTreeMap<String, V>) -> Vec<(String, V, V)> {
    let both = |(name, before): (&String, &V)| Some((name.clone(), before.clone(), after.get(name)?.clone()));
    before.iter().filter_map(both).collect()
}

/// Sizes of /proc/meminfo, in kB there; its numbers without a unit are left out.
fn meminfo(before: &[u8], after: &[u8]) -> Vec<ByteChange> {
    let bytes = |(number, is_kb): (u64, bool)| is_kb.then(|| number.saturating_mul(1024));
    let row = |(name, before, after): (String, _, _)| {
        let (bytes_before, bytes_after) = bytes(before).zip(bytes(after))?;
        Some(ByteChange {
            name,
            bytes_before,
            bytes_after,
            bytes_change: difference(bytes_before, bytes_after),
        })
    };
    let rows = joined(&numbers(before), &numbers(after)).into_iter().filter_map(row);
    changed(rows.collect(), |row| row.bytes_change)
}

fn vmstat(before: &[u8], after: &[u8]) -> Vec<CountChange> {
    let row = |(name, (before, _), (after, _)): (String, (u64, bool), (u64, bool))| CountChange {
        name,
        before,
        after,
        change: difference(before, after),
    };
    changed(joined(&numbers(before), &numbers(after)).into_iter().map(row).collect(), |row| row.change)
}

/// Caches that changed, the largest change of bytes first.
pub fn cache_changes(before: &SlabCaches, after: &SlabCaches, page_size: u64) -> Vec<CacheChange> {
    let bytes = |cache: Option<&slabinfo::SlabInfoLine>| {
        cache.map_or(0, |c| c.num_slabs.saturating_mul(c.pagesperslab).saturating_mul(page_size))
    };
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    let row = |name: &String| {
        let (first, last) = (before.get(name), after.get(name));
        let active = |cache: Option<&slabinfo::SlabInfoLine>| cache.map_or(0, |c| c.active_objs);
        let estimated =
            |cache: Option<&slabinfo::SlabInfoLine>| cache.is_some_and(|c| c.in_use_max() > c.active_objs);
        CacheChange {
            cache: text(name.as_bytes()),
            active_before: active(first),
            active_after: active(last),
            active_change: difference(active(first), active(last)),
            active_estimated: estimated(first) || estimated(last),
            bytes_before: bytes(first),
            bytes_after: bytes(last),
            bytes_change: difference(bytes(first), bytes(last)),
        }
    };
    let mut rows: Vec<CacheChange> = names.map(row).collect();
    rows.retain(|row| row.active_change != 0 || row.bytes_change != 0);
    rows.sort_rows_by_key(|row| {
        let size = (row.bytes_change.unsigned_abs(), row.active_change.unsigned_abs());
        (std::cmp::Reverse(size), row.cache.clone())
    });
    rows
}

/// Zones that were there both times.
fn zones(before: &[u8], after: &[u8], page_size: u64) -> Vec<ZoneChange> {
    let after = meminfo::buddy(after);
    let mut by_name: BTreeMap<(u32, &str), &meminfo::Zone> = BTreeMap::new();
    for zone in &after {
        by_name.entry((zone.node, &zone.name)).or_insert(zone);
    }
    let row = |first: meminfo::Zone| {
        let last = *by_name.get(&(first.node, first.name.as_str()))?;
        let bytes = |zone: &meminfo::Zone| zone.pages().saturating_mul(page_size);
        Some(ZoneChange {
            node: first.node,
            zone: text(first.name.as_bytes()),
            bytes_before: bytes(&first),
            bytes_after: bytes(last),
            bytes_change: difference(bytes(&first), bytes(last)),
            free_after: last.free.clone(),
            free_before: first.free,
        })
    };
    meminfo::buddy(before).into_iter().filter_map(row).collect()
}

/// Rows that changed, the largest change first.
fn changed<R>(mut rows: Vec<R>, change: impl Fn(&R) -> i64) -> Vec<R> {
    rows.retain(|row| change(row) != 0);
    // Stable: equal ones by name.
    rows.sort_rows_by_key(|row| std::cmp::Reverse(change(row).unsigned_abs()));
    rows
}

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
    /// Free pages at the end less those at the begin.
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
fn zone_changes(before: &[u8], after: &[u8]) -> Vec<ZoneInfoChange> {
    let after = meminfo::zoneinfo(after);
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
    let mut rows: Vec<ZoneInfoChange> = meminfo::zoneinfo(before).into_iter().filter_map(row).collect();
    // Stable: equal ones in the kernel's order.
    rows.sort_rows_by_key(|row| std::cmp::Reverse(row.pages_free_change.unsigned_abs()));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_and_without_units_are_read() {
        let before = b"MemTotal:  100 kB\nMemFree:  50 kB\nHugePages_Total:  7\nbroken\nx: -3 kB\n";
        let after = b"MemFree:  20 kB\nMemTotal:  100 kB\nHugePages_Total:  8\nNew: 1 kB\n";
        let rows = meminfo(before, after);
        let rows: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.bytes_change)).collect();
        assert_eq!(rows, [("MemFree", -30 * 1024)]);
        let rows = vmstat(b"a 1\nb 5\nc 9\n", b"a 4\nb 5\nc 1\n");
        let rows: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.change)).collect();
        assert_eq!(rows, [("c", -8), ("a", 3)]);
    }

    #[test]
    fn caches_that_come_and_go_are_changes() {
        let line = |name: &str, active: u64, slabs: u64| {
            format!("{name} {active} {active} 64 64 1 : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n")
        };
        let before = [line("same", 5, 1), line("gone", 64, 1), line("more", 10, 1)].concat();
        let after = [line("same", 5, 1), line("new", 128, 2), line("more", 20, 1)].concat();
        let [before, after] = [before, after].map(|text| slabinfo::parse(text.as_bytes()));
        let rows = cache_changes(&before, &after, 4096);
        let rows: Vec<_> =
            rows.iter().map(|row| (row.cache.as_str(), row.active_change, row.bytes_change)).collect();
        assert_eq!(rows, [("new", 128, 8192), ("gone", -64, -4096), ("more", 10, 0)]);
    }

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
        let rows = zone_changes(before.as_bytes(), after.as_bytes());
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
