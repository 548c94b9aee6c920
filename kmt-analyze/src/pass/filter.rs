//! A selection prepared for a pass: decides which sites, kinds of pages and origins count.
//!
//! The decision is made once for each item, when it is numbered. Cgroups of tasks and names of migrate types are resolved here,
//! since conditions name them and events have numbers.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use kmt_common::text::escaped;
use kmt_format::read::Metadata;

use super::condition::Condition;
use super::selection::{Selection, recorder};
use crate::pass::condition::Key;
use crate::stream::{Api, Interner, Item, Origin, PageSite, Site, known_gfp};
use crate::trace::aliases::Aliases;
use crate::trace::cgroups::with_parents;
use crate::trace::comms::{Comms, descendants};
use crate::trace::names::{
    Symbolizer, module_of, nameless, names_of_cache, names_of_module, names_of_size, names_of_task,
};
use crate::trace::session::Session;

/// A selection prepared for a trace. It selects allocations, which are followed to their frees.
pub struct Selector<'s, 'd> {
    selection: &'s Selection,
    /// Conditions with times in the clock's unit.
    terms: Vec<Condition>,
    /// A task whose allocations are left out: the recorder.
    without: Option<i32>,
    session: &'s Session<'d>,
    /// Made when a condition is about symbols: it reads all of the kernel's format strings.
    symbols: OnceCell<Symbolizer<'d>>,
    migratetypes: MigrateTypes,
    /// Names of tasks over time, if a condition uses them.
    comms: Option<&'s Comms>,
    /// Descendants of the selected tasks, if they are selected too.
    descendants: HashSet<i32>,
    /// Names of event classes: with and without the system.
    classes: Vec<(String, String)>,
    /// Other names of merged caches, if a condition is on caches.
    aliases: Option<Aliases>,
    /// Caches, by their frees, of sites whose events do not name them.
    usual_caches: HashMap<Site, Vec<u8>>,
}

impl<'s, 'd> Selector<'s, 'd> {
    /// A selection for a trace; `usual_caches` has the caches of sites whose events do not name them. Conditions that
    /// [`Selection::check`] refuses are those of the command line.
    pub fn new(
        session: &'s Session<'d>,
        selection: &'s Selection,
        usual_caches: HashMap<Site, Vec<u8>>,
    ) -> Self {
        let schema = session.trace.schema();
        let class = |i| schema.class(i).map(|c| (c.name.clone(), format!("{}:{}", c.system, c.name)));
        Self {
            selection,
            terms: selection.terms_of(session).unwrap_or_else(|_| selection.conditions().cloned().collect()),
            without: recorder(session).filter(|_| selection.without_recorder),
            session,
            symbols: OnceCell::new(),
            migratetypes: MigrateTypes::of(session.trace.metadata()),
            comms: selection.is_about_names().then(|| session.names()),
            descendants: descendants_of(session, selection),
            classes: (0..schema.class_count()).map(|i| class(i).unwrap_or_default()).collect(),
            aliases: selection.has_term_on(Key::Cache).then(|| Aliases::of(session.trace.metadata())),
            usual_caches,
        }
    }

    /// Conditions on lifetimes.
    pub fn lifetimes(&self) -> Vec<Condition> {
        self.terms.iter().filter(|term| term.key == Key::Lifetime).cloned().collect()
    }

    /// Conditions on page frames.
    pub fn frames(&self) -> Vec<Condition> {
        self.terms.iter().filter(|term| term.key == Key::Pfn).cloned().collect()
    }

    /// True if an item is selected. By one thread at a time: texts of symbols are kept.
    pub fn selects(&mut self, interner: &Interner, item: Item<'_>) -> bool {
        match item {
            Item::Site(site) => self.site(interner, site),
            Item::Pages(site) => self.page_site(interner, site),
            Item::Origin(origin) => self.origin(origin),
        }
    }

