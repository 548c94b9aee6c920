//! What is counted: tasks, CPUs, conditions on allocations, a window of time.

use std::cell::RefCell;
use std::collections::HashMap;

use kmt_format::read::Trace;

use crate::ledger::Select;
use crate::pass::size_classes::in_k;
use crate::pass::term::{Key, Term};
use crate::stream::{Api, Interner, Origin, PageSite, Site};
use crate::trace::comms::Comms;

/// Which events count. Filters select allocations; what was allocated is followed wherever it is freed.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Tasks, by thread id; empty: all.
    pub pids: Vec<i32>,
    /// Tasks, by name; empty: all.
    pub comms: Vec<Vec<u8>>,
    /// CPUs; empty: all.
    pub cpus: Vec<u32>,
    /// A task whose allocations are left out: the recorder.
    pub without: Option<i32>,
    /// First and last time in the clock's unit.
    pub window: Option<(u64, u64)>,
    /// Conditions, all of which have to hold.
    pub terms: Vec<Term>,
}

impl Filter {
    /// Whether a condition is about the allocation itself, so that events without one cannot meet it.
    pub fn is_about_allocations(&self) -> bool {
        self.terms.iter().any(|t| !matches!(t.key, Key::Pid | Key::Comm | Key::Cpu))
    }

    /// Whether a condition is about names of tasks.
    pub fn is_about_names(&self) -> bool {
        !self.comms.is_empty() || self.terms.iter().any(|t| t.key == Key::Comm)
    }

    /// Whether a condition is about caches.
    pub fn is_about_caches(&self) -> bool {
        self.terms.iter().any(|t| t.key == Key::Cache)
    }

    /// Whether a condition is about lifetimes, which are known only at the end of a life.
    pub fn is_about_lifetimes(&self) -> bool {
        self.terms.iter().any(|t| t.key == Key::Lifetime)
    }
}

/// Texts of what is only a number in events.
pub trait Names {
    /// Symbol and offset of a code address.
    fn symbol(&self, address: u64) -> Vec<u8>;
    /// Names of allocation flags, as the kernel prints them.
    fn gfp(&self, interner: &Interner, gfp_flags: u64) -> Vec<u8>;
    /// Name of a migrate type.
    fn migratetype(&self, number: i32) -> String;
}

/// A filter, made ready for a trace.
pub struct Selector<'s> {
    filter: &'s Filter,
    names: &'s dyn Names,
    /// Names of tasks over time, where a condition asks for them.
    comms: Option<&'s Comms>,
    /// Names of event classes: with and without the system.
    classes: Vec<(String, String)>,
    /// Caches of sites whose events do not tell them, by what their frees said.
    usual_caches: HashMap<Site, Vec<u8>>,
    symbols: RefCell<HashMap<u64, Vec<u8>>>,
}

impl<'s> Selector<'s> {
    /// For a trace; `usual_caches` tells the caches of sites whose events do not.
    pub fn new(
        trace: &Trace<'_>,
        filter: &'s Filter,
        names: &'s dyn Names,
        usual_caches: HashMap<Site, Vec<u8>>,
        comms: Option<&'s Comms>,
    ) -> Self {
        let schema = trace.schema();
        let class = |i| schema.class(i).map(|c| (c.name.clone(), format!("{}:{}", c.system, c.name)));
        let classes = (0..schema.class_count()).map(|i| class(i).unwrap_or_default()).collect();
        Self { filter, names, comms, classes, usual_caches, symbols: RefCell::default() }
    }

    /// Names of tasks over time, where a condition asks for them.
    pub fn names_of_tasks(&self) -> Option<&'s Comms> {
        self.comms
    }

    /// Whether a task is one of those that --pid and --comm name.
    fn is_named(&self, pid: i32, name: &[u8]) -> bool {
        let filter = self.filter;
        filter.pids.is_empty() && filter.comms.is_empty()
            || filter.pids.contains(&pid)
            || filter.comms.iter().any(|comm| comm == name)
    }

    fn is_event(&self, term: &Term, class: u32) -> bool {
        let names = self.classes.get(class as usize);
        names.is_some_and(|(short, long)| {
            // A negation has to hold for both.
            let (short, long) = (term.holds_text(short.as_bytes()), term.holds_text(long.as_bytes()));
            if term.is_negated() { short && long } else { short || long }
        })
    }

    /// Whether a size class of kmalloc is meant: `kmalloc-1024`, or as kernels call it, `kmalloc-1k`,
    /// `kmalloc-cg-1k`, `kmalloc-rcl-1k` or `dma-kmalloc-1k` by the flags (kmalloc_type(), include/linux/slab.h).
    fn is_size_class(&self, interner: &Interner, term: &Term, site: &Site) -> bool {
        let size = site.bytes_alloc;
        let kernel = in_k(size);
        let flags = self.names.gfp(interner, site.gfp_flags);
        let has = |name: &str| flags.split(|&b| b == b'|').any(|flag| flag == name.as_bytes());
        let mut names = vec![format!("kmalloc-{size}"), format!("kmalloc-{kernel}")];
        if has("__GFP_ACCOUNT") || has("GFP_KERNEL_ACCOUNT") {
            names.push(format!("kmalloc-cg-{kernel}"));
        }
        if has("__GFP_RECLAIMABLE") {
            names.push(format!("kmalloc-rcl-{kernel}"));
        }
        if has("GFP_DMA") || has("__GFP_DMA") {
            names.push(format!("dma-kmalloc-{kernel}"));
        }
        let mut holds = names.iter().map(|name| term.holds_text(name.as_bytes()));
        // A negation has to hold for all names.
        if term.is_negated() { holds.all(|h| h) } else { holds.any(|h| h) }
    }

    fn call_site(&self, term: &Term, address: u64) -> bool {
        let mut symbols = self.symbols.borrow_mut();
        term.holds_text(symbols.entry(address).or_insert_with(|| self.names.symbol(address)))
    }

    fn gfp(&self, interner: &Interner, term: &Term, gfp_flags: u64) -> bool {
        term.holds(gfp_flags as i64, Some(&self.names.gfp(interner, gfp_flags)))
    }
}

