//! Amounts by the names of each account: of the kernel and of the trace.
//!
//! Accounts are by call site, by cache, or by another name that the kernel gives. Live memory of the trace is summed up by the
//! same names. By cache, events show the frees of older objects too.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::int_hash::IntHash;
use crate::ledger::totals::FrameTotals;
use crate::pass::Analysis;
use crate::pass::caches::parts_of;
use crate::reports::common::ReportContext;
use crate::reports::common::page_sums::caller;
use crate::sort_rows::SortRows;
use crate::stream::Api;
use crate::trace::names::{CacheKey, cache_name, function_of, is_kmalloc};

/// Amounts of a call site: bytes or objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Account {
    /// At the begin, by the kernel.
    pub before: i64,
    /// Allocated in the trace and live at its end.
    pub live: i64,
    /// At the end, by the kernel.
    pub after: i64,
    /// before + live - after: older memory that was freed in the trace, if all events are there.
    pub older_freed: i64,
}

impl Account {
    /// With the older memory that was freed.
    pub fn finish(self) -> Self {
        let older_freed = self.before.saturating_add(self.live).saturating_sub(self.after);
        Self { older_freed, ..self }
    }

    /// Adds the amounts of another call site.
    pub fn add(&mut self, other: &Self) {
        self.before = self.before.saturating_add(other.before);
        self.live = self.live.saturating_add(other.live);
        self.after = self.after.saturating_add(other.after);
        self.older_freed = self.older_freed.saturating_add(other.older_freed);
    }

    /// True if memory is live in the trace, or the kernel's number changed.
    pub fn is_moved(&self) -> bool {
        self.live != 0 || self.before != self.after
    }

    /// The change, or what is live if that is more.
    pub fn size(&self) -> u64 {
        self.after.saturating_sub(self.before).unsigned_abs().max(self.live.unsigned_abs())
    }
}

/// Amounts by name.
pub type Amounts = BTreeMap<String, i64>;

/// Function and offset, without the size that the kernel prints: `f+0x1 [module]`.
pub fn short(symbol: &str) -> String {
    let (name, module) =
        symbol.split_once(" [").map_or((symbol, None), |(name, module)| (name, Some(module)));
    let name = name.split('/').next().unwrap_or(name);
    module.map_or(name.to_owned(), |module| format!("{name} [{module}"))
}

/// Adds to an amount.
pub fn add_account(amounts: &mut Amounts, name: String, amount: i64) {
    let sum = amounts.entry(name).or_default();
    *sum = sum.saturating_add(amount);
}

/// Name of all caches of kmalloc: kfree has neither name nor size of an object that was allocated before the trace.
const KMALLOC: &str = "kmalloc";

/// Slab objects by cache.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheAccounts {
    /// Number of caches with objects.
    pub caches_total: usize,
    /// Caches whose events explain the change to the object.
    pub caches_exact: usize,
    /// Number of caches that changed or have live objects in the trace.
    pub rows_total: usize,
    /// These caches: those with most that no event shows first, then the largest change or live amount.
    pub rows: Vec<CacheAccount>,
}

/// A cache in the account.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheAccount {
    /// Name of the cache; `kmalloc`: all size classes.
    pub name: String,
    /// Objects of the cache.
    #[serde(flatten)]
    pub account: Account,
    /// Frees in the trace of objects that were allocated before it, by events. kfree counts for kmalloc.
    pub older_freed_by_events: i64,
    /// `older_freed_by_events` - `older_freed`: objects of now that no event explains; negative: objects that are
    /// gone.
    pub unseen: i64,
}

/// Name of a cache in the account.
pub fn name_of(cache: &[u8]) -> String {
    if is_kmalloc(cache) { KMALLOC.to_owned() } else { cache_name(cache) }
}

/// Frees of objects that were allocated before the trace, by cache; `unmatched`: frees without a life, by their site.
pub fn older_frees(analysis: &Analysis, unmatched: &[u64]) -> Amounts {
    let mut freed = Amounts::new();
    for (site, number) in analysis.interner.frees.items().iter().zip(unmatched) {
        let cache = match (site.api, site.cache) {
            (Api::Kmalloc, _) => KMALLOC.to_owned(),
            (Api::Cache, Some(cache)) => name_of(analysis.interner.name(cache)),
            (Api::Cache, None) => continue,
        };
        add_account(&mut freed, cache, i64::try_from(*number).unwrap_or(i64::MAX));
    }
    freed
}

/// Between the cache and the call site in the keys of an account. No shown name has one.
pub const APART: char = '\t';

