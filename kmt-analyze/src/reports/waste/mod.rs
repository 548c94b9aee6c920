//! `waste`: places where memory is wasted, of all kinds in one order, each with a change that would save it.

mod kinds;
mod place;
mod requests;
mod rounding;
mod rows;
mod saves;
mod slabs;
mod sorting;
mod text;
mod wasted;

pub use rows::WasteRows;

use self::sorting::WASTES;
use crate::collect::{Collectors, Handle, Occupancy};
use crate::pass::Needs;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::sorting::{SortKey, sort_keys};
use crate::reports::common::{Context, View};
use crate::reports::fragmentation::occupancy_of;
use crate::reports::report::Report;

/// Places where memory is wasted.
#[derive(Debug, clap::Args)]
pub struct WasteReport {
    /// Sort by these columns, the most important first [default: the largest number of each row]
    #[arg(short, long, value_parser = sort_keys(WASTES), value_name = "KEY", value_delimiter = ',')]
    sort: Vec<SortKey>,
}

impl Report for WasteReport {
    type Handles = Handle<Occupancy>;
    type Rows = WasteRows;

    const NAME: &'static str = "waste";
    const TITLE: &'static str = "wasted memory";
    const ABOUT: &'static str = "Wasted memory by call site and cache, and what would save it";
    const RESTS_ON: Input = Input::Allocs;
    const NEEDS: Needs = Needs::CACHE_NAMES;

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(occupancy_of(context))
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handle: &Self::Handles) -> WasteRows {
        rows::compute(context, context.analysis.get(*handle), &self.sort)
    }

    fn screen(&self, context: &ReportContext<'_, '_>, rows: &WasteRows, view: &View) -> Screen {
        text::screen(context, rows, self.sort.first().copied(), view)
    }
}
