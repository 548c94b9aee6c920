//! Events of the ledger, and the interface of whatever collects more of them than sums by site.

use super::lives::{End, Free, Life, NoLife};
use super::page_totals::FrameTotals;
use super::{KnownSite, Rules};
use crate::stream::{Api, NameId, Note, NoteKind, Op, Origin, PageSite};

/// A slab life that is added up.
#[derive(Debug, Clone, Copy)]
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
    pub site: &'c KnownSite,
    /// Whether it is selected.
    pub selected: bool,
    /// When.
    pub time: u64,
    /// It begins.
    pub is_birth: bool,
    /// It ends for its owner: the kernel frees it after a grace period.
    pub is_deferred: bool,
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

/// An event beside the ledger, in the window.
#[derive(Debug, Clone, Copy)]
pub struct Noted {
    /// What it says.
    pub kind: NoteKind,
    /// Its numbers.
    pub numbers: Note,
    /// When.
    pub time: u64,
    /// CPU and task.
    pub place: Origin,
}

/// Receives the events of the ledger, in the order in which they are decided.
///
/// Each event has a method that asks for it: what is not asked for costs nothing. A collector that wants nothing is `()`.
pub trait Collector {
    /// Takes over what the rules depend on.
    fn learn(&mut self, _rules: &Rules) {}

    /// Whether each life is to be seen alone ([`Collector::closed`]): the ledger adds up plain ones faster.
    fn wants_lives(&self) -> bool {
        false
    }

    /// Whether [`Collector::closed`] does anything.
    fn wants_closed(&self) -> bool {
        self.wants_lives()
    }

    /// Whether [`Collector::changed`] does anything.
    fn wants_changes(&self) -> bool {
        false
    }

    /// Whether [`Collector::slab_alloc`] does anything.
    fn wants_allocs(&self) -> bool {
        false
    }

    /// Whether [`Collector::page_alloc`] and [`Collector::page_free`] do anything.
    fn wants_pages(&self) -> bool {
        false
    }

    /// Whether [`Collector::closed_frames`] does anything.
    fn wants_frames(&self) -> bool {
        false
    }

    /// Whether frames that are live at the end are to be marked where they hold slab objects.
    fn wants_slab_frames(&self) -> bool {
        false
    }

    /// Whether page allocations are to be joined with their stacks.
    fn wants_stacks(&self) -> bool {
        false
    }

    /// A life is added up.
    fn closed(&mut self, _closed: &Closed) {}

    /// A life ended by its free, where nothing is left out and [`Collector::wants_lives`] is false. `caller` is the number
    /// of its call site.
    fn plainly_freed(
        &mut self,
        _caller: u32,
        _life: &Life,
        _free: &Free,
        _bytes_alloc: u64,
        _uncertain: bool,
    ) {
    }

    /// The same for a life whose end no event showed.
    fn plainly_unseen(&mut self, _caller: u32, _uncertain: bool) {}

    /// Frames are added up.
    fn closed_frames(&mut self, _closed: &ClosedFrames) {}

    /// A free that counts ended no life that the trace knows.
    fn unmatched(&mut self, _free: &Free, _no_life: NoLife) {}

    /// Any free, also outside the window, that ended no life.
    fn freed_unknown(&mut self, _address: u64, _free: &Free) {}

    /// An object begins or ends.
    fn changed(&mut self, _change: &Change<'_>) {}

    /// A slab object is about to be allocated, or could not be.
    fn slab_alloc(&mut self, _op: &Op, _place: Origin, _counted: bool) {}

    /// Pages were allocated, or could not be.
    fn page_alloc(&mut self, _event: &PageEvent<'_>) {}

    /// Pages are freed.
    fn page_free(&mut self, _event: &PageEvent<'_>) {}

    /// The call stack of the last slab allocation of its origin.
    fn stack(&mut self, _op: &Op) {}

    /// The slab allocation before was a second report of one object.
    fn folded(&mut self, _op: &Op) {}

    /// An event beside the ledger.
    fn note(&mut self, _noted: &Noted) {}
}

impl Collector for () {}
