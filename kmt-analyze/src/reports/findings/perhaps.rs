//! Leads where lost events forbid a verdict on growth: the cache that grew most by the kernel's counts, and the call site of which
//! almost no object was freed.
//!
//! Sources: /proc/slabinfo of the begin and of the end, which losses do not change; survivors of the events that are left.

use crate::render::look::Look;
use crate::render::words::counted;
use crate::reports::common::basis::lost;
use crate::reports::common::{ReportContext, View};
use crate::reports::info::{CacheChange, cache_changes};
use crate::reports::leaks::judge::slab::Reclaimable;
use crate::trace::slabinfo;

/// Least growth of a cache, in bytes of its slabs: less is an eddy of per-CPU slabs.
const BYTES_MIN: u64 = 64 << 10;

/// The lead on caches, where events were lost and the whole recording is selected; `None`: no cache grew, or the file lacks slabinfo.
pub fn cache(context: &ReportContext<'_, '_>) -> Option<String> {
    let session = context.session;
    lost(context).filter(|_| !context.selection.is_active())?;
    let metadata = session.trace.metadata();
    let at = |when: &str| metadata.attachment(&format!("slabinfo.{when}")).map(slabinfo::parse);
    let (before, after) = (at("before")?, at("after")?);
    let reclaimable = Reclaimable::of(session);
    let changes = cache_changes(&before, &after, session.trace.header().page_size?);
    let most = grown_most(&changes, |cache| reclaimable.has(cache))?;
    Some(sentence(most, &context.view(Look::default())))
}

/// The cache with most growth, of those that the kernel cannot reclaim.
fn grown_most(changes: &[CacheChange], is_reclaimable: impl Fn(&str) -> bool) -> Option<&CacheChange> {
    let has_grown = |change: &&CacheChange| {
        let bytes = u64::try_from(change.bytes_change).unwrap_or(0);
        bytes >= BYTES_MIN && change.active_change > 0 && !is_reclaimable(&change.cache)
    };
    // They are sorted by their change, and the first of equal ones counts.
    changes.iter().filter(has_grown).rev().max_by_key(|change| change.bytes_change)
}

/// `By /proc/slabinfo, which losses do not change, filp grew most of the caches that cannot be reclaimed: by 1,269 objects (320 KiB).`
fn sentence(most: &CacheChange, view: &View) -> String {
    let about = if most.active_estimated { "about " } else { "" };
    format!(
        "By /proc/slabinfo, which losses do not change, {} grew most of the caches that cannot be reclaimed: by {about}{} ({}).",
        most.cache,
        counted(most.active_change.unsigned_abs(), "object", "objects"),
        view.bytes(most.bytes_change.unsigned_abs())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(cache: &str, active_change: i64, kib: i64) -> CacheChange {
        CacheChange {
            cache: cache.to_owned(),
            active_before: 100,
            active_after: 100u64.saturating_add_signed(active_change),
            active_change,
            active_estimated: false,
            bytes_before: 1 << 20,
            bytes_after: (1u64 << 20).saturating_add_signed(kib << 10),
            bytes_change: kib << 10,
        }
    }

    #[test]
    fn the_cache_that_grew_most_is_named() {
        let changes = [
            change("dentry", 9_000, 1_700),
            change("kmalloc-8k", -40, -512),
            change("filp", 1_269, 320),
            change("kmalloc-256", 390, 96),
        ];
        let most = grown_most(&changes, |cache| cache == "dentry").unwrap();
        assert_eq!(
            sentence(most, &View::plain()),
            "By /proc/slabinfo, which losses do not change, filp grew most of the caches that cannot be reclaimed: by 1,269 objects (320 KiB)."
        );
        assert!(grown_most(&[change("filp", 60, 16)], |_| false).is_none(), "little");
        assert!(grown_most(&[change("filp", -3, 128)], |_| false).is_none(), "slabs without more objects");
    }
}
