//! The screen of unused memory: the answer, all places side by side, and each place, the largest first.

use super::losses::UnusedIn;
use super::rows::FragmentationRows;
use super::{internal_text, losses_text, occupancy_text, pages_text, pinned_text, slabs_text};
use crate::render::screen::Screen;
use crate::reports::common::View;

/// All parts.
pub fn of(rows: &FragmentationRows, view: &View) -> Screen {
    let rows = &rows.fragmentation;
    let mut screen = losses_text::of(rows, view);
    for loss in &rows.losses {
        match loss.place {
            UnusedIn::Objects => internal_text::add(&mut screen, &rows.internal, view),
            UnusedIn::Slabs => slabs_text::add(&mut screen, rows.slabs.as_ref(), view),
            UnusedIn::BetweenObjects => {
                occupancy_text::add(&mut screen, &rows.occupancy, view);
                pinned_text::add(&mut screen, &rows.occupancy, view);
            }
            UnusedIn::BetweenPages => pages_text::add(&mut screen, &rows.pages, view),
        }
    }
    screen.next("fragmentation -l 0 --wide", "all rows, slabs over time, all indices");
    screen.next("callers --sort wasted", "call sites that waste most in all");
    screen.next("what-if", "size classes that would waste less");
    screen
}
