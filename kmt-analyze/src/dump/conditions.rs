//! `dump --where`: events whose own fields meet conditions.
//!
//! Reports apply conditions to objects; here the event alone decides: a free has no size, so that it does not meet
//! `size>4096`. A condition on the lifetime is refused. Names of caches, tasks and functions are compared in the forms
//! that the reports accept (`trace::names`).

use kmt_common::tell;
use kmt_format::kernel::FieldKind;
use kmt_format::print::{EventText, PrintEnv};
use kmt_format::read::{Event, LEVEL_FLAGS, Metadata};
use kmt_format::schema::{Meaning, Role};

use crate::failure::{Failure, Result};
use crate::ledger::frames::ORDER_MAX;
use crate::pass::condition::{Condition, Key};
use crate::pass::filter::{Cgroup, MigrateTypes};
use crate::render::words::counted;
use crate::source::SourceTable;
use crate::trace::cgroups::Cgroups;
use crate::trace::names::{module_of, names_of_cache, names_of_module, names_of_size, names_of_task};

/// Conditions that an event has to meet by itself: an event without the field meets none on it.
pub(crate) struct Conditions<'o> {
    all: &'o [Condition],
    migratetypes: MigrateTypes,
    /// Source lines; `None`: of a file that is being written, none.
    source: Option<&'o SourceTable<'o>>,
    /// Cgroups, if a condition is about them; `None`: of a file that is being written.
    cgroups: Option<&'o Cgroups>,
    /// Events left out because they lack the field, for each condition.
    lacking: Vec<u64>,
}

/// Refuses conditions that no single event can meet.
pub(super) fn check(conditions: &[Condition]) -> Result<()> {
    if conditions.iter().any(|condition| condition.key == Key::Lifetime) {
        return Err(Failure::new("an event has no lifetime: dump selects events, not lives")
            .hint("`lifetimes --where` and `export --of objects --where` select by lifetime"));
    }
    Ok(())
}

impl<'o> Conditions<'o> {
    /// Conditions on events of a trace.
    pub(super) fn new(
        all: &'o [Condition],
        metadata: &Metadata<'_>,
        source: Option<&'o SourceTable<'o>>,
        cgroups: Option<&'o Cgroups>,
    ) -> Self {
        let migratetypes = MigrateTypes::of(metadata);
        Self { all, migratetypes, source, cgroups, lacking: vec![0; all.len()] }
    }

    /// True if there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// True if the event meets all conditions. `text` renders its fields; `comm` is the name of its task.
    pub(super) fn meets(
        &mut self,
        event: &Event<'_>,
        text: Option<&EventText>,
        env: &PrintEnv<'_>,
        comm: &[u8],
    ) -> bool {
        let of = ConditionOf { event, text, env, comm, source: self.source, cgroups: self.cgroups };
        let mut meets = true;
        for (condition, lacking) in self.all.iter().zip(&mut self.lacking) {
            match of.holds(condition, &self.migratetypes) {
                Some(holds) => meets &= holds,
                None => {
                    // Stacks come with their events.
                    let is_stack = event.class().meaning == Meaning::KERNEL_STACK;
                    *lacking = lacking.saturating_add(u64::from(!is_stack));
                    meets = false;
                }
            }
        }
        meets
    }

    /// Says how many events lack the field of a condition.
    pub(super) fn tell(&self) {
        for (condition, lacking) in self.all.iter().zip(&self.lacking).filter(|(_, lacking)| **lacking > 0) {
            let events = counted(*lacking, "event", "events");
            tell!("note: {events} without the field of `{condition}` left out");
        }
    }
}

/// An event, and what renders it.
struct ConditionOf<'e> {
    event: &'e Event<'e>,
    text: Option<&'e EventText>,
    env: &'e PrintEnv<'e>,
    comm: &'e [u8],
    source: Option<&'e SourceTable<'e>>,
    cgroups: Option<&'e Cgroups>,
}

