//! Bounds of live objects of each cache at the times at which /proc/slabinfo was read.
//!
//! slabinfo counts all objects of a cache, including those older than the trace, so it is an upper bound of live
//! objects allocated in the trace. Until the next reading, the bound grows by allocations and falls by free events.

use std::collections::BTreeMap;

use super::bounds::Bounds;
use super::{active, in_use_max};
use crate::collect::peak::{MomentChanges, MomentSums};
use crate::collect::sums::Sums as _;
use crate::pass::Analysis;
use crate::pass::caches::parts_of;
use crate::trace::names::CacheKey;
use crate::trace::slabinfo::{SlabCaches, Snapshot};

/// Objects of a cache at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryAt {
    /// Live by events: allocated in the trace, and not known to be freed.
    pub live: u64,
    /// Passed to kfree_rcu, and perhaps not yet freed; not in `live`.
    pub waiting: u64,
    /// Those of call sites whose frees have events.
    pub least: u64,
    /// Upper bound; `None`: events were lost and slabinfo does not have the cache.
    pub most: Option<u64>,
    /// Active objects in slabinfo, including older ones.
    pub active: Option<u64>,
    /// Active objects in slabinfo, or more if the kernel may have estimated them.
    pub in_use_max: Option<u64>,
    /// Allocated while slabinfo was read: its line may be from before them.
    pub born_while_read: u64,
    /// Ended while slabinfo was read: its line may be from before that.
    pub ended_while_read: u64,
}

impl HistoryAt {
    /// True if more objects seem live than slabinfo has, at every time at which its line may have been written.
    pub fn is_contradicted(&self) -> bool {
        let at_all_times = self.live.saturating_sub(self.born_while_read);
        self.in_use_max.is_some_and(|in_use| at_all_times > in_use)
    }
}

/// Changes at the times at which there are some, by number of the time.
type ChangesByTime = BTreeMap<usize, MomentChanges>;

/// Changes of a cache between snapshots. Most caches change at few of them.
#[derive(Debug, Clone)]
pub struct CacheHistory {
    /// The cache.
    pub key: CacheKey,
    /// Changes of all objects.
    all: ChangesByTime,
    /// Changes of those of call sites whose frees have events.
    sure: ChangesByTime,
    /// True if events were lost: only slabinfo is a bound.
    has_losses: bool,
}

/// Times for [`Moments`](crate::collect::Moments): begin and end of each reading.
pub fn times(snapshots: &[Snapshot]) -> Vec<u64> {
    snapshots.iter().flat_map(|s| [s.from, s.to]).collect()
}

/// All caches, sorted; `moments` were counted at [`times`].
pub fn histories(result: &Analysis, bounds: &Bounds, moments: &MomentSums) -> Vec<CacheHistory> {
    let certain = bounds.certain_sites();
    let mut of_caches: BTreeMap<CacheKey, [ChangesByTime; 2]> = BTreeMap::new();
    let mut of_sites: BTreeMap<u32, CacheKey> = BTreeMap::new();
    for part in parts_of(result) {
        // Moments are by site: a site with several caches has no bound.
        let several = CacheKey::Nameless(part.site.bytes_req, part.site.bytes_alloc);
        let same = of_sites.get(&part.number).is_none_or(|key| *key == part.key);
        of_sites.insert(part.number, if same { part.key } else { several });
    }
    for (number, key) in of_sites {
        let [all, sure] = of_caches.entry(key).or_default();
        let is_sure = certain.get(number as usize) == Some(&true);
        for (time, between) in moments.of_site(number) {
            all.entry(time).or_default().absorb(*between);
            if is_sure {
                sure.entry(time).or_default().absorb(*between);
            }
        }
    }
    let has_losses = bounds.has_losses();
    let history = |(key, [all, sure]): (_, [ChangesByTime; 2])| CacheHistory { key, all, sure, has_losses };
    of_caches.into_iter().map(history).collect()
}

/// Objects of a cache by the events until a time.
#[derive(Debug, Default)]
struct HistorySums {
    live: u64,
    waiting: u64,
    least: u64,
    most: u64,
}

/// Objects that ended.
fn ended(changes: &MomentChanges) -> u64 {
    changes.freed.saturating_add(changes.gone).saturating_add(changes.deferred)
}

