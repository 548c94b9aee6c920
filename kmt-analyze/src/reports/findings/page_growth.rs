//! Growth of pages and their uses, as the flags of the allocations show them.

use std::cmp::Reverse;

use serde::Serialize;

use crate::reports::analysis::leaks::page_flags::is_block_cache;
use crate::reports::common::{ReportContext, View};
use crate::reports::summary::SummaryRows;
use crate::stream::GfpFlags;

/// Uses in the sentence.
const USES_SHOWN: usize = 4;

/// Growth of pages: live ones of the recording, less older ones that were freed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageGrowthRow {
    /// Bytes of pages that were allocated in the recording and are still allocated.
    pub bytes_live: u64,
    /// Bytes of pages that were allocated before it and freed in it.
    pub bytes_older_freed: u64,
    /// Uses of the live ones, the largest first.
    pub uses: Vec<PageUseRow>,
}

/// Live pages of one use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageUseRow {
    /// `page cache`, `anonymous or tmpfs`, `page tables`, `kernel`, `other user memory` or `unknown use`.
    #[serde(rename = "use")]
    pub name: &'static str,
    /// Bytes of pages of this use.
    pub bytes: u64,
}

/// Use of pages with these flags, if they are known.
fn use_of(flags: GfpFlags, order: u8) -> &'static str {
    type F = GfpFlags;
    // GFP_PGTABLE_USER (include/asm-generic/pgalloc.h, 4.7 to 7.2).
    let table = F::IO | F::FS | F::ACCOUNT | F::ZERO;
    let is_table = order == 0 && (flags == table || flags == table | F::COMP);
    // readahead_gfp_mask (include/linux/pagemap.h); transparent huge pages have __GFP_NOMEMALLOC, too. Writes of files have
    // __GFP_WRITE (mm/filemap.c); mappings of file systems have GFP_NOFS.
    let is_read_ahead = flags.contains(F::NORETRY | F::NOWARN) && !flags.contains(F::NOMEMALLOC);
    let is_of_file =
        flags.contains(F::WRITE) || flags.contains(F::HARDWALL) && (is_read_ahead || !flags.contains(F::FS));
    // Movable ones without __GFP_ZERO are copies of a process' memory.
    let is_of_device = is_block_cache(flags, order) && !flags.contains(F::MOVABLE);
    match () {
        () if flags.is_empty() => "unknown use",
        () if is_table => "page tables",
        () if is_of_file || is_of_device => "page cache",
        () if flags.contains(F::MOVABLE | F::HARDWALL) => "anonymous or tmpfs",
        () if flags.contains(F::HARDWALL) => "other user memory",
        () => "kernel",
    }
}

/// Growth of pages; `None`: lives of pages were not recorded, or nothing happened.
pub fn compute(context: &ReportContext<'_, '_>, summary: &SummaryRows) -> Option<PageGrowthRow> {
    let sums = &summary.pages.as_ref()?.sums;
    let bytes_live = sums.sums.bytes_live?;
    let analysis = context.analysis;
    let page_size = analysis.page_size.0;
    let bytes_older_freed = sums.pages_free_only.unwrap_or(0).saturating_mul(page_size);
    let mut uses: Vec<PageUseRow> = Vec::new();
    for (site, totals) in analysis.interner.pages.items().iter().zip(&analysis.balance.frames.sites) {
        let name = use_of(analysis.interner.gfp(site.gfp_flags), site.order);
        let bytes = totals.frames_live.saturating_mul(page_size);
        match uses.iter_mut().find(|row| row.name == name) {
            Some(row) => row.bytes = row.bytes.saturating_add(bytes),
            None => uses.push(PageUseRow { name, bytes }),
        }
    }
    uses.retain(|row| row.bytes > 0);
    uses.sort_by_key(|row| (Reverse(row.bytes), row.name));
    let has_any = bytes_live > 0 || bytes_older_freed > 0;
    has_any.then_some(PageGrowthRow { bytes_live, bytes_older_freed, uses })
}

impl PageGrowthRow {
    /// `92.0 KiB of pages are still allocated: page tables 44.0 KiB, page cache 4.00 KiB; 8.00 KiB of older ones were freed.`
    pub fn sentence(&self, view: &View) -> String {
        let (live, older) = (view.bytes(self.bytes_live), view.bytes(self.bytes_older_freed));
        let uses = self.uses.iter().take(USES_SHOWN);
        let uses: Vec<String> = uses.map(|row| format!("{} {}", row.name, view.bytes(row.bytes))).collect();
        let uses = if uses.is_empty() { String::new() } else { format!(": {}", uses.join(", ")) };
        let freed = match self.bytes_older_freed {
            0 => String::new(),
            _ => format!("; {older} of older ones were freed"),
        };
        // Where events were lost, a free may be among them.
        let are = if view.is_lossy { "have no free event" } else { "are still allocated" };
        format!("{live} of pages {are}{uses}{freed}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_inferred_from_flags() {
        type F = GfpFlags;
        let kernel = F::IO | F::FS;
        let user = kernel | F::HARDWALL | F::HIGHMEM | F::MOVABLE;
        for (order, flags, of) in [
            (0, kernel | F::ACCOUNT | F::ZERO | F::COMP, "page tables"),
            (2, kernel | F::ACCOUNT | F::ZERO | F::COMP, "kernel"),
            (0, (user - F::FS) | F::NOWARN | F::NORETRY | F::COMP, "page cache"),
            (0, F::IO | F::HARDWALL | F::NOFAIL, "page cache"),
            // Blocks of a device: GFP_NOWAIT as a folio.
            (0, F::COMP | F::NOWARN, "page cache"),
            (0, user | F::COMP, "anonymous or tmpfs"),
            (0, user | F::WRITE, "page cache"),
            (0, user | F::NOWARN | F::NORETRY, "page cache"),
            (0, user | F::ZERO | F::COMP, "anonymous or tmpfs"),
            (9, user | F::NOWARN | F::NORETRY | F::NOMEMALLOC | F::COMP, "anonymous or tmpfs"),
            (0, kernel | F::HARDWALL | F::HIGHMEM, "other user memory"),
            (2, kernel | F::NOWARN | F::NORETRY | F::COMP, "kernel"),
            (0, F::empty(), "unknown use"),
        ] {
            assert_eq!(use_of(flags, order), of, "{order} {flags:?}");
        }
    }
}
