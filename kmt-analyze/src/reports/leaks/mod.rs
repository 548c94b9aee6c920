//! `leaks`: slab objects and pages that were allocated and not seen freed, and what that means.

mod families;
mod judged;
mod pages;
mod row;
mod rows;
mod slab;
mod stacks;
mod text;
mod text_parts;

pub use rows::LeakRows;

use crate::collect::{Calls, Collectors, Growth, Handle};
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::reports::common::basis::{Basis, Input, too_lossy};
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Report};

/// Objects and pages that stay.
#[derive(Debug, Default)]
pub struct Leaks;

/// With more than this lost, objects that stay are mostly those that were not seen freed.
const LOST_PERCENT_MAX: f64 = 10.0;

impl Report for Leaks {
    type Options = NoOptions;
    type Handles = (Handle<Growth>, Option<Handle<Calls>>);
    type Rows = LeakRows;

    const NAME: &'static str = "leaks";
    const KEY: &'static str = "not_seen_freed";
    const TITLE: &'static str = "not seen freed";
    const ABOUT: &'static str = "What was allocated and not seen freed: what grows steadily, apart from caches that fill or can be reclaimed";

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn usual() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::Lives
    }

    fn keys(&self) -> Keys {
        Keys::All
    }

    fn refuses(&self, context: &Context<'_, '_>, analysis: &Analysis) -> Option<String> {
        let basis = Basis::of(context.session, analysis).lacks(self.rests_on());
        let why = "objects whose frees were lost look like leaks";
        basis.or_else(|| too_lossy(context.session, LOST_PERCENT_MAX, why))
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        let (first, last) = context.selection.span(context.session);
        let calls = stacks::may_exist(context.session).then(|| collectors.add(Calls));
        (collectors.add(Growth::new(first, last)), calls)
    }

    fn compute(&self, context: &Context<'_, '_>, analysis: &Analysis, handles: &Self::Handles) -> LeakRows {
        let calls = handles.1.map(|calls| analysis.get(calls));
        rows::of(context, analysis, analysis.get(handles.0), calls)
    }

    fn text(&self, rows: &LeakRows, view: &View) -> String {
        text::of(rows, view)
    }
}
