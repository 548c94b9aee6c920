//! The parts of the report.

use std::collections::HashMap;

use serde::Serialize;

use super::fallbacks::{self, FallbackTable};
use super::internal::{self, InternalTables};
use super::losses::{self, Loss, Requested};
use super::occupancy;
use super::occupancy_rows::Occupied;
use super::pageblocks::{self, Pageblocks};
use super::slabs::{self, SlabTails};
use super::traced::{Traced, cache_names};
use super::zones::{self, ZoneRow};
use crate::collect::fallbacks::Fallback;
use crate::collect::mixing::MixingSums;
use crate::collect::occupancy::OccupancySums;
use crate::reports::common::ReportContext;
use crate::reports::common::answer::MaybeRefused;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FragmentationRows {
    /// Memory that is held and not used.
    pub fragmentation: FragmentationTables,
}

/// Memory that is held and not used, by kind.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FragmentationTables {
    /// Inside objects: bytes allocated beyond those requested.
    pub internal: InternalTables,
    /// Inside slabs, from the last snapshot of /proc/slabinfo; `null`: no snapshot.
    pub slabs: Option<SlabTails>,
    /// Between objects of slabs.
    pub occupancy: MaybeRefused<Occupied>,
    /// Between pages.
    pub pages: PageFragmentation,
    /// Unused memory by place, the largest first.
    #[serde(skip)]
    pub losses: Vec<Loss>,
}

/// Between pages.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageFragmentation {
    /// The kernel's indices by zone, from /proc/buddyinfo; `null`: not in the file.
    pub zones: Option<Vec<ZoneRow>>,
    /// Allocations from pageblocks of another migrate type; `null`: not recorded.
    pub fallbacks: Option<FallbackTable>,
    /// Pageblocks with live pages of the trace; `null`: page events were not recorded.
    pub pageblocks: Option<Pageblocks>,
    /// Order of requests that free memory is judged by.
    #[serde(skip)]
    pub requested: Requested,
    /// Bytes of a page.
    #[serde(skip)]
    pub page_size: u64,
}

/// Rows of a trace.
pub fn of(
    context: &ReportContext<'_, '_>,
    occupancy: &OccupancySums,
    mixing: &MixingSums,
    fallbacks: &HashMap<Fallback, u64>,
) -> FragmentationRows {
    let analysis = context.analysis;
    let caches = cache_names(analysis);
    let is_whole = !context.session.losses.any();
    let certain = is_whole.then(|| context.live_bounds().bounds.certain_sites());
    let traced = Traced { context, caches: &caches, certain };
    let requested = Requested::of(&traced);
    let (internal, slabs) = (internal::of(&traced, occupancy), slabs::of(&traced));
    let (occupancy, zones) = (occupancy::of(&traced, occupancy), zones::of(&traced));
    let of_pages = (zones.as_deref(), requested);
    let tables = FragmentationTables {
        losses: losses::of(&traced, &internal, slabs.as_ref(), &occupancy, of_pages),
        internal,
        slabs,
        occupancy,
        pages: PageFragmentation {
            fallbacks: fallbacks::of(&traced, fallbacks),
            pageblocks: pageblocks::of(&traced, mixing),
            zones,
            requested,
            page_size: analysis.page_size.0,
        },
    };
    FragmentationRows { fragmentation: tables }
}
