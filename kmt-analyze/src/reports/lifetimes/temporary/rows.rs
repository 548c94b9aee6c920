//! Temporary objects by call site and interface.

use serde::Serialize;

use crate::collect::lifetimes::LifetimeSums;
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Labels;
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::reports::lifetimes::life::Distribution;
use crate::reports::lifetimes::rows::LifetimeRow;
use crate::reports::lifetimes::sites::{AllocSite, all_freed, with_lives};
use crate::reports::lifetimes::sorting::number;

/// Rows of `temporary`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TemporaryRows {
    /// Longest lifetime of a temporary object, in the clock's unit.
    pub temporary_bound: u64,
    /// Number of call sites and interfaces that have temporary objects, including those beyond the limit of rows.
    pub temporary_total: usize,
    /// Lifetimes of the freed objects of these call sites.
    pub all: Distribution,
    /// Call sites and interfaces that have temporary objects.
    pub temporary: Vec<TemporaryRow>,
    /// Temporary objects of all call sites.
    #[serde(skip)]
    pub objects: u64,
    /// Bytes of temporary objects of all call sites.
    #[serde(skip)]
    pub bytes: u64,
}

/// Temporary objects of one call site and interface.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TemporaryRow {
    /// Lifetimes of all its objects.
    #[serde(flatten)]
    pub lifetimes: LifetimeRow,
    /// Objects freed within the bound.
    pub temporary: u64,
    /// Bytes of objects freed within the bound.
    pub bytes_temporary: u64,
    /// Objects freed within the bound on another CPU, by another task or on another interrupt level.
    pub temporary_freed_elsewhere: u64,
}

/// Rows of the call sites that have temporary objects, sorted by these keys.
pub fn compute(
    context: &ReportContext<'_, '_>,
    sums: &LifetimeSums,
    keys: &[SortKey],
    (bound, is_timed): (u64, bool),
) -> TemporaryRows {
    let analysis = context.analysis;
    let labels = Labels::new(context.session);
    let mut sites = with_lives(analysis, sums, &labels);
    sites.retain(|site| site.lives.temporary > 0);
    sort_rows(&mut sites, keys, |site, key| number(key, site.lives), AllocSite::by_name);
    let row = |site| TemporaryRow {
        lifetimes: LifetimeRow::of(site, analysis, &labels, is_timed),
        temporary: site.lives.temporary,
        bytes_temporary: site.lives.bytes_temporary,
        temporary_freed_elsewhere: site.lives.temporary_elsewhere,
    };
    TemporaryRows {
        temporary_bound: bound,
        temporary_total: sites.len(),
        all: Distribution::from(&all_freed(&sites)),
        temporary: sites.iter().take(context.limit).map(row).collect(),
        objects: sites.iter().map(|site| site.lives.temporary).sum(),
        bytes: sites.iter().map(|site| site.lives.bytes_temporary).sum(),
    }
}
