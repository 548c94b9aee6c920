//! Rows of named values, for all tabular formats.

use super::objects::Resolver;
use crate::collect::Object;
use crate::ledger::totals::Totals;
use crate::pass;
use crate::pass::coverage::Coverage;
use crate::pass::coverage::bounds::Bounds;
use crate::stream::Api;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    Address(u64),
    /// True or false.
    Bool(bool),
    Text(String),
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// [`Cell::Int`].
    Int,
    /// [`Cell::Uint`].
    Uint,
    /// [`Cell::Address`].
    Address,
    /// [`Cell::Bool`].
    Bool,
    /// [`Cell::Text`].
    Text,
}

impl Cell {
    /// A text, or null if it is empty.
    pub fn text(text: &str) -> Self {
        if text.is_empty() { Self::Null } else { Self::Text(text.to_owned()) }
    }
}

/// Columns of objects.
pub const OBJECT: [(&str, Kind); 25] = [
    ("address", Kind::Address),
    ("api", Kind::Text),
    ("call_site", Kind::Address),
    ("call_site_text", Kind::Text),
    ("cache", Kind::Text),
    ("bytes_req", Kind::Uint),
    ("bytes_alloc", Kind::Uint),
    ("gfp_flags", Kind::Uint),
    ("gfp_flags_text", Kind::Text),
    ("node", Kind::Int),
    ("born", Kind::Uint),
    ("born_cpu", Kind::Uint),
    ("born_pid", Kind::Int),
    ("born_comm", Kind::Text),
    ("born_in_window", Kind::Bool),
    ("end", Kind::Uint),
    ("fate", Kind::Text),
    ("lifetime", Kind::Uint),
    ("free_site", Kind::Address),
    ("free_site_text", Kind::Text),
    ("freed_cpu", Kind::Uint),
    ("freed_pid", Kind::Int),
    ("late", Kind::Bool),
    ("uncertain", Kind::Bool),
    ("stack", Kind::Uint),
];

/// A row of [`OBJECT`] for a life.
pub fn object(object: &Object, result: &pass::Analysis, names: &Resolver<'_, '_>) -> Vec<Cell> {
    let interner = &result.interner;
    let site = interner.sites.get(object.site);
    let text = names.site(object.site);
    let free = object.free_site.and_then(|number| interner.frees.get(number)).map(|f| f.call_site);
    let number = |value: Option<u64>| value.map_or(Cell::Null, Cell::Uint);
    vec![
        Cell::Address(full_address(object.address, names.top)),
        Cell::Text(object.api.name().to_owned()),
        site.map_or(Cell::Null, |s| Cell::Address(s.call_site)),
        Cell::text(&text.symbol),
        Cell::text(names.cache(object)),
        number(site.map(|s| s.bytes_req)),
        number(site.map(|s| s.bytes_alloc)),
        number(site.map(|s| s.gfp_flags)),
        Cell::text(&text.gfp),
        site.map_or(Cell::Null, |s| Cell::Int(s.node.into())),
        Cell::Uint(object.born),
        Cell::Uint(object.born_at.cpu.into()),
        Cell::Int(object.born_at.pid.into()),
        Cell::Text(names.comm_at(object.born_at.pid, object.born)),
        Cell::Bool(object.is_born),
        number(object.end),
        Cell::Text(object.fate().to_owned()),
        number(object.lifetime()),
        free.map_or(Cell::Null, Cell::Address),
        free.map_or(Cell::Null, |address| Cell::Text(names.symbol(address))),
        object.freed_at.map_or(Cell::Null, |o| Cell::Uint(o.cpu.into())),
        object.freed_at.map_or(Cell::Null, |o| Cell::Int(o.pid.into())),
        Cell::Bool(object.is_late),
        Cell::Bool(object.uncertain),
        object.stack.map_or(Cell::Null, |s| Cell::Uint(s.into())),
    ]
}

/// An address with its upper byte, which the ledger drops because of arm64's tags.
pub fn full_address(address: u64, top: u64) -> u64 {
    if address > 16 { address | top } else { address }
}

/// Columns of call sites.
pub const CALL_SITE: [(&str, Kind); 19] = [
    ("call_site", Kind::Address),
    ("call_site_text", Kind::Text),
    ("api", Kind::Text),
    ("cache", Kind::Text),
    ("alloc_events", Kind::Uint),
    ("alloc_failures", Kind::Uint),
    ("bytes_req", Kind::Uint),
    ("bytes_alloc", Kind::Uint),
    ("bytes_wasted", Kind::Uint),
    ("frees_matched", Kind::Uint),
    ("bytes_freed", Kind::Uint),
    ("freed_unseen", Kind::Uint),
    ("bytes_freed_unseen", Kind::Uint),
    ("live", Kind::Uint),
    ("bytes_live", Kind::Uint),
    ("bytes_wasted_live", Kind::Uint),
    ("uncertain", Kind::Uint),
    ("live_least", Kind::Uint),
    ("frees_seen", Kind::Text),
];

/// Sums by call site, interface and cache, in this order.
pub fn call_sites(result: &pass::Analysis, names: &Resolver<'_, '_>, has_losses: bool) -> Vec<Vec<Cell>> {
    use std::collections::BTreeMap;
    let certain = Bounds::of(result, None, has_losses).certain_sites();
    // Totals, failed allocations, and certain live objects.
    let mut sums: BTreeMap<(u64, Api, String), (Totals, u64, u64)> = BTreeMap::new();
    let sites = result.interner.sites.items().iter().zip(&result.balance.sites).zip(&result.balance.failures);
    for (number, ((site, parts), failures)) in sites.enumerate() {
        let text = names.site(number as u32);
        for (name, totals) in parts {
            let own = name
                .filter(|_| site.api == Api::Cache)
                .map(|n| crate::render::text::escaped(result.interner.name(n)));
            let key = (site.call_site, site.api, own.unwrap_or_else(|| text.cache.clone()));
            let sum = sums.entry(key).or_default();
            sum.0 += totals;
            sum.2 += if certain.get(number) == Some(&true) { totals.live } else { 0 };
        }
        if *failures > 0 {
            sums.entry((site.call_site, site.api, text.cache.clone())).or_default().1 += failures;
        }
    }
    let row = |((address, api, cache), (t, failures, least)): ((u64, Api, String), (Totals, u64, u64))| {
        vec![
            Cell::Address(address),
            Cell::Text(names.symbol(address)),
            Cell::Text(api.name().to_owned()),
            Cell::Text(cache),
            Cell::Uint(t.alloc_events),
            Cell::Uint(failures),
            Cell::Uint(t.bytes_req),
            Cell::Uint(t.bytes_alloc),
            Cell::Uint(t.bytes_wasted()),
            Cell::Uint(t.frees_matched),
            Cell::Uint(t.bytes_freed),
            Cell::Uint(t.implied_frees),
            Cell::Uint(t.bytes_freed_implied),
            Cell::Uint(t.live),
            Cell::Uint(t.bytes_live),
            Cell::Uint(t.bytes_wasted_live()),
            Cell::Uint(t.uncertain),
            Cell::Uint(least),
            Cell::Text(Coverage::of(&t).free_events().name().to_owned()),
        ]
    };
    sums.into_iter()
        .filter(|(_, (t, failures, _))| *t != Totals::default() || *failures > 0)
        .map(row)
        .collect()
}
