//! Function, task and use with most pages, allocated and still allocated.
//!
//! Functions are those outside the allocator, from the stacks of the allocations, where stacks were recorded. Sums come from the
//! collectors of tasks and of stacks of pages, and totals from `summary`. `top_table` shows them beside those of slab
//! memory (`top`).

use std::collections::BTreeMap;

use serde::Serialize;

use super::growth::by_use;
use super::top::{TopHolders, TopPart, add, holders, top_of};
use crate::collect::page_use::PageStackSums;
use crate::collect::tasks::TaskSums;
use crate::ledger::totals::FrameTotals;
use crate::reports::common::{ReportContext, page_sums};
use crate::reports::summary::SummaryRows;

/// Pages that were allocated, or are still allocated, and those with most of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopPagesRow {
    /// Function and task with most of them.
    #[serde(flatten)]
    pub holders: TopHolders,
    /// Use with most of them, as in `page_growth`.
    #[serde(rename = "use")]
    pub of_use: Option<TopPart>,
}

/// Sums of the pass.
pub type PageParts<'p> = (&'p TaskSums, &'p PageStackSums);

/// Pages that were allocated, or are live.
type Amount = fn(&FrameTotals) -> u64;

/// Who allocated most pages; `None`: none was allocated, or that is unknown.
pub fn allocated(
    context: &ReportContext<'_, '_>,
    parts: PageParts<'_>,
    summary: &SummaryRows,
) -> Option<TopPagesRow> {
    let bytes = summary.pages.as_ref()?.sums.sums.bytes_alloc?;
    // Sums of folded lives have no task, so none is known to have most.
    let none = TaskSums::default();
    let parts = if context.session.trace.header().folded { (&none, parts.1) } else { parts };
    (bytes > 0).then(|| row(context, parts, bytes, |totals| totals.frames_alloc))
}

/// Who holds most pages; `None`: none is live, or that is unknown.
pub fn live(
    context: &ReportContext<'_, '_>,
    parts: PageParts<'_>,
    summary: &SummaryRows,
) -> Option<TopPagesRow> {
    let bytes = summary.pages.as_ref()?.sums.sums.bytes_live?;
    (bytes > 0).then(|| row(context, parts, bytes, |totals| totals.frames_live))
}

fn row(
    context: &ReportContext<'_, '_>,
    (tasks, stacks): PageParts<'_>,
    bytes: u64,
    of: Amount,
) -> TopPagesRow {
    let analysis = context.analysis;
    let page_size = analysis.page_size.0;
    let bytes_of = |totals: &FrameTotals| of(totals).saturating_mul(page_size);
    let mut addresses: BTreeMap<u64, u64> = BTreeMap::new();
    for (stack, totals) in &stacks.stacks {
        let frames = analysis.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
        if let Some(address) = page_sums::caller(frames, context.symbols()) {
            add(&mut addresses, address, bytes_of(totals));
        }
    }
    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
    for (address, bytes) in addresses {
        add(&mut functions, context.labels().caller_function(address), bytes);
    }
    let mut uses: BTreeMap<String, u64> = BTreeMap::new();
    for row in by_use(analysis, of) {
        add(&mut uses, row.name.to_owned(), row.bytes);
    }
    TopPagesRow {
        holders: holders(context, bytes, functions, tasks.origins.iter().map(|sums| bytes_of(&sums.pages))),
        of_use: top_of(uses),
    }
}
