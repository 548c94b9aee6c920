//! `pages`: pages asked of the page allocator, by order and migrate type, and by call site where stacks tell it.

mod rows;
mod text;

pub use rows::PageRows;

use crate::collect::{Collectors, Handle, PageStacks};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Report};

/// Page allocations by their properties and by call site.
#[derive(Debug)]
pub struct Pages;

impl Report for Pages {
    type Options = NoOptions;
    type Handles = Handle<PageStacks>;
    type Rows = PageRows;

    const NAME: &'static str = "pages";
    const KEY: &'static str = "pages";
    const TITLE: &'static str = "pages";
    const ABOUT: &'static str = "Page allocations by order, migrate type, flags and call site";

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn usual() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::Pages
    }

    fn keys(&self) -> Keys {
        Keys::Pages
    }

    fn needs_event_counts(&self) -> bool {
        true
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(PageStacks)
    }

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, stacks: &Self::Handles) -> PageRows {
        rows::of(context, analysis, analysis.get(*stacks))
    }

    fn text(&self, rows: &PageRows, view: &View) -> String {
        text::of(rows, view)
    }
}