/// Sums of the account of call sites, by cache and [`APART`], beside the frees of older objects.
pub fn caches<'a>(
    sites: impl Iterator<Item = (&'a str, Account)>,
    older_frees: &Amounts,
    limit: usize,
) -> CacheAccounts {
    let mut caches: BTreeMap<&str, Account> = BTreeMap::new();
    for (name, account) in sites {
        let cache = name.split(APART).next().unwrap_or(name);
        caches.entry(cache).or_default().add(&account);
    }
    for cache in older_frees.keys() {
        caches.entry(cache).or_default();
    }
    let row = |(name, account): (&str, Account)| {
        let older_freed_by_events = older_frees.get(name).copied().unwrap_or(0);
        let unseen = older_freed_by_events.saturating_sub(account.older_freed);
        CacheAccount { name: name.to_owned(), account, older_freed_by_events, unseen }
    };
    let caches_total = caches.len();
    let mut rows: Vec<CacheAccount> = caches.into_iter().map(row).collect();
    let caches_exact = rows.iter().filter(|row| row.unseen == 0).count();
    rows.retain(|row| row.account.is_moved() || row.unseen != 0);
    rows.sort_rows_by_key(|row| Reverse((row.unseen.unsigned_abs(), row.account.size())));
    let rows_total = rows.len();
    rows.truncate(limit);
    CacheAccounts { caches_total, caches_exact, rows_total, rows }
}

/// Pages of SLUB have one tag in /proc/allocinfo, its function (`alloc_slab_page`, mm/slub.c, 6.10 to 7.2). Compilers put it
/// into these.
const SLAB_PAGES: (&str, [&str; 3]) = ("alloc_slab_page", ["allocate_slab", "new_slab", "___slab_alloc"]);

/// Live memory of the trace.
#[derive(Default)]
pub struct Live {
    /// Bytes of objects and pages by function, `f [module]`.
    pub functions: Amounts,
    /// Bytes of pages by call site, `f+0x1 [module]`.
    pub pages: Amounts,
    /// Objects by cache and call site, with [`APART`] between them.
    pub slab: Amounts,
}

impl Live {
    /// `tagged`: functions of /proc/allocinfo.
    pub fn of(
        context: &ReportContext<'_, '_>,
        pages: &HashMap<u32, FrameTotals, IntHash>,
        tagged: &BTreeSet<&str>,
    ) -> Self {
        let (analysis, symbols) = (context.analysis, context.symbols());
        let mut live = Self::default();
        for part in parts_of(analysis).filter(|part| part.totals.live > 0) {
            let address = part.site.call_site;
            let symbol = symbols.shown(address);
            let cache = match &part.key {
                CacheKey::Kmalloc(_) => KMALLOC.to_owned(),
                CacheKey::Named(name) => name_of(name),
                key => key.shown(analysis.size_classes),
            };
            add_account(
                &mut live.slab,
                format!("{cache}{}{}", APART, short(&symbol)),
                signed(part.totals.live),
            );
            let function = tag(context, &[address], tagged).unwrap_or_else(|| function_of(&symbol));
            add_account(&mut live.functions, function, signed(part.totals.bytes_live));
        }
        for (stack, totals) in pages.iter().filter(|(_, totals)| totals.frames_live > 0) {
            let bytes = signed(totals.frames_live.saturating_mul(analysis.page_size.0));
            let stack = analysis.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
            let symbol = caller(stack, symbols).map(|address| symbols.shown(address));
            let symbol = symbol.unwrap_or_else(|| "?".to_owned());
            let function = tag(context, stack, tagged).unwrap_or_else(|| function_of(&symbol));
            add_account(&mut live.functions, function, bytes);
            add_account(&mut live.pages, short(&symbol), bytes);
        }
        live
    }
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// The function with a tag that an allocation counts for: the innermost of its stack. With source lines inlined functions are
/// known too.
fn tag(context: &ReportContext<'_, '_>, stack: &[u64], tagged: &BTreeSet<&str>) -> Option<String> {
    if tagged.is_empty() {
        return None;
    }
    let symbols = context.symbols();
    let functions = stack.iter().filter(|&&address| address != 0).flat_map(|&address| {
        let symbol = symbols.function(address);
        let (name, module) = symbol.split_once(' ').map_or((&*symbol, ""), |(name, module)| (name, module));
        // Clones of the compiler: f.constprop.0, f.isra.0, f.cold.
        let name = name.split('.').next().unwrap_or(name);
        let frames = context.session.source().frames(address);
        let names = frames.into_iter().map(|frame| frame.function).chain([Cow::Borrowed(name)]);
        let with_module =
            |name: &str| if module.is_empty() { name.to_owned() } else { format!("{name} {module}") };
        names.map(|name| with_module(&name)).collect::<Vec<_>>()
    });
    let (slab, holders) = SLAB_PAGES;
    functions.into_iter().find_map(|name| {
        let name = if holders.contains(&name.as_str()) { slab.to_owned() } else { name };
        tagged.contains(name.as_str()).then_some(name)
    })
}
