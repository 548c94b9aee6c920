//! Lifetimes by call site and interface, or by the keys of `--by`, and the sites of the frees.
//!
//! Sites are joined with their lives first, then sorted and limited; only rows that are shown get names.

use std::cmp::Ordering;

use serde::Serialize;

use super::life::{Distribution, LifeRow, SurvivalRow};
use crate::collect::histogram::Histogram;
use crate::collect::lifetimes::{CallerLives, LifeGroupSums, LifetimeSums};
use crate::collect::sums::Sums;
use crate::pass::Analysis;
use crate::reports::common::ReportContext;
use crate::reports::common::labels::{Labels, Symbol};
use crate::reports::common::rows::Address;
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::reports::grouped::{GroupKey, GroupPart, GroupTable, Grouping, Values};
use crate::stream::Api;

/// Rows of `lifetimes`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LifetimeRows {
    /// Number of call sites and interfaces, including those beyond the limit of rows.
    pub lifetimes_total: usize,
    /// Lifetimes of the freed objects of all call sites.
    pub all: Distribution,
    /// Objects of all call sites that were allocated before the clock ran: their age is unknown.
    pub unknown_age: u64,
    /// Survival of the objects of all call sites.
    pub survival: SurvivalRow,
    /// Call sites and interfaces.
    pub lifetimes: Vec<LifetimeRow>,
    /// Groups of --by.
    #[serde(flatten)]
    pub groups: Option<GroupTable<LifeRow>>,
    #[serde(skip)]
    pub shown: LifetimesShown,
}

/// Objects without a lifetime, of all call sites.
#[derive(Debug)]
pub struct LifetimesShown {
    /// Objects that are still allocated.
    pub censored: u64,
    /// Implied frees.
    pub freed_unseen: u64,
}

/// Lifetimes of the objects of one call site and interface.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LifetimeRow {
    /// Address of the call site.
    pub call_site: Address,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// `kmalloc` or `cache`.
    pub api: &'static str,
    /// Lifetimes of the objects of the site.
    #[serde(flatten)]
    pub lives: LifeRow,
}

impl LifetimeRow {
    /// Row of a call site.
    pub fn of(site: &AllocSite<'_>, analysis: &Analysis, labels: &Labels<'_, '_>, is_timed: bool) -> Self {
        let (call_site, symbol, api) = (Address(site.address), site.symbol.clone(), site.api.name());
        Self { call_site, symbol, api, lives: LifeRow::of(site.lives, analysis, labels, is_timed) }
    }
}

/// Rows of all call sites, sorted by these keys.
pub fn compute(
    context: &ReportContext<'_, '_>,
    sums: &LifetimeSums,
    keys: &[SortKey],
    is_timed: bool,
) -> LifetimeRows {
    let analysis = context.analysis;
    let labels = Labels::new(context.session);
    let mut sites = with_lives(analysis, sums, &labels);
    sort_rows(&mut sites, keys, |site, key| number(key, site.lives), AllocSite::by_name);
    LifetimeRows {
        lifetimes_total: sites.len(),
        all: Distribution::from(&all_freed(&sites)),
        unknown_age: unknown_age(&sites),
        survival: SurvivalRow::of(&all_survival(&sites), is_timed),
        lifetimes: sites
            .iter()
            .take(context.limit)
            .map(|site| LifetimeRow::of(site, analysis, &labels, is_timed))
            .collect(),
        groups: None,
        shown: LifetimesShown {
            censored: sites.iter().map(|site| site.lives.censored).sum(),
            freed_unseen: sites.iter().map(|site| site.lives.implied_frees).sum(),
        },
    }
}

