//! `slabinfo`: objects that live by events beside the kernel's own counts, cache by cache.

mod rows;
mod text;

pub use rows::SlabInfoRows;

use crate::collect::{Collectors, Handle, Moments};
use crate::pass::Analysis;
use crate::pass::coverage::course::times;
use crate::pass::selection::Selection;
use crate::reports::common::basis::{Basis, Input};
use crate::reports::common::{Context, View};
use crate::reports::report::{NoOptions, Report};

/// Live objects against /proc/slabinfo.
#[derive(Debug)]
pub struct SlabInfo;

impl Report for SlabInfo {
    type Options = NoOptions;
    type Handles = Handle<Moments>;
    type Rows = SlabInfoRows;

    const NAME: &'static str = "slabinfo";
    const KEY: &'static str = "slabinfo";
    const TITLE: &'static str = "slabinfo";
    const ABOUT: &'static str = "What seems live beside what /proc/slabinfo says: where frees have no event";

    fn new(_: NoOptions, _: &Selection) -> Self {
        Self
    }

    fn usual() -> Option<Self> {
        Some(Self)
    }

    fn rests_on(&self) -> Input {
        Input::SlabLives
    }

    fn refuses(&self, context: &Context<'_, '_>, analysis: &Analysis) -> Option<String> {
        let has_none = || {
            "the file has no /proc/slabinfo; kmt-capture record keeps it, and a directory to convert may have slabinfo.after"
                .to_owned()
        };
        let is_part = || "slabinfo counts to the end of the trace: leave --time and --at out".to_owned();
        let is_whole = context.selection.time.is_none() && context.selection.at.is_none();
        let lacks = Basis::of(context.session, analysis).lacks(self.rests_on());
        lacks.or_else(|| rows::read(context).is_empty().then(has_none)).or_else(|| (!is_whole).then(is_part))
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(Moments { times: times(&rows::read(context)) })
    }

    fn compute(
        &self,
        context: &Context<'_, '_>,
        analysis: &Analysis,
        handle: &Self::Handles,
    ) -> SlabInfoRows {
        rows::of(context, analysis, analysis.get(*handle))
    }

    fn text(&self, rows: &SlabInfoRows, view: &View) -> String {
        text::of(rows, view)
    }
}
