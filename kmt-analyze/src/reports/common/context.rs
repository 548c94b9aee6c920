//! The trace and the selection that a report is about.

use kmt_format::kernel::ClockUnit;

use crate::pass::selection::Selection;
use crate::trace::session::Session;

/// The trace and the selection that a report is about.
#[derive(Clone, Copy)]
pub struct Context<'s, 'd> {
    /// The trace.
    pub session: &'s Session<'d>,
    /// What is counted.
    pub selection: &'s Selection,
    /// At most so many rows of each table.
    pub limit: usize,
}

impl Context<'_, '_> {
    /// How its rows are shown to people.
    pub fn view(&self) -> View {
        View {
            unit: self.session.unit(),
            start: self.session.first_time().unwrap_or(0),
            is_lossy: self.session.losses.any(),
            limit: self.limit,
        }
    }
}

/// How rows are shown to people.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Unit of times.
    pub unit: ClockUnit,
    /// Time of the first event.
    pub start: u64,
    /// Events were lost.
    pub is_lossy: bool,
    /// At most so many rows of each table.
    pub limit: usize,
}
