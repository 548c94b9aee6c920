//! `fragmentation`: memory that is held and not used, each kind of it apart: inside objects, inside slabs, between
//! slabs' objects, between pages.

mod fallbacks;
mod internal;
mod internal_text;
mod occupancy;
mod occupancy_text;
mod pageblocks;
mod pages_text;
mod pinned;
mod rows;
mod slabs;
mod slabs_text;
mod text;
mod traced;
mod zones;

pub use rows::FragmentationRows;

use crate::collect::{Collectors, Fallbacks, Handle, Mixing, Occupancy};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Report};

/// Memory that is held and not used.
#[derive(Debug, Default)]
pub struct Fragmentation;

/// Steps of time that occupancy is computed for.
const STEPS: usize = 10;

impl Report for Fragmentation {
    type Options = NoOptions;
    type Handles = (Handle<Occupancy>, Handle<Mixing>, Handle<Fallbacks>);
    type Rows = FragmentationRows;

    const NAME: &'static str = "fragmentation";
    const KEY: &'static str = "fragmentation";
    const TITLE: &'static str = "fragmentation";
    const ABOUT: &'static str =
        "Memory that is held and not used: inside objects, inside slabs, between objects, between pages";

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn usual() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::Allocs
    }

    fn keys(&self) -> Keys {
        Keys::All
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let (first, last) = context.selection.span(context.session);
        // An instant has no course.
        let steps = if last.saturating_sub(first) < STEPS as u64 { 1 } else { STEPS };
        (
            collectors.add(Occupancy { window: (first, last), steps }),
            collectors.add(Mixing { pageblock_order: context.session.pageblock_order().0 }),
            collectors.add(Fallbacks),
        )
    }

    fn compute(
        &self,
        context: &Context<'_, '_>,
        analysis: &Analysis,
        handles: &Self::Handles,
    ) -> FragmentationRows {
        let collected = (analysis.get(handles.0), analysis.get(handles.1), analysis.get(handles.2));
        rows::of(context, analysis, collected)
    }

    fn text(&self, rows: &FragmentationRows, view: &View) -> String {
        text::of(rows, view)
    }
}
