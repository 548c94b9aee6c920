//! The ledger's tables of items that operations name, with the selection.
//!
//! The interner numbers sites, origins and caches and marks selected ones; each batch of operations brings the new
//! items. The ledger keeps copies of the few facts that it needs, by number, so that it shares nothing with the threads
//! that decode.

use crate::stream::intern::InternTable;
use crate::stream::{Api, FreeSite, NameId, NewItems, Origin, PageSite};

/// Part of a selection that is not about an item of the tables.
#[derive(Clone, Copy)]
pub struct Choice<'l> {
    /// True if nothing is filtered out, except by a time window.
    pub is_open: bool,
    /// True if events without an allocation count: there is no filter on allocations.
    pub events: bool,
    /// True for lives that count by their length, `None` for one that is still allocated; without it all do.
    pub lifetime: Option<&'l (dyn Fn(Option<u64>) -> bool + Sync)>,
    /// True for page allocations that count by their first and last frame; without it all do.
    pub frames: Option<&'l (dyn Fn(u64, u64) -> bool + Sync)>,
}

impl Choice<'_> {
    /// Of everything.
    #[cfg(test)]
    pub const ALL: Self = Self { is_open: true, events: true, lifetime: None, frames: None };
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
    /// The kind of page allocation.
    pub site: PageSite,
    /// True if it counts.
    pub selected: bool,
}

/// An origin in the ledger.
#[derive(Debug, Clone, Copy)]
pub struct OriginInfo {
    /// CPU, task and level.
    pub origin: Origin,
    /// True if it counts.
    pub selected: bool,
}

/// The ledger's own tables of the items that operations name.
#[derive(Debug)]
pub struct Tables {
    page_size: u64,
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
    OriginInfo { origin: Origin { cpu: 0, pid: 0, level: 0, name: 0, cgroup: 0 }, selected: false };

macro_rules! look_up {
    ($name:ident, $table:ident, $item:ty, $none:ident) => {
        /// The item of that number, or an empty one.
        #[inline]
        pub fn $name(&self, number: u32) -> &$item {
            self.$table.get(number as usize).unwrap_or(&$none)
        }
    };
}

impl Tables {
    /// Empty tables.
    pub fn new(page_size: u64) -> Self {
        let (sites, frees, page_sites, origins, callers) = Default::default();
        Self { page_size, sites, frees, page_sites, origins, callers }
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
        self.callers.items().iter().copied().collect()
    }

    /// Adds new items.
    pub fn add(&mut self, new_items: &NewItems) {
        for &(site, selected) in &new_items.sites {
            self.sites.push(SiteInfo {
                bytes_req: site.bytes_req,
                bytes_alloc: site.bytes_alloc,
                cache: site.cache,
                caller: self.callers.number(&(site.api, site.call_site)),
                api: site.api,
                is_large: site.api == Api::Kmalloc && site.bytes_alloc > 2 * self.page_size,
                selected,
            });
        }
        self.frees.extend_from_slice(&new_items.frees);
        self.page_sites
            .extend(new_items.pages.iter().map(|&(site, selected)| PageSiteInfo { site, selected }));
        self.origins
            .extend(new_items.origins.iter().map(|&(origin, selected)| OriginInfo { origin, selected }));
    }
}
