//! Live objects of each cache at each reading of /proc/slabinfo.

use serde::Serialize;

use super::change::{SlabChange, SlabChanges};
use super::readings::read;
use super::unseen::UnseenGrowth;
use crate::collect::moments::MomentSums;
use crate::pass::coverage::history::{CacheHistory, HistoryAt, histories};
use crate::reports::common::ReportContext;
use crate::trace::names::CacheKey;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabInfoRows {
    /// Live objects by events and by the kernel.
    pub slabinfo: SlabInfoTable,
}

/// Live objects by events and by the kernel.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabInfoTable {
    /// Times at which reading of each snapshot of /proc/slabinfo ended, in the clock's unit; the last is after the trace.
    pub times: Vec<u64>,
    /// Lengths of the readings, in the clock's unit.
    pub read_for: Vec<u64>,
    /// False: slabinfo is from an unknown time after the trace, and bounds nothing. The time in `times` is the end of the
    /// trace.
    pub times_known: bool,
    /// Number of caches.
    pub caches_total: usize,
    /// Caches with more live objects than slabinfo counts as active.
    pub caches_contradicted: usize,
    /// Caches.
    pub caches: Vec<SlabInfoCache>,
    /// Caches that grew without allocation events, the largest growth first.
    pub unseen_growth: Vec<UnseenGrowth>,
    /// Cache whose change has most that no event shows.
    #[serde(skip)]
    pub most_unseen: Option<(String, SlabChange)>,
}

/// A cache at each snapshot.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabInfoCache {
    /// Name of the cache.
    pub cache: String,
    /// Objects allocated in the trace and not known to be freed.
    pub live: Vec<u64>,
    /// Objects passed to kfree_rcu, and perhaps not yet freed; they are not in `live`, but in what can be live at most.
    pub waiting: Vec<u64>,
    /// Objects that can be live: at least, at most. Where events were lost: 0 to active. `null`: nothing bounds them.
    pub live_range: Vec<(u64, Option<u64>)>,
    /// Active objects by slabinfo, older ones included; `null`: it does not list the cache.
    pub active: Vec<Option<u64>>,
    /// Most objects that can be active: more than `active` where the kernel may have estimated it, which it does for
    /// caches of more than 10,000 slabs since 6.10.
    pub active_max: Vec<Option<u64>>,
    /// Objects allocated while slabinfo was read: in `live`, and in `active` only if the cache's line was written after
    /// them.
    pub born_while_read: Vec<u64>,
    /// Objects that ended while slabinfo was read: not in `live`, and in `active` if the line was written before that.
    pub ended_while_read: Vec<u64>,
    /// Change over the recording; `null`: of kmalloc, of a cache that slabinfo does not list, of a part of the objects, without
    /// slabinfo at the begin, or where frees do not name their caches (before 5.12).
    pub change: Option<SlabChange>,
    /// More objects seem live all the time while slabinfo was read than it counts as active.
    pub is_contradicted: bool,
}

impl SlabInfoCache {
    /// Most objects that seem live beyond those that can be, and the time of that; `None`: there are none.
    pub fn most_over(&self, times: &[u64]) -> Option<(u64, u64)> {
        let bounds = self.active_max.iter().zip(&self.born_while_read);
        let at = self.live.iter().zip(&self.live_range).zip(bounds).zip(times);
        let over =
            at.map(|(((live, (_, most)), (in_use, born)), time)| (over(*live, *most, *in_use, *born), *time));
        over.max_by_key(|(over, _)| *over).filter(|(over, _)| *over > 0)
    }
}

/// Rows of a trace; caches with more live objects than possible are first.
pub fn compute(
    context: &ReportContext<'_, '_>,
    moments: &MomentSums,
    changes: Option<&SlabChanges>,
    mut unseen_growth: Vec<UnseenGrowth>,
) -> SlabInfoRows {
    let analysis = context.analysis;
    let (snapshots, times_known) = read(context);
    let bounds = &context.live_bounds().bounds;
    // Only rows that are shown keep all snapshots.
    let at = |history: &CacheHistory| -> Vec<HistoryAt> {
        let bounded = |at: HistoryAt| HistoryAt { most: at.most.filter(|_| times_known), ..at };
        history.at(&snapshots).map(bounded).collect()
    };
    let ranked = |history: CacheHistory| {
        let at = at(&history);
        let over = |at: &HistoryAt| over(at.live, at.most, at.in_use_max, at.born_while_read);
        let rank = (at.iter().map(over).max(), at.last().map(|at| at.live));
        let is_contradicted = at.iter().any(HistoryAt::is_contradicted);
        (history.key.shown(analysis.size_classes), history, rank, is_contradicted)
    };
    let mut all: Vec<_> = histories(analysis, bounds, moments).into_iter().map(ranked).collect();
    all.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
    let change = |key: &CacheKey| changes?.until(key, snapshots.last()?);
    let row = |(name, history, _, is_contradicted): &(String, CacheHistory, _, bool)| SlabInfoCache {
        change: change(&history.key),
        is_contradicted: *is_contradicted,
        ..cache(name, &at(history))
    };
    let unseen = || {
        // Some caches are in no event.
        let keys = unseen_growth.iter().map(|grown| CacheKey::Named(grown.cache.as_bytes().to_vec()));
        let grown: Vec<_> = unseen_growth.iter().zip(keys).collect();
        let grown = grown.iter().filter_map(|(grown, key)| Some((&grown.cache, change(key)?)));
        let changed = all.iter().filter_map(|(name, history, ..)| Some((name, change(&history.key)?)));
        let changed = changed.chain(grown);
        changed.max_by_key(|(_, change)| change.unseen.unsigned_abs())
    };
    let most_unseen = unseen().map(|(name, change)| (name.clone(), change));
    unseen_growth.truncate(context.limit);
    let table = SlabInfoTable {
        times: snapshots.iter().map(|s| s.to).collect(),
        read_for: snapshots.iter().map(|s| s.to - s.from).collect(),
        times_known,
        caches_total: all.len(),
        most_unseen,
        unseen_growth,
        caches_contradicted: all.iter().filter(|(.., is_contradicted)| *is_contradicted).count(),
        caches: all.iter().take(context.limit).map(row).collect(),
    };
    SlabInfoRows { slabinfo: table }
}

/// Objects that seem live beyond those that can be, or, where nothing bounds them, beyond those that slabinfo counts.
fn over(live: u64, most: Option<u64>, in_use_max: Option<u64>, born_while_read: u64) -> u64 {
    let in_use = in_use_max.map(|in_use| in_use.saturating_add(born_while_read));
    most.or(in_use).map_or(0, |most| live.saturating_sub(most))
}

fn cache(name: &str, at: &[HistoryAt]) -> SlabInfoCache {
    SlabInfoCache {
        cache: name.to_owned(),
        live: at.iter().map(|at| at.live).collect(),
        waiting: at.iter().map(|at| at.waiting).collect(),
        live_range: at.iter().map(|at| (at.least, at.most)).collect(),
        active: at.iter().map(|at| at.active).collect(),
        active_max: at.iter().map(|at| at.in_use_max).collect(),
        born_while_read: at.iter().map(|at| at.born_while_read).collect(),
        ended_while_read: at.iter().map(|at| at.ended_while_read).collect(),
        change: None,
        is_contradicted: false,
    }
}
