//! Numbers for the common properties of events, over the whole trace.
//!
//! Threads that decode chunks number sites, page sites, names and stacks here, and mark the selected ones. Readers of operations
//! have tables of their own: each batch brings the items that were numbered since the one before it.

use std::collections::HashMap;
use std::hash::Hash;

use indexmap::IndexSet;
use indexmap::set::Slice;
use kmt_format::ErrorKind;
use kmt_format::read::{Event, LEVEL_FLAGS};
use kmt_format::schema::{Meaning, Role};

use super::gfp_flags::GfpFlags;
use super::op::{Kind, OpCode};
use super::plan::DecodePlan;
use super::side_events::SideNumbers;
use crate::int_hash::IntHash;
use crate::limits::RunLimits;
use crate::trace::cgroups::TaskStates;

/// Interface of an allocation or a free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Api {
    /// By size: kmalloc and kfree.
    Kmalloc,
    /// From a cache: kmem_cache_alloc and kmem_cache_free.
    Cache,
}

impl Api {
    /// Both interfaces.
    pub const ALL: [Self; 2] = [Self::Kmalloc, Self::Cache];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kmalloc => "kmalloc",
            Self::Cache => "cache",
        }
    }
}

/// Number of a cache name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// Largest size of an object in bytes: more than any allocator returns (MAX_PAGE_ORDER, include/linux/mmzone.h), and
/// small enough that no sum over the events of a file overflows.
const BYTES_MAX: u64 = 1 << 32;

/// Common properties of slab allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Site {
    /// Interface.
    pub api: Api,
    /// Index of the event class.
    pub class: u32,
    /// Return address of the allocator's caller.
    pub call_site: u64,
    /// Bytes requested.
    pub bytes_req: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Allocation flags.
    pub gfp_flags: u64,
    /// Requested node; -1: any.
    pub node: i32,
    /// True if memory-cgroup accounting was asked for; `None`: not in the event.
    pub accounted: Option<bool>,
    /// Cache, if the allocation names it.
    pub cache: Option<NameId>,
}

/// Common properties of slab frees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FreeSite {
    /// Interface.
    pub api: Api,
    /// Index of the event class.
    pub class: u32,
    /// Return address of the caller.
    pub call_site: u64,
    /// Cache, if the event names it.
    pub cache: Option<NameId>,
}

/// Common properties of page allocations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageSite {
    /// log2 of the number of pages.
    pub order: u8,
    /// Requested migrate type.
    pub migratetype: i32,
    /// Allocation flags.
    pub gfp_flags: u64,
    /// Index of the event class.
    pub class: u32,
}

impl PageSite {
    /// True for requests of movable pages.
    pub fn is_movable(&self) -> bool {
        self.migratetype == MOVABLE
    }
}

/// CPU, task and context of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// CPU.
    pub cpu: u32,
    /// Task.
    pub pid: i32,
    /// Context bits of common_flags: hard interrupt, soft interrupt, NMI.
    pub level: u8,
    /// Number among the task's names, if a condition or a report uses names; else 0.
    pub name: u16,
    /// Number among the task's cgroups, if a condition or a report uses them; else 0.
    pub cgroup: u16,
}

/// Migrate type MOVABLE (enum migratetype, include/linux/mmzone.h 4.4 to 7.2).
const MOVABLE: i32 = 1;

/// A table that numbers its items.
#[derive(Debug)]
pub struct InternTable<T>(IndexSet<T, IntHash>);

impl<T> Default for InternTable<T> {
    fn default() -> Self {
        Self(IndexSet::default())
    }
}

impl<T: Clone + Eq + Hash> InternTable<T> {
    /// The number of `item`.
    pub fn number(&mut self, item: &T) -> u32 {
        self.find(item).unwrap_or_else(|| self.0.insert_full(item.clone()).0 as u32)
    }

    /// The number of `item`, if it is in the table.
    pub fn find(&self, item: &T) -> Option<u32> {
        self.0.get_index_of(item).map(|number| number as u32)
    }

    /// All items, by number.
    pub fn items(&self) -> &Slice<T> {
        self.0.as_slice()
    }

    /// The item of that number.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.0.get_index(number as usize)
    }
}

/// Largest number of compared addresses of a stack. Kernel stacks of 16 KiB are less deep.
const STACK_MAX: usize = 512;
/// Largest number of compared bytes of a cache's name.
const NAME_MAX: usize = 255;

/// Space for names and stacks, in bytes; beyond the limit, new ones share one number.
#[derive(Debug)]
struct TextSpace {
    used: u64,
    max: u64,
    /// Bytes including the longest one that was left out; 0: none.
    over: u64,
}

impl Default for TextSpace {
    fn default() -> Self {
        Self { used: 0, max: RunLimits::default().texts, over: 0 }
    }
}

