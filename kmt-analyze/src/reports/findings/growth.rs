//! Memory that grows and is not freed, by the verdicts of `leaks`.

use super::Sources;
use super::finding::Finding;
use super::growing::Growing;
use crate::reports::common::View;
use crate::reports::leaks::{LeakTables, growth_sentence, may_grow_sentence, page_growth_sentence};

/// Rule of a finding of growth.
const THRESHOLD: &str = "the verdict of leaks: objects older than their kind gets, from at least half of the steps of the window, no fewer late than early; and at least 16 KiB, or at least 4 KiB and 1 % of all that is still allocated";

/// Rule of possible growth.
const POSSIBLE: &str = "old objects of one task from three quarters of the steps of the window, about as many early as late, whose frees have no event; and as many bytes as growth needs";

/// Least growth in bytes, unless it is a large share.
const BYTES_MIN: u64 = 16 << 10;

/// Least growth in bytes of any share: a page. Of the little that an idle system allocates, anything is a large share.
const PAGE: u64 = 4 << 10;

/// Share that is large, as 1/N.
const SHARE_MIN: u64 = 100;

fn is_large(bytes: u64, live: u64) -> bool {
    bytes >= BYTES_MIN || bytes >= PAGE && bytes.saturating_mul(SHARE_MIN) >= live
}

/// Findings of growth: one for each family of call sites, and for the pages of each task.
pub fn compute(sources: &Sources, length: u64, view: &View) -> Vec<Finding> {
    let Some(tables) = sources.leaks.as_ref().and_then(|rows| rows.tables()) else { return Vec::new() };
    let live = slab_live(sources);
    let families = tables.text.families.iter().enumerate();
    let families = families.filter(|(_, family)| is_large(family.bytes, live));
    let slab = families.map(|(number, family)| {
        let finding = Finding::new("slab_growth", THRESHOLD, "leaks", view, |view| {
            growth_sentence(family, tables.window, view)
        });
        let growing = Growing::of_family(tables, number);
        let (bytes, bytes_per_second) = (Some(family.bytes), Some(family.bytes_per_second));
        let finding = Finding { bytes, bytes_per_second, growing, ..finding };
        finding.share(family.bytes, live, "slab bytes still allocated")
    });
    slab.chain(pages(sources, tables, view)).map(|found| found.over(length)).collect()
}

/// Slab bytes that are still allocated, of the interfaces whose allocations were recorded.
pub(super) fn slab_live(sources: &Sources) -> u64 {
    let Some(slab) = &sources.summary.slab else { return 0 };
    let parts = [&slab.kmalloc, &slab.cache].map(|part| part.totals.bytes_live.unwrap_or(0));
    parts.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

/// Growth of one task whose frees have no event.
pub fn possible(sources: &Sources, length: u64, view: &View) -> Option<Finding> {
    let tables = sources.leaks.as_ref().and_then(|rows| rows.tables())?;
    let live = slab_live(sources);
    let row = tables.text.may_grow.as_ref().filter(|row| is_large(row.old_bytes, live))?;
    let finding = Finding::new("possible_growth", POSSIBLE, "leaks", view, |view| {
        may_grow_sentence(row, tables.window, view)
    });
    let bytes_per_second = Some(row.old_bytes_per_second);
    let growing = Some(Growing::possible(row));
    let finding = Finding { bytes: Some(row.old_bytes), bytes_per_second, growing, ..finding };
    Some(finding.share(row.old_bytes, live, "slab bytes still allocated").over(length))
}

/// Pages that grow: by task, as call sites where stacks were recorded, else as kinds.
fn pages<'s>(
    sources: &'s Sources,
    tables: &'s LeakTables,
    view: &'s View,
) -> impl Iterator<Item = Finding> + 's {
    let live = sources.summary.pages.as_ref().and_then(|pages| pages.sums.sums.bytes_live).unwrap_or(0);
    let growths = tables.text.page_growths.iter().enumerate();
    growths.filter(move |(_, growth)| is_large(growth.sum.bytes, live)).map(move |(number, growth)| {
        let finding = Finding::new("page_growth", THRESHOLD, "leaks", view, |view| {
            page_growth_sentence(growth, tables.window, view)
        });
        let (bytes, bytes_per_second) = (Some(growth.sum.bytes), Some(growth.sum.bytes_per_second));
        let growing = Growing::of_pages(tables, number);
        Finding { bytes, bytes_per_second, growing, ..finding }.share(
            growth.sum.bytes,
            live,
            "bytes of pages still allocated",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::is_large;

    #[test]
    fn little_is_large_only_beside_little_more() {
        assert!(is_large(16 << 10, 1 << 30));
        assert!(is_large(8 << 10, 100 << 10) && !is_large(8 << 10, 1 << 20));
        assert!(!is_large(500, 0) && !is_large(4_095, 4_095));
    }
}
