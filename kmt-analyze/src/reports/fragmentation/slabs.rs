//! Bytes of slabs that no object can take, and bytes that debug options add to objects, from the snapshots.

use serde::Serialize;

use super::traced::Traced;
use crate::reports::common::ReportContext;
use crate::trace::slabinfo::{self, SlabInfoLine, Sysfs};

/// Bytes of all slabs that no object can use.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabTails {
    /// Bytes of all slabs.
    pub bytes_held: u64,
    /// Bytes of them after the last object.
    pub tail_bytes: u64,
    /// Bytes of red zones, poison and tracking; `null`: unknown.
    pub debug_metadata_bytes: Option<u64>,
    /// Number of caches with slabs.
    pub caches_total: usize,
    /// Caches, those with the largest tails first.
    pub caches: Vec<CacheTail>,
}

/// Bytes of the slabs of one cache that no object can use.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheTail {
    /// Name of the cache.
    pub cache: String,
    /// Slabs.
    pub num_slabs: u64,
    /// Pages of a slab.
    pub pages_per_slab: u64,
    /// Objects of a slab.
    pub objects_per_slab: u64,
    /// Bytes of an object.
    pub object_size: u64,
    /// Bytes of a slab after its last object.
    pub tail_bytes_per_slab: u64,
    /// Bytes after the last object of all slabs of the cache.
    pub tail_bytes: u64,
    /// Bytes of red zones, poison and tracking for each object; `null`: unknown.
    pub debug_metadata_bytes_per_object: Option<u64>,
    /// Objects in use, by slabinfo.
    pub active_objs: u64,
    /// Capacity of the slabs in objects.
    pub num_objs: u64,
}

/// Snapshots, the best first.
const SNAPSHOTS: [&str; 3] = ["slabinfo.after", "slabinfo.before", "slabinfo"];

/// Number of caches with bytes after the last object.
pub fn number_with_tails(context: &ReportContext<'_, '_>) -> usize {
    let metadata = context.session.trace.metadata();
    let text = SNAPSHOTS.iter().find_map(|name| metadata.attachment(name)).unwrap_or_default();
    let caches = slabinfo::parse(text);
    let tails = caches.values().filter(|cache| cache.num_slabs > 0);
    tails.filter(|cache| cache.tail_bytes(context.analysis.page_size.0) > 0).count()
}

/// The last snapshot of /proc/slabinfo; `None`: the file has none.
pub fn snapshot<'v>(traced: &'v Traced<'_, '_, '_>) -> Option<&'v [u8]> {
    traced.attachment(&SNAPSHOTS)
}

/// All caches with slabs, those with the largest tails first; `None` without a snapshot.
pub fn all(traced: &Traced<'_, '_, '_>) -> Option<Vec<CacheTail>> {
    let text = snapshot(traced)?;
    let sysfs = traced.attachment(&["slab_sysfs.after", "slab_sysfs.before"]).map(slabinfo::parse_sysfs);
    let page_size = traced.context.analysis.page_size.0;
    let mut caches: Vec<CacheTail> = slabinfo::parse(text)
        .values()
        .filter(|info| info.num_slabs > 0)
        .map(|info| cache(info, sysfs.as_ref(), page_size))
        .collect();
    caches.sort_by(|a, b| (b.tail_bytes, &a.cache).cmp(&(a.tail_bytes, &b.cache)));
    Some(caches)
}

/// Rows of a trace; `None` without a snapshot.
pub fn compute(traced: &Traced<'_, '_, '_>) -> Option<SlabTails> {
    let caches = all(traced)?;
    let page_size = traced.context.analysis.page_size.0;
    let total = |of: fn(&CacheTail) -> u64| caches.iter().map(of).fold(0, u64::saturating_add);
    let pages = total(|c| c.num_slabs.saturating_mul(c.pages_per_slab));
    let metadata = total(|c| c.debug_metadata_bytes_per_object.unwrap_or(0).saturating_mul(c.num_objs));
    let is_told = caches.iter().any(|c| c.debug_metadata_bytes_per_object.is_some());
    Some(SlabTails {
        bytes_held: pages.saturating_mul(page_size),
        tail_bytes: total(|c| c.tail_bytes),
        debug_metadata_bytes: is_told.then_some(metadata),
        caches_total: caches.len(),
        caches: caches.into_iter().take(traced.context.limit).collect(),
    })
}

fn cache(info: &SlabInfoLine, sysfs: Option<&Sysfs>, page_size: u64) -> CacheTail {
    let files = sysfs.and_then(|sysfs| sysfs.get(&info.name));
    let metadata = files.map(|files| {
        let on = |name| files.get(name).is_some_and(|&v| v != 0);
        let size = |name| files.get(name).copied().unwrap_or(0);
        let is_debugged = on("red_zone") || on("poison") || on("store_user");
        if is_debugged { size("slab_size").saturating_sub(size("object_size")) } else { 0 }
    });
    let tail = info.tail_bytes(page_size);
    CacheTail {
        num_slabs: info.num_slabs,
        pages_per_slab: info.pagesperslab,
        objects_per_slab: info.objperslab,
        object_size: info.objsize,
        tail_bytes_per_slab: tail,
        tail_bytes: tail.saturating_mul(info.num_slabs),
        debug_metadata_bytes_per_object: metadata,
        active_objs: info.active_objs,
        num_objs: info.num_objs,
        cache: info.name.clone(),
    }
}
