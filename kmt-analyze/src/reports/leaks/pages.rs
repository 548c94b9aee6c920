//! Pages that are still allocated, by kind and by call site.

use std::collections::BTreeMap;

use super::judged::{Judged, sort};
use crate::collect::growth::GrowthSums;
use crate::collect::growth::Survival;
use crate::pass;
use crate::pass::filter::Names;
use crate::pass::names::TraceNames;
use crate::render::text::escaped;
use crate::reports::common::Context;
use crate::reports::common::labels::Labels;
use crate::reports::common::page_callers::{caller, is_allocator};
use crate::reports::leaks::verdict::{Verdict, judge};

/// Pages by kind.
pub(super) fn page_rows<'g>(
    context: &Context<'_, '_>,
    result: &pass::Analysis,
    growth: &'g GrowthSums,
) -> Vec<Judged<'g>> {
    let names = TraceNames::new(context.session);
    let mut rows: Vec<Judged<'g>> = (0u32..)
        .zip(&growth.pages)
        .filter(|(_, survival)| survival.survivors.sum() > 0)
        .map(|(number, survival)| {
            let site = result.interner.pages.get(number).copied().unwrap_or_default();
            let migratetype = names.migratetype(site.migratetype);
            let gfp = escaped(&names.gfp(&result.interner, site.gfp_flags));
            let mut evidence = judge(survival, growth.step());
            if evidence.verdict.is_growth() && (site.is_movable() || migratetype == "Reclaimable") {
                evidence.verdict = Verdict::Reclaimable;
            }
            let name = format!("order {}, {gfp}", site.order);
            Judged {
                api: None,
                address: 0,
                name,
                cache: migratetype,
                evidence,
                is_reclaimable: false,
                stacks: Vec::new(),
                survival,
                leader: None,
            }
        })
        .collect();
    sort(&mut rows);
    rows
}

/// Pages by call site, slabs apart.
pub(super) type PageCallers = BTreeMap<(u64, bool), Survival>;

/// Functions that allocate slabs (mm/slub.c, 4.4 to 7.2).
const SLAB_PAGES: [&str; 3] = ["allocate_slab", "new_slab", "alloc_slab_page"];

/// Pages by the first function in their stacks outside the allocator.
pub(super) fn page_callers(
    context: &Context<'_, '_>,
    result: &pass::Analysis,
    growth: &GrowthSums,
) -> PageCallers {
    let env = context.session.print_env();
    let is_slab = |address: u64| {
        let name = env.symbol_with_offset(address);
        SLAB_PAGES.iter().any(|start| name.starts_with(start.as_bytes()))
    };
    let mut out = PageCallers::new();
    for (stack, survival) in &growth.page_stacks {
        let addresses = result.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
        let caller = caller(addresses, |a| is_allocator(&env.symbol_with_offset(a)));
        let is_slab = addresses.iter().any(|&address| is_slab(address));
        *out.entry((caller, is_slab)).or_default() += survival;
    }
    out
}

/// Functions that put pages into the page cache, which is kept until memory is short (mm/filemap.c,
/// mm/readahead.c, fs/buffer.c, 4.4 to 7.2).
const PAGE_CACHE: [&str; 8] = [
    "page_cache_ra",
    "ra_alloc_folio",
    "filemap_",
    "__filemap_",
    "pagecache_get_page",
    "__page_cache_alloc",
    "__do_page_cache_readahead",
    "grow_dev_",
];

pub(super) fn page_caller_rows<'g>(
    context: &Context<'_, '_>,
    by_caller: &'g PageCallers,
    growth: &GrowthSums,
) -> Vec<Judged<'g>> {
    let labels = Labels::of(context);
    let mut rows: Vec<Judged<'g>> = by_caller
        .iter()
        .filter(|(_, survival)| survival.survivors.sum() > 0)
        .map(|(&(address, is_slab), survival)| {
            let name = if address == 0 { "(the allocator)".to_owned() } else { labels.symbol(address) };
            let mut evidence = judge(survival, growth.step());
            if evidence.verdict.is_growth() && PAGE_CACHE.iter().any(|start| name.starts_with(start)) {
                evidence.verdict = Verdict::Reclaimable;
            }
            // The objects on slab pages have their own rows.
            if is_slab
                && matches!(
                    evidence.verdict,
                    Verdict::Grows | Verdict::Batches | Verdict::Warming | Verdict::Burst
                )
            {
                evidence.verdict = Verdict::WithSlabs;
            }
            let cache = if is_slab { "slab" } else { "" }.to_owned();
            Judged {
                api: None,
                address,
                name,
                cache,
                evidence,
                is_reclaimable: false,
                stacks: Vec::new(),
                survival,
                leader: None,
            }
        })
        .collect();
    sort(&mut rows);
    rows
}
