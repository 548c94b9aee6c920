//! Rows of named values, for all tabular formats.

use super::objects::Resolver;
use crate::collect::Object;
use crate::ledger::totals::Totals;
use crate::pass;
use crate::pass::coverage::Coverage;
use crate::pass::coverage::bounds::Bounds;
use crate::stream::{Api, known_gfp};

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum ExportCell {
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
pub enum ColumnKind {
    /// [`ExportCell::Int`].
    Int,
    /// [`ExportCell::Uint`].
    Uint,
    /// [`ExportCell::Address`].
    Address,
    /// [`ExportCell::Bool`].
    Bool,
    /// [`ExportCell::Text`].
    Text,
}

impl ExportCell {
    /// A text, or null if it is empty.
    pub fn text(text: &str) -> Self {
        if text.is_empty() { Self::Null } else { Self::Text(text.to_owned()) }
    }
}

/// Rows that `-l` leaves.
#[derive(Debug)]
pub struct RowsLeft(pub usize);

impl RowsLeft {
    /// Takes a row; false if none is left.
    pub fn take(&mut self) -> bool {
        let is_left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        is_left
    }
}

/// Columns of objects.
pub const OBJECT: [(&str, ColumnKind); 25] = [
    ("address", ColumnKind::Address),
    ("api", ColumnKind::Text),
    ("call_site", ColumnKind::Address),
    ("call_site_text", ColumnKind::Text),
    ("cache", ColumnKind::Text),
    ("bytes_req", ColumnKind::Uint),
    ("bytes_alloc", ColumnKind::Uint),
    ("gfp_flags", ColumnKind::Uint),
    ("gfp_flags_text", ColumnKind::Text),
    ("node", ColumnKind::Int),
    ("born", ColumnKind::Uint),
    ("born_cpu", ColumnKind::Uint),
    ("born_pid", ColumnKind::Int),
    ("born_comm", ColumnKind::Text),
    ("born_in_window", ColumnKind::Bool),
    ("end", ColumnKind::Uint),
    ("fate", ColumnKind::Text),
    ("lifetime", ColumnKind::Uint),
    ("free_site", ColumnKind::Address),
    ("free_site_text", ColumnKind::Text),
    ("freed_cpu", ColumnKind::Uint),
    ("freed_pid", ColumnKind::Int),
    ("late", ColumnKind::Bool),
    ("uncertain", ColumnKind::Bool),
    ("stack", ColumnKind::Uint),
];

/// A row of [`OBJECT`] for a life.
pub fn object(object: &Object, result: &pass::Analysis, names: &Resolver<'_, '_>) -> Vec<ExportCell> {
    let interner = &result.interner;
    let site = interner.sites.get(object.site);
    let text = names.site(object.site);
    let free = object.free_site.and_then(|number| interner.frees.get(number)).map(|f| f.call_site);
    let number = |value: Option<u64>| value.map_or(ExportCell::Null, ExportCell::Uint);
    vec![
        ExportCell::Address(full_address(object.address, names.top)),
        ExportCell::Text(object.api.name().to_owned()),
        site.map_or(ExportCell::Null, |s| ExportCell::Address(s.call_site)),
        ExportCell::text(&text.symbol),
        ExportCell::text(names.cache(object)),
        number(site.map(|s| s.bytes_req)),
        number(site.map(|s| s.bytes_alloc)),
        number(site.and_then(|s| known_gfp(s.gfp_flags))),
        ExportCell::text(&text.gfp),
        site.map_or(ExportCell::Null, |s| ExportCell::Int(s.node.into())),
        ExportCell::Uint(object.born),
        ExportCell::Uint(object.born_at.cpu.into()),
        ExportCell::Int(object.born_at.pid.into()),
        ExportCell::Text(names.comm_at(object.born_at.pid, object.born)),
        ExportCell::Bool(object.is_born),
        number(object.end),
        ExportCell::Text(object.fate().to_owned()),
        number(object.lifetime()),
        free.map_or(ExportCell::Null, ExportCell::Address),
        free.map_or(ExportCell::Null, |address| ExportCell::Text(names.symbol(address))),
        object.freed_at.map_or(ExportCell::Null, |o| ExportCell::Uint(o.cpu.into())),
        object.freed_at.map_or(ExportCell::Null, |o| ExportCell::Int(o.pid.into())),
        ExportCell::Bool(object.is_late),
        ExportCell::Bool(object.uncertain),
        object.stack.map_or(ExportCell::Null, |s| ExportCell::Uint(s.into())),
    ]
}

/// An address with its upper byte, which the ledger drops because of arm64's tags.
pub fn full_address(address: u64, top: u64) -> u64 {
    if address > 16 { address | top } else { address }
}

/// Columns of call sites.
pub const CALL_SITE: [(&str, ColumnKind); 19] = [
    ("call_site", ColumnKind::Address),
    ("call_site_text", ColumnKind::Text),
    ("api", ColumnKind::Text),
    ("cache", ColumnKind::Text),
    ("alloc_events", ColumnKind::Uint),
    ("alloc_failures", ColumnKind::Uint),
    ("bytes_req", ColumnKind::Uint),
    ("bytes_alloc", ColumnKind::Uint),
    ("bytes_wasted", ColumnKind::Uint),
    ("frees_matched", ColumnKind::Uint),
    ("bytes_freed", ColumnKind::Uint),
    ("freed_unseen", ColumnKind::Uint),
    ("bytes_freed_unseen", ColumnKind::Uint),
    ("live", ColumnKind::Uint),
    ("bytes_live", ColumnKind::Uint),
    ("bytes_wasted_live", ColumnKind::Uint),
    ("uncertain", ColumnKind::Uint),
    ("live_least", ColumnKind::Uint),
    ("frees_seen", ColumnKind::Text),
];

/// Sums by call site, interface and cache, in this order.
pub fn call_sites(
    result: &pass::Analysis,
    names: &Resolver<'_, '_>,
    has_losses: bool,
) -> Vec<Vec<ExportCell>> {
    use std::collections::BTreeMap;
    let certain = Bounds::of(result, None, has_losses).certain_sites();
    // Totals, failed allocations, and certain live objects.
    let mut sums: BTreeMap<(u64, Api, String), (Totals, u64, u64)> = BTreeMap::new();
    let sites = result.interner.sites.items().iter().zip(&result.balance.sites).zip(&result.balance.failures);
    for (number, ((site, parts), failures)) in sites.enumerate() {
        let text = names.site(number as u32);
        for (name, totals) in parts {
            let cache = names.cache_of(number as u32, site.api, *name);
            let key = (site.call_site, site.api, cache.to_owned());
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
            ExportCell::Address(address),
            ExportCell::Text(names.symbol(address)),
            ExportCell::Text(api.name().to_owned()),
            ExportCell::Text(cache),
            ExportCell::Uint(t.alloc_events),
            ExportCell::Uint(failures),
            ExportCell::Uint(t.bytes_req),
            ExportCell::Uint(t.bytes_alloc),
            ExportCell::Uint(t.bytes_wasted()),
            ExportCell::Uint(t.frees_matched),
            ExportCell::Uint(t.bytes_freed),
            ExportCell::Uint(t.implied_frees),
            ExportCell::Uint(t.bytes_freed_implied),
            ExportCell::Uint(t.live),
            ExportCell::Uint(t.bytes_live),
            ExportCell::Uint(t.bytes_wasted_live()),
            ExportCell::Uint(t.uncertain),
            ExportCell::Uint(least),
            ExportCell::Text(Coverage::of(&t).free_events().name().to_owned()),
        ]
    };
    sums.into_iter()
        .filter(|(_, (t, failures, _))| *t != Totals::default() || *failures > 0)
        .map(row)
        .collect()
}
