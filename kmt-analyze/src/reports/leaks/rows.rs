//! Rows of memory that is still allocated: by call site, by kind of pages, by family.

use kmt_format::kernel::ClockUnit;
use serde::Serialize;

use super::families::{Family, families};
use super::ignore::{Ignore, Ignored};
use super::judged::Judged;
use super::pages::{page_caller_rows, page_callers, page_rows};
use super::row::{LeakRow, RowMaker};
use super::slab;
use super::text_parts::{TextParts, text_parts};
use crate::collect::calls::CallSums;
use crate::collect::growth::GrowthSums;
use crate::pass::Analysis;
use crate::render::text::duration;
use crate::reports::common::Context;
use crate::reports::common::basis::Basis;
use crate::reports::common::labels::Labels;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeakRows {
    /// Memory that is still allocated, with verdicts; or the reason why there is no verdict.
    pub leaks: Leaked,
}

/// Memory that is still allocated, with verdicts; or the reason why there is no verdict.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Leaked {
    /// The window is too short.
    Refused {
        /// Reason.
        refused: String,
    },
    /// Memory that is still allocated.
    Found(Box<LeakTables>),
}

impl LeakRows {
    /// The tables; `None`: the window is too short.
    pub fn tables(&self) -> Option<&LeakTables> {
        match &self.leaks {
            Leaked::Found(tables) => Some(tables),
            Leaked::Refused { .. } => None,
        }
    }
}

/// Memory that is still allocated.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeakTables {
    /// Length of the window, in the clock's unit.
    pub window: u64,
    /// Number of families, including those beyond the limit of rows.
    pub families_total: usize,
    /// Call sites that grow together: their objects are allocated at the same times by one task; the largest first.
    pub families: Vec<FamilyRow>,
    /// Number of call sites, including those beyond the limit of rows.
    pub callers_total: usize,
    /// Slab objects by call site.
    pub callers: Vec<LeakRow>,
    /// Live pages that hold slab objects, which are in no row; `null`: unknown.
    pub slab_pages: Option<u64>,
    /// Number of call sites of pages, including those beyond the limit of rows.
    pub page_callers_total: usize,
    /// Pages by call site, where stacks were recorded.
    pub page_callers: Vec<LeakRow>,
    /// Number of kinds of pages, including those beyond the limit of rows.
    pub pages_total: usize,
    /// Pages by kind.
    pub pages: Vec<LeakRow>,
    /// Findings hidden by `--ignore`; without that option there is no such key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<Ignored>,
    /// Rows as the screen groups them.
    #[serde(skip)]
    pub text: TextParts,
}

/// Call sites that grow together.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FamilyRow {
    /// Number of call sites.
    pub call_sites: usize,
    /// Call site with most bytes.
    pub leader: Option<String>,
    /// Bytes of the old survivors of all of them.
    pub old_bytes: u64,
    /// The same per second, or per 10^9 ticks, since growth began.
    pub old_bytes_per_second: u64,
}

/// Shortest window, in nanoseconds: timers, writeback and RCU alone keep objects for this long.
const WINDOW_NS_MIN: u64 = 1_000_000_000;

/// Rows of a trace.
pub fn of(
    context: &Context<'_, '_>,
    analysis: &Analysis,
    growth: &GrowthSums,
    calls: Option<&CallSums>,
    ignore: Option<&Ignore>,
) -> LeakRows {
    let (first, last) = context.selection.span(context.session);
    let length = last.saturating_sub(first);
    if context.session.unit() == ClockUnit::Nanoseconds && length < WINDOW_NS_MIN {
        let refused = format!(
            "the window of {} is too short: live objects are normal for at least {}",
            duration(length, context.session.unit()),
            duration(WINDOW_NS_MIN, context.session.unit())
        );
        return LeakRows { leaks: Leaked::Refused { refused } };
    }
    let mut judged = slab::judged(context, analysis, growth, calls);
    let mut pages = page_rows(context, analysis, growth);
    let by_caller = page_callers(context, analysis, growth);
    let mut callers = page_caller_rows(context, &by_caller, growth);
    let labels = Labels::of(context);
    let ignored = ignore.map(|ignore| ignore.hide_all([&mut judged, &mut callers, &mut pages], &labels));
    let families = families(&judged, length);
    let page_size = analysis.page_size.0;
    let maker = RowMaker {
        labels: &labels,
        interner: &analysis.interner,
        families: &families,
        start: first,
        length,
        page_size,
    };
    let basis = Basis::of(context.session, analysis);
    let rows = |judged: &[Judged<'_>]| judged.iter().take(context.limit).map(|r| maker.row(r)).collect();
    let family = |family: &Family<'_>| FamilyRow {
        call_sites: family.rows.len(),
        leader: family.rows.first().map(|row| row.name.clone()),
        old_bytes: family.bytes,
        old_bytes_per_second: family.per_second,
    };
    let tables = LeakTables {
        window: length,
        families_total: families.len(),
        families: families.iter().take(context.limit).map(family).collect(),
        callers_total: judged.len(),
        callers: rows(&judged),
        slab_pages: analysis.direct_map.map(|_| growth.slab_pages),
        page_callers_total: callers.len(),
        page_callers: rows(&callers),
        pages_total: pages.len(),
        pages: rows(&pages),
        ignored,
        text: TextParts {
            has_slab: basis.allocs(None),
            has_pages: basis.page_ends(),
            ..text_parts(&maker, [&judged, &callers, &pages], &families, context.limit)
        },
    };
    LeakRows { leaks: Leaked::Found(Box::new(tables)) }
}
