//! `callers`: sums of slab objects by call site and interface.
//!
//! The sums are those that each pass has (`Analysis::balance`), with bounds where events were lost. Options, rows and screen are
//! here.

use std::collections::HashSet;

use serde::Serialize;

use crate::collect::Collectors;
use crate::ledger::SiteTotals;
use crate::ledger::totals::Totals;
use crate::pass::selection::Selection;
use crate::pass::weights::{Estimate, in_order};
use crate::pass::{Analysis, Needs};
use crate::render::head::{self, some_values};
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::reports::common::basis::Input;
use crate::reports::common::cells::{LIVE_RANGE, live_range, live_range_cells, slab_cells, slab_columns};
use crate::reports::common::labels::Symbol;
use crate::reports::common::lead::{CALL_SITES, lead};
use crate::reports::common::report_context::is_doubtful;
use crate::reports::common::rows::{Address, Estimated, LiveRange, RecordedSums, SlabSums};
use crate::reports::common::sorting::{SortKey, sort_rows};
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::grouped::{GroupKey, GroupOptions, Groupable, Grouped, Only, RowOptions, WHOLE_DIR};
use crate::reports::report::Report;
use crate::sort_rows::SortRows;
use crate::stream::{Api, Site};

/// Sums by call site and interface.
#[derive(Debug, clap::Args)]
pub struct Callers {
    /// Only call sites whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    call_site: Option<String>,
    /// Groups and order.
    #[command(flatten)]
    rows: RowOptions,
}

impl Grouped<Callers> {
    /// Grouped by directory, source file and function.
    pub fn by_source() -> Self {
        let others = ["file", "function"].into_iter().filter_map(|name| GroupKey::parse_slab(name).ok());
        let by = std::iter::once(&WHOLE_DIR).chain(others).collect();
        let rows = RowOptions { groups: GroupOptions { by }, sort: vec![SortKey::Alloc] };
        Self { report: Callers { call_site: None, rows } }
    }
}

impl Report for Callers {
    type Handles = ();
    type Rows = CallerRows;

    const NAME: &'static str = "callers";
    const KEY: &'static str = "call_sites";
    const TITLE: &'static str = "call sites";
    const ABOUT: &'static str = "Sums by call site";
    const NEEDS: Needs = Needs::CACHE_NAMES;
    const RESTS_ON: Input = Input::SlabAllocs;

    fn adds_sums(&self) -> bool {
        true
    }