impl Select for Selector<'_> {
    fn site(&self, interner: &Interner, site: &Site) -> bool {
        self.filter.terms.iter().all(|term| match term.key {
            Key::Pid | Key::Comm | Key::Cpu | Key::Lifetime => true,
            Key::Node => term.holds_number(site.node.into()),
            Key::Event => self.is_event(term, site.class),
            Key::CallSite => self.call_site(term, site.call_site),
            Key::Cache => {
                if site.api == Api::Kmalloc {
                    return self.is_size_class(interner, term, site);
                }
                let told = site.cache.map(|c| interner.name(c));
                let name = told.or_else(|| self.usual_caches.get(site).map(Vec::as_slice));
                name.is_some_and(|name| term.holds_text(name))
            }
            Key::BytesReq => term.holds_number(site.bytes_req as i64),
            Key::BytesAlloc => term.holds_number(site.bytes_alloc as i64),
            Key::Gfp => self.gfp(interner, term, site.gfp_flags),
            Key::Order | Key::Migratetype => false,
        })
    }

    fn page_site(&self, interner: &Interner, site: &PageSite) -> bool {
        self.filter.terms.iter().all(|term| match term.key {
            Key::Pid | Key::Comm | Key::Cpu => true,
            Key::Event => self.is_event(term, site.class),
            Key::Gfp => self.gfp(interner, term, site.gfp_flags),
            Key::Order => term.holds_number(site.order.into()),
            Key::Migratetype => {
                let name = self.names.migratetype(site.migratetype);
                term.holds(site.migratetype.into(), Some(name.as_bytes()))
            }
            Key::Node | Key::CallSite | Key::Cache | Key::BytesReq | Key::BytesAlloc | Key::Lifetime => false,
        })
    }

    fn origin(&self, origin: Origin) -> bool {
        let filter = self.filter;
        let idle: &[u8] = if origin.pid == 0 { b"<idle>" } else { b"<...>" };
        let name = self.comms.and_then(|comms| comms.name(origin.pid, origin.name)).unwrap_or(idle);
        filter.without != Some(origin.pid)
            && self.is_named(origin.pid, name)
            && (filter.cpus.is_empty() || filter.cpus.contains(&origin.cpu))
            && filter.terms.iter().all(|term| match term.key {
                Key::Pid => term.holds_number(origin.pid.into()),
                Key::Cpu => term.holds_number(origin.cpu.into()),
                Key::Comm => term.holds_text(name),
                _ => true,
            })
    }

    fn events(&self) -> bool {
        !self.filter.is_about_allocations()
    }

    fn is_open(&self) -> bool {
        let filter = self.filter;
        filter.without.is_none()
            && filter.pids.is_empty()
            && filter.comms.is_empty()
            && filter.cpus.is_empty()
            && filter.terms.is_empty()
    }

    fn lifetimes(&self) -> bool {
        self.filter.is_about_lifetimes()
    }

    fn lifetime(&self, lifetime: Option<u64>) -> bool {
        meets(self.filter.terms.iter().filter(|t| t.key == Key::Lifetime), lifetime)
    }
}

/// What a selector says of everything that was interned, so that other cores can ask.
#[derive(Debug)]
pub struct Chosen {
    sites: HashMap<Site, bool>,
    page_sites: HashMap<PageSite, bool>,
    origins: HashMap<Origin, bool>,
    events: bool,
    is_open: bool,
    lifetimes: Vec<Term>,
}

impl Chosen {
    /// What `selector` says.
    pub fn of(selector: &Selector<'_>, interner: &Interner) -> Self {
        let terms = selector.filter.terms.iter().filter(|t| t.key == Key::Lifetime);
        Self {
            sites: interner.sites.items().iter().map(|s| (*s, selector.site(interner, s))).collect(),
            page_sites: interner
                .pages
                .items()
                .iter()
                .map(|p| (*p, selector.page_site(interner, p)))
                .collect(),
            origins: interner.origins.items().iter().map(|o| (*o, selector.origin(*o))).collect(),
            events: selector.events(),
            is_open: selector.is_open(),
            lifetimes: terms.cloned().collect(),
        }
    }
}

impl Select for Chosen {
    fn site(&self, _: &Interner, site: &Site) -> bool {
        self.sites.get(site).copied().unwrap_or(false)
    }

    fn page_site(&self, _: &Interner, site: &PageSite) -> bool {
        self.page_sites.get(site).copied().unwrap_or(false)
    }

    fn origin(&self, origin: Origin) -> bool {
        self.origins.get(&origin).copied().unwrap_or(false)
    }

    fn events(&self) -> bool {
        self.events
    }

    fn is_open(&self) -> bool {
        self.is_open
    }

    fn lifetimes(&self) -> bool {
        !self.lifetimes.is_empty()
    }

    fn lifetime(&self, lifetime: Option<u64>) -> bool {
        meets(self.lifetimes.iter(), lifetime)
    }
}

/// What goes on has no lifetime yet, and meets no condition on it.
fn meets<'t>(mut terms: impl Iterator<Item = &'t Term>, lifetime: Option<u64>) -> bool {
    terms.all(|term| lifetime.is_some_and(|l| term.holds_number(i64::try_from(l).unwrap_or(i64::MAX))))
}
