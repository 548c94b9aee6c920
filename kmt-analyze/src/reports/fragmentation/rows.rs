//! The parts of the report.

use std::collections::HashMap;

use serde::Serialize;

use super::fallbacks::{self, FallbackTable};
use super::internal::{self, InternalTables};
use super::occupancy::{self, OccupancyTables};
use super::pageblocks::{self, Pageblocks};
use super::slabs::{self, SlabTails};
use super::traced::{Traced, cache_names};
use super::zones::{self, ZoneRow};
use crate::collect::fallbacks::Fallback;
use crate::collect::mixing::MixingSums;
use crate::collect::occupancy::OccupancySums;
use crate::pass::Analysis;
use crate::reports::common::Context;
use crate::reports::common::labels::Labels;
use crate::reports::common::live_bounds::LiveBounds;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FragmentationRows {
    /// Memory that is held and not used.
    pub fragmentation: FragmentationTables,
}

/// Memory that is held and not used, each kind of it apart.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FragmentationTables {
    /// Inside objects: bytes handed out beyond those asked for.
    pub internal: InternalTables,
    /// Inside slabs, from the last snapshot of /proc/slabinfo; `null`: there is none.
    pub slabs: Option<SlabTails>,
    /// Between objects of slabs.
    pub occupancy: OccupancyTables,
    /// Between pages.
    pub pages: PageFragmentation,
}

/// Between pages.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageFragmentation {
    /// The kernel's indices by zone, from /proc/buddyinfo; `null`: the file does not hold it.
    pub zones: Option<Vec<ZoneRow>>,
    /// Allocations from pageblocks of another migrate type; `null`: not recorded.
    pub fallbacks: Option<FallbackTable>,
    /// Pageblocks with live pages of the trace; `null`: page events were not recorded.
    pub pageblocks: Option<Pageblocks>,
}

/// Rows of a trace.
pub fn of(
    context: &Context<'_, '_>,
    analysis: &Analysis,
    (occupancy, mixing, fallbacks): (&OccupancySums, &MixingSums, &HashMap<Fallback, u64>),
) -> FragmentationRows {
    let labels = Labels::new(context.session);
    let caches = cache_names(analysis);
    let is_whole = !context.session.losses.any();
    let certain = is_whole.then(|| LiveBounds::of(context, analysis).bounds.certain_sites());
    let traced = Traced { context, analysis, labels: &labels, caches: &caches, certain };
    let tables = FragmentationTables {
        internal: internal::of(&traced, occupancy),
        slabs: slabs::of(&traced),
        occupancy: occupancy::of(&traced, occupancy),
        pages: PageFragmentation {
            zones: zones::of(&traced),
            fallbacks: fallbacks::of(&traced, fallbacks),
            pageblocks: pageblocks::of(&traced, mixing),
        },
    };
    FragmentationRows { fragmentation: tables }
}