/// Groups by keys `by`, sorted by keys `order`.
pub fn groups(
    context: &ReportContext<'_, '_>,
    sums: &LifeGroupSums,
    by: &[&'static GroupKey],
    order: &[SortKey],
    is_timed: bool,
) -> GroupTable<LifeRow> {
    let analysis = context.analysis;
    let values = Values::new(context);
    let mut groups = Grouping::new(by, &values, analysis);
    for (group, lives) in sums.groups.iter().filter(|(_, lives)| lives.any()) {
        let Some(site) = analysis.interner.sites.get(group.site) else { continue };
        let sum: &mut CallerLives = groups.of(GroupPart::Slab(group, site));
        sum.absorb(lives.clone());
    }
    let labels = Labels::new(context.session);
    let row = |lives: &CallerLives| LifeRow::of(lives, analysis, &labels, is_timed);
    groups.table(order, |lives, key: SortKey| number(key, lives), context.limit, row)
}

/// Lives of the objects of one call site and interface.
pub struct AllocSite<'r> {
    pub address: u64,
    /// Interface.
    pub api: Api,
    /// Function and offset, or the address.
    pub symbol: Symbol,
    /// Sums of the lives.
    pub lives: &'r CallerLives,
}

impl AllocSite<'_> {
    /// Order by name.
    pub fn by_name(&self, other: &Self) -> Ordering {
        self.symbol.cmp(&other.symbol)
    }
}

/// The call sites that have lives.
pub fn with_lives<'r>(
    analysis: &Analysis,
    sums: &'r LifetimeSums,
    labels: &Labels<'_, '_>,
) -> Vec<AllocSite<'r>> {
    let callers = analysis.balance.callers.iter().zip(&sums.callers);
    callers
        .filter(|(_, lives)| lives.any())
        .map(|(&(api, address), lives)| AllocSite { address, api, symbol: labels.located(address), lives })
        .collect()
}

/// Lifetimes and survival of the objects of all call sites, without the sites of their frees.
fn all_survival(sites: &[AllocSite<'_>]) -> CallerLives {
    let mut all = CallerLives { freed: all_freed(sites), ..CallerLives::default() };
    sites.iter().for_each(|site| all.survival.absorb(site.lives.survival.clone()));
    all
}

/// Lifetimes of the freed objects of all call sites.
pub fn all_freed(sites: &[AllocSite<'_>]) -> Histogram {
    let mut all = Histogram::default();
    sites.iter().for_each(|site| all.merge(&site.lives.freed));
    all
}

/// Objects of all call sites that were allocated before the clock ran.
pub fn unknown_age(sites: &[AllocSite<'_>]) -> u64 {
    sites.iter().fold(0, |sum, site| sum.saturating_add(site.lives.unknown_age))
}

/// Names that sort lifetimes; those of temporary objects need the report `temporary`.
pub const LIFETIMES: &[SortKey] = &[
    SortKey::Frees,
    SortKey::P50,
    SortKey::P90,
    SortKey::P99,
    SortKey::Max,
    SortKey::Freed,
    SortKey::ByteTime,
    SortKey::LiveCount,
    SortKey::ImpliedFrees,
    SortKey::Temporary,
    SortKey::TemporaryBytes,
    SortKey::Name,
];

/// Number of these lives; the larger one is the first. `None`: the name.
pub fn number(key: SortKey, lives: &CallerLives) -> Option<u128> {
    let quantile = |per_mille| lives.freed.quantile(per_mille).unwrap_or(0).into();
    Some(match key {
        SortKey::Frees => lives.freed.count().into(),
        SortKey::P50 => quantile(500),
        SortKey::P90 => quantile(900),
        SortKey::P99 => quantile(990),
        SortKey::Max => lives.freed.max().unwrap_or(0).into(),
        SortKey::Freed => lives.bytes_freed.into(),
        SortKey::ByteTime => lives.byte_time,
        SortKey::LiveCount => lives.censored.into(),
        SortKey::ImpliedFrees => lives.implied_frees.into(),
        SortKey::Temporary => lives.temporary.into(),
        SortKey::TemporaryBytes => lives.bytes_temporary.into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_but_that_of_names_has_a_number() {
        let lives = CallerLives::default();
        for key in LIFETIMES {
            assert_eq!(number(*key, &lives).is_some(), *key != SortKey::Name, "{key:?}");
        }
    }
}
