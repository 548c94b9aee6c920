//! The parts of the report.

use std::collections::HashMap;

use serde::Serialize;

use super::fallbacks::{self, FallbackTable};
use super::internal::{self, InternalTables};
use super::occupancy;
use super::occupancy_rows::Occupied;
use super::pageblocks::{self, Pageblocks};
use super::slabs::{self, SlabTails};
use super::traced::Traced;
use super::zones::{self, ZoneRow};
use crate::collect::fallbacks::Fallback;
use crate::collect::mixing::MixingSums;
use crate::collect::occupancy::OccupancySums;
use crate::pass::caches::CacheNames;
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
}

/// Rows of a trace.
pub fn compute(
    context: &ReportContext<'_, '_>,
    occupancy: &OccupancySums,
    mixing: &MixingSums,
    fallbacks: &HashMap<Fallback, u64>,
) -> FragmentationRows {
    let caches = CacheNames::of(context.analysis).of_sites();
    let traced = Traced::of(context, &caches);
    let tables = FragmentationTables {
        internal: internal::compute(&traced, occupancy),
        slabs: slabs::compute(&traced),
        occupancy: occupancy::compute(&traced, occupancy),
        pages: PageFragmentation {
            zones: zones::compute(&traced),
            fallbacks: fallbacks::compute(&traced, fallbacks),
            pageblocks: pageblocks::compute(&traced, mixing),
        },
    };
    FragmentationRows { fragmentation: tables }
}
