//! Growth of pages and their uses, as the flags of the allocations show them.

use std::cmp::Reverse;

use serde::Serialize;

use crate::ledger::totals::FrameTotals;
use crate::pass::Analysis;
use crate::reports::analysis::leaks::page_flags::use_of;
use crate::reports::common::stated::OlderRow;
use crate::reports::common::{ReportContext, View};
use crate::reports::summary::SummaryRows;

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
    /// Bytes of the live ones that are older than the selected time.
    #[serde(skip)]
    pub bytes_live_older: u64,
}

/// Pages of one use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageUseRow {
    /// `page cache`, `anonymous or tmpfs`, `page tables`, `kernel`, `other user memory` or `unknown use`.
    #[serde(rename = "use")]
    pub name: &'static str,
    /// Bytes of pages of this use.
    pub bytes: u64,
}

/// Growth of pages; `None`: lives of pages were not recorded, or nothing happened.
pub fn compute(context: &ReportContext<'_, '_>, summary: &SummaryRows) -> Option<PageGrowthRow> {
    let sums = &summary.pages.as_ref()?.sums;
    let bytes_live = sums.sums.bytes_live?;
    let analysis = context.analysis;
    let bytes_older_freed = sums.pages_free_only.unwrap_or(0).saturating_mul(analysis.page_size.0);
    let uses = by_use(analysis, |totals| totals.frames_live);
    let has_any = bytes_live > 0 || bytes_older_freed > 0;
    let older = OlderRow::of(context);
    let bytes_live_older = older.map_or(0, |older| older.pages_live.saturating_mul(analysis.page_size.0));
    has_any.then_some(PageGrowthRow { bytes_live, bytes_older_freed, uses, bytes_live_older })
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
    uses.sort_by_key(|row| (Reverse(row.bytes), row.name));
    uses
}

impl PageGrowthRow {
    /// `92.0 KiB of pages are still allocated: page tables 44.0 KiB, page cache 4.00 KiB; 8.00 KiB of older ones were freed.`
    pub fn sentence(&self, view: &View) -> String {
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
        let of_before = match self.bytes_live_older {
            0 => String::new(),
            bytes => format!("; {} of these are older than the selected time", view.bytes(bytes)),
        };
        // So may a free.
        let are = if view.is_lossy { "have no free event" } else { "are still allocated" };
        format!("{live} of pages {are}{uses}{of_before}{freed}.")
    }
}
