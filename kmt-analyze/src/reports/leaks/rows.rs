//! Rows of what stays: by call site, by kind of pages, by family.

use kmt_format::kernel::ClockUnit;
use serde::Serialize;

use super::families::{Family, families};
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
use crate::reports::common::labels::Labels;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeakRows {
    /// What stays, or why nothing is said of it.
    pub leaks: Leaked,
}

/// What stays, or why nothing is said of it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Leaked {
    /// The window is too short.
    Refused {
        /// Why nothing is said.
        refused: String,
    },
    /// What stays.
    Found(Box<LeakTables>),
}

/// What stays.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeakTables {
    /// Length of the window, in the clock's unit.
    pub window: u64,
    /// Families in all.
    pub families_total: usize,
    /// Call sites whose objects are born together, by one task, and stay; the largest first.
    pub families: Vec<FamilyRow>,
    /// Call sites in all.
    pub callers_total: usize,
    /// Slab objects by call site.
    pub callers: Vec<LeakRow>,
    /// Live pages that hold slab objects, which are in no row; `null`: not known.
    pub slab_pages: Option<u64>,
    /// Call sites of pages in all.
    pub page_callers_total: usize,
    /// Pages by call site, where stacks were recorded.
    pub page_callers: Vec<LeakRow>,
    /// Kinds of pages in all.
    pub pages_total: usize,
    /// Pages by kind.
    pub pages: Vec<LeakRow>,
    /// Rows as the text groups them.
    #[serde(skip)]
    pub text: TextParts,
}

/// Call sites that grow together.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FamilyRow {
    /// How many.
    pub call_sites: usize,
    /// The one with most.
    pub leader: Option<String>,
    /// Bytes of old survivors of all of them.
    pub old_bytes: u64,
    /// The same a second, or in 10^9 ticks, since growth began.
    pub old_bytes_per_second: u64,
}

/// Shorter windows say nothing, in nanoseconds: timers, writeback and RCU alone hold things for so long.
const WINDOW_NS_MIN: u64 = 1_000_000_000;

/// Rows of a trace.
pub fn of(
    context: &Context<'_, '_>,
    analysis: &Analysis,
    growth: &GrowthSums,
    calls: Option<&CallSums>,
) -> LeakRows {
    let (first, last) = context.selection.span(context.session);
    let length = last.saturating_sub(first);
    if context.session.unit() == ClockUnit::Nanoseconds && length < WINDOW_NS_MIN {
        let refused = format!(
            "the window of {} is too short: what is alive after so little time says nothing",
            duration(length, context.session.unit())
        );
        return LeakRows { leaks: Leaked::Refused { refused } };
    }
    let judged = slab::judged(context, analysis, growth, calls);
    let pages = page_rows(context, analysis, growth);
    let by_caller = page_callers(context, analysis, growth);
    let callers = page_caller_rows(context, &by_caller, growth);
    let families = families(&judged, length);
    let labels = Labels::new(context.session);
    let maker = RowMaker { labels: &labels, families: &families, length, page_size: analysis.page_size.0 };
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
        text: text_parts(&maker, [&judged, &callers, &pages], &families, context.limit),
    };
    LeakRows { leaks: Leaked::Found(Box::new(tables)) }
}
