//! Allocations from pageblocks of another migrate type, by severity, task and call site.

use std::collections::HashMap;

use kmt_format::schema::EventClass;
use serde::Serialize;

use super::traced::Traced;
use crate::collect::fallbacks::Fallback;
use crate::collect::page_use::Severity;
use crate::render::words::escaped;
use crate::reports::common::rows::Address;

/// Allocations from pageblocks of another migrate type.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FallbackTable {
    /// Number of fallbacks.
    pub events: u64,
    /// Fallbacks below pageblock order, up to order 3.
    pub severe: u64,
    /// Fallbacks below pageblock order, of a larger order.
    pub moderate: u64,
    /// Fallbacks that changed the type of the pageblock to the requested one.
    pub type_changed: u64,
    /// log2 of the pages of a pageblock.
    pub pageblock_order: u32,
    /// True if the pageblock order is assumed, not recorded.
    pub pageblock_order_assumed: bool,
    /// Number of kinds of fallbacks.
    pub rows_total: usize,
    /// Kinds of fallbacks, the most severe first.
    pub rows: Vec<FallbackRow>,
}

/// Fallbacks with the same properties; `null`: the event lacks the property.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FallbackRow {
    /// `none`, `moderate`, `severe`.
    pub severity: Option<&'static str>,
    /// Number of fallbacks.
    pub count: u64,
    /// Requested migrate type.
    pub alloc_migratetype: Option<String>,
    /// Type of the allocated pages.
    pub fallback_migratetype: Option<String>,
    /// Requested order.
    pub alloc_order: Option<u32>,
    /// Order of the allocated pages.
    pub fallback_order: Option<u32>,
    /// The type of the pageblock changed to the requested one.
    pub type_changed: Option<bool>,
    /// Thread id.
    pub pid: i32,
    /// Name and id.
    pub task: String,
    /// Flags of the page allocation that followed.
    pub gfp_flags_text: Option<String>,
    /// Site of the slab allocation that needed the pages; `null`: none.
    pub call_site: Option<Address>,
    /// Function and offset of that site.
    pub symbol: Option<String>,
}

/// Rows of a trace; `None` if fallbacks were not recorded.
pub fn compute(traced: &Traced<'_, '_, '_>, fallbacks: &HashMap<Fallback, u64>) -> Option<FallbackTable> {
    let is_it = |class: &EventClass| class.name == "mm_page_alloc_extfrag";
    if fallbacks.is_empty() && traced.context.recorded_class(is_it) != Some(true) {
        return None;
    }
    let (pageblock_order, pageblock_order_assumed) = traced.context.session.pageblock_order();
    let severity = |f: &Fallback| Some(Severity::of(f.fallback_order?.into(), pageblock_order.into()));
    let mut all: Vec<(&Fallback, u64)> = fallbacks.iter().map(|(f, n)| (f, *n)).collect();
    all.sort_by_key(|(f, n)| (std::cmp::Reverse(severity(f)), std::cmp::Reverse(*n), **f));
    let sum = |is_it: &dyn Fn(&Fallback) -> bool| -> u64 {
        all.iter().filter(|(fallback, _)| is_it(fallback)).map(|(_, count)| count).sum()
    };
    let rows = all.iter().take(traced.context.limit);
    Some(FallbackTable {
        events: sum(&|_| true),
        severe: sum(&|f| severity(f) == Some(Severity::Severe)),
        moderate: sum(&|f| severity(f) == Some(Severity::Moderate)),
        type_changed: sum(&|f| f.change_ownership == Some(true)),
        pageblock_order,
        pageblock_order_assumed,
        rows_total: all.len(),
        rows: rows.map(|(f, count)| row(traced, f, severity(f), *count)).collect(),
    })
}

fn row(traced: &Traced<'_, '_, '_>, f: &Fallback, severity: Option<Severity>, count: u64) -> FallbackRow {
    let (interner, names) = (&traced.context.analysis.interner, &traced.context.analysis.migratetypes);
    let slab = f.slab_site.and_then(|site| interner.sites.get(site));
    let pages = f.page_site.and_then(|site| interner.pages.get(site));
    FallbackRow {
        severity: severity.map(Severity::name),
        count,
        alloc_migratetype: f.alloc_migratetype.map(|number| names.name(number)),
        fallback_migratetype: f.fallback_migratetype.map(|number| names.name(number)),
        alloc_order: f.alloc_order,
        fallback_order: f.fallback_order,
        type_changed: f.change_ownership,
        pid: f.pid,
        task: traced.context.labels().task(f.pid),
        gfp_flags_text: pages.map(|pages| escaped(&interner.gfp_text(pages.gfp_flags))),
        call_site: slab.map(|site| Address(site.call_site)),
        symbol: slab.map(|site| traced.context.labels().symbol(site.call_site)),
    }
}
