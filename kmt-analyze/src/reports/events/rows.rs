//! Counts and rates of events.

use std::collections::BTreeMap;

use serde::Serialize;

use super::counts::{CountCell, CountedEvents};
use crate::limits::ROWS_MAX;
use crate::reports::common::Context;
use crate::reports::common::ReportContext;
use crate::reports::common::rows::text;
use crate::reports::common::shown::shown;

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
    /// Counts by event, the largest first.
    #[serde(skip)]
    pub by_event: CountTable,
    /// Counts by task, the largest first.
    #[serde(skip)]
    pub by_task: CountTable,
    /// Counts by CPU, the largest first.
    #[serde(skip)]
    pub by_cpu: CountTable,
    /// All events per second.
    #[serde(skip)]
    pub per_second: Option<f64>,
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

/// A table of counts.
#[derive(Debug)]
pub struct CountTable {
    /// Number of rows, including those beyond the limit of rows.
    pub total: usize,
    /// Names and counts.
    pub rows: Vec<(String, EventCount)>,
}

/// Rows of the selected events.
pub fn of(context: &ReportContext<'_, '_>) -> EventRows {
    let counts = CountedEvents::of(context);
    let count = |events| EventCount { events, events_per_second: counts.rate(events) };
    let (labels, names) = (context.labels(), context.session.names());
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
    let table = |sums| table(context, &counts, sums);
    let events_total = counts.cells.values().sum();
    EventRows {
        events_total,
        per_second: counts.rate(events_total),
        events: by_event.iter().map(|(name, &events)| (name.clone(), count(events))).collect(),
        cells_total: counts.cells.len(),
        cells: counts.cells.iter().take(context.limit.max(ROWS_MAX)).map(cell).collect(),
        by_event: table(by_event),
        by_task: table(counts.by_name(|cell| labels.task(cell.pid))),
        by_cpu: table(counts.by_name(|cell| format!("{:3}", cell.cpu))),
    }
}

fn table(context: &Context<'_, '_>, counts: &CountedEvents, sums: BTreeMap<String, u64>) -> CountTable {
    let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let total = sums.len();
    sums.truncate(shown(Some(context.limit), total));
    let count = |events| EventCount { events, events_per_second: counts.rate(events) };
    CountTable { total, rows: sums.into_iter().map(|(name, events)| (name, count(events))).collect() }
}