/// All tables of a trace. Numbers follow the order of events, so they are the same in every run.
#[derive(Debug, Default)]
pub struct Interner {
    /// Sites of slab allocations.
    pub sites: InternTable<Site>,
    /// Sites of slab frees.
    pub frees: InternTable<FreeSite>,
    /// Kinds of page allocations.
    pub pages: InternTable<PageSite>,
    /// CPUs, tasks and levels.
    pub origins: InternTable<Origin>,
    /// Cache names.
    pub names: InternTable<Vec<u8>>,
    /// Call stacks, the innermost address first.
    pub stacks: InternTable<Vec<u64>>,
    /// Space for names and stacks.
    texts: TextSpace,
    /// Names of allocation flags, as the kernel prints them.
    pub gfp_texts: HashMap<u64, Vec<u8>>,
    /// Flags that are set in them.
    pub gfp_set: HashMap<u64, GfpFlags>,
    /// Selected items.
    pub selected: SelectedItems,
}

/// Flags of interned items, by number; all are true until [`Decoder::new_items`](super::decode::Decoder::new_items) has decided.
#[derive(Debug, Default)]
pub struct SelectedItems {
    /// Sites of slab allocations.
    pub sites: Vec<bool>,
    /// Kinds of page allocations.
    pub pages: Vec<bool>,
    /// CPUs, tasks and levels.
    pub origins: Vec<bool>,
}

/// Allocation flags of events without such a field: gfp_t has 32 bits.
pub const NO_GFP: u64 = u64::MAX;

/// Allocation flags; `None`: the event has no such field.
pub fn known_gfp(gfp_flags: u64) -> Option<u64> {
    (gfp_flags != NO_GFP).then_some(gfp_flags)
}

impl Interner {
    /// Names of allocation flags, as the kernel prints them; `unknown` for [`NO_GFP`]; in hexadecimal, where no event has them, or where they are
    /// longer than those of any kernel.
    pub fn gfp_text(&self, gfp_flags: u64) -> Vec<u8> {
        if gfp_flags == NO_GFP {
            return b"unknown".to_vec();
        }
        self.gfp_texts.get(&gfp_flags).cloned().unwrap_or_else(|| format!("{gfp_flags:#x}").into_bytes())
    }

    /// Flags that are set in allocation flags, by the bits of the traced kernel; none where its names are unknown.
    pub fn gfp(&self, gfp_flags: u64) -> GfpFlags {
        self.gfp_set.get(&gfp_flags).copied().unwrap_or_default()
    }

    /// The cache name of that number.
    pub fn name(&self, id: NameId) -> &[u8] {
        self.names.get(id.0).map_or(b"", Vec::as_slice)
    }

    /// Operation code of an event. It depends on the descriptor alone, unless its class has fields in the payload.
    pub fn code_of(&mut self, plan: &DecodePlan, event: &Event<'_>) -> OpCode {
        let class = event.class_index() as u32;
        let number = |role| plan.uint(event, role).unwrap_or(0);
        let order = || u8::try_from(number(Role::ORDER)).ok().filter(|&o| o < 32).unwrap_or(0);
        let signed = |role, default| plan.uint(event, role).map_or(default, |v| v as i32);
        match plan.meaning {
            Some(meaning) if meaning.is_slab_alloc() => {
                let api = if meaning == Meaning::KMALLOC { Api::Kmalloc } else { Api::Cache };
                let site = Site {
                    api,
                    class,
                    call_site: number(Role::CALL_SITE),
                    bytes_req: number(Role::BYTES_REQ).min(BYTES_MAX),
                    bytes_alloc: number(Role::BYTES_ALLOC).min(BYTES_MAX),
                    gfp_flags: plan.uint(event, Role::GFP_FLAGS).unwrap_or(NO_GFP),
                    node: signed(Role::NODE, -1),
                    accounted: plan.uint(event, Role::ACCOUNTED).map(|number| number != 0),
                    cache: self.cache(plan, event),
                };
                OpCode::new(Kind::Alloc, self.sites.number(&site))
            }
            Some(meaning) if meaning.is_slab_free() => {
                let api = if meaning == Meaning::KFREE { Api::Kmalloc } else { Api::Cache };
                let call_site = number(Role::CALL_SITE);
                let free = FreeSite { api, class, call_site, cache: self.cache(plan, event) };
                let kind = if api == Api::Kmalloc { Kind::Kfree } else { Kind::CacheFree };
                OpCode::new(kind, self.frees.number(&free))
            }
            Some(Meaning::FREE_RCU) => {
                let call_site = number(Role::CALL_SITE);
                // The interface is that of the freed object.
                let free = FreeSite { api: Api::Kmalloc, class, call_site, cache: None };
                OpCode::new(Kind::FreeRcu, self.frees.number(&free))
            }
            Some(Meaning::PAGE_ALLOC) => {
                let site = PageSite {
                    order: order(),
                    migratetype: signed(Role::MIGRATETYPE, 0),
                    gfp_flags: plan.uint(event, Role::GFP_FLAGS).unwrap_or(NO_GFP),
                    class,
                };
                OpCode::new(Kind::PageAlloc, self.pages.number(&site))
            }
            Some(Meaning::PAGE_FREE) => OpCode::new(Kind::PageFree, order().into()),
            Some(Meaning::KERNEL_STACK) => {
                let addresses = event.stack().map(|s| s.addresses().take(STACK_MAX).collect());
                let stack: Vec<u64> = addresses.unwrap_or_default();
                let number = match self.stacks.find(&stack) {
                    Some(number) => number,
                    None if self.has_room(stack.len() * size_of::<u64>()) => self.stacks.number(&stack),
                    None => self.stacks.number(&Vec::new()),
                };
                OpCode::new(Kind::Stack, number)
            }
            _ => OpCode::OTHER,
        }
    }

