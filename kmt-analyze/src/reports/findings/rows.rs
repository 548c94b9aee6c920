//! Findings in the order of what is at stake, and totals.

use serde::Serialize;

use super::finding::Finding;
use super::parts::Parts;
use super::recording::{Recording, recording};
use super::{Sources, failures, growth, waits, waste};
use crate::render::look::Look;
use crate::reports::common::Context;
use crate::reports::summary::SummaryRows;

/// Findings on the first screen.
const FINDINGS_MAX: usize = 10;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingRows {
    /// Findings, the largest share at stake first; ten at most.
    pub findings: Vec<Finding>,
    /// The recording: its losses, length and kernel.
    pub recording: Recording,
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
    let mut findings = growth::compute(&sources, last.saturating_sub(first), &view);
    findings.extend(waste::compute(&sources, &view));
    findings.extend(waits::compute(&sources, last.saturating_sub(first), &view));
    findings.extend(failures::compute(&sources, &view));
    findings.sort_by(|a, b| b.at_stake_percent.total_cmp(&a.at_stake_percent));
    findings.truncate(FINDINGS_MAX);
    FindingRows {
        findings,
        recording: recording(context.session),
        parts: sources.parts,
        totals: sources.summary,
    }
}
