//! Which frees have events, cache by cache.
//!
//! kfree_rcu batches (kernel/rcu/tree.c, 5.9), bulk frees (`kmem_cache_free_bulk`, mm/slub.c) and the sheaves of 6.18 free
//! objects without an event. Of such an object the ledger learns only when its address or its page is allocated again: until
//! then it seems live. How many lives ended that way says how far live figures can be believed.

pub mod bounds;
pub mod course;

use std::collections::BTreeMap;

use crate::ledger::totals::Totals;
use crate::pass::caches::CacheKey;
use crate::pass::size_classes::in_k;
use crate::trace::slabinfo::SlabInfo;

/// Whether frees of a cache have events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// All but fewer than one in a thousand.
    All,
    /// Some.
    Partly,
    /// None.
    Nothing,
    /// No life of it ended in the trace, or so few that they say nothing of those that seem live.
    Unknown,
}

impl Seen {
    /// As JSON names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Partly => "partly",
            Self::Nothing => "none",
            Self::Unknown => "unknown",
        }
    }
}

/// How lives ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Lives that ended, as far as is certain.
    pub ends: u64,
    /// Those of them whose free had no event.
    pub unseen: u64,
    /// Lives that seem to go on.
    pub live: u64,
}

/// Fewer ends than one for so many that seem live say nothing of those.
const LIVE_PER_END_MAX: u64 = 10;

impl Coverage {
    /// Of these sums.
    pub fn of(totals: &Totals) -> Self {
        let unseen = totals.freed_unseen.saturating_sub(totals.freed_unseen_uncertain);
        Self { ends: totals.frees_matched.saturating_add(unseen), unseen, live: totals.live }
    }

    /// The same as a class.
    pub fn seen(self) -> Seen {
        match self {
            Self { ends: 0, .. } => Seen::Unknown,
            Self { ends, unseen, .. } if unseen == ends => Seen::Nothing,
            Self { ends, live, unseen: 0 } if ends.saturating_mul(LIVE_PER_END_MAX) < live => Seen::Unknown,
            Self { ends, unseen, .. } if unseen.saturating_mul(1000) < ends => Seen::All,
            _ => Seen::Partly,
        }
    }

    /// The sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            ends: self.ends.saturating_add(other.ends),
            unseen: self.unseen.saturating_add(other.unseen),
            live: self.live.saturating_add(other.live),
        }
    }

    /// Share of the ends that had an event, in percent; `None` where nothing ended.
    pub fn seen_percent(self) -> Option<f64> {
        (self.ends > 0).then(|| 100.0 * (self.ends - self.unseen) as f64 / self.ends as f64)
    }
}

/// Objects that a snapshot of /proc/slabinfo calls active of what a row stands for; `None` where it does not name it.
///
/// An event of kmalloc does not tell which cache of its size it is of (kmalloc-cg, -rcl, -rnd, dma-kmalloc, the buckets of
/// 6.11), so all of them count: the bound is wider for it, and holds.
pub fn active(key: &CacheKey, slabinfo: &BTreeMap<String, SlabInfo>) -> Option<u64> {
    sum(key, slabinfo, |info| info.active_objs)
}

/// Objects that may be in use by a snapshot of /proc/slabinfo, where the kernel estimates its count.
pub fn in_use_max(key: &CacheKey, slabinfo: &BTreeMap<String, SlabInfo>) -> Option<u64> {
    sum(key, slabinfo, SlabInfo::in_use_max)
}

fn sum(key: &CacheKey, slabinfo: &BTreeMap<String, SlabInfo>, of: impl Fn(&SlabInfo) -> u64) -> Option<u64> {
    match key {
        CacheKey::Named(name) => slabinfo.get(std::str::from_utf8(name).ok()?).map(of),
        CacheKey::Kmalloc(size) => {
            let (modern, plain) = (format!("-{}", in_k(*size)), format!("-{size}"));
            let of_size = |name: &str| name.ends_with(&modern) || name.ends_with(&plain);
            let mut classes = slabinfo.iter().filter(|(name, _)| of_size(name)).peekable();
            classes.peek()?;
            Some(classes.map(|(_, info)| of(info)).fold(0, u64::saturating_add))
        }
        CacheKey::Nameless(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_the_share_of_ends_without_events() {
        let of = |frees_matched, freed_unseen, freed_unseen_uncertain| {
            Coverage::of(&Totals { frees_matched, freed_unseen, freed_unseen_uncertain, ..Totals::default() })
        };
        assert_eq!(of(0, 0, 0).seen(), Seen::Unknown);
        assert_eq!(of(5_000, 4, 0).seen(), Seen::All);
        let of_few = Coverage { ends: 5, unseen: 0, live: 8_550 };
        assert_eq!(of_few.seen(), Seen::Unknown, "five ends say nothing of 8,550 that seem live");
        assert_eq!(of(5_000, 50, 0).seen(), Seen::Partly);
        assert_eq!(of(5_000, 50, 50).seen(), Seen::All, "losses made them");
        assert_eq!((of(0, 7, 0).seen(), of(0, 7, 0).seen_percent()), (Seen::Nothing, Some(0.0)));
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
