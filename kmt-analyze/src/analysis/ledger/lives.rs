//! Lives at addresses: what was seen of them, and what the next event there will decide.

use crate::stream::Api;

/// Addresses are compared without their upper byte, where arm64 keeps tags (rule R1).
pub const ADDRESS_BITS: u64 = (1 << 56) - 1;

/// One life of a slab object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Time of the first report.
    pub born: u64,
    /// Number of the site; of the last report, where there were two.
    pub site: u32,
    /// CPU and task of the first report.
    pub origin: u32,
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
}

/// What shows that a life is over though no free was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement {
    /// An allocation of its address (R5).
    Object,
    /// A page event under it (R7).
    Page,
    /// The same, and then a free of its address that came too late to be its own.
    PageThenFree,
}

/// How a life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By this free, at `end`; `late` if it was logged after the address had its next life (R6, R7).
    Freed {
        /// The free.
        free: Free,
        /// When the life ended.
        end: u64,
        /// Logged late, and what had come first.
        late: Option<Replacement>,
    },
    /// Unseen, at `end` at the latest; `ambiguous` if a free that came behind may have been its own (R6).
    Unseen {
        /// The latest time of its end.
        end: u64,
        /// Whether that is uncertain.
        ambiguous: bool,
        /// What showed it.
        by: Replacement,
    },
    /// Not within the trace.
    Live,
}

impl End {
    /// When the life ended; at the latest, where nobody saw it.
    pub fn time(&self) -> Option<u64> {
        match *self {
            Self::Freed { end, .. } | Self::Unseen { end, .. } => Some(end),
            Self::Live => None,
        }
    }
}

/// What an address is in besides a life or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// Its life is of a kmalloc that reported twice, the last time at this time (R4).
    Folded(u64),
    /// Its life replaced another that seemed to go on (R5), which ended when the new one was born at the latest; the
    /// next event there decides whether the free of the old one only is late.
    Replaced {
        /// The life that ended unseen.
        old: Life,
        /// See [`Pending::Folded`]; the birth where there was one report.
        last_report: u64,
    },
    /// After that a kmem_cache_free came in time (R6). If the next event is a free too, the first one was `old`'s.
    FreedOnce(u32),
    /// Its page was freed or allocated under it (R7). A kmem_cache_free in time is its own, logged late.
    PageGone {
        /// The life that ended.
        old: Life,
        /// When its page went.
        end: u64,
    },
}

/// See [`Pending::FreedOnce`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreedOnce {
    /// The life that ended unseen.
    pub old: Life,
    /// The life that replaced it, at whose birth it had ended at the latest.
    pub second: Life,
    /// The free that is one of the two's.
    pub free: Free,
    /// When its page went, if it did: the end of the second life, should the free have been the old one's (R7).
    pub page_gone: Option<u64>,
}
