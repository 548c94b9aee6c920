//! Events of the ledger: what it tells those who collect more than sums by site.

use super::SiteInfo;
use super::lives::{End, Life};
use super::page_totals::FrameTotals;
use crate::stream::{Api, NameId, Op, Origin, PageSite, SideEventKind, SideNumbers};

/// A slab life that is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// Address, low 56 bits.
    pub address: u64,
    /// The life.
    pub life: Life,
    /// Its end.
    pub end: End,
    /// Cache, where an event tells it.
    pub cache: Option<NameId>,
    /// Number of the call site and interface.
    pub caller: u32,
    /// Interface that allocated it.
    pub api: Api,
    /// Bytes asked for.
    pub bytes_req: u64,
    /// Bytes handed out.
    pub bytes_alloc: u64,
    /// CPU and task that allocated it.
    pub born_at: Origin,
    /// CPU and task that freed it.
    pub freed_at: Option<Origin>,
    /// Born in the window.
    pub is_born: bool,
    /// Freed in the window.
    pub is_freed: bool,
    /// Found gone in the window.
    pub is_unseen: bool,
    /// Alive at the window's end.
    pub is_live: bool,
    /// Handed to kfree_rcu shortly before it: perhaps not freed yet.
    pub is_waiting: bool,
    /// Crosses a loss, or its free is ambiguous.
    pub uncertain: bool,
}

impl Closed {
    /// When an object was handed to kfree_rcu, if that is how its life ended.
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
    /// They go on and hold slab objects, as far as the trace shows; of those that ended it is not asked.
    pub is_slab: bool,
    /// When they ended, and whether by a free; `None` if they did not.
    pub end: Option<(u64, bool)>,
    /// Allocated in the window.
    pub is_born: bool,
    /// How many.
    pub frames: u64,
    /// What counts of them.
    pub sums: FrameTotals,
}

/// A slab object begins or ends, at once and before anything is decided about its end.
#[derive(Debug, Clone, Copy)]
pub struct Change<'c> {
    /// Address, low 56 bits.
    pub address: u64,
    /// The life.
    pub life: &'c Life,
    /// Its site.
    pub site: &'c SiteInfo,
    /// Whether it is selected.
    pub selected: bool,
    /// When.
    pub time: u64,
    /// It begins.
    pub is_birth: bool,
    /// It ends for its owner: the kernel frees it after a grace period.
    pub is_deferred: bool,
    /// Place of the event in merge order: changes of several partitions are put in order by it.
    pub order: u64,
}

/// Pages are allocated or freed.
#[derive(Debug, Clone, Copy)]
pub struct PageEvent<'p> {
    /// The event; its value is the first frame.
    pub op: &'p Op,
    /// Order, and the rest of an allocation.
    pub site: PageSite,
    /// CPU and task.
    pub place: Origin,
    /// The allocation failed.
    pub failed: bool,
    /// Selected, and in the window.
    pub counted: bool,
}

/// An event beside the ledger, in the window: of reclaim, compaction, fallbacks, function graphs.
#[derive(Debug, Clone, Copy)]
pub struct SideEvent {
    /// Its kind.
    pub kind: SideEventKind,
    /// Its numbers.
    pub numbers: SideNumbers,
    /// When.
    pub time: u64,
    /// CPU and task.
    pub place: Origin,
}
