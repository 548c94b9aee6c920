//! Lifetimes of some objects: their distribution, and where they are freed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::survival::SurvivalRow;
use crate::collect::histogram::Histogram;
use crate::collect::lifetimes::CallerLives;
use crate::pass::Analysis;
use crate::reports::common::labels::Labels;
use crate::reports::common::rows::Address;
use crate::reports::common::symbol::Symbol;
use crate::stream::Api;

/// Lifetimes of some objects.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LifeRow {
    /// Lifetimes of the objects that were freed.
    pub lifetime: Distribution,
    /// Objects still allocated at the end of the window: their lifetimes are at least their ages.
    pub censored: u64,
    /// Implied frees: the address or page was reused, and no free event was recorded.
    pub freed_unseen: u64,
    /// Lives that cross a loss, or whose free is ambiguous.
    pub uncertain: u64,
    /// Bytes of the objects that were freed.
    pub bytes_freed: u64,
    /// Sum of bytes x lifetime of the objects that were freed, in bytes x the clock's unit; a decimal number.
    pub byte_time: String,
    /// Survival of the objects allocated in the window.
    pub survival: SurvivalRow,
    /// Call sites and interfaces of the frees, the most frequent first.
    pub freed_by: Vec<FreeRow>,
}

/// Distribution of lifetimes, in the clock's unit; percentiles are exact to 1.6 %.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Number of lifetimes.
    pub n: u64,
    /// Median; `null`: no lifetime.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// Longest lifetime, exact.
    pub max: Option<u64>,
    /// Mean, exact.
    pub mean: Option<u64>,
    /// Buckets that are not empty: lowest and highest lifetime, number of lifetimes.
    pub histogram: Vec<[u64; 3]>,
    /// Number of lifetimes of 1 to 9, 10 to 99, 100 to 999 and so on.
    #[serde(skip)]
    pub decades: Vec<u64>,
}

/// Frees at one call site and interface.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FreeRow {
    /// Address of the call site of the free.
    pub call_site: Address,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// `kmalloc` or `cache`.
    pub api: &'static str,
    /// Objects freed there.
    pub frees: u64,
    /// Mean of their lifetimes, in the clock's unit.
    pub lifetime_mean: u64,
}

impl From<&Histogram> for Distribution {
    fn from(lifetimes: &Histogram) -> Self {
        Self {
            n: lifetimes.count(),
            p50: lifetimes.quantile(500),
            p90: lifetimes.quantile(900),
            p99: lifetimes.quantile(990),
            max: lifetimes.max(),
            mean: lifetimes.mean(),
            histogram: lifetimes.buckets().map(|(low, width, n)| [low, low + (width - 1), n]).collect(),
            decades: lifetimes.decades(),
        }
    }
}

impl LifeRow {
    /// Row of some lives.
    pub fn of(lives: &CallerLives, analysis: &Analysis, labels: &Labels<'_, '_>, is_timed: bool) -> Self {
        Self {
            lifetime: Distribution::from(&lives.freed),
            censored: lives.censored,
            freed_unseen: lives.implied_frees,
            uncertain: lives.uncertain,
            bytes_freed: lives.bytes_freed,
            byte_time: lives.byte_time.to_string(),
            survival: SurvivalRow::of(lives, is_timed),
            freed_by: freed_by(lives, analysis, labels),
        }
    }
}

fn freed_by(lives: &CallerLives, analysis: &Analysis, labels: &Labels<'_, '_>) -> Vec<FreeRow> {
    let mut sums: BTreeMap<(Api, u64), (u64, u128)> = BTreeMap::new();
    for (site, &(frees, time)) in lives.freed_by.iter() {
        let Some(site) = analysis.interner.frees.get(site) else { continue };
        let sum = sums.entry((site.api, site.call_site)).or_default();
        *sum = (sum.0 + frees, sum.1 + time);
    }
    let row = |((api, address), (frees, time)): ((Api, u64), (u64, u128))| FreeRow {
        call_site: Address(address),
        symbol: labels.located(address),
        api: api.name(),
        frees,
        lifetime_mean: (time / u128::from(frees.max(1))) as u64,
    };
    let mut rows: Vec<FreeRow> = sums.into_iter().map(row).collect();
    rows.sort_by(|a, b| b.frees.cmp(&a.frees).then_with(|| a.symbol.cmp(&b.symbol)));
    rows
}
