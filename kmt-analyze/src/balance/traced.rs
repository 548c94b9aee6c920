//! Pages that a trace saw allocated, by use, beside the accounts that have such pages.
//!
//! The use of a page follows from its allocation flags, as `leaks` names it. Flags do not tell slabs, stacks, vmalloc and drivers
//! apart: these are pages of the kernel.

use std::collections::BTreeMap;

use crate::failure::Outcome;
use crate::ledger::totals::FrameTotals;
use crate::limits::ROWS_MAX;
use crate::pass::selection::Selection;
use crate::reports::balance::{BalanceRows, PageUseRow, PageUses};
use crate::reports::common::{Context, ReportContext};
use crate::reports::leaks::judge::pages::{UnreclaimedPages, use_of};
use crate::reports::pages::Pages;
use crate::reports::run::typed;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Accounts with pages of a use.
const ACCOUNTS_OF: [(&str, &[&str]); 6] = [
    ("page cache", &["page_cache", "buffers"]),
    ("anonymous or tmpfs", &["anonymous", "shmem", "swap_cache"]),
    ("page tables", &["page_tables"]),
    ("compressed memory (zram, zswap)", &["zsmalloc"]),
    ("huge pages (hugetlbfs)", &["hugetlb"]),
    (
        "kernel",
        &[
            "slab_reclaimable",
            "slab_unreclaimable",
            "misc_reclaimable",
            "sec_page_tables",
            "kernel_stacks",
            "vmalloc",
            "percpu",
            "gpu",
            "in_no_account",
        ],
    ),
];

/// Pages of a recording by use, if it has events of pages.
pub fn pages(session: &Session<'_>, rows: &BalanceRows) -> (Option<PageUses>, Outcome) {
    let selection = Selection::default();
    let context = Context { session, selection: &selection, limit: ROWS_MAX };
    let (analysis, answered) = typed(&context, &Pages::default());
    let ended = outcome(session, &analysis.faults);
    let basis = ReportContext::new(&context, &analysis);
    if answered.is_err() || !basis.basis().page_allocs {
        return (None, ended);
    }
    let has_frees = basis.basis().page_ends();
    let page_size = analysis.page_size.0;
    let kept = UnreclaimedPages::new(session, &analysis.interner, page_size);
    let mut sums: BTreeMap<&'static str, FrameTotals> = BTreeMap::new();
    for (site, totals) in analysis.interner.pages.items().iter().zip(&analysis.balance.frames.sites) {
        // The kernel's counts are for kinds of which most pages are old: flags alone decide here.
        let name = kept
            .use_of(site, u64::MAX)
            .unwrap_or_else(|| use_of(analysis.interner.gfp(site.gfp_flags), site.order));
        *sums.entry(name).or_default() += totals;
    }
    let bytes = |frames: u64| frames.saturating_mul(page_size);
    let row = |(name, totals): (&'static str, FrameTotals)| {
        let accounts =
            ACCOUNTS_OF.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, accounts)| *accounts);
        let changes = rows.accounts.iter().filter(|row| accounts.contains(&row.account));
        PageUseRow {
            r#use: name,
            bytes_alloc: bytes(totals.frames_alloc),
            bytes_live: has_frees.then(|| bytes(totals.frames_live)),
            accounts,
            bytes_change: (!accounts.is_empty())
                .then(|| changes.map(|row| row.change()).fold(0, i64::saturating_add)),
        }
    };
    let mut uses: Vec<PageUseRow> =
        sums.into_iter().filter(|(_, totals)| !totals.has_no_pages()).map(row).collect();
    uses.sort_by_key(|row| std::cmp::Reverse((row.bytes_live, row.bytes_alloc)));
    let older = analysis.balance.frames.counts.free_only_frames;
    (Some(PageUses { bytes_freed_older: has_frees.then(|| bytes(older)), uses }), ended)
}
