//! `fragmentation`: unused memory by place: inside objects, inside slabs, between objects, between pages.

mod fallbacks;
mod internal;
pub mod internal_sums;
mod internal_text;
mod losses;
mod losses_text;
pub mod occupancy;
mod occupancy_rows;
mod occupancy_text;
mod order_columns;
mod pageblocks;
mod pageblocks_text;
mod pages_text;
pub mod pinned;
mod pinned_text;
mod rows;
pub mod slabs;
mod slabs_text;
mod text;
pub mod traced;
mod zones;

pub use occupancy_rows::{Occupied, OccupiedCache};
pub use pageblocks::{BlockRow, Pageblocks};
pub use rows::FragmentationRows;

use crate::collect::{Collectors, Fallbacks, Handle, Mixing, Occupancy};
use crate::pass::Needs;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
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

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> FragmentationRows {
        let analysis = context.analysis;
        let (occupancy, mixing) = (analysis.get(handles.0), analysis.get(handles.1));
        rows::compute(context, occupancy, mixing, analysis.get(handles.2))
    }

    fn screen(&self, context: &ReportContext<'_, '_>, rows: &FragmentationRows, view: &View) -> Screen {
        text::screen(context, rows, view)
    }
}
