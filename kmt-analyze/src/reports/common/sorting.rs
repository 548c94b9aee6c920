//! Names that `--sort` accepts, and orders of rows.
//!
//! A name has one meaning in every report, and is the heading of its column. Its aliases are the keys of that column in JSON and
//! CSV. Each report accepts those that it has.

use std::cmp::Ordering;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::ledger::totals::Totals;
use crate::sort_rows::SortRows;

/// A column that `--sort` accepts. Numbers of live objects, areas and pages are those at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortKey {
    /// Allocations
    #[value(name = "allocs", alias = "alloc_events")]
    Count,
    /// Failed allocations
    #[value(name = "failed", alias = "alloc_failures")]
    Failed,
    /// Bytes requested
    #[value(name = "requested", alias = "bytes_req")]
    Req,
    /// Bytes allocated
    #[value(name = "allocated", alias = "bytes_alloc")]
    Alloc,
    /// Bytes allocated beyond those requested
    #[value(name = "wasted", alias = "bytes_wasted")]
    Waste,
    /// Share of the allocated bytes that were not requested
    #[value(name = "waste_percent", alias = "internal_fragmentation_percent")]
    Frag,
    /// Bytes wasted at the end
    #[value(name = "live_waste", alias = "bytes_wasted_live")]
    LiveWaste,
    /// Bytes wasted on average over the window
    #[value(name = "mean_waste", alias = "bytes_wasted_on_average")]
    MeanWaste,
    /// Bytes freed
    #[value(name = "freed", alias = "bytes_freed")]
    Freed,
    /// Objects freed
    #[value(name = "frees", alias = "lifetime.n")]
    Frees,
    /// Implied frees; of pages in pages
    #[value(name = "implied_frees", aliases = ["freed_unseen", "pages_freed_unseen"])]
    ImpliedFrees,
    /// Bytes live
    #[value(name = "live", alias = "bytes_live")]
    Live,
    /// Objects live
    #[value(name = "live_objects", alias = "censored")]
    LiveCount,
    /// Areas live
    #[value(name = "live_areas")]
    LiveAreas,
    /// Pages allocated
    #[value(name = "pages", alias = "pages_alloc")]
    Pages,
    /// Pages freed
    #[value(name = "freed_pages", alias = "pages_freed")]
    FreedPages,
    /// Pages live
    #[value(name = "live_pages", alias = "pages_live")]
    LivePages,
    /// Objects, areas or pages of allocations that cross a loss
    #[value(name = "uncertain", alias = "pages_uncertain")]
    Uncertain,
    /// Median lifetime
    #[value(name = "p50", alias = "lifetime.p50")]
    P50,
    /// 90th percentile of the lifetimes
    #[value(name = "p90", alias = "lifetime.p90")]
    P90,
    /// 99th percentile of the lifetimes
    #[value(name = "p99", alias = "lifetime.p99")]
    P99,
    /// Longest lifetime
    #[value(name = "max", alias = "lifetime.max")]
    Max,
    /// Bytes x lifetime
    #[value(name = "byte_time")]
    ByteTime,
    /// Objects freed soon after their allocation
    #[value(name = "temporary")]
    Temporary,
    /// Bytes of objects freed soon after their allocation
    #[value(name = "temporary_bytes", alias = "bytes_temporary")]
    TemporaryBytes,
    /// Change in bytes, in either direction
    #[value(name = "change", alias = "bytes_change")]
    Change,
    /// Growth in bytes
    #[value(name = "growth")]
    Growth,
    /// Allocations that are live, as /proc/allocinfo counts them
    #[value(name = "calls")]
    Calls,
    /// Growth of these allocations
    #[value(name = "calls_growth", alias = "calls_change")]
    CallsGrowth,
    /// Name
    #[value(name = "name", aliases = ["symbol", "call_site"])]
    Name,
}

/// Accepts some of the names, as the value of `--sort`.
pub fn sort_keys(keys: &'static [SortKey]) -> impl TypedValueParser<Value = SortKey> {
    let values = keys.iter().filter_map(SortKey::to_possible_value);
    PossibleValuesParser::new(values).try_map(|name| SortKey::from_str(&name, false))
}

/// Names of sums of slab objects; pages are of tasks only.
pub const SLAB_SUMS: &[SortKey] = &[
    SortKey::Count,
    SortKey::Req,
    SortKey::Alloc,
    SortKey::Waste,
    SortKey::Frag,
    SortKey::Freed,
    SortKey::LiveCount,
    SortKey::Live,
    SortKey::Pages,
    SortKey::LivePages,
    SortKey::Name,
];

impl SortKey {
    /// The key with this name, or with this key in JSON.
    pub fn named(name: &str) -> Option<Self> {
        Self::from_str(name, false).ok()
    }

    /// The heading of its column, with _ for blanks.
    pub fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// Keys of its column in JSON and CSV.
    pub fn json_keys(self) -> Vec<String> {
        let value = self.to_possible_value();
        let names = value.iter().flat_map(|value| value.get_name_and_aliases().skip(1).map(str::to_owned));
        // As the name, `live` is of bytes.
        let also = (self == Self::LiveCount).then(|| "live".to_owned());
        names.chain(also).collect()
    }