    fn for_selection(self, selection: &Selection) -> Self {
        Self { rows: self.rows.for_selection(selection), ..self }
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    /// Rows of the call sites whose name contains the text of `--call-site`.
    fn compute(&self, context: &ReportContext<'_, '_>, (): &()) -> CallerRows {
        let named = |caller: CallerTotals| (context.labels().located(caller.address), caller);
        let is_selected = |name: &Symbol| self.call_site.as_deref().is_none_or(|text| name.contains(text));
        let (mut all, others): (Vec<(Symbol, CallerTotals)>, Vec<_>) =
            callers(context.analysis).into_iter().map(named).partition(|(name, _)| is_selected(name));
        let number = |c: &CallerTotals, key: SortKey| key.number(&in_order(c.estimate(), c.totals));
        sort_rows(&mut all, &self.rows.sort, |(_, caller), key| number(caller, key), |a, b| a.0.cmp(&b.0));
        let bounds = context.live_bounds();
        let wanted: HashSet<(Api, u64)> =
            all.iter().take(context.limit).map(|(_, c)| (c.api, c.address)).collect();
        let live = bounds.bounds.by_caller(|caller| wanted.contains(&caller));
        let basis = context.basis();
        let recorded = [Api::Kmalloc, Api::Cache].map(|api| RecordedSums::slab(basis, Some(api)));
        let row = |(name, c): &(Symbol, CallerTotals)| {
            let recorded = recorded[c.api as usize];
            let live = live.get(&(c.api, c.address)).copied().flatten();
            CallerRow {
                sums: SlabSums::of(&c.totals, recorded),
                estimated: c.estimate().map(Estimated::from),
                call_site: Address(c.address),
                symbol: name.clone(),
                api: c.api.name(),
                live_range: LiveRange::of(&c.totals, live, recorded.lives),
                alloc_failures: c.failures,
            }
        };
        let mut sum = Totals::default();
        all.iter().for_each(|(_, c)| sum += &c.totals);
        let others = others.into_iter().map(|(name, _)| String::from(name)).filter(|_| all.is_empty());
        let shown = CallersShown {
            sums: SlabSums::of(&sum, RecordedSums::slab(basis, None)),
            has_failures: all.iter().any(|(_, c)| c.failures > 0),
            has_doubts: all.iter().any(|(_, c)| is_doubtful(&c.totals)),
            legend: bounds.legend(),
            names: others.collect(),
        };
        CallerRows {
            callers_total: all.len(),
            callers: all.iter().take(context.limit).map(row).collect(),
            shown,
        }
    }

    /// The largest call sites, and the share of the first.
    fn screen(&self, rows: &CallerRows, view: &View) -> Screen {
        let sort = self.rows.first();
        let (shown, total) = (&rows.shown, rows.callers_total);
        if !shown.names.is_empty() {
            return head::nothing(vec![format!("call sites: {}", some_values(shown.names.clone()))]);
        }
        let first = rows.callers.first().map(|row| (row.symbol.as_str(), &row.sums));
        let mut screen = Screen::new(lead(sort, total as u64, CALL_SITES, &shown.sums, first, view));
        let (is_lossy, has_doubts) = (view.is_lossy, shown.has_doubts);
        screen.table(
            Table::of_rows("", &rows.callers)
                .of("call site", "call sites", total)
                .column(Column::name("call site"), |row| Cell::from(&row.symbol))
                .column(Column::whole("api").leaves(5), |row| Cell::text(row.api))
                .columns(slab_columns(sort, is_lossy), |r| {
                    slab_cells(&r.sums, r.estimated.as_ref(), is_lossy)
                })
                .column_if(shown.has_failures, Column::number("failed").leaves(6), |r| {
                    Cell::Count(r.alloc_failures)
                })
                .columns(live_range(has_doubts), |r| live_range_cells(has_doubts, &r.live_range, r.sums.live))
                .explain(LIVE_RANGE[0].heading, shown.legend),
        );
        screen.next("lifetimes", "how long their objects live, and where they are freed");
        screen.next("callers --sort wasted", "who wastes most");
        screen
    }
}

impl Groupable for Callers {
    fn options(&self) -> &RowOptions {
        &self.rows
    }

    fn only(&self) -> Only<'_> {
        self.call_site.as_deref().map_or(Only::All, Only::CallSite)
    }
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallerRows {
    /// Number of call sites.
    pub callers_total: usize,
    /// Call sites and interfaces.
    pub callers: Vec<CallerRow>,
    #[serde(skip)]
    shown: CallersShown,
}

/// Facts that only the screen has, of all call sites whose name contains the text of `--call-site`.
#[derive(Debug)]
struct CallersShown {
    /// Sums of their objects.
    sums: SlabSums,
    /// Any has allocations that failed.
    has_failures: bool,
    /// Any has frees without events.
    has_doubts: bool,
    /// The note on bounds.
    legend: &'static str,
    /// Names of all call sites of the trace, if none contains the text.
    names: Vec<String>,
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

/// A call site and interface before sorting and limiting.
struct CallerTotals {
    address: u64,
    api: Api,
    totals: Totals,
    /// Boxed: few traces have samples.
    estimate: Option<Box<Estimate>>,
    failures: u64,
}

impl CallerTotals {
    fn estimate(&self) -> Option<Estimate> {
        self.estimate.as_deref().copied()
    }
}

/// All call sites and interfaces, by address.
fn callers(analysis: &Analysis) -> Vec<CallerTotals> {
    let sites = analysis.interner.sites.items().iter().zip(&analysis.balance.sites);
    let mut sites: Vec<_> = sites.zip(&analysis.balance.failures).collect();
    sites.sort_rows_by_key(|((site, _), _)| (site.call_site, site.api));
    let callers = sites.chunk_by(|((a, _), _), ((b, _), _)| (a.call_site, a.api) == (b.call_site, b.api));
    let caller = |sites: &[((&Site, &SiteTotals), &u64)]| {
        let ((first, _), _) = sites.first()?;
        let (mut totals, mut estimate, mut failures) = (Totals::default(), None, 0);
        for ((site, parts), failed) in sites {
            for (_, part) in *parts {
                totals += part;
                analysis.weights.add(site, part, &mut estimate);
            }
            failures += **failed;
        }
        let estimate = estimate.map(Box::new);
        Some(CallerTotals { address: first.call_site, api: first.api, totals, estimate, failures })
    };
    callers.filter_map(caller).filter(|c| c.totals != Totals::default() || c.failures > 0).collect()
}
