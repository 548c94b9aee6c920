//! A call site, or a kind of pages, with the verdict on its live memory.

use super::stacks::RowStack;
use crate::collect::growth::Survival;
use crate::reports::leaks::verdict::Evidence;
use crate::stream::Api;

/// A call site, or a kind of pages, with the verdict on its live memory.
pub(super) struct Judged<'r> {
    pub(super) api: Option<Api>,
    pub(super) address: u64,
    pub(super) name: String,
    pub(super) cache: String,
    pub(super) evidence: Evidence,
    /// The kernel reclaims objects of its cache when memory is short.
    pub(super) is_reclaimable: bool,
    /// Stacks with most live objects, where stacks were recorded.
    pub(super) stacks: Vec<RowStack>,
    pub(super) survival: &'r Survival,
    /// Number of the row that leads its family.
    pub(super) leader: Option<usize>,
}

/// Sorts by verdict, then by old bytes.
pub(super) fn sort(rows: &mut [Judged<'_>]) {
    rows.sort_by(|a, b| {
        (a.evidence.verdict, b.evidence.old_amount, &a.name).cmp(&(
            b.evidence.verdict,
            a.evidence.old_amount,
            &b.name,
        ))
    });
}
