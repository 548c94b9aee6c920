//! Counts of the selected events.

use std::collections::BTreeMap;

use kmt_format::kernel::ClockUnit;

use crate::reports::common::ReportContext;

/// An event class, a task and a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountCell {
    /// Number of the class.
    pub class: u32,
    /// Thread id.
    pub pid: i32,
    /// Number of the CPU.
    pub cpu: u32,
}

/// Counts of the selected events, and the time in which they occurred.
pub struct CountedEvents {
    /// By class, task and CPU.
    pub cells: BTreeMap<CountCell, u64>,
    /// Length of the selected time; `None`: it is 0, or the clock's unit is not a part of a second.
    seconds: Option<f64>,
}

impl CountedEvents {
    /// Counts of a pass.
    pub fn of(context: &ReportContext<'_, '_>) -> Self {
        let analysis = context.analysis;
        let (session, selection) = (context.session, context.selection);
        let interner = &analysis.interner;
        let mut cells = BTreeMap::new();
        for &(class, number, events) in &analysis.event_counts {
            let Some(origin) = interner.origins.get(number) else { continue };
            if interner.selected.origins.get(number as usize).copied().unwrap_or(true) {
                *cells.entry(CountCell { class, pid: origin.pid, cpu: origin.cpu }).or_default() += events;
            }
        }
        let (first, last) = selection.span(session);
        let seconds = match session.unit() {
            ClockUnit::Nanoseconds => Some(last.saturating_sub(first) as f64 / 1e9).filter(|s| *s > 0.0),
            ClockUnit::Ticks => None,
        };
        Self { cells, seconds }
    }

    /// Events per second.
    pub fn rate(&self, events: u64) -> Option<f64> {
        self.seconds.map(|seconds| events as f64 / seconds)
    }

    /// Sums of cells with the same name.
    pub fn by_name(&self, name: impl Fn(&CountCell) -> String) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for (cell, events) in &self.cells {
            *sums.entry(name(cell)).or_default() += events;
        }
        sums
    }
}
