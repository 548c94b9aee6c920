//! Bounds of live objects of each cache at the times at which /proc/slabinfo was read.
//!
//! slabinfo counts all objects of a cache, including those older than the trace, so it is an upper bound of live
//! objects allocated in the trace. Until the next reading, the bound grows by allocations and falls by free events.

use std::collections::{BTreeMap, HashMap};

use super::bounds::Bounds;
use super::{active, in_use_max};
use crate::collect::moments::{Between, MomentSums};
use crate::pass::Analysis;
use crate::pass::caches::{CacheKey, parts_of};
use crate::trace::snapshots::Snapshot;

/// Objects of a cache at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct At {
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
    /// The same, or more if the kernel may have estimated it.
    pub in_use_max: Option<u64>,
}

/// A cache at all snapshots.
#[derive(Debug, Clone)]
pub struct CacheHistory {
    /// The cache.
    pub key: CacheKey,
    /// One for each snapshot.
    pub at: Vec<At>,
}

impl CacheHistory {
    /// True if at some time more objects seem live than slabinfo has.
    pub fn is_contradicted(&self) -> bool {
        self.at.iter().any(|at| at.in_use_max.is_some_and(|in_use| at.live > in_use))
    }
}

/// Times for [`Moments`](crate::collect::Moments): begin and end of each reading.
pub fn times(snapshots: &[Snapshot]) -> Vec<u64> {
    snapshots.iter().flat_map(|s| [s.from, s.to]).collect()
}

/// All caches at all snapshots; `moments` were counted at [`times`].
pub fn histories(
    result: &Analysis,
    bounds: &Bounds,
    moments: &MomentSums,
    snapshots: &[Snapshot],
) -> Vec<CacheHistory> {
    let certain = bounds.certain_sites();
    let mut of_caches: HashMap<CacheKey, [Vec<Between>; 2]> = HashMap::new();
    let mut of_sites: BTreeMap<u32, CacheKey> = BTreeMap::new();
    for part in parts_of(result) {
        // Moments are by site: a site with several caches has no bound.
        let several = CacheKey::Nameless(part.site.bytes_req, part.site.bytes_alloc);
        let same = of_sites.get(&part.number).is_none_or(|key| *key == part.key);
        of_sites.insert(part.number, if same { part.key } else { several });
    }
    for (number, key) in of_sites {
        let [all, sure] = of_caches.entry(key).or_default();
        add(all, moments.of_site(number));
        if certain.get(number as usize) == Some(&true) {
            add(sure, moments.of_site(number));
        }
    }
    let history = |(key, [all, sure]): (CacheKey, [Vec<Between>; 2])| {
        let mut at = at(&key, &all, &sure, snapshots);
        if bounds.has_losses() {
            // Allocations may have been lost: only slabinfo is a bound.
            at.iter_mut().for_each(|at| at.most = at.in_use_max);
        }
        CacheHistory { key, at }
    };
    let mut histories: Vec<CacheHistory> = of_caches.into_iter().map(history).collect();
    histories.sort_by(|a, b| a.key.cmp(&b.key));
    histories
}

fn add(to: &mut Vec<Between>, from: &[Between]) {
    to.resize(to.len().max(from.len()), Between::default());
    for (to, from) in to.iter_mut().zip(from) {
        to.born += from.born;
        to.freed += from.freed;
        to.gone += from.gone;
        to.deferred += from.deferred;
        to.released += from.released;
    }
}

fn at(key: &CacheKey, all: &[Between], sure: &[Between], snapshots: &[Snapshot]) -> Vec<At> {
    let (mut live, mut least, mut most) = (0u64, 0u64, 0u64);
    let between = |row: &[Between], place: usize| row.get(place).copied().unwrap_or_default();
    let ended = |b: &Between| b.freed.saturating_add(b.gone).saturating_add(b.deferred);
    let mut waiting = 0u64;
    let mut out = Vec::with_capacity(snapshots.len());
    for (number, snapshot) in snapshots.iter().enumerate() {
        let mut while_read = 0;
        for place in [2 * number, 2 * number + 1] {
            let (of_all, of_sure) = (between(all, place), between(sure, place));
            live = live.saturating_add(of_all.born).saturating_sub(ended(&of_all));
            least = least.saturating_add(of_sure.born).saturating_sub(ended(&of_sure));
            waiting = waiting.saturating_add(of_all.deferred).saturating_sub(of_all.released);
            let freed = of_all.freed.saturating_add(of_all.released);
            most = most.saturating_add(of_all.born).saturating_sub(freed).min(live.saturating_add(waiting));
            while_read = of_all.born;
        }
        let (active, in_use_max) = (active(key, &snapshot.caches), in_use_max(key, &snapshot.caches));
        most = in_use_max.map_or(most, |in_use| most.min(in_use.saturating_add(while_read)));
        out.push(At { live, waiting, least: least.min(most), most: Some(most), active, in_use_max });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::slabinfo::parse;

    #[test]
    fn what_was_bounded_once_stays_bounded() {
        let snapshot = |time, active| {
            let line = format!("epi {active} 64 128 32 1 : tunables 0 0 0 : slabdata 2 2 0\n");
            Snapshot { from: time, to: time + 1, caches: parse(line.as_bytes()) }
        };
        let snapshots = [snapshot(10, 30), snapshot(20, 900), snapshot(30, 900)];
        let born = |born| Between { born, ..Between::default() };
        // 100 are allocated, 5 while slabinfo is read; then 20 more; 8 are freed; 50 are implied frees.
        let all = [
            born(95),
            born(5),
            born(20),
            born(0),
            Between { freed: 8, gone: 50, ..Between::default() },
            born(0),
        ];
        let at = at(&CacheKey::Named(b"epi".to_vec()), &all, &[], &snapshots);
        let found: Vec<_> = at.iter().map(|at| (at.live, at.least, at.most)).collect();
        assert_eq!(found, [(100, 0, Some(35)), (120, 0, Some(55)), (62, 0, Some(47))]);
    }
}
