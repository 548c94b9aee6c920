//! The ledger's copy of the interned tables, with the selection.

use crate::stream::intern::InternTable;
use crate::stream::{Api, FreeSite, Interner, NameId, Origin, PageSite, Site};

/// Selects what is counted. Filters select allocations, which are followed to their frees.
pub trait Select {
    /// True if allocations at a site count.
    fn site(&self, interner: &Interner, site: &Site) -> bool;
    /// True if page allocations of a kind count.
    fn page_site(&self, interner: &Interner, site: &PageSite) -> bool;
    /// True if events of an origin count.
    fn origin(&self, origin: Origin) -> bool;
    /// True if events without an allocation count: there is no filter on allocations.
    fn events(&self) -> bool;
    /// True if there is no filter except a time window.
    fn is_open(&self) -> bool;
    /// True if there is a filter on lifetimes.
    fn lifetimes(&self) -> bool;
    /// True if a life of that length counts; `None`: still allocated.
    fn lifetime(&self, lifetime: Option<u64>) -> bool;
}

/// A site in the ledger.
#[derive(Debug, Clone, Copy)]
pub struct SiteInfo {
    /// Bytes requested.
    pub bytes_req: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Cache, if the allocation names it.
    pub cache: Option<NameId>,
    /// Number of its call site and interface.
    pub caller: u32,
    /// Interface.
    pub api: Api,
    /// True for a kmalloc of whole pages, which may have two events.
    pub is_large: bool,
    /// True if it counts.
    pub selected: bool,
}

/// A kind of page allocation in the ledger.
#[derive(Debug, Clone, Copy)]
pub struct PageSiteInfo {
    /// Its kind.
    pub site: PageSite,
    /// True if it counts.
    pub selected: bool,
}

/// An origin in the ledger.
#[derive(Debug, Clone, Copy)]
pub struct OriginInfo {
    /// CPU, task and level.
    pub place: Origin,
    /// True if it counts.
    pub selected: bool,
}

/// The ledger's copy of the interned tables, updated before each batch of operations.
pub struct Tables<'l> {
    select: &'l dyn Select,
    page_size: u64,
    selects_events: bool,
    selects_lifetimes: bool,
    sites: Vec<SiteInfo>,
    frees: Vec<FreeSite>,
    page_sites: Vec<PageSiteInfo>,
    origins: Vec<OriginInfo>,
    callers: InternTable<(Api, u64)>,
}

const NO_SITE: SiteInfo = SiteInfo {
    bytes_req: 0,
    bytes_alloc: 0,
    cache: None,
    caller: 0,
    api: Api::Kmalloc,
    is_large: false,
    selected: false,
};
const NO_FREE: FreeSite = FreeSite { api: Api::Kmalloc, class: 0, call_site: 0, cache: None };
const NO_PAGE_SITE: PageSiteInfo =
    PageSiteInfo { site: PageSite { order: 0, migratetype: 0, gfp_flags: 0, class: 0 }, selected: false };
const NO_ORIGIN: OriginInfo =
    OriginInfo { place: Origin { cpu: 0, pid: 0, level: 0, name: 0 }, selected: false };

macro_rules! look_up {
    ($name:ident, $table:ident, $item:ty, $none:ident) => {
        /// The item of that number, or an empty one.
        #[inline]
        pub fn $name(&self, number: u32) -> &$item {
            self.$table.get(number as usize).unwrap_or(&$none)
        }
    };
}

impl<'l> Tables<'l> {
    /// Empty tables.
    pub fn new(select: &'l dyn Select, page_size: u64) -> Self {
        Self {
            select,
            page_size,
            selects_events: select.events(),
            selects_lifetimes: select.lifetimes(),
            sites: Vec::new(),
            frees: Vec::new(),
            page_sites: Vec::new(),
            origins: Vec::new(),
            callers: InternTable::default(),
        }
    }

    look_up!(site, sites, SiteInfo, NO_SITE);
    look_up!(free_site, frees, FreeSite, NO_FREE);
    look_up!(page_site, page_sites, PageSiteInfo, NO_PAGE_SITE);
    look_up!(origin, origins, OriginInfo, NO_ORIGIN);

    /// Number of sites.
    pub fn site_count(&self) -> usize {
        self.sites.len()
    }

    /// Call sites and interfaces, by number.
    pub fn into_callers(self) -> Vec<(Api, u64)> {
        self.callers.items().to_vec()
    }

    /// True if events without an allocation count.
    #[inline]
    pub fn selects_events(&self) -> bool {
        self.selects_events
    }

    /// True if a life of that length counts; `None`: still allocated.
    #[inline]
    pub fn selects_lifetime(&self, lifetime: Option<u64>) -> bool {
        !self.selects_lifetimes || self.select.lifetime(lifetime)
    }

    /// Number of items.
    #[inline]
    pub fn item_count(&self) -> usize {
        self.sites.len() + self.frees.len() + self.page_sites.len() + self.origins.len()
    }

    /// Copies new interned items.
    #[cold]
    pub fn update(&mut self, interner: &Interner) {
        let select = self.select;
        for site in interner.sites.items().iter().skip(self.sites.len()) {
            self.sites.push(SiteInfo {
                bytes_req: site.bytes_req,
                bytes_alloc: site.bytes_alloc,
                cache: site.cache,
                caller: self.callers.number(&(site.api, site.call_site)),
                api: site.api,
                is_large: site.api == Api::Kmalloc && site.bytes_alloc > 2 * self.page_size,
                selected: select.site(interner, site),
            });
        }
        self.frees.extend(interner.frees.items().iter().skip(self.frees.len()));
        for &site in interner.pages.items().iter().skip(self.page_sites.len()) {
            self.page_sites.push(PageSiteInfo { site, selected: select.page_site(interner, &site) });
        }
        for &place in interner.origins.items().iter().skip(self.origins.len()) {
            self.origins.push(OriginInfo { place, selected: select.origin(place) });
        }
    }
}
