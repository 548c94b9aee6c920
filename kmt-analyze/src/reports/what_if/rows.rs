//! Memory of each simulated layout, and the layouts to simulate.
//!
//! Layouts come from the command line, and from a first pass over the trace, which suggests size classes and long-lived call
//! sites.

use serde::Serialize;

use super::WhatIf;
use crate::collect::replay::{Layout, ReplaySums, ReplayedLayout, best_classes};
use crate::collect::{Collectors, Replay};
use crate::pass::{self, Request};
use crate::reports::common::labels::Labels;
use crate::reports::common::{Context, ReportContext};
use crate::sort_rows::SortRows;
use crate::stream::Api;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhatIfRows {
    /// Layouts, and requests.
    pub what_if: WhatIfTable,
}

/// Layouts, and requests.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhatIfTable {
    /// Bytes that the kernel allocated.
    pub bytes_alloc: u64,
    /// Bytes that the simulation of the kernel's own layout allocated: the same.
    pub bytes_alloc_of_model: u64,
    /// Layouts; the first is the kernel's own.
    pub layouts: Vec<LayoutRow>,
    /// Requests that waste most, the worst first; ten at most.
    pub worst_requests: Vec<WorstRequest>,
    /// Call sites whose objects are held for a large part of the window; `null`: not computed.
    pub long_lived_call_sites: Option<Vec<String>>,
    /// Call sites with slabs of their own; `null`: not computed.
    pub call_sites_apart: Option<Vec<String>>,
}

/// A simulated layout.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LayoutRow {
    /// Name of the layout.
    pub name: String,
    /// Size classes besides the kernel's.
    pub added: Vec<u64>,
    /// Size classes of the kernel that it lacks.
    pub dropped: Vec<u64>,
    /// Bytes allocated, over all allocations.
    pub bytes_alloc: u64,
    /// Bytes allocated beyond those requested, over all allocations.
    pub bytes_wasted: u64,
    /// Most bytes allocated at once.
    pub bytes_live_max: u64,
    /// Bytes allocated at the end.
    pub bytes_live_at_end: u64,
    /// Highest bytes of slabs.
    pub slab_bytes_max: u64,
    /// Bytes of slabs at the end.
    pub slab_bytes_at_end: u64,
    /// Bytes of slabs on average over the window.
    pub slab_bytes_on_average: u64,
    /// Requests that no class can serve.
    pub requests_not_served: u64,
}

/// A requested size.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorstRequest {
    /// Bytes requested.
    pub bytes_req: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Allocations.
    pub alloc_events: u64,
    /// Bytes wasted on average over the window.
    pub bytes_wasted_on_average: u64,
}

/// Largest number of shown requests.
const REQUESTS_MAX: usize = 10;

/// Rows of a trace.
pub fn compute(
    context: &ReportContext<'_, '_>,
    replay: &ReplaySums,
    found: Option<&FoundLayout>,
) -> WhatIfRows {
    let analysis = context.analysis;
    let (first, last) = context.selection.span(context.session);
    let length = last.saturating_sub(first);
    // The model of the kernel's own layout must match the kernel's events.
    let sites = analysis.interner.sites.items().iter().zip(&analysis.balance.sites);
    let small =
        sites.filter(|(site, _)| site.api == Api::Kmalloc && site.bytes_alloc <= 2 * analysis.page_size.0);
    let table = WhatIfTable {
        bytes_alloc: small.flat_map(|(_, by_cache)| by_cache).map(|(_, totals)| totals.bytes_alloc).sum(),
        bytes_alloc_of_model: replay.replayed.first().map_or(0, |own| own.bytes_alloc),
        layouts: replay.replayed.iter().map(|replayed| layout(replayed, length)).collect(),
        worst_requests: worst_requests(replay, length, context.limit.min(REQUESTS_MAX)),
        long_lived_call_sites: found.map(|found| found.long_lived.clone()),
        call_sites_apart: found.map(|found| found.split.clone()),
    };
    WhatIfRows { what_if: table }
}

fn average(byte_time: u128, length: u64) -> u64 {
    u64::try_from(byte_time / u128::from(length.max(1))).unwrap_or(u64::MAX)
}

fn layout(replayed: &ReplayedLayout, length: u64) -> LayoutRow {
    LayoutRow {
        name: replayed.layout().name.clone(),
        added: replayed.layout().added.clone(),
        dropped: replayed.layout().dropped.clone(),
        bytes_alloc: replayed.bytes_alloc,
        bytes_wasted: replayed.bytes_wasted,
        bytes_live_max: replayed.bytes_live_max,
        bytes_live_at_end: replayed.bytes_live,
        slab_bytes_max: replayed.bytes_held_max,
        slab_bytes_at_end: replayed.bytes_held,
        slab_bytes_on_average: average(replayed.held_time, length),
        requests_not_served: replayed.not_served,
    }
}