    /// True if --pid or --comm selects the task.
    fn is_named(&self, pid: i32, name: &[u8]) -> bool {
        let selection = self.selection;
        selection.is_of_any_task() || selection.is_task(pid, name) || self.descendants.contains(&pid)
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

    /// True if the condition names the cache or size class of the site.
    fn is_cache(&self, interner: &Interner, condition: &Condition, site: &Site) -> bool {
        if site.api == Api::Kmalloc {
            let flags = interner.gfp_text(site.gfp_flags);
            return condition.holds_for_any(names_of_size(site.bytes_alloc, &flags));
        }
        let from_event = site.cache.map(|c| interner.name(c));
        match from_event.or_else(|| self.usual_caches.get(site).map(Vec::as_slice)) {
            Some(name) => {
                let others = self.aliases.as_ref().and_then(|aliases| aliases.others(name));
                let others = others.unwrap_or_default().into_iter().flat_map(names_of_cache);
                condition.holds_for_any(names_of_cache(name).into_iter().chain(others))
            }
            // An unknown cache is not known to be another one.
            None => !condition.is_negated() && condition.holds_text(nameless(site.bytes_req).as_bytes()),
        }
    }

    fn symbol(&self, address: u64) -> Vec<u8> {
        self.symbols.get_or_init(|| self.session.symbolizer()).raw(address)
    }

    fn is_of_module(&self, condition: &Condition, address: u64) -> bool {
        let symbol = self.symbol(address);
        module_of(&symbol).is_some_and(|module| condition.holds_for_any(names_of_module(module)))
    }

    fn is_in_source(&self, condition: &Condition, address: u64) -> bool {
        let source = self.session.source();
        if condition.key == Key::Dir {
            return source.directory(address).is_some_and(|dir| condition.holds_for_any(dir.names()));
        }
        source.shown(address).is_some_and(|frame| condition.holds_for_any(frame.files()))
    }

    fn site(&self, interner: &Interner, site: &Site) -> bool {
        self.terms.iter().all(|condition| match condition.key {
            Key::Pid | Key::Comm | Key::Cgroup | Key::Cpu | Key::Lifetime => true,
            Key::Node => condition.holds_number(site.node.into()),
            Key::Event => self.is_event(condition, site.class),
            Key::CallSite => condition.holds_text(&self.symbol(site.call_site)),
            Key::Module => self.is_of_module(condition, site.call_site),
            Key::Dir | Key::File => self.is_in_source(condition, site.call_site),
            Key::Cache => self.is_cache(interner, condition, site),
            Key::BytesReq => condition.holds_number(site.bytes_req as i64),
            Key::BytesAlloc => condition.holds_number(site.bytes_alloc as i64),
            Key::Gfp => is_gfp(interner, condition, site.gfp_flags),
            Key::Order | Key::Migratetype | Key::Pfn => false,
        })
    }

    fn page_site(&self, interner: &Interner, site: &PageSite) -> bool {
        self.terms.iter().all(|condition| match condition.key {
            Key::Pid | Key::Comm | Key::Cgroup | Key::Cpu | Key::Pfn => true,
            Key::Event => self.is_event(condition, site.class),
            Key::Gfp => is_gfp(interner, condition, site.gfp_flags),
            Key::Order => condition.holds_number(site.order.into()),
            Key::Migratetype => {
                let name = self.migratetypes.name(site.migratetype);
                condition.holds(site.migratetype.into(), Some(name.as_bytes()))
            }
            Key::Node
            | Key::CallSite
            | Key::Module
            | Key::Dir
            | Key::File
            | Key::Cache
            | Key::BytesReq
            | Key::BytesAlloc
            | Key::Lifetime => false,
        })
    }

    fn origin(&self, origin: &Origin) -> bool {
        let cpus = &self.selection.cpus;
        let name = self.comms.map_or(&[][..], |comms| comms.shown(origin.pid, origin.name));
        self.without != Some(origin.pid)
            && self.is_named(origin.pid, name)
            && (cpus.is_empty() || cpus.contains(&origin.cpu))
            && self.terms.iter().all(|condition| match condition.key {
                Key::Pid => condition.holds_number(origin.pid.into()),
                Key::Cpu => condition.holds_number(origin.cpu.into()),
                Key::Comm => condition.holds_for_any(names_of_task(name)),
                Key::Cgroup => cgroup_of(self.session, origin).meets(condition),
                _ => true,
            })
    }
}

/// Descendants of the selected tasks, if they are selected too.
fn descendants_of(session: &Session<'_>, selection: &Selection) -> HashSet<i32> {
    if !selection.children {
        return HashSet::new();
    }
    descendants(session.trace, |pid, time| selection.is_task(pid, session.names().shown_at(pid, time)))
}

/// Unknown flags meet no condition.
fn is_gfp(interner: &Interner, condition: &Condition, gfp_flags: u64) -> bool {
    known_gfp(gfp_flags).is_some_and(|flags| condition.holds(flags as i64, Some(&interner.gfp_text(flags))))
}

/// A life without an end has no lifetime, and meets no condition on it.
pub fn meets(terms: &[Condition], lifetime: Option<u64>) -> bool {
    terms.iter().all(|condition| {
        lifetime.is_some_and(|l| condition.holds_number(i64::try_from(l).unwrap_or(i64::MAX)))
    })
}

/// Cgroup of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cgroup<'s> {
    /// Interrupts and threads that work for others: the running task did not ask for it.
    Asynchronous,
    /// Path of the task's cgroup.
    Path(&'s [u8]),
    /// Not recorded.
    Unknown,
}

/// Name of [`Cgroup::Asynchronous`].
pub const ASYNCHRONOUS: &str = "(asynchronous)";

/// Names of kernel threads that work for others, by their start: kernel/workqueue.c, kernel/softirq.c, kernel/rcu, 4.4
/// to 7.2.
const WORKERS: [&[u8]; 7] = [b"kworker/", b"ksoftirqd/", b"rcu_", b"rcuc/", b"rcuop/", b"rcuog/", b"rcuos/"];

impl<'s> Cgroup<'s> {
    /// Cgroup of an event, by its context bits and the name and path of its task.
    pub fn of(level: u8, comm: Option<&[u8]>, path: Option<&'s [u8]>) -> Self {
        let is_worker = comm.is_some_and(|comm| WORKERS.iter().any(|start| comm.starts_with(start)));
        match path {
            _ if level != 0 || is_worker => Self::Asynchronous,
            Some(path) => Self::Path(path),
            None => Self::Unknown,
        }
    }

