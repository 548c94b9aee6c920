//! Events of the ledger, for collectors that need more than sums by site.
//!
//! The ledger makes one of these structures where a life, a free, a page event or an area is decided; `receiver` lists
//! the methods that take them, and `batch` carries them to other threads. Collectors use them for lifetimes, owners,
//! timelines and peaks. Numbers of sites and origins are those of `stream::intern`.

use super::SiteInfo;
use super::lives::{End, Free, FreeOp, Life};
use super::totals::{FrameTotals, Totals};
use crate::stream::{Api, NameId, Op, Origin, PageSite, SideEventKind, SideNumbers};

/// A slab life that is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// Address, low 56 bits.
    pub address: u64,
    /// The life.
    pub life: Life,
    /// End of the life.
    pub end: End,
    /// Cache, if an event names it.
    pub cache: Option<NameId>,
    /// Number of the stack of its allocation, if one is known.
    pub stack: Option<u32>,
    /// Number of the call site and interface.
    pub caller: u32,
    /// Interface that allocated it.
    pub api: Api,
    /// Bytes requested.
    pub bytes_req: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// CPU and task that allocated it.
    pub born_at: Origin,
    /// CPU and task that freed it.
    pub freed_at: Option<Origin>,
    /// Born in the window.
    pub is_born: bool,
    /// Freed in the window.
    pub is_freed: bool,
    /// True if its implied free is in the window.
    pub is_implied_free: bool,
    /// Alive at the window's end.
    pub is_live: bool,
    /// True if it was passed to kfree_rcu at the end and may not be freed yet.
    pub is_waiting: bool,
    /// True if it crosses a loss, or its free is ambiguous.
    pub uncertain: bool,
    /// First time in the life at which events may be missing.
    pub lost_at: Option<u64>,
}

/// A life that ended where nothing is filtered out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainLife {
    /// The life.
    pub life: Life,
    /// Cache, if an event names it.
    pub cache: Option<NameId>,
    /// Number of the call site and interface.
    pub caller: u32,
    /// Interface that allocated it.
    pub api: Api,
    /// CPU that allocated it.
    pub cpu: u32,
    /// Task that allocated it.
    pub pid: i32,
    /// Bytes requested.
    pub bytes_req: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// First time in the life at which events may be missing: then the life is uncertain.
    pub lost_at: Option<u64>,
}

impl PlainLife {
    /// The life of one that is added up by itself.
    #[inline]
    pub fn of(closed: &Closed) -> Self {
        let Closed { life, cache, caller, api, bytes_req, bytes_alloc, lost_at, .. } = *closed;
        let (cpu, pid) = (closed.born_at.cpu, closed.born_at.pid);
        Self { life, cache, caller, api, cpu, pid, bytes_req, bytes_alloc, lost_at }
    }

    /// Adds this life, which ended by its free.
    #[inline]
    pub fn add_freed(&self, totals: &mut Totals) {
        totals.alloc_events += 1;
        totals.bytes_req += self.bytes_req;
        totals.bytes_alloc += self.bytes_alloc;
        totals.frees_matched += 1;
        totals.bytes_freed += self.bytes_alloc;
        totals.uncertain += u64::from(self.lost_at.is_some());
    }

    /// Adds this life, which ended by an implied free.
    pub fn add_implied(&self, totals: &mut Totals) {
        let uncertain = u64::from(self.lost_at.is_some());
        totals.alloc_events += 1;
        totals.bytes_req += self.bytes_req;
        totals.bytes_alloc += self.bytes_alloc;
        totals.implied_frees += 1;
        totals.bytes_freed_implied += self.bytes_alloc;
        totals.uncertain += uncertain;
        totals.implied_frees_uncertain += uncertain;
    }
}

/// A plain life that ended by its free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreedPlain {
    /// The life.
    pub plain: PlainLife,
    /// The operation of the free.
    pub op: FreeOp,
    /// CPU that freed it.
    pub cpu: u32,
}

impl FreedPlain {
    /// The free.
    #[inline]
    pub fn free(&self) -> Free {
        Free::of(self.op)
    }
}

impl Closed {
    /// Sums of this life alone.
    #[inline]
    pub fn totals(&self) -> Totals {
        let if_so = |is: bool, number: u64| if is { number } else { 0 };
        let (bytes, bytes_req) = (self.bytes_alloc, self.bytes_req);
        Totals {
            alloc_events: self.is_born.into(),
            bytes_req: if_so(self.is_born, bytes_req),
            bytes_alloc: if_so(self.is_born, bytes),
            frees_matched: self.is_freed.into(),
            bytes_freed: if_so(self.is_freed, bytes),
            implied_frees: self.is_implied_free.into(),
            bytes_freed_implied: if_so(self.is_implied_free, bytes),
            live: self.is_live.into(),
            bytes_live: if_so(self.is_live, bytes),
            bytes_req_live: if_so(self.is_live, bytes_req),
            waiting: self.is_waiting.into(),
            bytes_waiting: if_so(self.is_waiting, bytes),
            uncertain: self.uncertain.into(),
            live_uncertain: (self.uncertain && self.is_live).into(),
            bytes_live_uncertain: if_so(self.uncertain && self.is_live, bytes),
            implied_frees_uncertain: (self.uncertain && self.is_implied_free).into(),
        }
    }

