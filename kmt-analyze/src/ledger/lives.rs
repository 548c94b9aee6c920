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
    /// The object was handed over, to be freed after a grace period (R13).
    pub is_deferred: bool,
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

/// What is known of an address whose free ends no life of the trace (R10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLife {
    /// Nothing: the object was allocated before the trace.
    Before,
    /// The page under it was allocated in the trace: the object was born unseen.
    NewPage,
    /// The address had events, and nothing lives there: born unseen, or freed twice.
    UsedAddress,
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
    /// Its life ended when it was handed over at this time, to be freed after a grace period (R13). A free is that one.
    Deferred(u64),
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

/// How something pending is kept: in one form, so that touching it takes no look at what it is.
#[derive(Debug, Clone, Copy)]
pub struct PackedPending {
    kind: u32,
    number: u32,
    life: Life,
    time: u64,
}

impl PackedPending {
    const FOLDED: u32 = 0;
    const REPLACED: u32 = 1;
    const FREED_ONCE: u32 = 2;
    const PAGE_GONE: u32 = 3;
    const DEFERRED: u32 = 4;

    /// Any word of it.
    #[inline]
    pub fn word(&self) -> u64 {
        self.time
    }

    /// If it is [`Pending::Replaced`]: the life that ended there, for which the one that replaced it is put in, last
    /// reported at `time`.
    #[inline]
    pub fn replace(&mut self, life: Life, time: u64) -> Option<Life> {
        if self.kind != Self::REPLACED {
            return None;
        }
        self.time = time;
        Some(std::mem::replace(&mut self.life, life))
    }
}

impl From<Pending> for PackedPending {
    fn from(pending: Pending) -> Self {
        let none = Life { born: 0, site: 0, origin: 0 };
        match pending {
            Pending::Folded(time) => Self { kind: Self::FOLDED, number: 0, life: none, time },
            Pending::Replaced { old, last_report } => {
                Self { kind: Self::REPLACED, number: 0, life: old, time: last_report }
            }
            Pending::FreedOnce(number) => Self { kind: Self::FREED_ONCE, number, life: none, time: 0 },
            Pending::PageGone { old, end } => Self { kind: Self::PAGE_GONE, number: 0, life: old, time: end },
            Pending::Deferred(time) => Self { kind: Self::DEFERRED, number: 0, life: none, time },
        }
    }
}

impl From<PackedPending> for Pending {
    fn from(kept: PackedPending) -> Self {
        match kept.kind {
            PackedPending::REPLACED => Self::Replaced { old: kept.life, last_report: kept.time },
            PackedPending::FREED_ONCE => Self::FreedOnce(kept.number),
            PackedPending::PAGE_GONE => Self::PageGone { old: kept.life, end: kept.time },
            PackedPending::DEFERRED => Self::Deferred(kept.time),
            _ => Self::Folded(kept.time),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pending_comes_back() {
        let old = Life { born: 5, site: 6, origin: 7 };
        for pending in [
            Pending::Folded(9),
            Pending::Replaced { old, last_report: 8 },
            Pending::FreedOnce(3),
            Pending::PageGone { old, end: 4 },
            Pending::Deferred(6),
        ] {
            assert_eq!(Pending::from(PackedPending::from(pending)), pending);
        }
    }
}
