//! `fragmentation`: unused memory by place: inside objects, inside slabs, between objects, between pages.
//!
//! Each place has a file of its own with its rows and tables. The screen has the answer, all places side by side, and each place,
//! the largest first.

pub mod internal;
mod losses;
pub mod occupancy;
mod occupancy_text;
mod pageblocks;
mod pages;
pub mod slabs;

use internal::InternalTables;
use losses::{Loss, Requested, UnusedIn};
pub use occupancy::{Occupied, OccupiedCache};
pub use pageblocks::{BlockRow, Pageblocks};
use pages::{FallbackTable, ZoneRow};
use slabs::{SlabTails, Traced};

use serde::Serialize;

use crate::collect::{Collectors, Fallbacks, Handle, Mixing, Occupancy};
use crate::pass::Needs;
use crate::pass::caches::CacheNames;
use crate::render::screen::Screen;
use crate::reports::common::basis::Input;
use crate::reports::common::lead::MaybeRefused;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;

/// Unused memory by place.
#[derive(Debug, Default, clap::Args)]
pub struct Fragmentation;

/// Number of time steps of the occupancy.
const STEPS: usize = 10;

/// The collector of slab pages for the selected time.
pub fn occupancy_of(context: &Context<'_, '_>) -> Occupancy {
    let (first, last) = context.selection.span(context.session);
    // An instant has one step.
    let steps = if last.saturating_sub(first) < STEPS as u64 { 1 } else { STEPS };
    Occupancy { window: (first, last), steps }
}

impl Report for Fragmentation {
    type Handles = (Handle<Occupancy>, Handle<Mixing>, Handle<Fallbacks>);
    type Rows = FragmentationRows;

    const NAME: &'static str = "fragmentation";
    const ABOUT: &'static str = "Unused memory inside and between objects, slabs and pages";
    const RESTS_ON: Input = Input::Allocs;
    const KEYS: Keys = Keys::All;

    fn needs(&self) -> Needs {
        Needs::CACHE_NAMES | Needs::FLAG_NAMES
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        (
            collectors.add(occupancy_of(context)),
            collectors.add(Mixing { pageblock_order: context.session.pageblock_order().0 }),
            collectors.add(Fallbacks),
        )
    }

    /// Rows of a trace.
    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> FragmentationRows {
        let (analysis, requested) = (context.analysis, Requested::of(context));
        let occupancy = analysis.get(handles.0);
        let caches = CacheNames::of(context.analysis).of_sites();
        let traced = Traced::of(context, &caches);
        let (pageblocks, blocks) = pageblocks::compute(&traced, analysis.get(handles.1)).unzip();
        let tables = FragmentationTables {
            internal: internal::compute(&traced, occupancy),
            slabs: slabs::compute(&traced),
            occupancy: occupancy::compute(&traced, occupancy),
            pages: PageFragmentation {
                zones: pages::zones(&traced),
                fallbacks: pages::fallbacks(&traced, analysis.get(handles.2)),
                pageblocks,
            },
        };
        let (first, last) = context.selection.span(context.session);
        let shown = FragmentationShown {
            losses: losses::compute(&traced, &tables, requested),
            requested,
            caches_with_tails: slabs::all(&traced)
                .iter()
                .flatten()
                .filter(|cache| cache.tail_bytes > 0)
                .count(),
            page_size: analysis.page_size.0,
            length: last.saturating_sub(first),
            blocks: blocks.unwrap_or_default(),
        };
        FragmentationRows { fragmentation: tables, shown }
    }

    /// All parts.
    fn screen(&self, rows: &FragmentationRows, view: &View) -> Screen {
        let FragmentationRows { fragmentation: rows, shown } = rows;
        let mut screen = losses::screen(rows, &shown.losses, shown.requested, view);
        for loss in &shown.losses {
            match loss.place {
                UnusedIn::Objects => internal::add_internal(&mut screen, &rows.internal, shown.length, view),
                UnusedIn::Slabs => slabs::add_slabs(&mut screen, rows.slabs.as_ref(), shown, view),
                UnusedIn::BetweenObjects => {
                    occupancy_text::add(&mut screen, &rows.occupancy, view);
                    occupancy_text::add_pinned(&mut screen, &rows.occupancy, view);
                }
                UnusedIn::BetweenPages => {
                    let (order, page_size) = (shown.requested.order, shown.page_size);
                    pages::add_pages(&mut screen, &rows.pages, (order, page_size), view);
                }
            }
        }
        screen.next("fragmentation -l 0 --wide", "all rows, slabs over time, all indices");
        screen.next("callers --sort wasted", "call sites that waste most in all");
        screen.next("what-if", "size classes that would waste less");
        screen
    }
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FragmentationRows {
    /// Memory that is held and not used.
    pub fragmentation: FragmentationTables,
    #[serde(skip)]
    shown: FragmentationShown,
}

impl FragmentationRows {
    /// Pageblocks with live pages of the trace, by number, for charts.
    pub fn blocks(&self) -> &[BlockRow] {
        &self.shown.blocks
    }
}

/// Facts that only the screen and charts have.
#[derive(Debug)]
pub struct FragmentationShown {
    /// Unused memory of all places, the largest first.
    losses: Vec<Loss>,
    /// Order that free memory is judged by.
    requested: Requested,
    /// Number of caches with bytes after the last object.
    caches_with_tails: usize,
    page_size: u64,
    /// Length of the window.
    length: u64,
    /// Pageblocks with live pages of the trace, by number.
    blocks: Vec<BlockRow>,
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
