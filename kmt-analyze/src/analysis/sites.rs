//! Call sites, interned over the whole trace, and what the descriptors of a chunk mean to the ledger.

use std::collections::HashMap;

use kmt_format::read::Event;
use kmt_format::schema::{Meaning, Role};

/// By which interface an object was allocated or freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Api {
    /// By size: kmalloc and kfree.
    Kmalloc,
    /// From a cache: kmem_cache_alloc and kmem_cache_free.
    Cache,
}

/// What all allocations of one kind at one place have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Site {
    /// Interface.
    pub api: Api,
    /// Return address of the allocator's caller.
    pub call_site: u64,
    /// Bytes asked for.
    pub bytes_req: u64,
    /// Bytes handed out.
    pub bytes_alloc: u64,
    /// Cache, where the allocation itself tells it.
    pub cache: Option<NameId>,
}

/// A cache name, interned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// What an event is to the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An allocation at the site of that number.
    Alloc(u32),
    /// A free.
    Free(Api, Option<NameId>),
    /// An allocation of 2^order pages.
    PageAlloc {
        /// log2 of the number of pages.
        order: u8,
        /// Migrate type asked for is MOVABLE.
        movable: bool,
    },
    /// A free of 2^order pages.
    PageFree {
        /// log2 of the number of pages.
        order: u8,
    },
    /// Nothing to the ledger.
    Other,
}

/// Numbers for sites and names.
#[derive(Debug, Default)]
pub struct Sites {
    sites: Vec<Site>,
    by_site: HashMap<Site, u32>,
    names: Vec<Vec<u8>>,
    by_name: HashMap<Vec<u8>, NameId>,
}

/// Migrate type MOVABLE (enum migratetype, include/linux/mmzone.h 4.4 to 7.2).
const MOVABLE: u64 = 1;

impl Sites {
    /// These sites, numbered in order.
    #[cfg(test)]
    pub fn of(sites: &[Site]) -> Self {
        let mut out = Self::default();
        sites.iter().for_each(|s| {
            out.intern(*s);
        });
        out
    }

    /// The site of that number.
    pub fn site(&self, number: u32) -> Option<&Site> {
        self.sites.get(number as usize)
    }

    /// Number of sites.
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// The cache name of that number.
    pub fn name(&self, id: NameId) -> &[u8] {
        self.names.get(id.0 as usize).map_or(b"", Vec::as_slice)
    }

    fn intern(&mut self, site: Site) -> u32 {
        *self.by_site.entry(site).or_insert_with(|| {
            self.sites.push(site);
            self.sites.len() as u32 - 1
        })
    }

    fn intern_name(&mut self, name: &[u8]) -> NameId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let id = NameId(self.names.len() as u32);
        self.names.push(name.to_vec());
        self.by_name.insert(name.to_vec(), id);
        id
    }

    /// What an event is. Depends on its descriptor alone, unless its class keeps fields in the payload.
    pub fn kind_of(&mut self, event: &Event<'_>) -> Kind {
        let class = event.class();
        let number = |role| event.uint_with(role);
        let name = |sites: &mut Self| {
            let text = class.field_with(Role::CACHE_NAME).and_then(|f| event.text(f))?;
            Some(sites.intern_name(text))
        };
        let order =
            || number(Role::ORDER).and_then(|o| u8::try_from(o).ok()).filter(|&o| o < 32).unwrap_or(0);
        match class.meaning {
            meaning if meaning.is_slab_alloc() => {
                let api = if meaning == Meaning::KMALLOC { Api::Kmalloc } else { Api::Cache };
                let site = Site {
                    api,
                    call_site: number(Role::CALL_SITE).unwrap_or(0),
                    bytes_req: number(Role::BYTES_REQ).unwrap_or(0),
                    bytes_alloc: number(Role::BYTES_ALLOC).unwrap_or(0),
                    cache: name(self),
                };
                Kind::Alloc(self.intern(site))
            }
            Meaning::KFREE => Kind::Free(Api::Kmalloc, None),
            Meaning::CACHE_FREE => Kind::Free(Api::Cache, name(self)),
            Meaning::PAGE_ALLOC => {
                Kind::PageAlloc { order: order(), movable: number(Role::MIGRATETYPE) == Some(MOVABLE) }
            }
            Meaning::PAGE_FREE => Kind::PageFree { order: order() },
            _ => Kind::Other,
        }
    }
}