    /// True if it was live at a time in the window; without a time: at the window's end.
    #[inline]
    pub fn is_live_at(&self, time: Option<u64>) -> bool {
        let Some(time) = time else { return self.is_live };
        let ends_later = || self.end.time().is_some_and(|end| end >= time);
        let is_counted = self.is_live || (self.is_freed || self.is_implied_free) && ends_later();
        is_counted && self.life.born < time
    }

    /// Time of kfree_rcu, if it ended the life.
    pub fn deferred_at(&self) -> Option<u64> {
        match self.end {
            End::Freed { free, end, .. } if free.is_deferred => Some(end),
            _ => None,
        }
    }
}

/// Frames of one allocation that are added up.
#[derive(Debug, Clone, Copy)]
pub struct ClosedFrames {
    /// Time of the allocation.
    pub born: u64,
    /// First frame of the allocation.
    pub pfn: u64,
    /// Number of its kind.
    pub site: u32,
    /// Number of its CPU and task.
    pub origin: u32,
    /// Number of its stack; `u32::MAX` for none.
    pub stack: u32,
    /// True if they are still allocated and hold slab objects, as far as the trace shows; not determined for freed
    /// ones.
    pub is_slab: bool,
    /// Time of their end, and true if by a free; `None`: still allocated.
    pub end: Option<(u64, bool)>,
    /// Allocated in the window.
    pub is_born: bool,
    /// True if no frame of the allocation is left: exactly once for each allocation.
    pub is_last: bool,
    /// Number of frames.
    pub frames: u64,
    /// Sums of the frames.
    pub sums: FrameTotals,
}

/// Common properties of some page allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageGroup {
    /// Number of the kind.
    pub site: u32,
    /// Number of the CPU and task that allocated.
    pub origin: u32,
    /// Number of the stack, or [`NO_STACK`](super::frames::NO_STACK).
    pub stack: u32,
}

/// Allocator of an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AreaKind {
    /// An area of the kernel's virtual memory, with its guard page: vmalloc, vmap, ioremap, kernel stacks.
    Vmalloc,
    /// An area that each CPU has.
    Percpu,
}

/// Properties of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// Allocator of the area.
    pub kind: AreaKind,
    /// Time of the allocation.
    pub born: u64,
    /// Bytes requested; of each CPU for the percpu allocator.
    pub bytes_req: u64,
    /// Bytes allocated; `None`: not in the event.
    pub bytes_alloc: Option<u64>,
    /// Call site; 0: not in the event.
    pub call_site: u64,
    /// Number of its CPU and task.
    pub origin: u32,
    /// Number of its stack; `u32::MAX` for none.
    pub stack: u32,
    /// True if it counts.
    pub selected: bool,
}

/// An area that is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClosedArea {
    /// Properties of the allocation.
    pub area: Area,
    /// Allocated in the window.
    pub is_born: bool,
    /// Freed in the window.
    pub is_freed: bool,
    /// True if its implied free is in the window.
    pub is_implied_free: bool,
    /// Allocated at the window's end.
    pub is_live: bool,
    /// True if it crosses a loss.
    pub uncertain: bool,
}

/// Begin or end of a slab object, reported at once, before late frees are decided.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    /// Address, low 56 bits.
    pub address: u64,
    /// The life.
    pub life: Life,
    /// Site of the life.
    pub site: SiteInfo,
    /// True if it is selected.
    pub selected: bool,
    /// Time.
    pub time: u64,
    /// True for a begin.
    pub is_birth: bool,
    /// True if the owner gave it up: the kernel frees it after a grace period.
    pub is_deferred: bool,
}

/// Allocation or free of pages.
#[derive(Debug, Clone, Copy)]
pub struct PageEvent {
    /// The event; its value is the first frame.
    pub op: Op,
    /// Order; for an allocation also its other properties.
    pub site: PageSite,
    /// CPU and task.
    pub origin: Origin,
    /// True if the allocation failed.
    pub failed: bool,
    /// True if selected and in the window.
    pub counted: bool,
}

/// A side event in the window: reclaim, compaction, fallbacks, function graphs.
#[derive(Debug, Clone, Copy)]
pub struct SideEvent {
    /// Kind of the event.
    pub kind: SideEventKind,
    /// Fields of the event.
    pub numbers: SideNumbers,
    /// Time.
    pub time: u64,
    /// CPU and task.
    pub origin: Origin,
}
