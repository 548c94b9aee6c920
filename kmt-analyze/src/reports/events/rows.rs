//! Counts and rates of events.

use std::collections::BTreeMap;

use serde::Serialize;

use super::counts::{CountCell, CountedEvents};
use crate::reports::common::ReportContext;
use crate::reports::common::rows::text;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventRows {
    /// Number of events.
    pub events_total: u64,
    /// Counts by `system:event`.
    pub events: BTreeMap<String, EventCount>,
    /// Number of cells, including those beyond the limit of rows.
    pub cells_total: usize,
    /// Counts by event, task and CPU.
    pub cells: Vec<CellRow>,
}

/// Count and rate of one event.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventCount {
    /// Number of events.
    pub events: u64,
    /// Events per second; `null`: the clock counts ticks, or the selected time has no length.
    pub events_per_second: Option<f64>,
}

/// Count of one event, task and CPU.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CellRow {
    /// `system:event`.
    pub event: String,
    /// Thread id.
    pub pid: i32,
    /// Name of the task; `null`: unknown.
    pub comm: Option<String>,
    /// Number of the CPU.
    pub cpu: u32,
    /// Count and rate.
    #[serde(flatten)]
    pub count: EventCount,
}

/// Rows of the selected events.
pub fn compute(context: &ReportContext<'_, '_>) -> EventRows {
    let counts = CountedEvents::of(context);
    let count = |events| EventCount { events, events_per_second: counts.rate(events) };
    let names = context.session.names();
    let end = context.selection.span(context.session).1;
    let event = |cell: &CountCell| {
        let class = context.session.trace.schema().class(cell.class as usize);
        class.map_or("?".to_owned(), |class| format!("{}:{}", class.system, class.name))
    };
    let cell = |(cell, &events): (&CountCell, &u64)| CellRow {
        event: event(cell),
        pid: cell.pid,
        comm: names.at(cell.pid, end).map(text),
        cpu: cell.cpu,
        count: count(events),
    };
    let by_event = counts.by_name(event);
    EventRows {
        events_total: counts.cells.values().sum(),
        events: by_event.iter().map(|(name, &events)| (name.clone(), count(events))).collect(),
        cells_total: counts.cells.len(),
        cells: counts.cells.iter().take(context.limit).map(cell).collect(),
    }
}
