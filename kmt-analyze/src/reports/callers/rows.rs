//! Sums by call site and interface.

use std::collections::HashSet;

use serde::Serialize;

use crate::ledger::SiteTotals;
use crate::ledger::totals::Totals;
use crate::pass::Analysis;
use crate::pass::weights::{Estimate, in_order};
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Labels;
use crate::reports::common::live_bounds::is_doubtful;
use crate::reports::common::recorded_sums::RecordedSums;
use crate::reports::common::rows::{Address, Estimated, LiveRange, SlabSums};
use crate::reports::common::shown::shown;
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::reports::common::symbol::Symbol;
use crate::stream::{Api, Site};

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallerRows {
    /// Number of call sites.
    pub callers_total: usize,
    /// Names of all call sites, where `--call-site` leaves none.
    #[serde(skip)]
    pub others: Vec<String>,
    /// Call sites and interfaces.
    pub callers: Vec<CallerRow>,
    /// Sums over all call sites.
    #[serde(skip)]
    pub all: SlabSums,
    /// Any call site, shown or not, has allocations that failed.
    #[serde(skip)]
    pub has_failures: bool,
    /// True if any has frees without events.
    #[serde(skip)]
    pub has_doubts: bool,
    /// Bound of the live figures.
    #[serde(skip)]
    pub bounds_legend: &'static str,
}

/// Sums of one call site and interface.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallerRow {
    /// Sums of its objects.
    #[serde(flatten)]
    pub sums: SlabSums,
    /// Sums that its samples represent; `null`: no sample represents more than one event.
    pub estimated: Option<Estimated>,
    /// Address of the call site.
    pub call_site: Address,
    /// Function and offset, or the address.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// `kmalloc` or `cache`.
    pub api: &'static str,
    /// Bounds of its live figures.
    #[serde(flatten)]
    pub live_range: LiveRange,
    /// Allocations that returned NULL.
    pub alloc_failures: u64,
}

/// A call site before sorting and limiting.
struct CallerCandidate {
    address: u64,
    api: Api,
    name: Symbol,
    totals: Totals,
    /// Boxed: few traces have samples.
    estimate: Option<Box<Estimate>>,
    failures: u64,
}

impl CallerCandidate {
    fn estimate(&self) -> Option<Estimate> {
        self.estimate.as_deref().copied()
    }
}

/// A candidate for each call site and interface, by address.
fn candidates(analysis: &Analysis, labels: &Labels<'_, '_>) -> Vec<CallerCandidate> {
    let sites = analysis.interner.sites.items().iter().zip(&analysis.balance.sites);
    let mut sites: Vec<_> = sites.zip(&analysis.balance.failures).collect();
    sites.sort_by_key(|((site, _), _)| (site.call_site, site.api));
    let callers = sites.chunk_by(|((a, _), _), ((b, _), _)| (a.call_site, a.api) == (b.call_site, b.api));
    let candidate = |sites: &[((&Site, &SiteTotals), &u64)]| {
        let ((first, _), _) = sites.first()?;
        let (mut totals, mut estimate, mut failures) = (Totals::default(), None, 0);
        for ((site, parts), failed) in sites {
            for (_, part) in *parts {
                totals += part;
                analysis.weights.add(site, part, &mut estimate);
            }
            failures += **failed;
        }
        let name = labels.located(first.call_site);
        let estimate = estimate.map(Box::new);
        Some(CallerCandidate { address: first.call_site, api: first.api, name, totals, estimate, failures })
    };
    callers.filter_map(candidate).filter(|c| c.totals != Totals::default() || c.failures > 0).collect()
}

/// Rows of the call sites whose name contains `filter`.
pub fn of(context: &ReportContext<'_, '_>, sort: &[SortKey], filter: Option<&str>) -> CallerRows {
    let analysis = context.analysis;
    let mut all = candidates(analysis, context.labels());
    let names: Vec<String> = all.iter().filter(|_| filter.is_some()).map(|c| c.name.to_string()).collect();
    all.retain(|c| filter.is_none_or(|filter| c.name.contains(filter)));
    sort_rows(&mut all, sort, |c| (in_order(c.estimate(), c.totals), &c.name));
    let shown = shown(Some(context.limit), all.len());
    let bounds = context.live_bounds();
    let wanted: HashSet<(Api, u64)> = all.iter().take(shown).map(|c| (c.api, c.address)).collect();
    let live = bounds.bounds.by_caller(|caller| wanted.contains(&caller));
    let basis = context.basis();
    let recorded = [Api::Kmalloc, Api::Cache].map(|api| RecordedSums::slab(basis, Some(api)));
    let row = |c: &CallerCandidate| {
        let recorded = recorded[c.api as usize];
        CallerRow {
            sums: SlabSums::of(&c.totals, recorded),
            estimated: c.estimate().map(Estimated::from),
            call_site: Address(c.address),
            symbol: c.name.clone(),
            api: c.api.name(),
            live_range: LiveRange::of(
                &c.totals,
                live.get(&(c.api, c.address)).copied().flatten(),
                recorded.lives,
            ),
            alloc_failures: c.failures,
        }
    };
    let mut sum = Totals::default();
    all.iter().for_each(|c| sum += &c.totals);
    CallerRows {
        callers_total: all.len(),
        others: if all.is_empty() { names } else { Vec::new() },
        all: SlabSums::of(&sum, RecordedSums::slab(basis, None)),
        has_failures: all.iter().any(|c| c.failures > 0),
        has_doubts: all.iter().any(|c| is_doubtful(&c.totals)),
        bounds_legend: bounds.legend(),
        callers: all.iter().take(shown).map(row).collect(),
    }
}
