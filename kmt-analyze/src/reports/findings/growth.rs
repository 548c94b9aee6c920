//! Findings of growth: memory that grows and is not freed, by the verdicts of `leaks`; growth of pages by their uses; growth of
//! caches that the kernel counts and no event shows.
//!
//! Uses of pages are those that the flags of the allocations show.

use std::cmp::Reverse;

use serde::Serialize;

use super::Sources;
use super::finding::Finding;
use super::growing::Growing;
use crate::ledger::totals::FrameTotals;
use crate::pass::Analysis;
use crate::reports::common::stated::OlderRow;
use crate::reports::common::{ReportContext, View};
use crate::reports::leaks::judge::pages::{is_of_user_space, use_of};
use crate::reports::leaks::{
    LeakTables, UnseenRow, growth_sentence, may_grow_sentence, page_growth_sentence,
};
use crate::reports::summary::SummaryRows;
use crate::sort_rows::SortRows;

/// Rule of a finding of growth.
const GROWTH_THRESHOLD: &str = "the verdict of leaks: objects older than their kind gets, from at least half of the steps of the window, no fewer late than early; and at least 16 KiB, or at least 4 KiB and 1 % of all that is still allocated";

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
pub fn growth(sources: &Sources, length: u64, view: &View) -> Vec<Finding> {
    let Some(tables) = sources.leaks.as_ref().and_then(|rows| rows.tables()) else { return Vec::new() };
    let live = slab_live(sources);
    let families = tables.text.families.iter().enumerate();
    let families = families.filter(|(_, family)| is_large(family.bytes, live));
    let slab = families.map(|(number, family)| {
        let finding = Finding::new("slab_growth", GROWTH_THRESHOLD, "leaks", view, |view| {
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
fn slab_live(sources: &Sources) -> u64 {
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
        let finding = Finding::new("page_growth", GROWTH_THRESHOLD, "leaks", view, |view| {
            page_growth_sentence(growth, tables.window, view)
        });
        let (bytes, bytes_per_second) = (Some(growth.sum.bytes), Some(growth.sum.bytes_per_second));
        let growing = Growing::of_pages(tables, number);
        let of_user_memory = growth.most.page_use.is_some_and(is_of_user_space);
        Finding { bytes, bytes_per_second, growing, of_user_memory, ..finding }.share(
            growth.sum.bytes,
            live,
            "bytes of pages still allocated",
        )
    })
}

/// Uses in the sentence.
const USES_SHOWN: usize = 4;

/// Growth of pages: live ones of the recording, less older ones that were freed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageGrowthRow {
    /// Bytes of pages that were allocated in the recording and are still allocated.
    pub bytes_live: u64,
    /// Bytes of pages that were freed in it without an allocation in it: allocated before it or, where events were lost,
    /// in a loss.
    pub bytes_older_freed: u64,
    /// Uses of the live ones, the largest first.
    pub uses: Vec<PageUseRow>,
}

/// Pages of one use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageUseRow {
    /// `page cache`, `anonymous or tmpfs`, `page tables`, `reclaimable slab`, `kernel`, `other user memory` or `unknown use`.
    #[serde(rename = "use")]
    pub name: &'static str,
    /// Bytes of pages of this use.
    pub bytes: u64,
}

/// Growth of pages; `None`: lives of pages were not recorded, or nothing happened.
pub fn page_growth(context: &ReportContext<'_, '_>, summary: &SummaryRows) -> Option<PageGrowthRow> {
    let sums = &summary.pages.as_ref()?.sums;
    let bytes_live = sums.sums.bytes_live?;
    let analysis = context.analysis;
    let bytes_older_freed = sums.pages_free_only.unwrap_or(0).saturating_mul(analysis.page_size.0);
    let uses = by_use(analysis, |totals| totals.frames_live);
    let has_any = bytes_live > 0 || bytes_older_freed > 0;
    has_any.then_some(PageGrowthRow { bytes_live, bytes_older_freed, uses })
}

/// Bytes of live pages that are older than the selected time.
pub fn page_bytes_older(context: &ReportContext<'_, '_>) -> u64 {
    let page_size = context.analysis.page_size.0;
    OlderRow::of(context).map_or(0, |older| older.pages_live.saturating_mul(page_size))
}

/// Bytes of pages by use, the largest first; `of` are the pages of a sum that count.
pub fn by_use(analysis: &Analysis, of: fn(&FrameTotals) -> u64) -> Vec<PageUseRow> {
    let mut uses: Vec<PageUseRow> = Vec::new();
    for (site, totals) in analysis.interner.pages.items().iter().zip(&analysis.balance.frames.sites) {
        let name = use_of(analysis.interner.gfp(site.gfp_flags), site.order);
        let bytes = of(totals).saturating_mul(analysis.page_size.0);
        match uses.iter_mut().find(|row| row.name == name) {
            Some(row) => row.bytes = row.bytes.saturating_add(bytes),
            None => uses.push(PageUseRow { name, bytes }),
        }
    }
    uses.retain(|row| row.bytes > 0);
    uses.sort_rows_by_key(|row| (Reverse(row.bytes), row.name));
    uses
}

impl PageGrowthRow {
    /// `92.0 KiB of pages are still allocated: page tables 44.0 KiB, page cache 4.00 KiB; 8.00 KiB of older ones were freed.`
    ///
    /// `of_before` are bytes of the live ones that are older than the selected time.
    pub fn sentence(&self, of_before: u64, view: &View) -> String {
        let (live, older) = (view.bytes(self.bytes_live), view.bytes(self.bytes_older_freed));
        let uses = self.uses.iter().take(USES_SHOWN);
        let uses: Vec<String> = uses.map(|row| format!("{} {}", row.name, view.bytes(row.bytes))).collect();
        let uses = if uses.is_empty() { String::new() } else { format!(": {}", uses.join(", ")) };
        // Where events were lost, the allocation may be among them.
        let freed = match (self.bytes_older_freed, view.is_lossy) {
            (0, _) => String::new(),
            (_, false) => format!("; {older} of older ones were freed"),
            (_, true) => format!("; {older} without a recorded allocation were freed"),
        };
        let of_before = match of_before {
            0 => String::new(),
            bytes => format!("; {} of these are older than the selected time", view.bytes(bytes)),
        };
        // So may a free.
        let are = if view.is_lossy { "have no free event" } else { "are still allocated" };
        format!("{live} of pages {are}{uses}{of_before}{freed}.")
    }
}

/// Rule of the finding.
const UNSEEN_THRESHOLD: &str = "by /proc/slabinfo a cache that the kernel cannot reclaim grew by at least 64 KiB more than events show, by more objects than fit in eight slabs of each CPU, and by more than have allocation events";

/// Findings of this kind.
const UNSEEN_MAX: usize = 3;

/// Findings of caches that grew without events, over a recording of this length.
pub fn unseen(sources: &Sources, length: u64, view: &View) -> Vec<Finding> {
    let rows = sources.unseen.iter().take(UNSEEN_MAX);
    let finding = |row: &UnseenRow| {
        let bytes = row.growth.bytes;
        let finding =
            Finding::new("unseen_growth", UNSEEN_THRESHOLD, "slabinfo", view, |view| row.sentence(view));
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