impl ConditionOf<'_> {
    /// `None`: the event has no such field.
    fn holds(&self, condition: &Condition, migratetypes: &MigrateTypes) -> Option<bool> {
        let event = self.event;
        let number = |role: Role| self.number(role).map(|n| condition.holds_number(n));
        match condition.key {
            Key::Pid => Some(condition.holds_number(event.pid().into())),
            Key::Cpu => Some(condition.holds_number(event.cpu().into())),
            Key::Comm => Some(condition.holds_for_any(names_of_task(self.comm))),
            Key::Cgroup => Some(self.cgroup()?.meets(condition)),
            Key::Event => Some(self.is_event(condition)),
            Key::Node => number(Role::NODE),
            Key::BytesReq => number(Role::BYTES_REQ),
            Key::BytesAlloc => number(Role::BYTES_ALLOC),
            Key::Order => number(Role::ORDER),
            Key::CallSite => {
                let address = event.uint_with(Role::CALL_SITE)?;
                Some(condition.holds_text(&self.env.symbol_with_offset(address)))
            }
            Key::Module => {
                let symbol = self.env.symbol_with_offset(event.uint_with(Role::CALL_SITE)?);
                Some(condition.holds_for_any(names_of_module(module_of(&symbol)?)))
            }
            Key::Dir => {
                let directory = self.source?.directory(event.uint_with(Role::CALL_SITE)?)?;
                Some(condition.holds_for_any(directory.names()))
            }
            Key::File => {
                let frame = self.source?.shown(event.uint_with(Role::CALL_SITE)?)?;
                Some(condition.holds_for_any(frame.files()))
            }
            Key::Cache => self.cache(condition),
            Key::Gfp => {
                let flags = self.number(Role::GFP_FLAGS)?;
                Some(condition.holds(flags, self.rendered(Role::GFP_FLAGS).as_deref()))
            }
            Key::Migratetype => {
                let migratetype = self.number(Role::MIGRATETYPE)?;
                let name = i32::try_from(migratetype).ok().and_then(|number| migratetypes.get(number));
                Some(condition.holds(migratetype, name.map(str::as_bytes)))
            }
            Key::Pfn => self.is_on_frames(condition),
            Key::Lifetime => None,
        }
    }

    /// Cgroup of the event; `None`: cgroups are not known.
    fn cgroup(&self) -> Option<Cgroup<'_>> {
        let (cgroups, pid) = (self.cgroups?, self.event.pid());
        let level = self.event.uint_with(Role::FLAGS).unwrap_or(0) & LEVEL_FLAGS;
        let path = cgroups.path(pid, cgroups.number_at(pid, self.event.time()));
        Some(Cgroup::of(level as u8, Some(self.comm), path))
    }

    /// The value of a field, with its sign.
    fn number(&self, role: Role) -> Option<i64> {
        let class = self.event.class();
        let field = class.fields.get(class.field_with(role)?).filter(|f| f.kind == FieldKind::Scalar)?;
        let value = self.event.uint_with(role)?;
        Some(match role {
            Role::NODE | Role::MIGRATETYPE => i64::from(value as i32),
            _ if field.signed => value as i64,
            _ => i64::try_from(value).unwrap_or(i64::MAX),
        })
    }

    /// True if the event's page, or one of its block, meets the condition; a failed allocation has none.
    fn is_on_frames(&self, condition: &Condition) -> Option<bool> {
        let class = self.event.class();
        let size = class.fields.get(class.field_with(Role::PFN)?)?.size;
        let pfn = self.event.uint_with(Role::PFN)?;
        let no_frame = u64::MAX.checked_shr(64u32.saturating_sub(size.saturating_mul(8)));
        let order = self.event.uint_with(Role::ORDER).unwrap_or(0).min(ORDER_MAX.into());
        let last = pfn.saturating_add((1 << order) - 1);
        Some(Some(pfn) != no_frame && condition.holds_for_frames(pfn, last))
    }

    /// The kernel's text of a field.
    fn rendered(&self, role: Role) -> Option<Vec<u8>> {
        let field = self.event.class().field_with(role)?;
        self.text?.field_text(field, self.event, self.env)
    }

    fn is_event(&self, condition: &Condition) -> bool {
        let class = self.event.class();
        condition.holds_for_any([&class.name, &format!("{}:{}", class.system, class.name)])
    }

    /// The cache that the event names; of kmalloc the size class.
    fn cache(&self, condition: &Condition) -> Option<bool> {
        let class = self.event.class();
        if let Some(name) = class.field_with(Role::CACHE_NAME).and_then(|field| self.event.text(field)) {
            return Some(condition.holds_for_any(names_of_cache(name)));
        }
        let is_kmalloc = class.meaning == Meaning::KMALLOC;
        let size = self.event.uint_with(Role::BYTES_ALLOC).filter(|_| is_kmalloc)?;
        let flags = self.rendered(Role::GFP_FLAGS).unwrap_or_default();
        Some(condition.holds_for_any(names_of_size(size, &flags)))
    }
}
