//! `baseline`: memory at the begin and the end of a recording, as the kernel accounts for it, beside the trace.

mod account;
mod caches;
mod live;
mod rows;
mod text;

pub use rows::BaselineRows;

use crate::collect::{Collectors, Handle, PageStacks, Unmatched};
use crate::pass::Needs;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// The kernel's own accounts beside the trace.
#[derive(Debug, clap::Args)]
pub struct BaselineReport;

impl Report for BaselineReport {
    type Handles = (Handle<PageStacks>, Handle<Unmatched>);
    type Rows = BaselineRows;

    const NAME: &'static str = "baseline";
    const TITLE: &'static str = "comparison with the kernel's own accounts";
    const ABOUT: &'static str = "allocinfo, page_owner, slab traces: before + born here = now";
    const RESTS_ON: Input = Input::Nothing;
    const NEEDS: Needs = Needs::CACHE_NAMES;

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        let is_part = context.selection.is_active();
        let part =
            || "the kernel accounts for all tasks and the whole time: it refuses selections".to_owned();
        is_part.then(part).or_else(|| {
            let none =
                "the recording has none of them: record with --baseline allocinfo,page_owner,slab_traces";
            (!rows::has_any(context)).then(|| none.to_owned())
        })
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        (collectors.add(PageStacks), collectors.add(Unmatched))
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> BaselineRows {
        let analysis = context.analysis;
        let older_frees = caches::older_frees(analysis, &analysis.get(handles.1).0);
        rows::compute(context, &analysis.get(handles.0).stacks, &older_frees)
    }

    fn screen(&self, _: &ReportContext<'_, '_>, rows: &BaselineRows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}
