//! What the ledger knows of the numbers in operations: a copy of the interned tables, and what is selected.

use crate::stream::intern::InternTable;
use crate::stream::{Api, FreeSite, Interner, NameId, Origin, PageSite, Site};

/// Says what is counted. Filters select allocations; what was allocated is followed wherever it is freed.
pub trait Select {
    /// Whether allocations at a site count.
    fn site(&self, interner: &Interner, site: &Site) -> bool;
    /// Whether page allocations of a kind count.
    fn page_site(&self, interner: &Interner, site: &PageSite) -> bool;
    /// Whether what happens there counts.
    fn origin(&self, origin: Origin) -> bool;
    /// Whether events count that belong to no allocation: there are no filters for allocations.
    fn events(&self) -> bool;
    /// Whether anything but a window of time is left out.
    fn is_open(&self) -> bool;
    /// Whether lifetimes matter.
    fn lifetimes(&self) -> bool;
    /// Whether a life counts that was that long; `None`: it goes on.
    fn lifetime(&self, lifetime: Option<u64>) -> bool;
}

/// What the ledger needs of a site.
#[derive(Debug, Clone, Copy)]
pub struct SiteInfo {
    /// Bytes asked for.
    pub bytes_req: u64,
    /// Bytes handed out.
    pub bytes_alloc: u64,
    /// Cache, where the allocation itself tells it.
    pub cache: Option<NameId>,
    /// Number of its call site and interface.
    pub caller: u32,
    /// Interface.
    pub api: Api,
    /// A kmalloc that takes whole pages: the kind that may report twice.
    pub is_large: bool,
    /// Whether it counts.
    pub selected: bool,
}

/// What the ledger needs of a page allocation.
#[derive(Debug, Clone, Copy)]
pub struct PageSiteInfo {
    /// Its kind.
    pub site: PageSite,
    /// Whether it counts.
    pub selected: bool,
}

/// What the ledger needs of a place.
#[derive(Debug, Clone, Copy)]
pub struct OriginInfo {
    /// CPU, task and level.
    pub place: Origin,
    /// Whether it counts.
    pub selected: bool,
}

/// What the ledger needs of the interned tables, brought up to date before each batch of operations.
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
        /// What is known of that number.
        #[inline]
        pub fn $name(&self, number: u32) -> &$item {
            self.$table.get(number as usize).unwrap_or(&$none)
        }
    };
}

impl<'l> Tables<'l> {
    /// Knows nothing yet.
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

    /// Whether events count that belong to no allocation.
    #[inline]
    pub fn selects_events(&self) -> bool {
        self.selects_events
    }

    /// Whether a life of that length counts; `None`: it goes on.
    #[inline]
    pub fn selects_lifetime(&self, lifetime: Option<u64>) -> bool {
        !self.selects_lifetimes || self.select.lifetime(lifetime)
    }

    /// Number of items that are known.
    #[inline]
    pub fn item_count(&self) -> usize {
        self.sites.len() + self.frees.len() + self.page_sites.len() + self.origins.len()
    }

    /// Takes over what was interned since.
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
