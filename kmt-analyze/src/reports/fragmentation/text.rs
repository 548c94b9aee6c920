//! The screen of unused memory: the answer, all places side by side, and each place, the largest first.

use super::losses::{self, Requested, UnusedIn};
use super::rows::FragmentationRows;
use super::{internal_text, losses_text, occupancy_text, pages_text, pinned_text, slabs_text};
use crate::render::screen::Screen;
use crate::reports::common::{ReportContext, View};

/// All parts.
pub fn screen(context: &ReportContext<'_, '_>, rows: &FragmentationRows, view: &View) -> Screen {
    let rows = &rows.fragmentation;
    let requested = Requested::of(context);
    let losses = losses::compute(context, rows, requested);
    let mut screen = losses_text::screen(rows, &losses, requested, view);
    for loss in &losses {
        match loss.place {
            UnusedIn::Objects => internal_text::add(&mut screen, &rows.internal, context, view),
            UnusedIn::Slabs => slabs_text::add(&mut screen, rows.slabs.as_ref(), context, view),
            UnusedIn::BetweenObjects => {
                occupancy_text::add(&mut screen, &rows.occupancy, view);
                pinned_text::add(&mut screen, &rows.occupancy, view);
            }
            UnusedIn::BetweenPages => {
                let page_size = context.analysis.page_size.0;
                pages_text::add(&mut screen, &rows.pages, (requested.order, page_size), view);
            }
        }
    }
    screen.next("fragmentation -l 0 --wide", "all rows, slabs over time, all indices");
    screen.next("callers --sort wasted", "call sites that waste most in all");
    screen.next("what-if", "size classes that would waste less");
    screen
}