/// Requests by wasted bytes x time.
fn worst_requests(replay: &ReplaySums, length: u64, limit: usize) -> Vec<WorstRequest> {
    let wasted = |(&(req, alloc), requests): (&(u64, u64), &crate::collect::replay::Requests)| {
        let byte_time = u128::from(alloc.saturating_sub(req)).saturating_mul(requests.held);
        (req, alloc, requests.allocs, byte_time)
    };
    let mut all: Vec<(u64, u64, u64, u128)> =
        replay.requests.iter().map(wasted).filter(|request| request.3 > 0).collect();
    all.sort_rows_by_key(|request| (std::cmp::Reverse(request.3), request.0, request.1));
    let row = |(bytes_req, bytes_alloc, alloc_events, byte_time)| WorstRequest {
        bytes_req,
        bytes_alloc,
        alloc_events,
        bytes_wasted_on_average: average(byte_time, length),
    };
    all.into_iter().take(limit).map(row).collect()
}

/// Call sites that a first pass over the trace found.
#[derive(Debug, Default)]
pub struct FoundLayout {
    /// Call sites whose objects are held for a large part of the window.
    pub long_lived: Vec<String>,
    /// Call sites whose objects get their own slabs.
    pub split: Vec<String>,
}

/// A call site is long-lived if its objects are held for this share of the window on average, in percent.
const LONG_LIVED_PERCENT: u128 = 10;

/// Layouts that need no first pass: size classes that were proposed for mm/slab_common.c.
pub fn default_layouts() -> Vec<Layout> {
    let added = |name: &str, added: &[u64]| Layout {
        name: name.to_owned(),
        added: added.to_vec(),
        ..Layout::default()
    };
    vec![
        added("with 160, 320, 640, 1280", &[160, 320, 640, 1280]),
        Layout { name: "without 96, 192".to_owned(), dropped: vec![96, 192], ..Layout::default() },
    ]
}

/// Layouts of the command line, and those that a first pass over the trace suggests.
pub fn asked_layouts(context: &Context<'_, '_>, options: &WhatIf) -> (Vec<Layout>, FoundLayout) {
    let (first, last) = context.selection.span(context.session);
    let mut collectors = Collectors::default();
    let replay = collectors.add(Replay { layouts: Vec::new(), end: last });
    let result = pass::run(context.session, &Request::new(context.selection, &collectors));
    let replay = result.get(replay);
    let labels = Labels::new(context.session);
    let mut layouts = Vec::new();
    let mut found = FoundLayout::default();
    if !(options.add.is_empty() && options.drop.is_empty()) {
        let mut names = Vec::new();
        let list = |sizes: &[u64]| sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        if !options.add.is_empty() {
            names.push(format!("with {}", list(&options.add)));
        }
        if !options.drop.is_empty() {
            names.push(format!("without {}", list(&options.drop)));
        }
        let mut added = options.add.clone();
        added.sort_unstable();
        let (name, dropped) = (names.join(", "), options.drop.clone());
        layouts.push(Layout { name, added, dropped, ..Layout::default() });
    }
    if let Some(regex) = &options.split {
        let mut layout = Layout { name: format!("{} apart", regex.as_str()), ..Layout::default() };
        for number in 0..result.balance.callers.len() as u32 {
            let (api, _, name) = labels.caller(&result, number);
            if api == Api::Kmalloc && regex.is_match(&name) {
                layout.apart.insert(number);
                found.split.push(name.into());
            }
        }
        layouts.push(layout);
    }
    let mut requests: Vec<(u64, u64, u128)> =
        replay.requests.iter().map(|(&(req, alloc), r)| (req, alloc, r.held)).collect();
    requests.sort_unstable();
    let best = best_classes(&requests, options.best.into());
    if !best.is_empty() {
        let list: Vec<String> = best.iter().map(u64::to_string).collect();
        let name = format!("with {} (the best {})", list.join(", "), best.len());
        layouts.push(Layout { name, added: best, ..Layout::default() });
    }
    let length = u128::from(last.saturating_sub(first));
    let mut apart = Layout { name: "long-lived apart".to_owned(), ..Layout::default() };
    for (number, caller) in (0u32..).zip(&replay.callers) {
        let is_long =
            caller.allocs > 0 && caller.held / LONG_LIVED_PERCENT >= length * u128::from(caller.allocs) / 100;
        if is_long {
            apart.apart.insert(number);
            found.long_lived.push(labels.caller(&result, number).2.into());
        }
    }
    if !apart.apart.is_empty() {
        layouts.push(apart);
    }
    (layouts, found)
}
