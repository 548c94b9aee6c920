//! The parts of the report, one behind the other.

use super::rows::FragmentationRows;
use super::{internal_text, occupancy_text, pages_text, slabs_text};
use crate::reports::common::View;

/// All parts.
pub fn of(rows: &FragmentationRows, view: &View) -> String {
    let rows = &rows.fragmentation;
    [
        internal_text::of(&rows.internal, view),
        slabs_text::of(rows.slabs.as_ref(), view),
        occupancy_text::of(&rows.occupancy, view),
        pages_text::of(&rows.pages, view),
    ]
    .join("\n")
}
