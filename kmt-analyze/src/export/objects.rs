//! A pass that stores every life, and names for its results.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use kmt_format::schema::Role;

use super::output::Target;
use crate::collect::{Collectors, LifeSpool, Object, SpooledObjects};
use crate::failure::{Failure, Result};
use crate::pass::caches::CacheNames;
use crate::pass::selection::Selection;
use crate::pass::{self, Needs, Request};
use crate::render::words::escaped;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Stated;
use crate::reports::common::{Context, ReportContext};
use crate::stream::{Api, NameId, known_gfp};
use crate::trace::names::{Symbolizer, cache_name};
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

/// Upper byte of the addresses of kernel objects: all ones on most 64-bit machines, zero on others.
fn top_byte(session: &Session<'_>) -> u64 {
    /// Largest number of inspected events without a pointer.
    const EVENTS: u32 = 10_000;
    let trace = session.trace;
    let mut merge = trace.merge();
    let mut inspected = 0;
    while let Some(run) = merge.next_run() {
        for event in run.events() {
            match event.uint_with(Role::PTR).filter(|&ptr| ptr > 16) {
                Some(ptr) if ptr >> 56 != 0 => return 0xff << 56,
                Some(_) => return 0,
                None => inspected += 1,
            }
            if inspected > EVENTS {
                return 0;
            }
        }
    }
    0
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
    /// Upper byte of the addresses of objects.
    pub top: u64,
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
            top: top_byte(session),
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
