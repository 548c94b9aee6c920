//! Objects and call sites as rows, from a pass that stores every life.
//!
//! Lives go to a spool file, since they may be more than memory holds. CSV, NDJSON, SQLite and Parquet have the same columns;
//! pprof and other formats take the lives alone.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use super::{ColumnKind, ExportCell};
use crate::collect::{Collectors, LifeSpool, Object, SpooledObjects};
use crate::export::output::Target;
use crate::failure::{Failure, Result};
use crate::ledger::totals::Totals;
use crate::pass::caches::CacheNames;
use crate::pass::coverage::Coverage;
use crate::pass::coverage::bounds::Bounds;
use crate::pass::selection::Selection;
use crate::pass::{self, Needs, Request};
use crate::render::words::escaped;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Stated;
use crate::reports::common::{Context, ReportContext};
use crate::stream::{Api, NameId, known_gfp};
use crate::trace::ages::Ages;
use crate::trace::names::{Symbolizer, cache_name};
use crate::trace::object_addresses::ObjectAddresses;
use crate::trace::session::Session;

/// Results of a pass, with all lives.
pub struct ObjectLives {
    /// Sums and tables.
    pub result: pass::Analysis,
    /// The lives.
    pub objects: SpooledObjects,
}

/// Runs the ledger and stores all lives in an unnamed file in the output's directory. Refuses if the export needs
/// events that were not recorded.
pub fn lives(
    session: &Session<'_>,
    selection: &Selection,
    target: &Target,
    rests_on: Input,
) -> Result<ObjectLives> {
    let failure = Rc::new(RefCell::new(None));
    let (failed, to) = (Rc::clone(&failure), target.clone());
    let file = move || {
        to.scratch().map_err(|e| {
            *failed.borrow_mut() = Some(e);
            io::ErrorKind::Other.into()
        })
    };
    let mut collectors = Collectors::default();
    let lives = collectors.add(LifeSpool::new(file));
    let result = pass::run(
        session,
        &Request::new(selection, &collectors).with(Needs::CACHE_NAMES | Needs::FLAG_NAMES),
    );
    if let Some(failure) = failure.borrow_mut().take() {
        return Err(failure);
    }
    let context = ReportContext::new(&Context { session, selection, limit: 0 }, &result);
    let basis = context.basis();
    if let Some(reason) = basis.lacks(rests_on) {
        let failure = Failure::new(format!("{}: no export: {reason}", session.path.display()));
        let has_pages = basis.lacks(Input::SlabAllocs).is_some() && basis.lacks(Input::Pages).is_none();
        return Err(match has_pages {
            true => failure.hint("the file has pages: folded and pprof export them with --pages"),
            false => failure,
        });
    }
    Stated::of(&context).iter().for_each(Stated::report_nothing);
    let objects =
        result.get(lives).read().map_err(|e| Failure::io("keeping lives beside", &target.path, &e))?;
    Ok(ObjectLives { result, objects })
}

/// The next life; an error of the file fails the export.
pub fn next(objects: &mut SpooledObjects) -> Result<Option<Object>> {
    objects.next_object().map_err(|e| Failure::new(format!("reading lives back: {e}")))
}

/// Names of a site.
#[derive(Debug, Clone, Default)]
pub struct SiteText {
    /// Function and offset.
    pub symbol: String,
    /// Cache, or size class.
    pub cache: String,
    /// Allocation flags.
    pub gfp: String,
}

/// Names for all items of a pass.
pub struct Resolver<'s, 'd> {
    symbols: Symbolizer<'d>,
    /// By number of the site.
    pub sites: Vec<SiteText>,
    session: &'s Session<'d>,
    named: Vec<String>,
    /// Addresses as the kernel prints them.
    pub addresses: ObjectAddresses,
    /// Lengths of lives.
    pub ages: Ages,
}

impl<'s, 'd> Resolver<'s, 'd> {
    /// Names for a trace and a pass over it.
    pub fn new(session: &'s Session<'d>, result: &pass::Analysis) -> Self {
        let interner = &result.interner;
        let caches = CacheNames::of(result);
        let mut resolver = Self {
            symbols: session.symbolizer(),
            sites: Vec::new(),
            session,
            named: interner.names.items().iter().map(|name| cache_name(name)).collect(),
            addresses: ObjectAddresses::of(session),
            ages: session.ages(),
        };
        for (number, site) in (0u32..).zip(interner.sites.items()) {
            let text = SiteText {
                symbol: resolver.symbol(site.call_site),
                cache: caches.shown(number, None),
                gfp: known_gfp(site.gfp_flags)
                    .map_or(String::new(), |flags| escaped(&interner.gfp_text(flags))),
            };
            resolver.sites.push(text);
        }
        resolver
    }

    /// Function and offset.
    pub fn symbol(&self, address: u64) -> String {
        self.symbols.kept(address)
    }

    /// Names of a site.
    pub fn site(&self, number: u32) -> &SiteText {
        static NONE: SiteText = SiteText { symbol: String::new(), cache: String::new(), gfp: String::new() };
        self.sites.get(number as usize).unwrap_or(&NONE)
    }

    /// Cache of an object: from its own event, else from its site.
    pub fn cache(&self, object: &Object) -> &str {
        self.cache_of(object.site, object.api, object.cache)
    }

    /// Cache of an object of a site; `own`: what the object's own events name.
    pub fn cache_of(&self, site: u32, api: Api, own: Option<NameId>) -> &str {
        let own = own.filter(|_| api == Api::Cache);
        let own = own.and_then(|name| self.named.get(name.0 as usize));
        own.map_or(self.site(site).cache.as_str(), String::as_str)
    }

    /// Name of a task at the time of an event.
    pub fn comm_at(&self, pid: i32, time: u64) -> String {
        escaped(self.session.names().shown_at(pid, time))
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
        ExportCell::Address(names.addresses.whole(object.address)),
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
        number(object.lifetime(names.ages)),
        free.map_or(ExportCell::Null, ExportCell::Address),
        free.map_or(ExportCell::Null, |address| ExportCell::Text(names.symbol(address))),
        object.freed_at.map_or(ExportCell::Null, |o| ExportCell::Uint(o.cpu.into())),
        object.freed_at.map_or(ExportCell::Null, |o| ExportCell::Int(o.pid.into())),
        ExportCell::Bool(object.is_late),
        ExportCell::Bool(object.uncertain),
        object.stack.map_or(ExportCell::Null, |s| ExportCell::Uint(s.into())),
    ]
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
