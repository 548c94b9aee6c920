//! `boot`: memory over a boot, with its marks, and memory that is still allocated at the end.
//!
//! Marks are read ahead of the pass (`trace::boot_marks`); the collector `BootMemory` has live memory at their times. Rows are in
//! `rows`, the screen in `text`.

mod rows;
mod text;

pub use rows::BootRows;

use crate::collect::{BootMemory, Collectors, Handle, Peak};
use crate::failure::{Failure, Result};
use crate::pass::Needs;
use crate::pass::condition::Key;
use crate::render::screen::Screen;
use crate::reports::common::basis::Input;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, View};
use crate::reports::report::Report;
use crate::trace::boot_marks::{Begin, BootMarks};

/// The report.
#[derive(Debug, clap::Args)]
pub struct BootReport;

/// Collectors, and the marks whose times they have.
#[derive(Debug)]
pub struct BootHandles {
    memory: Handle<BootMemory>,
    peak: Handle<Peak>,
    marks: BootMarks,
}

impl Report for BootReport {
    type Handles = BootHandles;
    type Rows = BootRows;

    const NAME: &'static str = "boot";
    const ABOUT: &'static str = "Memory over a boot, by initcall, module and program";
    const NEEDS: Needs = Needs::CACHE_NAMES;
    const RESTS_ON: Input = Input::Lives;
    const KEYS: Keys = Keys::All;
    const ROWS: usize = 8;

    fn check(&self, context: &Context<'_, '_>) -> Result<()> {
        if context.selection.has_term_on(Key::Lifetime) {
            return Err(Failure::new(
                "boot cannot select by lifetime: objects that are live at a time have not ended",
            )
            .hint("timeline selects by lifetime: it counts objects when they have ended"));
        }
        Ok(())
    }

    fn left_out_of_all(context: &ReportContext<'_, '_>) -> Option<String> {
        let is_later = Begin::of(context.session) == Begin::Later;
        is_later
            .then(|| "the recording does not begin at boot; `boot` alone has it from its first event".into())
    }

    fn collect(&self, context: &Context<'_, '_>, collectors: &mut Collectors) -> BootHandles {
        let Context { session, selection, .. } = context;
        let marks = BootMarks::of(session, selection.span(session));
        let times = marks.marks.iter().map(|mark| mark.time).collect();
        BootHandles {
            memory: collectors.add(BootMemory { times, user_space: marks.user_space() }),
            peak: collectors.add(Peak { window: selection.bounds(session) }),
            marks,
        }
    }

    fn compute(&self, context: &ReportContext<'_, '_>, handles: &BootHandles) -> BootRows {
        let analysis = context.analysis;
        rows::compute(context, &handles.marks, analysis.get(handles.memory), analysis.get(handles.peak))
    }

    fn screen(&self, rows: &BootRows, view: &View) -> Screen {
        text::screen(rows, view)
    }
}
