//! A call site, or a kind of pages, with the verdict on what stays of it.

use super::stacks::RowStack;
use crate::analysis::leaks::Evidence;
use crate::collect::growth::Survival;
use crate::stream::Api;

/// A call site, or a kind of pages, with the verdict on what stays of it.
pub(super) struct Judged<'r> {
    pub(super) api: Option<Api>,
    pub(super) address: u64,
    pub(super) name: String,
    pub(super) cache: String,
    pub(super) evidence: Evidence,
    /// The kernel takes objects of its cache back when it needs memory.
    pub(super) is_reclaimable: bool,
    /// Where most of it was allocated, where stacks were recorded.
    pub(super) stacks: Vec<RowStack>,
    pub(super) course: &'r Survival,
    /// Number of the row that leads what grows together with it.
    pub(super) leader: Option<usize>,
}

/// Puts those to be looked at first in front.
pub(super) fn sort(rows: &mut [Judged<'_>]) {
    rows.sort_by(|a, b| {
        (a.evidence.verdict, b.evidence.old_amount, &a.name).cmp(&(
            b.evidence.verdict,
            a.evidence.old_amount,
            &b.name,
        ))
    });
}
