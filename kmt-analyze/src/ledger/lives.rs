//! Lives at addresses: their events, and decisions that wait for the next event.
//!
//! A `Life` is the state of an address in the table: 16 bytes that an allocation's operation already has in this
//! layout. A `PendingLife` is a decision that only the next event on the address can take (rules R4, R6, R7, R13).
//! `slab` and `plain` change these states, `close` adds up ended lives, and receivers get the causes.

use crate::stream::op::OpCode;
use crate::stream::{Api, Op};

/// Addresses are compared without their upper byte, where arm64 keeps tags (rule R1).
pub const ADDRESS_BITS: u64 = (1 << 56) - 1;

/// Highest address that is none of an object (rule R3): ZERO_SIZE_PTR, what kmalloc(0) returns (include/linux/slab.h).
pub const ZERO_SIZE_PTR: u64 = 16;

/// One life of a slab object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Life {
    /// Time of the first event.
    pub born: u64,
    /// Number of the site; of the last event, if there was a duplicate. Of an address without a life: the code of its last
    /// free.
    pub site: u32,
    /// CPU and task of the first event.
    pub origin: u32,
}

impl Life {
    /// The life that begins with an allocation; also the state of an address after a free.
    #[inline]
    pub fn of(op: &Op) -> Self {
        Self { born: op.time, site: op.code.bits(), origin: op.origin }
    }
}

/// The operation of a free of a slab object, without the address: as long as a life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FreeOp {
    /// Time.
    pub time: u64,
    /// Interface, and number of the free's site.
    pub code: OpCode,
    /// CPU and task.
    pub origin: u32,
}

impl FreeOp {
    /// The free of that operation.
    #[inline]
    pub fn of(op: &Op) -> Self {
        Self { time: op.time, code: op.code, origin: op.origin }
    }
}

/// A free, as it was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Free {
    /// Time.
    pub time: u64,
    /// Interface.
    pub api: Api,
    /// Number of the free's site.
    pub site: u32,
    /// CPU and task.
    pub origin: u32,
    /// True if the object is freed after a grace period (R13).
    pub is_deferred: bool,
}

impl Free {
    /// The free of a slab object.
    #[inline]
    pub fn of(op: FreeOp) -> Self {
        let api = if op.code.is_cache_free() { Api::Cache } else { Api::Kmalloc };
        Self { time: op.time, api, site: op.code.number(), origin: op.origin, is_deferred: false }
    }
}

/// Evidence of an implied free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement {
    /// An allocation of its address (R5).
    Object,
    /// A page event for its page (R7).
    Page,
    /// A page event for its page (R7), then a free of its address that is too late to be its own.
    PageThenFree,
}

/// End of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By this free, at `end`; `late` if it was logged after the address was reused (R6, R7).
    Freed {
        /// The free.
        free: Free,
        /// Time of the end.
        end: u64,
        /// Earlier evidence, if the free was logged late.
        late: Option<Replacement>,
    },
    /// Implied free, at `end` at the latest; `ambiguous` if a later free may be its own (R6).
    ImpliedFree {
        /// Latest possible time of the end.
        end: u64,
        /// True if that is uncertain.
        ambiguous: bool,
        /// Evidence.
        by: Replacement,
    },
    /// Still allocated at the end of the trace.
    Live,
}

impl End {
    /// Time of the end; the latest possible one for an implied free.
    pub fn time(&self) -> Option<u64> {
        match *self {
            Self::Freed { end, .. } | Self::ImpliedFree { end, .. } => Some(end),
            Self::Live => None,
        }
    }
}

/// Cause of a free without a life in the trace (R10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLife {
    /// No earlier event: the object was allocated before the trace.
    Before,
    /// Its page was allocated in the trace, after the last event of the address: the allocation of the object has no event.
    NewPage,
    /// The last free of the address ended an object: an allocation without an event since, or a double free.
    AgainSeen,
    /// The last free of the address ended no object of the trace, or a page event ended it: probably an allocation without
    /// an event.
    AgainUnseen,
    /// The address had events, and events may be lost since: also the allocation.
    AgainLost,
}

/// Site in the life of a slot whose last free ended no life. No operation has this code, or that of [`NEW_PAGE`].
pub const NO_SITE: u32 = u32::MAX;
/// [`NO_SITE`] after a free with the cause [`NoLife::NewPage`]: the birth is the time of that free.
pub const NEW_PAGE: u32 = u32::MAX - 1;
const _: () = assert!(NEW_PAGE > OpCode::BY_EVENT.bits());

/// Decision at an address that waits for the next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingLife {
    /// Its life is of a kmalloc with a duplicate event, the last one at this time (R4).
    Folded(u64),
    /// Its life replaced another one (R5), which ended at the birth of the new one at the latest; the next event
    /// decides whether its free is only late.
    Replaced {
        /// The life with the implied free.
        old: Life,
        /// See [`PendingLife::Folded`]; the birth if there was one event.
        last_report: u64,
    },
    /// Then a kmem_cache_free followed in time (R6). If the next event is a free too, the first one belongs to `old`.
    FreedOnce(u32),
    /// Its page was freed or allocated (R7). A kmem_cache_free in time is its own, logged late.
    PageGone {
        /// The life that ended.
        old: Life,
        /// Time of the page event.
        end: u64,
    },
    /// Its life ended at this time by kfree_rcu; a free after the grace period belongs to it (R13).
    Deferred(u64),
}

/// See [`PendingLife::FreedOnce`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreedOnce {
    /// The life with the implied free.
    pub old: Life,
    /// The life that replaced it, at whose birth it had ended at the latest.
    pub second: Life,
    /// The free of one of the two.
    pub free: Free,
    /// Time of a page event since: the end of the second life if the free belongs to the old one (R7).
    pub page_gone: Option<u64>,
}
