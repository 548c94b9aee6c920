//! `fragmentation`: memory that is held and not used, each kind of it apart: inside objects, inside slabs, between
//! slabs' objects, between pages.

mod internal;
mod occupancy;
mod pages;
mod slabs;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::collect::Collectors;
use crate::collect::Handle;
use crate::collect::{Fallbacks, Mixing, Occupancy};
use crate::pass;
use crate::pass::Analysis;
use crate::pass::caches::{CacheKey, usual_names};
use crate::pass::coverage::Coverage;
use crate::pass::selection::Selection;
use crate::render::text::{count, escaped};
use crate::reports::common::basis::Input;
use crate::reports::common::labels::Labels;
use crate::reports::common::live_bounds::LiveBounds;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Page, Report};
use crate::stream::Api;

/// The report.
#[derive(Debug, Default)]
pub struct Fragmentation;

/// Steps of time that occupancy is told for.
const STEPS: usize = 10;

impl Report for Fragmentation {
    type Options = NoOptions;
    type Handles = (Handle<Occupancy>, Handle<Mixing>, Handle<Fallbacks>);
    type Rows = Page;

    const NAME: &'static str = "fragmentation";
    const KEY: &'static str = "fragmentation";
    const TITLE: &'static str = "fragmentation";
    const ABOUT: &'static str =
        "Memory that is held and not used: inside objects, inside slabs, between objects, between pages";

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn usual() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::Allocs
    }

    fn keys(&self) -> Keys {
        Keys::All
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let (first, last) = context.selection.span(context.session);
        // An instant has no course.
        let steps = if last.saturating_sub(first) < STEPS as u64 { 1 } else { STEPS };
        (
            collectors.add(Occupancy { window: (first, last), steps }),
            collectors.add(Mixing { pageblock_order: context.session.pageblock_order().0 }),
            collectors.add(Fallbacks),
        )
    }

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, handles: &Self::Handles) -> Page {
        let (occupancy, mixing) = (result.get(handles.0), result.get(handles.1));
        let fallbacks = result.get(handles.2);
        let labels = Labels::new(context.session);
        let caches = cache_names(result);
        let is_whole = !context.session.losses.any();
        let certain = is_whole.then(|| LiveBounds::of(context, result).bounds.certain_sites());
        let view = Traced { context, result, labels: &labels, caches: &caches, certain };
        let internal = internal::of(&view, occupancy);
        let slabs = slabs::of(&view);
        let occupied = occupancy::of(&view, occupancy);
        let pages = pages::of(&view, mixing, fallbacks);
        let mut out = Map::new();
        out.insert(
            "fragmentation".into(),
            json!({
                "internal": internal.json,
                "slabs": slabs.json,
                "occupancy": occupied.json,
                "pages": pages.json,
            }),
        );
        let text = [internal.text, slabs.text, occupied.text, pages.text].join("\n");
        Page { json: out, text }
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

/// What all parts look at.
struct Traced<'v, 's, 'd> {
    context: &'v Context<'s, 'd>,
    result: &'v pass::Analysis,
    labels: &'v Labels<'s, 'd>,
    /// Name of the cache of each site.
    caches: &'v [String],
    /// By number of the site, whether what seems live of it is; `None` where events were lost.
    certain: Option<Vec<bool>>,
}

impl Traced<'_, '_, '_> {
    fn attachment(&self, names: &[&str]) -> Option<&[u8]> {
        names.iter().find_map(|name| self.context.session.trace.metadata().attachment(name))
    }

    /// Of that many live bytes of a site, those that are live for certain; `None` where events were lost.
    fn least(&self, site: u32, live: u64) -> Option<u64> {
        let is_certain = self.certain.as_ref()?.get(site as usize) == Some(&true);
        Some(if is_certain { live } else { 0 })
    }

    /// By name of the cache: whether frees have events, and bytes that wait for a grace period.
    fn coverage(&self) -> BTreeMap<&str, (Coverage, u64)> {
        let mut out: BTreeMap<&str, (Coverage, u64)> = BTreeMap::new();
        for (site, parts) in (0u32..).zip(&self.result.balance.sites) {
            for (_, totals) in parts {
                let sum = out.entry(self.cache(site)).or_default();
                *sum = (sum.0.plus(Coverage::of(totals)), sum.1.saturating_add(totals.bytes_waiting));
            }
        }
        out
    }

    fn cache(&self, site: u32) -> &str {
        self.caches.get(site as usize).map_or("?", String::as_str)
    }
}

/// A part of the report.
#[derive(Debug, Default)]
struct Part {
    json: Value,
    text: String,
}

/// The cache of each site: as its events tell, or as most frees of the site do; by size for kmalloc.
fn cache_names(result: &pass::Analysis) -> Vec<String> {
    let usual = usual_names(result);
    let sites = result.interner.sites.items().iter().zip(usual);
    let key = |(site, usual): (&crate::stream::Site, Option<crate::stream::NameId>)| match (
        site.api,
        site.cache.or(usual),
    ) {
        (Api::Kmalloc, _) => CacheKey::Kmalloc(site.bytes_alloc),
        (Api::Cache, Some(name)) => CacheKey::Named(result.interner.name(name).to_vec()),
        (Api::Cache, None) => CacheKey::Nameless(site.bytes_req, site.bytes_alloc),
    };
    sites
        .map(|pair| match key(pair) {
            CacheKey::Kmalloc(size) => result.size_classes.name(size),
            CacheKey::Named(name) => escaped(&name),
            CacheKey::Nameless(req, _) => format!("? ({req} byte objects)"),
        })
        .collect()
}

/// Bytes times time, for people: as the bytes that are held on average over the window.
fn on_average(byte_time: u128, length: u64) -> String {
    count(u64::try_from(byte_time / u128::from(length.max(1))).unwrap_or(u64::MAX))
}
