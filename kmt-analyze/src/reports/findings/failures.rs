//! Allocations that failed although their flags do not announce it.

use super::Sources;
use super::finding::Finding;
use crate::render::text::count;
use crate::render::words::{counted, share};
use crate::reports::common::View;
use crate::reports::pages::PageTables;

/// Rule of a finding of failed page allocations.
const PAGES: &str =
    "a page allocation without __GFP_NOWARN and __GFP_NORETRY failed, or at least 1 % of all did";

/// Rule of a finding of failed slab allocations.
const SLAB: &str = "at least 10 slab allocations failed, and at least 0.1 % of all";

/// Flags of callers that expect failures.
const EXPECTED: [&str; 2] = ["__GFP_NOWARN", "__GFP_NORETRY"];

/// Findings of failed allocations.
pub fn compute(sources: &Sources, view: &View) -> Vec<Finding> {
    let pages = sources.pages.as_ref().and_then(|rows| rows.pages.as_ref());
    pages.and_then(|tables| self::pages(tables, view)).into_iter().chain(slab(sources, view)).collect()
}

fn pages(tables: &PageTables, view: &View) -> Option<Finding> {
    let sums = &tables.all.sums;
    let (failed, allocs) = (sums.alloc_failures.filter(|&failed| failed > 0)?, sums.alloc_events?);
    let all = failed.saturating_add(allocs);
    let failed_of = |announced: bool| -> u64 {
        let rows = tables.by_gfp_flags.iter();
        let rows =
            rows.filter(|row| EXPECTED.iter().any(|flag| row.gfp_flags_text.contains(flag)) == announced);
        rows.filter_map(|row| row.sums.alloc_failures).sum()
    };
    let unexpected = failed_of(false);
    if unexpected == 0 && failed.saturating_mul(100) < all {
        return None;
    }
    let how = match unexpected {
        0 => "; all callers expected that (__GFP_NOWARN or __GFP_NORETRY)".to_owned(),
        number if number == failed => "; no caller announced that it expects failures".to_owned(),
        number => format!("; {} of these callers did not expect it", count(number)),
    };
    let finding = Finding::new("page_failures", PAGES, "pages", view, |_| {
        let allocations = counted(failed, "page allocation", "page allocations");
        format!("{allocations} failed ({} of {}){how}.", share(failed, all), count(all))
    });
    Some(Finding { events: Some(failed), ..finding }.share(failed, all, "page allocations"))
}

fn slab(sources: &Sources, view: &View) -> Option<Finding> {
    let totals = &sources.summary.slab.as_ref()?.totals;
    let (failed, allocs) = (totals.alloc_failures?, totals.alloc_events?);
    let all = failed.saturating_add(allocs);
    if failed < 10 || failed.saturating_mul(1_000) < all {
        return None;
    }
    let finding = Finding::new("slab_failures", SLAB, "anomalies", view, |_| {
        let allocations = counted(failed, "slab allocation", "slab allocations");
        format!("{allocations} failed ({} of {}).", share(failed, all), count(all))
    });
    Some(Finding { events: Some(failed), ..finding }.share(failed, all, "slab allocations"))
}
