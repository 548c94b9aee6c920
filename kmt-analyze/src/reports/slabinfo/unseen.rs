//! Growth of caches that the kernel counts and no event shows, as of objects that are allocated in bulk.
//!
//! The change of each cache over the recording is taken from the readings of /proc/slabinfo in the file and from events. `leaks`
//! and findings report the difference, but for caches that the kernel can reclaim.

use std::collections::{HashMap, HashSet};

use kmt_common::reclaimable::is_reclaimable;
use kmt_common::unseen_allocs::unseen_allocs;
use kmt_format::read::Metadata;
use serde::Serialize;

use crate::pass::caches::parts_of;
use crate::pass::coverage::{active, in_use_max};
use crate::render::words::{counted, escaped};
use crate::reports::common::cells::difference;
use crate::reports::common::{Context, ReportContext, View};
use crate::sort_rows::SortRows;
use crate::stream::Api;
use crate::trace::names::CacheKey;
use crate::trace::slabinfo::{SlabInfoLine, Snapshot, parse, parse_sysfs, snapshots, untimed};
use crate::trace::sliced::Sliced;

/// A cache that grew without allocation events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnseenGrowth {
    /// Name of the cache.
    pub cache: String,
    /// Objects: growth by the kernel's count, less that by events.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
}

/// Slabs of each CPU whose free objects the kernel may count as active: its slab, partial ones, sheaves.
const CPU_SLABS: u64 = 8;

/// Least growth in bytes.
const BYTES_MIN: u64 = 64 << 10;

/// Growth over a whole recording of caches that the kernel cannot reclaim, the largest first. None is known where events are missing, or of a part of the objects.
pub fn compute(context: &ReportContext<'_, '_>, unmatched: &[u64]) -> Vec<UnseenGrowth> {
    let (snapshots, times_known) = slabinfo_readings(context);
    let after = snapshots.last().filter(|_| times_known && is_whole(context));
    let changes = after.and_then(|after| Some((SlabChanges::of(context, unmatched)?, after)));
    changes.map_or_else(Vec::new, |(changes, after)| growths(context, &changes, after))
}

/// True if events of all objects of caches are in the file, and all are selected.
fn is_whole(context: &ReportContext<'_, '_>) -> bool {
    let (session, basis) = (context.session, context.basis());
    let conditions = session.trace.metadata().attachment("event_conditions").unwrap_or_default();
    let conditions = String::from_utf8_lossy(conditions);
    let is_filter = |line: &str| line.starts_with("kmem:kmem_cache_") && line.contains(" filter=");
    let has_events = basis.ends(Some(Api::Cache)) && !conditions.lines().any(is_filter);
    has_events && !session.losses.any() && !context.selection.is_active()
}

fn growths(context: &ReportContext<'_, '_>, changes: &SlabChanges, after: &Snapshot) -> Vec<UnseenGrowth> {
    let slack = (context.session.losses.cpus.len() as u64).saturating_mul(CPU_SLABS);
    let metadata = context.session.trace.metadata();
    let marks = ["slab_sysfs.after", "slab_sysfs.before"].iter().find_map(|name| metadata.attachment(name));
    let marks = marks.map(parse_sysfs).unwrap_or_default();
    // The kernel takes these back: a program that reads /proc for each file of a process leaves inodes and dentries.
    let stays = |cache: &str| {
        let mark = marks.get(cache).and_then(|files| files.get("reclaim_account"));
        !is_reclaimable(cache, mark.map(|mark| *mark != 0))
    };
    let growth = |(name, last): (&String, &SlabInfoLine)| {
        let change = changes.until(&CacheKey::Named(name.as_bytes().to_vec()), after)?;
        // kfree names no cache, and neither does an allocation before 6.18.
        let is_known = !name.contains("kmalloc") && !changes.nameless.contains(&last.objsize);
        let objects = u64::try_from(change.unseen).ok().filter(|_| is_known && !change.is_estimate)?;
        let bytes = objects.saturating_mul(last.objsize);
        // slabinfo is read a moment before the first event and after the last one.
        let is_beyond = objects > slack.saturating_mul(last.objperslab) && objects > changes.allocs_of(name);
        // Objects of slabs that were there before are memory that was taken before.
        let has_slabs = changes.new_slabs(last).saturating_mul(last.objperslab).saturating_mul(2) >= objects;
        (is_beyond && has_slabs && bytes >= BYTES_MIN && stays(name)).then(|| UnseenGrowth {
            cache: name.clone(),
            objects,
            bytes,
        })
    };
    let mut found: Vec<UnseenGrowth> = after.caches.iter().filter_map(growth).collect();
    found.sort_rows_by_key(|growth| std::cmp::Reverse(growth.bytes));
    found
}

impl UnseenGrowth {
    /// The growth, tasks that may have caused it, and the recording that shows the caller.
    pub fn sentence(&self, tasks: &[String], view: &View) -> String {
        let known = unseen_allocs(&self.cache);
        let mut out = format!(
            "{} grew by {} ({}) without allocation events{}: the caller is unknown.",
            escaped(self.cache.as_bytes()),
            view.bytes(self.bytes),
            counted(self.objects, "object", "objects"),
            if known.is_some() { " (bulk)" } else { "" },
        );
        if let Some(known) = known.filter(|_| !tasks.is_empty()) {
            out += &format!(" Tasks with {} in the trace: {}.", known.of, tasks.join(", "));
        }
        let probe = "kprobe at kmem_cache_alloc_bulk_noprof (kmem_cache_alloc_bulk before 6.10), recorded with stacks, shows the caller.";
        out + if known.is_some() { " A " } else { " If they were allocated in bulk, a " } + probe
    }
}

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
    /// Changes, if slabinfo was read at the begin, all objects are selected, and frees name their caches. `None` also where a
    /// ring buffer kept the newest events, and in a part of a recording: the kernel counted over a longer time, or all objects.
    pub fn of(context: &ReportContext<'_, '_>, unmatched: &[u64]) -> Option<Self> {
        let (analysis, session) = (context.analysis, context.session);
        let is_covered = session.losses.window_begin().is_none() && context.selection.is_all();
        let is_covered = is_covered && Sliced::of(session.trace.metadata()).is_none();
        let before = at_begin(session.trace.metadata()).filter(|_| is_covered)?;
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

/// Snapshots in the file, and true if their times are known; else there is one at most.
pub fn slabinfo_readings(context: &Context<'_, '_>) -> (Vec<Snapshot>, bool) {
    let (metadata, last) = (context.session.trace.metadata(), context.session.last_time().unwrap_or(0));
    let timed = snapshots(metadata, last);
    if timed.is_empty() { (untimed(metadata, last).into_iter().collect(), false) } else { (timed, true) }
}
