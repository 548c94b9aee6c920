//! Allocations that failed although their flags do not announce it; those of the recorder are left out.

use std::collections::HashMap;

use super::Sources;
use super::finding::Finding;
use crate::render::words::{count, counted, share};
use crate::reports::common::View;
use crate::reports::pages::{PageFlagsRow, PageTables};
use crate::stream::NO_GFP;

/// Rule of a finding of failed page allocations.
const PAGES: &str = "a page allocation without __GFP_NOWARN and __GFP_NORETRY failed, or at least 1 % of all did; without the recorder's";

/// Rule of a finding of failed slab allocations.
const SLAB: &str = "at least 10 slab allocations failed, and at least 0.1 % of all";

/// Findings of failed allocations.
pub fn compute(sources: &Sources, view: &View) -> Vec<Finding> {
    let pages = sources.pages.as_ref().and_then(|rows| rows.pages.as_ref());
    pages
        .and_then(|tables| self::pages(tables, &sources.recorder_failed, view))
        .into_iter()
        .chain(slab(sources, view))
        .collect()
}

fn pages(tables: &PageTables, of_recorder: &HashMap<u64, u64>, view: &View) -> Option<Finding> {
    let allocs = tables.all.sums.alloc_events?;
    let failed_of = |row: &PageFlagsRow| {
        let of_recorder = of_recorder.get(&row.gfp_flags.unwrap_or(NO_GFP)).copied().unwrap_or(0);
        row.sums.alloc_failures.unwrap_or(0).saturating_sub(of_recorder)
    };
    let failed: u64 = tables.by_gfp_flags.iter().map(failed_of).sum();
    let unexpected: u64 = tables.by_gfp_flags.iter().filter(|row| !row.expects_failures).map(failed_of).sum();
    if failed == 0 {
        return None;
    }
    let all = failed.saturating_add(allocs);
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
