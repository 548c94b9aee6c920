//! Findings in the order of their kinds, and totals.

use serde::Serialize;

use super::finding::Finding;
use super::page_growth::PageGrowthRow;
use super::parts::Parts;
use super::recording::{Recording, recording};
use super::top::TopRow;
use super::top_pages::TopPagesRow;
use super::{Sources, failures, growth, unseen, waits, waste};
use crate::render::look::Look;
use crate::reports::common::Context;
use crate::reports::common::basis::WholeTime;
use crate::reports::leaks::{ReclaimableGrowth, reclaimable_growth};
use crate::reports::summary::SummaryRows;

/// Findings on the first screen.
const FINDINGS_MAX: usize = 10;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingRows {
    /// Findings: growth, the fastest first, then possible growth, stalls, failures and waste; ten at most.
    pub findings: Vec<Finding>,
    /// The recording: its losses, length and kernel.
    pub recording: Recording,
    /// Function, task and cache that allocated most slab memory; `null`: none was allocated, or that is unknown.
    pub allocated: Option<TopRow>,
    /// Those that hold most of what is still allocated; `null`: nothing, or that is unknown.
    pub still_allocated: Option<TopRow>,
    /// Function, task and use that allocated most pages; `null`: none was allocated, or that is unknown.
    pub allocated_pages: Option<TopPagesRow>,
    /// Those that hold most pages that are still allocated; `null`: none is, or that is unknown.
    pub still_allocated_pages: Option<TopPagesRow>,
    /// Growth of pages; `null`: no page was allocated or freed, or that is unknown.
    pub page_growth: Option<PageGrowthRow>,
    /// The verdict on growth, where no finding is of growth; `null`: one is.
    pub verdict: Option<String>,
    /// Growth of what the kernel can reclaim, where no verdict has it.
    #[serde(skip)]
    pub reclaimable: Option<ReclaimableGrowth>,
    /// The longest time without losses, where there are some.
    #[serde(skip)]
    pub whole_time: Option<WholeTime>,
    /// True if slab allocations have stacks.
    #[serde(skip)]
    pub has_stacks: bool,
    /// Parts of the kernel that allocated most; `null`: allocations of kmalloc or of caches were not recorded, or no
    /// function has a name.
    pub parts: Option<Parts>,
    /// Totals, as `summary` has them.
    #[serde(flatten)]
    pub totals: SummaryRows,
}

/// Findings of a trace.
pub fn compute(context: &Context<'_, '_>, sources: Sources) -> FindingRows {
    let view = context.view(Look::default());
    let (first, last) = context.selection.span(context.session);
    let length = last.saturating_sub(first);
    // Their shares are of different wholes, so that kinds are not compared. Growth goes by its rate.
    let mut findings = growth::compute(&sources, length, &view);
    findings.extend(unseen::compute(&sources, length, &view));
    findings.sort_by_key(|found| std::cmp::Reverse(found.bytes_per_second));
    let has_growth = !findings.is_empty();
    let mut others: Vec<Finding> = growth::possible(&sources, length, &view).into_iter().collect();
    others.extend(waits::compute(&sources, length, &view));
    others.extend(failures::compute(&sources, &view));
    others.extend(waste::compute(&sources, &view));
    findings.truncate(FINDINGS_MAX.saturating_sub(others.len()));
    findings.extend(others);
    let [allocated, still_allocated] = sources.top;
    let [allocated_pages, still_allocated_pages] = sources.top_pages;
    let verdict = sources.verdict.filter(|_| !has_growth);
    let reclaimable = sources.leaks.as_ref().and_then(reclaimable_growth);
    FindingRows {
        findings,
        recording: recording(context.session),
        allocated,
        still_allocated,
        allocated_pages,
        still_allocated_pages,
        page_growth: sources.page_growth,
        has_stacks: sources.has_stacks,
        reclaimable: reclaimable.filter(|_| verdict.is_none()).cloned(),
        verdict,
        whole_time: sources.whole_time,
        parts: sources.parts,
        totals: sources.summary,
    }
}