impl HistorySums {
    /// Adds changes until the next time.
    fn add(&mut self, all: &MomentChanges, sure: &MomentChanges) {
        self.live = self.live.saturating_add(all.born).saturating_sub(ended(all));
        self.least = self.least.saturating_add(sure.born).saturating_sub(ended(sure));
        self.waiting = self.waiting.saturating_add(all.deferred).saturating_sub(all.released);
        let freed = all.freed.saturating_add(all.released);
        let bound = self.live.saturating_add(self.waiting);
        self.most = self.most.saturating_add(all.born).saturating_sub(freed).min(bound);
    }
}

impl CacheHistory {
    /// The cache at each snapshot.
    pub fn at<'h>(&'h self, snapshots: &'h [Snapshot]) -> impl Iterator<Item = HistoryAt> + 'h {
        let between = |row: &ChangesByTime, time: usize| row.get(&time).copied().unwrap_or_default();
        let mut sums = HistorySums::default();
        snapshots.iter().enumerate().map(move |(number, snapshot)| {
            let (mut born_while_read, mut ended_while_read) = (0, 0);
            for time in [2 * number, 2 * number + 1] {
                let of_all = between(&self.all, time);
                sums.add(&of_all, &between(&self.sure, time));
                (born_while_read, ended_while_read) = (of_all.born, ended(&of_all));
            }
            let counted = |of: fn(&CacheKey, &SlabCaches) -> Option<u64>| of(&self.key, &snapshot.caches);
            let (active, in_use_max) = (counted(active), counted(in_use_max));
            let bound = |in_use: u64| sums.most.min(in_use.saturating_add(born_while_read));
            sums.most = in_use_max.map_or(sums.most, bound);
            let most = if self.has_losses { in_use_max } else { Some(sums.most) };
            let least = sums.least.min(sums.most);
            let (live, waiting) = (sums.live, sums.waiting);
            HistoryAt { live, waiting, least, most, active, in_use_max, born_while_read, ended_while_read }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::slabinfo::parse;

    fn line(active: u64) -> SlabCaches {
        parse(format!("epi {active} 64 128 32 1 : tunables 0 0 0 : slabdata 2 2 0\n").as_bytes())
    }

    /// The line of a cache is written at some time while slabinfo is read; what lives at the end of the reading says
    /// nothing about it.
    #[test]
    fn objects_allocated_while_it_was_read_contradict_nothing() {
        let at = |born, freed, active| {
            let while_read = MomentChanges { born, freed, ..MomentChanges::default() };
            let all = ChangesByTime::from([
                (0, MomentChanges { born: 100, ..MomentChanges::default() }),
                (1, while_read),
            ]);
            let snapshots = [Snapshot { from: 10, to: 20, caches: line(active) }];
            let history = CacheHistory {
                key: CacheKey::Named(b"epi".to_vec()),
                sure: all.clone(),
                all,
                has_losses: false,
            };
            history.at(&snapshots).next().unwrap()
        };
        let many = at(200, 145, 105);
        assert_eq!((many.live, many.least, many.most, many.ended_while_read), (155, 155, Some(155), 145));
        assert!(!many.is_contradicted(), "some of the 155 are younger than the line");
        let is_contradicted = |active| at(20, 10, active).is_contradicted();
        assert_eq!([89, 90].map(is_contradicted), [true, false], "at least 90 lived all the time");
    }

    #[test]
    fn what_was_bounded_once_stays_bounded() {
        let snapshot = |time, active| Snapshot { from: time, to: time + 1, caches: line(active) };
        let snapshots = [snapshot(10, 30), snapshot(20, 900), snapshot(30, 900)];
        let born = |born| MomentChanges { born, ..MomentChanges::default() };
        // 100 are allocated, 5 while slabinfo is read; then 20 more; 8 are freed; 50 are implied frees.
        let all = [
            born(95),
            born(5),
            born(20),
            born(0),
            MomentChanges { freed: 8, gone: 50, ..MomentChanges::default() },
            born(0),
        ];
        let history = CacheHistory {
            key: CacheKey::Named(b"epi".to_vec()),
            all: all.into_iter().enumerate().collect(),
            sure: ChangesByTime::new(),
            has_losses: false,
        };
        let found: Vec<_> = history.at(&snapshots).map(|at| (at.live, at.least, at.most)).collect();
        assert_eq!(found, [(100, 0, Some(35)), (120, 0, Some(55)), (62, 0, Some(47))]);
    }
}