    fn cache(&mut self, plan: &DecodePlan, event: &Event<'_>) -> Option<NameId> {
        let text = plan.text(event, Role::CACHE_NAME)?;
        let text = text.get(..NAME_MAX).unwrap_or(text).to_vec();
        let number = match self.names.find(&text) {
            Some(number) => number,
            None if self.has_room(text.len()) => self.names.number(&text),
            None => self.names.number(&b"?".to_vec()),
        };
        Some(NameId(number))
    }

    /// Changes the limit of the bytes of names and stacks.
    pub fn set_texts_max(&mut self, max: u64) {
        self.texts.max = max;
    }

    /// Reserves space for a name or a stack.
    fn has_room(&mut self, len: usize) -> bool {
        let needed = self.texts.used.saturating_add(len as u64);
        if needed > self.texts.max {
            self.texts.over = self.texts.over.max(needed);
            return false;
        }
        self.texts.used = needed;
        true
    }

    /// The error if names and stacks exceed their limit.
    pub fn over(&self) -> Option<ErrorKind> {
        let (found, limit) = (self.texts.over, self.texts.max);
        let what = "the length of all cache names and call stacks (the others are counted as unknown)";
        (found > limit).then_some(ErrorKind::LimitExceeded { name: "texts", what, found, limit })
    }

    /// Number of the origin of an event; the task's name and cgroup are part of it if `states` has them.
    pub fn origin(&mut self, plan: &DecodePlan, event: &Event<'_>, states: TaskStates<'_>) -> u32 {
        let level = plan.uint(event, Role::FLAGS).unwrap_or(0) & LEVEL_FLAGS;
        let pid = plan.uint(event, Role::PID).unwrap_or(0) as i32;
        let (name, cgroup) = states.numbers_at(pid, event.time());
        self.origins.number(&Origin { cpu: event.cpu(), pid, level: level as u8, name, cgroup })
    }
}

/// An item of the tables that a selection decides on.
#[derive(Debug, Clone, Copy)]
pub enum Item<'i> {
    /// A site of slab allocations.
    Site(&'i Site),
    /// A kind of page allocations.
    Pages(&'i PageSite),
    /// A CPU, task and level.
    Origin(&'i Origin),
}

/// Decides whether an item is selected: once, when it is numbered.
pub type Select<'s> = &'s mut (dyn FnMut(&Interner, Item<'_>) -> bool + Send);

/// New items in the order of their numbers, and whether they are selected; fields of new side events.
#[derive(Debug, Default)]
pub struct NewItems {
    /// Sites of slab allocations.
    pub sites: Vec<(Site, bool)>,
    /// Sites of slab frees.
    pub frees: Vec<FreeSite>,
    /// Kinds of page allocations.
    pub pages: Vec<(PageSite, bool)>,
    /// CPUs, tasks and levels.
    pub origins: Vec<(Origin, bool)>,
    /// Fields of side events, by the value of their operation.
    pub side_numbers: Vec<(u64, SideNumbers)>,
}

impl NewItems {
    /// All items of the tables, with what was decided about them.
    pub fn all(interner: &Interner) -> Self {
        fn with<T: Copy>(items: &Slice<T>, selected: &[bool]) -> Vec<(T, bool)> {
            items.iter().copied().zip(selected.iter().copied().chain(std::iter::repeat(true))).collect()
        }
        Self {
            sites: with(interner.sites.items(), &interner.selected.sites),
            frees: interner.frees.items().iter().copied().collect(),
            pages: with(interner.pages.items(), &interner.selected.pages),
            origins: with(interner.origins.items(), &interner.selected.origins),
            side_numbers: Vec::new(),
        }
    }

    /// Adds later items.
    pub fn append(&mut self, mut later: Self) {
        self.sites.append(&mut later.sites);
        self.frees.append(&mut later.frees);
        self.pages.append(&mut later.pages);
        self.origins.append(&mut later.origins);
        self.side_numbers.append(&mut later.side_numbers);
    }
}
