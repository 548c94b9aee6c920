//! Growth of caches that the kernel counts and no event shows, such as of objects that are allocated in bulk.

use kmt_common::unseen_allocs::unseen_allocs;
use serde::Serialize;

use super::change::SlabChanges;
use super::readings::read;
use crate::render::words::{counted, escaped};
use crate::reports::common::{ReportContext, View};
use crate::stream::Api;
use crate::trace::names::CacheKey;
use crate::trace::slabinfo::SlabInfoLine;
use crate::trace::snapshots::Snapshot;

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

/// Growth over a whole recording, the largest first. None is known where events are missing, or of a part of the objects.
pub fn compute(context: &ReportContext<'_, '_>, unmatched: &[u64]) -> Vec<UnseenGrowth> {
    let (snapshots, times_known) = read(context);
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
        (is_beyond && has_slabs && bytes >= BYTES_MIN).then(|| UnseenGrowth {
            cache: name.clone(),
            objects,
            bytes,
        })
    };
    let mut found: Vec<UnseenGrowth> = after.caches.iter().filter_map(growth).collect();
    found.sort_by_key(|growth| std::cmp::Reverse(growth.bytes));
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