    /// Keys of JSON that are this column in rows of survivors, where all is live; elsewhere they have other meanings.
    pub fn keys_of_survivors(self) -> &'static [&'static str] {
        match self {
            Self::LiveCount => &["survivors"],
            Self::Live => &["bytes"],
            Self::Growth => &["old_bytes_per_second"],
            _ => &[],
        }
    }

    /// True for sums of pages: only tasks have them beside slab objects.
    pub fn is_of_pages(self) -> bool {
        matches!(self, Self::Pages | Self::LivePages)
    }

    /// Number of these sums; the larger one is the first. `None`: the name, or not a sum of slab objects.
    pub fn number(self, sums: &Totals) -> Option<u128> {
        Some(match self {
            Self::Alloc => sums.bytes_alloc.into(),
            Self::Req => sums.bytes_req.into(),
            Self::Waste => sums.bytes_wasted().into(),
            Self::Count => sums.alloc_events.into(),
            Self::Live => sums.bytes_live.into(),
            Self::LiveCount => sums.live.into(),
            Self::Freed => sums.bytes_freed.into(),
            // Parts per million: a total order without floating point.
            Self::Frag => u128::from(sums.bytes_wasted()) * 1_000_000 / u128::from(sums.bytes_alloc.max(1)),
            _ => return None,
        })
    }
}

/// Sorts rows by several keys, then by name: the largest number of a key is the first, and a key without numbers is the
/// last one. All rows have a number of a key, or none has.
///
/// Only numbers are sorted: a file can name 200,000 call sites, and sorting needs room for half of what it moves.
pub fn sort_rows<R, K: Copy>(
    rows: &mut [R],
    keys: &[K],
    number: impl Fn(&R, K) -> Option<u128>,
    by_name: impl Fn(&R, &R) -> Ordering,
) {
    let number = &number;
    let numbers_of = |row| keys.iter().map_while(move |key| number(row, *key));
    let numbers: Vec<u128> = rows.iter().flat_map(numbers_of).collect();
    let each = numbers.len() / rows.len().max(1);
    let numbers = |row: usize| &numbers[row * each..(row + 1) * each];
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_rows_by(|&a, &b| numbers(b).cmp(numbers(a)).then_with(|| by_name(&rows[a], &rows[b])));
    rearrange(rows, order);
}

/// Moves each row to its place in `order`, cycle by cycle.
fn rearrange<R>(rows: &mut [R], mut order: Vec<usize>) {
    for start in 0..rows.len() {
        let mut at = start;
        loop {
            let from = std::mem::replace(&mut order[at], at);
            if from == start || from == at {
                break;
            }
            rows.swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::screen::Column;
    use crate::reports::common::cells::slab_columns;

    #[test]
    fn every_column_sorts_by_its_heading() {
        let columns = slab_columns(None, false).map(|column| column.heading);
        for heading in columns.filter(|heading| *heading != "implied freed") {
            let key = heading.replace(" %", "_percent").replace(' ', "_");
            let sort = SortKey::named(&key).unwrap();
            let column = slab_columns(Some(sort), false).find(|column| column.heading == heading);
            assert_eq!(column, Some(Column::number(heading)), "{key} keeps its column");
        }
    }

    #[test]
    fn a_name_or_a_json_key_is_of_one_column() {
        let mut seen = std::collections::HashSet::new();
        for key in SortKey::value_variants() {
            let names = std::iter::once(key.name()).chain(key.json_keys());
            for name in names.filter(|name| name != "live" || *key == SortKey::Live) {
                assert_eq!(SortKey::named(&name), Some(*key), "{name}");
                assert!(seen.insert(name.clone()), "{name} is of two columns");
            }
        }
        // Names of one report that other reports had for other columns.
        for former in
            ["count", "n", "bytes", "churn", "mean", "still_allocated", "hits", "req", "alloc", "frag"]
        {
            assert_eq!(SortKey::named(former), None, "{former}");
        }
        assert_eq!(SortKey::named("live"), Some(SortKey::Live));
    }

    /// docs/json.md has all names with their meanings.
    #[test]
    fn all_names_are_documented() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/json.md");
        let page = std::fs::read_to_string(file).unwrap();
        for key in SortKey::value_variants() {
            let help = key.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
            let line = format!("| `{}` | {} |", key.name(), help.unwrap_or_default());
            assert!(page.contains(&line), "docs/json.md lacks: {line}");
        }
    }

    #[test]
    fn rows_are_sorted_as_a_stable_sort_does() {
        let row = |n: u64| {
            let totals = Totals { bytes_alloc: n * 7919 % 13, ..Totals::default() };
            (n, totals, format!("name{}", n * 31 % 5))
        };
        for len in 0..200 {
            let mut rows: Vec<(u64, Totals, String)> = (0..len).map(row).collect();
            let mut sorted = rows.clone();
            sorted.sort_by(|a, b| (b.1.bytes_alloc, &a.2).cmp(&(a.1.bytes_alloc, &b.2)));
            sort_rows(&mut rows, &[SortKey::Alloc], |row, key| key.number(&row.1), |a, b| a.2.cmp(&b.2));
            assert_eq!(rows, sorted);
        }
    }
}