    /// True if its path, or one above it, meets the condition.
    pub fn meets(self, condition: &Condition) -> bool {
        match self {
            Self::Asynchronous => condition.holds_for_any([ASYNCHRONOUS]),
            Self::Path(path) => {
                // As it is, and as it is shown.
                let (raw, shown) = (String::from_utf8_lossy(path), escaped(path));
                condition.holds_for_any(with_parents(&raw).chain(with_parents(&shown)))
            }
            Self::Unknown => condition.holds_for_any([""; 0]),
        }
    }
}

/// Cgroup of an origin, which has to be numbered with names and cgroups.
pub fn cgroup_of<'s>(session: &'s Session<'_>, origin: &Origin) -> Cgroup<'s> {
    let comm = session.names().name(origin.pid, origin.name);
    Cgroup::of(origin.level, comm, session.cgroups().path(origin.pid, origin.cgroup))
}

/// Most migrate types of a kernel, and bytes of a name; Linux 7.2 has 6, the longest with 10 (mm/vmstat.c).
const TYPES_MAX: usize = 64;
const NAME_MAX: usize = 64;

/// Names of types that a line of /proc/pagetypeinfo lists, as many as a kernel can have.
pub fn names_in(line: &str) -> impl Iterator<Item = &str> {
    line.split_ascii_whitespace().take_while(|name| name.len() <= NAME_MAX).take(TYPES_MAX)
}

/// Names in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub struct MigrateTypes(Vec<String>);

impl MigrateTypes {
    /// Those of the target: /proc/pagetypeinfo lists the types of each zone in the order of their numbers. Without it, the
    /// four of all kernels since 4.4 (enum migratetype, include/linux/mmzone.h).
    pub fn of(metadata: &Metadata<'_>) -> Self {
        let files = ["pagetypeinfo.before", "pagetypeinfo.after", "pagetypeinfo"];
        let text = files.iter().find_map(|n| metadata.attachment(n)).unwrap_or_default();
        let mut names: Vec<String> = Vec::new();
        for line in String::from_utf8_lossy(text).lines() {
            // Node    0, zone      DMA, type    Unmovable      1 ...
            let Some((_, rest)) = line.split_once(", type") else { continue };
            let Some(name) = names_in(rest).next() else { break };
            if names.len() == TYPES_MAX || names.iter().any(|n| n == name) {
                break;
            }
            names.push(name.to_owned());
        }
        if names.is_empty() {
            names = ["Unmovable", "Movable", "Reclaimable", "HighAtomic"].map(str::to_owned).to_vec();
        }
        Self(names)
    }

    /// Name of a migrate type, if it is known.
    pub fn get(&self, number: i32) -> Option<&str> {
        usize::try_from(number).ok().and_then(|number| self.0.get(number)).map(String::as_str)
    }

    /// Name of a migrate type, or its number.
    pub fn name(&self, number: i32) -> String {
        self.get(number).map_or_else(|| number.to_string(), str::to_owned)
    }
}
