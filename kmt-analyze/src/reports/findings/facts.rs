//! Findings of one kind of facts each: failed allocations, waits for memory, waste of kmalloc.
//!
//! A failure counts if its flags do not announce it, and not if the recorder made it. Each kind has thresholds with a sentence.
//! Sources are the rows of other reports.

use std::collections::{BTreeMap, HashMap};

use kmt_format::kernel::ClockUnit;

use super::Sources;
use super::finding::Finding;
use super::top_table::live_heading;
use crate::collect::tasks::Kmalloc;
use crate::render::words::{count, counted, share};
use crate::reports::common::{ReportContext, View};
use crate::reports::latency::WaitSums;
use crate::reports::pages::{PageFlagsRow, PageTables};
use crate::stream::{Api, NO_GFP};

/// Rule of a finding of failed page allocations.
const PAGES: &str = "a page allocation without __GFP_NOWARN and __GFP_NORETRY failed, or at least 1 % of all did; without the recorder's";

/// Rule of a finding of failed slab allocations.
const SLAB: &str = "at least 10 slab allocations failed, and at least 0.1 % of all";

/// Findings of failed allocations.
pub fn failures(sources: &Sources, view: &View) -> Vec<Finding> {
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

/// Rule of a finding of waits.
const WAITS_THRESHOLD: &str =
    "tasks waited at least 10 ms together in direct reclaim, compaction and reclaim for a cgroup";

/// Rule of a finding of waits where the clock counts ticks of unknown length.
const THRESHOLD_IN_TICKS: &str =
    "tasks waited at least 10,000,000 ticks together in direct reclaim, compaction and reclaim for a cgroup";

/// Shortest time of all waits together, in the clock's unit.
const WAITED_MIN: u64 = 10_000_000;

/// The finding, where reclaim or compaction was recorded. The share is that of the task that waited longest.
pub fn waits(sources: &Sources, length: u64, view: &View) -> Option<Finding> {
    let waits = WaitSums::of(&sources.latency.as_ref()?.latency)?;
    if waits.total < WAITED_MIN {
        return None;
    }
    let threshold = if view.unit == ClockUnit::Ticks { THRESHOLD_IN_TICKS } else { WAITS_THRESHOLD };
    let finding = Finding::new("wait", threshold, "latency", view, |view| waits.sentence(view.unit));
    let share_of = "length of the trace, of the task that waited longest";
    Some(Finding { time: Some(waits.total), ..finding }.share(waits.longest, length, share_of))
}

/// Rule of a finding of waste.
const WASTE_THRESHOLD: &str = "kmalloc wastes at least 10 % of the bytes that it hands out, and at least 64 KiB, without the allocations of the recorder";

/// Smallest share of kmalloc's bytes, in percent.
const PERCENT_MIN: u64 = 10;

/// Fewest bytes.
const BYTES_MIN: u64 = 64 << 10;

/// The finding, where kmalloc's allocations were recorded. The recorder reads statistics into buffers of which half is
/// wasted: on an idle system it would be the finding.
pub fn waste(sources: &Sources, view: &View) -> Option<Finding> {
    let kmalloc = &sources.summary.slab.as_ref()?.kmalloc.totals;
    let own = sources.recorder.values();
    let (own_wasted, own_alloc) = own.fold((0, 0), |sum, own| (sum.0 + own.wasted, sum.1 + own.alloc));
    let wasted = kmalloc.bytes_wasted?.saturating_sub(own_wasted);
    let alloc = kmalloc.bytes_alloc?.saturating_sub(own_alloc);
    if wasted < BYTES_MIN || wasted.saturating_mul(100) < alloc.saturating_mul(PERCENT_MIN) {
        return None;
    }
    // The command shows what the sentence counts.
    let command = match own_alloc {
        0 => "callers --sort wasted",
        _ => "callers --sort wasted --without-recorder",
    };
    let now = kmalloc.bytes_wasted_live.zip(kmalloc.bytes_live);
    let finding = Finding::new("waste", WASTE_THRESHOLD, command, view, |view| {
        let by = sources.most_wasting.as_ref().map_or(String::new(), |(function, bytes)| {
            format!(", {} of that by {function}", share(*bytes, wasted))
        });
        let all = format!("{} of {} ({})", view.bytes(wasted), view.bytes(alloc), share(wasted, alloc));
        let without = match own_wasted {
            0 => String::new(),
            own => format!(" without {} of the recorder", view.bytes(own)),
        };
        match now {
            Some((waste, live)) => format!(
                "kmalloc wastes {} of the {} {}; over all allocations {all}{without}{by}.",
                view.bytes(waste),
                view.bytes(live),
                live_heading(view)
            ),
            None => format!("kmalloc wasted {all}{without}, over all allocations{by}."),
        }
    });
    Some(Finding { bytes: Some(wasted), ..finding }.share(wasted, alloc, "bytes allocated by kmalloc"))
}

/// The function whose calls of kmalloc waste most, without those of the recorder, and its bytes.
pub fn most(context: &ReportContext<'_, '_>, recorder: &HashMap<u64, Kmalloc>) -> Option<(String, u64)> {
    let analysis = context.analysis;
    let mut call_sites: BTreeMap<u64, u64> = BTreeMap::new();
    let sites = analysis.interner.sites.items().iter().zip(&analysis.balance.sites);
    for (site, parts) in sites.filter(|(site, _)| site.api == Api::Kmalloc) {
        let wasted = parts.iter().map(|(_, totals)| totals.bytes_wasted()).fold(0, u64::saturating_add);
        let sum = call_sites.entry(site.call_site).or_default();
        *sum = sum.saturating_add(wasted);
    }
    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
    for (address, wasted) in call_sites {
        let own = recorder.get(&address).map_or(0, |own| own.wasted);
        let sum = functions.entry(context.labels().function(address)).or_default();
        *sum = sum.saturating_add(wasted.saturating_sub(own));
    }
    // Of equal ones the first by name.
    functions.into_iter().rev().max_by_key(|(_, bytes)| *bytes).filter(|(_, bytes)| *bytes > 0)
}
