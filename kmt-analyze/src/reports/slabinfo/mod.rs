//! `slabinfo`: live objects by events against the kernel's own counts, cache by cache.

mod change;
mod readings;
mod rows;
mod text;
mod unseen;

use change::SlabChanges;
pub use rows::SlabInfoRows;
pub use unseen::{UnseenGrowth, compute as unseen_growth};

use crate::collect::{Collectors, Handle, Moments, Unmatched};
use crate::pass::Needs;
use crate::pass::coverage::history::times;
use crate::render::screen::Screen;
use crate::reports::common::ReportContext;
use crate::reports::common::basis::Input;
use crate::reports::common::{Context, View};
use crate::reports::report::Report;

/// Live objects against /proc/slabinfo.
#[derive(Debug, clap::Args)]
pub struct SlabInfo;

impl Report for SlabInfo {
    type Handles = (Handle<Moments>, Handle<Unmatched>);
    type Rows = SlabInfoRows;

    const NAME: &'static str = "slabinfo";
    const ABOUT: &'static str = "Live objects against /proc/slabinfo: frees without events";
    const NEEDS: Needs = Needs::CACHE_NAMES;
    const RESTS_ON: Input = Input::SlabLives;

    fn refuses(&self, context: &ReportContext<'_, '_>) -> Option<String> {
        let has_none = || {
            "the file has no /proc/slabinfo; kmt-capture record reads it, and convert takes slabinfo.after and \
             slabinfo.at.T0-T1 of a directory"
                .to_owned()
        };
        let is_part = || "slabinfo counts to the end of the trace: omit --time and --at".to_owned();
        let is_whole = context.selection.time.is_none() && context.selection.at.is_none();
        let lacks = context.basis().lacks(self.rests_on());
        lacks
            .or_else(|| readings::read(context).0.is_empty().then(has_none))
            .or_else(|| (!is_whole).then(is_part))
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        (collectors.add(Moments { times: times(&readings::read(context).0) }), collectors.add(Unmatched))
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &Self::Handles) -> SlabInfoRows {
        let analysis = context.analysis;
        let changes = SlabChanges::of(context, &analysis.get(handles.1).0);
        let unseen = unseen::compute(context, &analysis.get(handles.1).0);
        rows::compute(context, analysis.get(handles.0), changes.as_ref(), unseen)
    }

    fn screen(&self, _: &ReportContext<'_, '_>, rows: &SlabInfoRows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}
