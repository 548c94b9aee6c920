//! Selection of events: tasks, CPUs, conditions on allocations, a time window.

use std::cell::RefCell;
use std::collections::HashMap;

use kmt_format::read::Trace;

use crate::ledger::Select;
use crate::pass::condition::{Condition, Key};
use crate::pass::modules::{module_of, names_of_module};
use crate::pass::size_classes::names_of_size;
use crate::stream::{Api, Interner, Origin, PageSite, Site};
use crate::trace::comms::Comms;

/// Events to count. Filters select allocations, which are followed to their frees.
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
    /// Conditions; all must hold.
    pub terms: Vec<Condition>,
}

impl Filter {
    /// True if a condition is about the allocation itself, which events without one cannot meet.
    pub fn is_about_allocations(&self) -> bool {
        self.terms.iter().any(|t| !matches!(t.key, Key::Pid | Key::Comm | Key::Cpu))
    }

    /// True if a condition is about names of tasks.
    pub fn is_about_names(&self) -> bool {
        !self.comms.is_empty() || self.terms.iter().any(|t| t.key == Key::Comm)
    }

    /// True if a condition is about caches.
    pub fn is_about_caches(&self) -> bool {
        self.terms.iter().any(|t| t.key == Key::Cache)
    }

    /// True if a condition is about lifetimes, which are known only at the end of a life.
    pub fn is_about_lifetimes(&self) -> bool {
        self.terms.iter().any(|t| t.key == Key::Lifetime)
    }
}

/// Texts for numbers in events.
pub trait Names {
    /// Symbol and offset of a code address.
    fn symbol(&self, address: u64) -> Vec<u8>;
    /// Names of allocation flags, as the kernel prints them.
    fn gfp(&self, interner: &Interner, gfp_flags: u64) -> Vec<u8>;
    /// Name of a migrate type.
    fn migratetype(&self, number: i32) -> String;
}

/// A filter prepared for a trace.
pub struct Selector<'s> {
    filter: &'s Filter,
    names: &'s dyn Names,
    /// Names of tasks over time, if a condition uses them.
    comms: Option<&'s Comms>,
    /// Names of event classes: with and without the system.
    classes: Vec<(String, String)>,
    /// Caches, by their frees, of sites whose events do not name them.
    usual_caches: HashMap<Site, Vec<u8>>,
    symbols: RefCell<HashMap<u64, Vec<u8>>>,
}

impl<'s> Selector<'s> {
    /// A filter for a trace; `usual_caches` has the caches of sites whose events do not name them.
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

    /// Names of tasks over time, if a condition uses them.
    pub fn names_of_tasks(&self) -> Option<&'s Comms> {
        self.comms
    }

    /// True if --pid or --comm selects the task.
    fn is_named(&self, pid: i32, name: &[u8]) -> bool {
        let filter = self.filter;
        filter.pids.is_empty() && filter.comms.is_empty()
            || filter.pids.contains(&pid)
            || filter.comms.iter().any(|comm| comm == name)
    }

    fn is_event(&self, condition: &Condition, class: u32) -> bool {
        let names = self.classes.get(class as usize);
        names.is_some_and(|(short, long)| {
            // A negated condition must hold for both.
            let (short, long) =
                (condition.holds_text(short.as_bytes()), condition.holds_text(long.as_bytes()));
            if condition.is_negated() { short && long } else { short || long }
        })
    }

    /// True if the condition names the size class of the site.
    fn is_size_class(&self, interner: &Interner, condition: &Condition, site: &Site) -> bool {
        let flags = self.names.gfp(interner, site.gfp_flags);
        condition.holds_for_any(&names_of_size(site.bytes_alloc, &flags))
    }

    fn call_site(&self, condition: &Condition, address: u64) -> bool {
        let mut symbols = self.symbols.borrow_mut();
        condition.holds_text(symbols.entry(address).or_insert_with(|| self.names.symbol(address)))
    }

    fn module(&self, condition: &Condition, address: u64) -> bool {
        let mut symbols = self.symbols.borrow_mut();
        let symbol = symbols.entry(address).or_insert_with(|| self.names.symbol(address));
        module_of(symbol).is_some_and(|module| condition.holds_for_any(&names_of_module(module)))
    }

    fn gfp(&self, interner: &Interner, condition: &Condition, gfp_flags: u64) -> bool {
        condition.holds(gfp_flags as i64, Some(&self.names.gfp(interner, gfp_flags)))
    }
}

impl Select for Selector<'_> {
    fn site(&self, interner: &Interner, site: &Site) -> bool {
        self.filter.terms.iter().all(|condition| match condition.key {
            Key::Pid | Key::Comm | Key::Cpu | Key::Lifetime => true,
            Key::Node => condition.holds_number(site.node.into()),
            Key::Event => self.is_event(condition, site.class),
            Key::CallSite => self.call_site(condition, site.call_site),
            Key::Module => self.module(condition, site.call_site),
            Key::Cache => {
                if site.api == Api::Kmalloc {
                    return self.is_size_class(interner, condition, site);
                }
                let from_event = site.cache.map(|c| interner.name(c));
                let name = from_event.or_else(|| self.usual_caches.get(site).map(Vec::as_slice));
                name.is_some_and(|name| condition.holds_text(name))
            }
            Key::BytesReq => condition.holds_number(site.bytes_req as i64),
            Key::BytesAlloc => condition.holds_number(site.bytes_alloc as i64),
            Key::Gfp => self.gfp(interner, condition, site.gfp_flags),
            Key::Order | Key::Migratetype => false,
        })
    }

    fn page_site(&self, interner: &Interner, site: &PageSite) -> bool {
        self.filter.terms.iter().all(|condition| match condition.key {
            Key::Pid | Key::Comm | Key::Cpu => true,
            Key::Event => self.is_event(condition, site.class),
            Key::Gfp => self.gfp(interner, condition, site.gfp_flags),
            Key::Order => condition.holds_number(site.order.into()),
            Key::Migratetype => {
                let name = self.names.migratetype(site.migratetype);
                condition.holds(site.migratetype.into(), Some(name.as_bytes()))
            }
            Key::Node
            | Key::CallSite
            | Key::Module
            | Key::Cache
            | Key::BytesReq
            | Key::BytesAlloc
            | Key::Lifetime => false,
        })
    }

    fn origin(&self, origin: Origin) -> bool {
        let filter = self.filter;
        let name = self.comms.map_or(&[][..], |comms| comms.shown(origin.pid, origin.name));
        filter.without != Some(origin.pid)
            && self.is_named(origin.pid, name)
            && (filter.cpus.is_empty() || filter.cpus.contains(&origin.cpu))
            && filter.terms.iter().all(|condition| match condition.key {
                Key::Pid => condition.holds_number(origin.pid.into()),
                Key::Cpu => condition.holds_number(origin.cpu.into()),
                Key::Comm => condition.holds_text(name),
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

/// Results of a selector for all interned items, to be used on other cores.
#[derive(Debug)]
pub struct Chosen {
    sites: HashMap<Site, bool>,
    page_sites: HashMap<PageSite, bool>,
    origins: HashMap<Origin, bool>,
    events: bool,
    is_open: bool,
    lifetimes: Vec<Condition>,
}

impl Chosen {
    /// Results of `selector`.
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

/// A life without an end has no lifetime, and meets no condition on it.
fn meets<'t>(mut terms: impl Iterator<Item = &'t Condition>, lifetime: Option<u64>) -> bool {
    terms.all(|condition| {
        lifetime.is_some_and(|l| condition.holds_number(i64::try_from(l).unwrap_or(i64::MAX)))
    })
}
