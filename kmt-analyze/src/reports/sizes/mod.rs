//! `sizes`: sizes asked of kmalloc, against the size classes that it has.

mod rows;
mod text;

pub use rows::SizeRows;

use crate::collect::Collectors;
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::reports::common::basis::Input;
use crate::reports::common::sorting::{SortKey, SortOptions};
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Sums by size class, and by the sizes asked for in it.
#[derive(Debug)]
pub struct Sizes {
    sort: Vec<SortKey>,
}

impl Report for Sizes {
    type Options = SortOptions;
    type Handles = ();
    type Rows = SizeRows;

    const NAME: &'static str = "sizes";
    const KEY: &'static str = "sizes";
    const TITLE: &'static str = "sizes";
    const ABOUT: &'static str = "Sizes asked of kmalloc against its size classes";

    fn new(options: SortOptions, selection: &Selection) -> Self {
        Self { sort: options.keys(selection) }
    }

    fn usual() -> Option<Self> {
        Some(Self { sort: vec![SortKey::Alloc] })
    }

    fn rests_on(&self) -> Input {
        Input::Kmallocs
    }

    fn collect(&self, _: &Context<'_, '_>, _: &mut Collectors) -> Self::Handles {}

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, (): &()) -> SizeRows {
        rows::of(context, analysis, &self.sort)
    }

    fn text(&self, rows: &SizeRows, view: &View) -> String {
        text::of(rows, view)
    }
}
