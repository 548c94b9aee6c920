//! Values of the keys of `--by`.
//!
//! Input are numbered items of a pass: sites, origins, stacks, caches. Values are made when a report needs rows, not
//! for each event, and are `null` where the trace lacks the field. `keys` names the keys, `numbered` adds up the
//! groups.

use serde::Serialize;

use crate::collect::groups::AreaGroup;
use crate::pass::Analysis;
use crate::pass::caches::{CacheNames, key_of};
use crate::pass::filter::{ASYNCHRONOUS, Cgroup, cgroup_of};
use crate::render::words::escaped;
use crate::reports::common::ReportContext;
use crate::reports::common::labels::caller_function;
use crate::reports::common::page_sums::{caller, is_allocator};
use crate::reports::common::rows::text;
use crate::source::{Directory, Frame};
use crate::stream::{Api, NameId, Origin, Site, known_gfp};
use crate::trace::aliases::Aliases;
use crate::trace::names::{Symbolizer, task_name};
use crate::trace::session::Session;

/// Value of a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum GroupValue {
    /// Not known: no symbol.
    Unknown,
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

/// Makes values from interned numbers.
pub struct Values<'r, 'd> {
    analysis: &'r Analysis,
    symbols: Symbolizer<'d>,
    session: &'r Session<'d>,
    /// End of the selected time.
    end: u64,
    caches: CacheNames<'r>,
    aliases: Aliases,
}

impl<'r, 'd> Values<'r, 'd> {
    /// Values of a trace.
    pub fn new(context: &ReportContext<'r, 'd>) -> Self {
        let analysis = context.analysis;
        let session = context.session;
        let end = context.selection.span(session).1;
        let aliases = Aliases::of(session.trace.metadata());
        Self {
            analysis,
            symbols: session.symbolizer(),
            session,
            end,
            caches: CacheNames::of(analysis),
            aliases,
        }
    }

    /// Address of the call site of pages: the first function of the stack outside the allocator; `None`: no stack.
    pub fn page_caller(&self, stack: u32) -> Option<u64> {
        caller(self.analysis.interner.stacks.get(stack)?, &self.symbols)
    }

    /// Address of the call site of an area: that of its event or, where that is in the allocator or unknown, the first
    /// function of the stack outside the allocator.
    pub fn area_caller(&self, group: &AreaGroup) -> Option<u64> {
        let own = Some(group.call_site).filter(|&address| address != 0);
        let is_caller = |address: &u64| !is_allocator(&self.symbols.raw(*address));
        own.filter(is_caller).or_else(|| self.page_caller(group.stack)).or(own)
    }

    /// Function and offset.
    pub fn symbol(&self, address: u64) -> GroupValue {
        GroupValue::Text(self.symbols.shown(address))
    }

    /// Source line of a call site.
    pub fn line(&self, address: u64) -> GroupValue {
        self.source(address, |frame| frame.file_and_line())
    }

    /// Source file of a call site.
    pub fn file(&self, address: u64) -> GroupValue {
        self.source(address, |frame| frame.file.clone().into_owned())
    }

    /// Directory of the source file of a call site.
    pub fn dir(&self, address: u64) -> GroupValue {
        self.directory(address, |dir| self.session.env.source.cut(&dir.path))
    }

    /// Directory of the source file of a call site, not cut.
    pub fn whole_dir(&self, address: u64) -> GroupValue {
        self.directory(address, |dir| &dir.path)
    }

    /// Part of the kernel that a call site is in.
    pub fn subsystem(&self, address: u64) -> GroupValue {
        self.directory(address, |dir| dir.subsystem())
    }

    fn directory(&self, address: u64, part: impl for<'p> Fn(&'p Directory<'p>) -> &'p str) -> GroupValue {
        let directory = self.session.source().directory(address);
        let text = directory.map(|dir| escaped(dir.marked(part(&dir)).as_bytes()));
        text.map_or(GroupValue::Unknown, GroupValue::Text)
    }

    fn source(&self, address: u64, of: impl Fn(&Frame<'_>) -> String) -> GroupValue {
        let frame = self.session.source().shown(address);
        frame.map_or(GroupValue::Unknown, |frame| GroupValue::Text(escaped(of(&frame).as_bytes())))
    }

    /// Function, with the brackets of its module; where lines are known, the one outside the allocator.
    pub fn function(&self, address: u64) -> GroupValue {
        let symbol = self.symbols.shown(address);
        GroupValue::Text(caller_function(self.session, &symbol, address))
    }

    /// Module; the core kernel is one of its own.
    pub fn module(&self, address: u64) -> GroupValue {
        self.symbols.module(address).map_or(GroupValue::Unknown, GroupValue::Text)
    }

    /// Name and number of a task.
    pub fn task(&self, pid: i32) -> GroupValue {
        GroupValue::Text(task_name(self.session.names().shown_at(pid, self.end), pid))
    }

    /// Name at the time of the allocation, as `--comm` compares it.
    pub fn comm(&self, origin: &Origin) -> GroupValue {
        GroupValue::Text(text(self.session.names().shown(origin.pid, origin.name)))
    }

    /// Names of flags.
    pub fn gfp(&self, flags: u64) -> GroupValue {
        let known =
            known_gfp(flags).map(|flags| GroupValue::Text(text(&self.analysis.interner.gfp_text(flags))));
        known.unwrap_or(GroupValue::Unknown)
    }

    /// Name of a migrate type.
    pub fn migratetype(&self, number: i32) -> GroupValue {
        GroupValue::Text(self.analysis.migratetypes.name(number))
    }

    /// Cgroup that an origin counts for.
    pub fn cgroup(&self, origin: &Origin) -> GroupValue {
        match cgroup_of(self.session, origin) {
            Cgroup::Asynchronous => GroupValue::Text(ASYNCHRONOUS.to_owned()),
            Cgroup::Path(path) => GroupValue::Text(text(path)),
            Cgroup::Unknown => GroupValue::Unknown,
        }
    }

    /// "yes" if memory-cgroup accounting was asked for: by the event (6.0 and later), by its flags, or by its cache.
    pub fn accounted(&self, site: &Site, cache: Option<NameId>) -> GroupValue {
        let of_flags = || self.analysis.interner.gfp_text(site.gfp_flags).windows(7).any(|w| w == b"ACCOUNT");
        let of_cache = || match (site.api, cache) {
            (Api::Kmalloc, _) => Some(false),
            (Api::Cache, Some(name)) => self.aliases.is_accounted(self.analysis.interner.name(name)),
            (Api::Cache, None) => None,
        };
        let is = site.accounted.or_else(|| if of_flags() { Some(true) } else { of_cache() });
        is.map_or(GroupValue::Unknown, |is| GroupValue::Text(if is { "yes" } else { "no" }.to_owned()))
    }

    /// Cache of a site whose events do not name it.
    pub fn usual_cache(&self, site: u32) -> Option<NameId> {
        self.caches.named(site, None)
    }

    /// Name of a cache or size class.
    pub fn cache(&self, site: &Site, cache: Option<NameId>) -> GroupValue {
        let key = key_of(site, cache, &self.analysis.interner);
        GroupValue::Text(key.shown(self.analysis.size_classes))
    }
}
