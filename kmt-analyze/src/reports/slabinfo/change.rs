//! Change of the objects of each cache over the recording, by the kernel's counts and by events: what no event shows.

use std::collections::{HashMap, HashSet};

use kmt_format::read::Metadata;
use serde::Serialize;

use crate::pass::caches::parts_of;
use crate::pass::coverage::{active, in_use_max};
use crate::reports::common::ReportContext;
use crate::reports::common::difference::difference;
use crate::stream::Api;
use crate::trace::names::CacheKey;
use crate::trace::slabinfo::{SlabInfoLine, parse};
use crate::trace::snapshots::Snapshot;

/// Change of one cache from the begin of the recording to its end, in objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabChange {
    /// By slabinfo: active objects, with free ones in per-CPU slabs. Both readings lie outside of the recording.
    pub active: i64,
    /// By events: allocations without frees and implied frees.
    pub events: i64,
    /// `active` - `events`: what no event shows.
    pub unseen: i64,
    /// True if the kernel may have estimated `active`.
    pub is_estimate: bool,
}

/// Changes of the caches whose frees name them; size classes of kmalloc have none: kfree does not tell the size of what was
/// allocated before the recording.
pub struct SlabChanges {
    before: Snapshot,
    /// Live objects by cache.
    live: HashMap<CacheKey, u64>,
    /// Frees of objects that were allocated before.
    freed: HashMap<CacheKey, u64>,
    /// Allocations by cache.
    allocs: HashMap<CacheKey, u64>,
    /// Sizes of live objects whose cache no event names.
    pub(super) nameless: HashSet<u64>,
}

impl SlabChanges {
    /// Changes, if slabinfo was read at the begin, all objects are selected, and frees name their caches.
    pub fn of(context: &ReportContext<'_, '_>, unmatched: &[u64]) -> Option<Self> {
        let analysis = context.analysis;
        let before = at_begin(context.session.trace.metadata()).filter(|_| context.selection.is_all())?;
        let mut freed: HashMap<CacheKey, u64> = HashMap::new();
        for (site, number) in analysis.interner.frees.items().iter().zip(unmatched) {
            if site.api == Api::Cache && *number > 0 {
                let name = analysis.interner.name(site.cache?).to_vec();
                *freed.entry(CacheKey::Named(name)).or_default() += number;
            }
        }
        let mut live: HashMap<CacheKey, u64> = HashMap::new();
        let (mut allocs, mut nameless) = (HashMap::new(), HashSet::new());
        for part in parts_of(analysis) {
            if let CacheKey::Nameless(_, bytes) = part.key {
                nameless.extend((part.totals.live > 0).then_some(bytes));
            }
            *allocs.entry(part.key.clone()).or_default() += part.totals.alloc_events;
            *live.entry(part.key).or_default() += part.totals.live;
        }
        Some(Self { before, live, freed, allocs, nameless })
    }

    /// Allocations of a cache that have events.
    pub(super) fn allocs_of(&self, cache: &str) -> u64 {
        self.allocs.get(&CacheKey::Named(cache.as_bytes().to_vec())).copied().unwrap_or(0)
    }

    /// Slabs by which a cache grew.
    pub(super) fn new_slabs(&self, last: &SlabInfoLine) -> u64 {
        let first = self.before.caches.get(&last.name).map_or(0, |first| first.num_slabs);
        last.num_slabs.saturating_sub(first)
    }

    /// Change of a cache until a reading after the recording.
    pub fn until(&self, key: &CacheKey, after: &Snapshot) -> Option<SlabChange> {
        if !matches!(key, CacheKey::Named(_)) {
            return None;
        }
        let [first, last] = [&self.before, after].map(|snapshot| active(key, &snapshot.caches));
        // A cache that was made meanwhile had no objects.
        let [first, last] = [first.unwrap_or(0), last?];
        let is_estimate =
            [&self.before, after].iter().any(|s| active(key, &s.caches) != in_use_max(key, &s.caches));
        let number = |of: &HashMap<CacheKey, u64>| of.get(key).copied().unwrap_or(0);
        let (active, events) = (difference(first, last), difference(number(&self.freed), number(&self.live)));
        Some(SlabChange { active, events, unseen: active.saturating_sub(events), is_estimate })
    }
}

/// slabinfo before the first event. In a saved directory it may be from much earlier, as `times_known` of the rows says.
fn at_begin(metadata: &Metadata<'_>) -> Option<Snapshot> {
    let before = metadata.attachment("slabinfo.before")?;
    Some(Snapshot { from: 0, to: 0, caches: parse(before) })
}
