//! Bytes of slabs that no object can take, and bytes that debug options add to objects, from the snapshots.
//!
//! Layouts of caches come from /sys/kernel/slab in the recording. [`Traced`] has the inputs of all parts of the report.

use std::collections::BTreeMap;

use serde::Serialize;

use super::FragmentationShown;
use crate::collect::sums::Sums;
use crate::pass::coverage::Coverage;
use crate::render::screen::{Cell, Column, Screen, Table};
use crate::render::words::escaped;
use crate::reports::common::cells::part;
use crate::reports::common::{ReportContext, View};
use crate::sort_rows::SortRows;
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
    caches.sort_rows_by(|a, b| (b.tail_bytes, &a.cache).cmp(&(a.tail_bytes, &b.cache)));
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

/// Caches, unless more are allowed.
const ROWS: usize = 5;

/// Adds unused bytes of slabs by cache.
pub fn add_slabs(screen: &mut Screen, rows: Option<&SlabTails>, shown: &FragmentationShown, view: &View) {
    let Some(rows) = rows else { return };
    let wasteful = rows.caches.iter().filter(|cache| cache.tail_bytes > 0);
    let title = "inside slabs: bytes behind the last object (all slabs, /proc/slabinfo)";
    screen.table(
        Table::of_rows(title, wasteful.take(part(view.limit, ROWS)))
            .of("cache", "caches", shown.caches_with_tails)
            .column(Column::name("cache"), |c| Cell::text(escaped(c.cache.as_bytes())))
            .column(Column::number("slabs"), |c| Cell::Count(c.num_slabs))
            .column(Column::number("objects x size").leaves(3), |c| {
                Cell::text(format!("{} x {}", c.objects_per_slab, c.object_size))
            })
            .column(Column::number("slab size").leaves(2), |c| {
                Cell::Bytes(c.pages_per_slab.saturating_mul(shown.page_size))
            })
            .column(Column::number("tail"), |c| Cell::Bytes(c.tail_bytes_per_slab))
            .column(Column::number("all tails"), |c| Cell::Bytes(c.tail_bytes))
            .column(Column::number("share").leaves(1), |c| Cell::share(c.tail_bytes, rows.tail_bytes)),
    );
    match rows.debug_metadata_bytes {
        Some(0) => {}
        Some(bytes) => screen.note(format!(
            "Debug options (red zones, poison, tracking) add {} to the objects of all slabs.",
            view.bytes(bytes)
        )),
        None if view.look.wide => screen.note(
            "Debug data in objects (red zones, poison, tracking): unknown; the file has no /sys/kernel/slab.",
        ),
        None => {}
    }
}

/// Inputs of all parts of the report.
pub struct Traced<'v, 's, 'd> {
    /// The trace and the selection.
    pub context: &'v ReportContext<'s, 'd>,
    /// Name of the cache of each site.
    pub caches: &'v [String],
    /// By number of the site, true if its live objects are certain; `None`: events were lost.
    pub certain: Option<Vec<bool>>,
}

impl<'v, 's, 'd> Traced<'v, 's, 'd> {
    /// Those of a trace, with the name of the cache of each site.
    pub fn of(context: &'v ReportContext<'s, 'd>, caches: &'v [String]) -> Self {
        let is_whole = !context.session.losses.any();
        let certain = is_whole.then(|| context.live_bounds().bounds.certain_sites());
        Self { context, caches, certain }
    }
}

impl Traced<'_, '_, '_> {
    /// First of these attached files that exists.
    pub fn attachment(&self, names: &[&str]) -> Option<&[u8]> {
        names.iter().find_map(|name| self.context.session.trace.metadata().attachment(name))
    }

    /// Certain live bytes of a site with `live` live bytes; `None`: events were lost.
    pub fn least(&self, site: u32, live: u64) -> Option<u64> {
        let is_certain = self.certain.as_ref()?.get(site as usize) == Some(&true);
        Some(if is_certain { live } else { 0 })
    }

    /// By name of the cache: coverage of its frees, and bytes that wait for a grace period.
    pub fn coverage(&self) -> BTreeMap<&str, (Coverage, u64)> {
        let mut out: BTreeMap<&str, (Coverage, u64)> = BTreeMap::new();
        for (site, parts) in (0u32..).zip(&self.context.analysis.balance.sites) {
            for (_, totals) in parts {
                out.entry(self.cache(site)).or_default().absorb((Coverage::of(totals), totals.bytes_waiting));
            }
        }
        out
    }

    /// Name of the cache of a site.
    pub fn cache(&self, site: u32) -> &str {
        self.caches.get(site as usize).map_or("?", String::as_str)
    }
}
