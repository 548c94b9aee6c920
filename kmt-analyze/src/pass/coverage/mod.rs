//! Share of the frees of each cache that have events.
//!
//! kfree_rcu batches (kernel/rcu/tree.c, 5.9), bulk frees (`kmem_cache_free_bulk`, mm/slub.c) and the sheaves of 6.18
//! free objects without an event. The ledger finds such an implied free only when the address or its page is allocated
//! again: until then the object seems live. The share of implied frees shows how far live figures can be trusted.

pub mod bounds;
pub mod history;

use crate::collect::sums::sums;
use crate::ledger::totals::Totals;
use crate::trace::names::{CacheKey, in_k};
use crate::trace::slabinfo::{Objects, SlabCaches};

/// Frees of a cache that have events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreeEvents {
    /// All but fewer than one in a thousand.
    All,
    /// Some.
    Partly,
    /// None.
    Nothing,
    /// No life ended in the trace, or too few compared with the live objects.
    Unknown,
}

impl FreeEvents {
    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Partly => "partly",
            Self::Nothing => "none",
            Self::Unknown => "unknown",
        }
    }
}

/// Ends of lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Lives that ended, without uncertain ones.
    pub ends: u64,
    /// Lives that ended with implied frees.
    pub implied_frees: u64,
    /// Lives that seem live.
    pub live: u64,
}

/// Largest ratio of live objects to ends for which the ends are evidence.
const LIVE_PER_END_MAX: u64 = 10;

sums!(Coverage: ends, implied_frees, live);

impl Coverage {
    /// Ends in these totals.
    pub fn of(totals: &Totals) -> Self {
        let implied_frees = totals.implied_frees.saturating_sub(totals.implied_frees_uncertain);
        Self { ends: totals.frees_matched.saturating_add(implied_frees), implied_frees, live: totals.live }
    }

    /// The class of the share.
    pub fn free_events(self) -> FreeEvents {
        match self {
            Self { ends: 0, .. } => FreeEvents::Unknown,
            Self { ends, implied_frees, .. } if implied_frees == ends => FreeEvents::Nothing,
            Self { ends, live, implied_frees: 0 } if ends.saturating_mul(LIVE_PER_END_MAX) < live => {
                FreeEvents::Unknown
            }
            Self { ends, implied_frees, .. } if implied_frees.saturating_mul(1000) < ends => FreeEvents::All,
            _ => FreeEvents::Partly,
        }
    }

    /// Share of the ends with an event, in percent; `None`: no ends.
    pub fn recorded_percent(self) -> Option<f64> {
        (self.ends > 0).then(|| 100.0 * (self.ends - self.implied_frees) as f64 / self.ends as f64)
    }
}

/// Active objects in a snapshot of /proc/slabinfo for a row; `None`: not in the snapshot.
///
/// A kmalloc event does not name the cache of its size (kmalloc-cg, -rcl, -rnd, dma-kmalloc, the buckets of 6.11), so
/// all of them count: the bound is wider, but valid.
pub fn active(key: &CacheKey, slabinfo: &SlabCaches) -> Option<u64> {
    objects(key, slabinfo).map(|objects| objects.active)
}

/// Largest number of objects in use by a snapshot of /proc/slabinfo, if the kernel estimates its count.
pub fn in_use_max(key: &CacheKey, slabinfo: &SlabCaches) -> Option<u64> {
    objects(key, slabinfo).map(|objects| objects.in_use_max)
}

fn objects(key: &CacheKey, slabinfo: &SlabCaches) -> Option<Objects> {
    match key {
        CacheKey::Named(name) => slabinfo.get(std::str::from_utf8(name).ok()?).map(Objects::of),
        CacheKey::Kmalloc(size) => slabinfo.of_size([&in_k(*size), &size.to_string()]),
        CacheKey::Nameless(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_the_share_of_ends_without_events() {
        let of = |frees_matched, implied_frees, implied_frees_uncertain| {
            Coverage::of(&Totals {
                frees_matched,
                implied_frees,
                implied_frees_uncertain,
                ..Totals::default()
            })
        };
        assert_eq!(of(0, 0, 0).free_events(), FreeEvents::Unknown);
        assert_eq!(of(5_000, 4, 0).free_events(), FreeEvents::All);
        let of_few = Coverage { ends: 5, implied_frees: 0, live: 8_550 };
        assert_eq!(
            of_few.free_events(),
            FreeEvents::Unknown,
            "five ends say nothing of 8,550 that seem live"
        );
        assert_eq!(of(5_000, 50, 0).free_events(), FreeEvents::Partly);
        assert_eq!(of(5_000, 50, 50).free_events(), FreeEvents::All, "losses made them");
        assert_eq!(
            (of(0, 7, 0).free_events(), of(0, 7, 0).recorded_percent()),
            (FreeEvents::Nothing, Some(0.0))
        );
    }

    #[test]
    fn every_cache_of_a_size_counts() {
        let line = |name: &str, active: u64| {
            format!("{name} {active} 900 1024 8 2 : tunables 0 0 0 : slabdata 9 9 0\n")
        };
        let text = line("kmalloc-1k", 5) + &line("kmalloc-cg-1k", 7) + &line("kmalloc-rnd-03-1k", 11);
        let text = text + &line("kmalloc-11k", 100) + &line("dentry", 13);
        let slabinfo = crate::trace::slabinfo::parse(text.as_bytes());
        assert_eq!(active(&CacheKey::Kmalloc(1024), &slabinfo), Some(23));
        assert_eq!(active(&CacheKey::Named(b"dentry".to_vec()), &slabinfo), Some(13));
        assert_eq!(active(&CacheKey::Kmalloc(96), &slabinfo), None);
    }
}
