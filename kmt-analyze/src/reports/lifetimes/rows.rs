//! Lifetimes by call site and interface, and the sites of the frees.

use serde::Serialize;

use super::life::{Distribution, LifeRow};
use super::sites::{AllocSite, all_freed, all_survival, with_lives};
use super::sorting::number;
use super::survival::SurvivalRow;
use crate::collect::lifetimes::LifetimeSums;
use crate::pass::Analysis;
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Labels;
use crate::reports::common::rows::Address;
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::reports::common::symbol::Symbol;
use crate::reports::grouped::GroupTable;

/// Rows of `lifetimes`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LifetimeRows {
    /// Number of call sites and interfaces, including those beyond the limit of rows.
    pub lifetimes_total: usize,
    /// Lifetimes of the freed objects of all call sites.
    pub all: Distribution,
    /// Survival of the objects of all call sites.
    pub survival: SurvivalRow,
    /// Call sites and interfaces.
    pub lifetimes: Vec<LifetimeRow>,
    /// Groups of --by.
    #[serde(flatten)]
    pub groups: Option<GroupTable<LifeRow>>,
    /// Objects of all call sites that are still allocated.
    #[serde(skip)]
    pub censored: u64,
    /// Implied frees of all call sites.
    #[serde(skip)]
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
        survival: SurvivalRow::of(&all_survival(&sites), is_timed),
        lifetimes: sites
            .iter()
            .take(context.limit)
            .map(|site| LifetimeRow::of(site, analysis, &labels, is_timed))
            .collect(),
        censored: sites.iter().map(|site| site.lives.censored).sum(),
        freed_unseen: sites.iter().map(|site| site.lives.implied_frees).sum(),
        groups: None,
    }
}
