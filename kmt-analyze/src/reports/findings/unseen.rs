//! Growth of caches that the kernel counts and no event shows.

use super::Sources;
use super::finding::Finding;
use super::growing::Growing;
use super::growth::slab_live;
use crate::reports::common::View;
use crate::reports::leaks::UnseenRow;

/// Rule of the finding.
const THRESHOLD: &str = "by /proc/slabinfo a cache grew by at least 64 KiB more than events show, by more objects than fit in eight slabs of each CPU, and by more than have allocation events";

/// Findings of this kind.
const UNSEEN_MAX: usize = 3;

/// Findings of caches that grew without events, over a recording of this length.
pub fn compute(sources: &Sources, length: u64, view: &View) -> Vec<Finding> {
    let rows = sources.unseen.iter().take(UNSEEN_MAX);
    let finding = |row: &UnseenRow| {
        let bytes = row.growth.bytes;
        let finding = Finding::new("unseen_growth", THRESHOLD, "slabinfo", view, |view| row.sentence(view));
        let rate = u128::from(bytes) * 1_000_000_000 / u128::from(length.max(1));
        let bytes_per_second = Some(u64::try_from(rate).unwrap_or(u64::MAX));
        let growing = Some(Growing::unseen(row));
        Finding { bytes: Some(bytes), bytes_per_second, growing, ..finding }.share(
            bytes,
            slab_live(sources).saturating_add(bytes),
            "slab bytes still allocated",
        )
    };
    rows.map(finding).collect()
}
