//! `all`: every report over one pass.

use super::anomalies::Anomalies;
use super::caches::Caches;
use super::callers::Callers;
use super::callgraph::CallGraph;
use super::crosscpu::CrossCpu;
use super::events::Events;
use super::fragmentation::Fragmentation;
use super::latency::Latency;
use super::leaks::Leaks;
use super::lifetimes::{LifetimeKey, LifetimeTable};
use super::pages::Pages;
use super::parts::{self, Report};
use super::peak::PeakTable;
use super::selection::Selection;
use super::sizes::Sizes;
use super::slabinfo::SlabInfoTable;
use super::sorting::SortKey;
use super::summary::Summary;
use super::tasks::TaskLoad;
use super::timeline::{Course, Key};
use super::what_if::WhatIf;
use crate::failure::{Failure, Outcome, Result};
use crate::trace::session::Session;

/// Prints every report, `limit` rows each.
pub fn run(session: &Session<'_>, selection: &Selection, limit: usize, as_json: bool) -> Result<Outcome> {
    if selection.filter(session).is_about_lifetimes() {
        return Err(Failure::new(
            "not all reports can select by lifetime: what is live at an instant has none yet",
        )
        .hint("lifetimes, callers, caches and timeline can"));
    }
    let reports = reports();
    let reports: Vec<&dyn Report> = reports.iter().map(|report| &**report).collect();
    parts::run(session, selection, Some(limit), as_json, &reports)
}

/// Every report as it is without options.
fn reports() -> [Box<dyn Report>; 18] {
    let sort = || vec![SortKey::Alloc];
    [
        Box::new(Summary),
        Box::new(Callers { sort: sort(), part: None }),
        Box::new(Caches { sort: sort(), part: None }),
        Box::new(Sizes { sort: sort() }),
        Box::new(SlabInfoTable),
        Box::new(TaskLoad { sort: sort() }),
        Box::new(Pages),
        Box::new(LifetimeTable { sort: vec![LifetimeKey::Count], bound: None }),
        Box::new(PeakTable),
        Box::new(Course { by: Key::Kind, steps: 20, lines: 8 }),
        Box::new(Leaks),
        Box::new(Fragmentation),
        Box::new(Latency::default()),
        Box::new(CrossCpu),
        Box::new(Anomalies),
        Box::new(CallGraph { min_percent: 5.0, ..CallGraph::default() }),
        Box::new(WhatIf::usual()),
        Box::new(Events),
    ]
}

/// Names of [`reports`], in their order: those of the commands, but `events`, which rows of events are called.
const NAMES: [&str; 18] = [
    "summary",
    "callers",
    "caches",
    "sizes",
    "slabinfo",
    "tasks",
    "pages",
    "lifetimes",
    "peak",
    "timeline",
    "leaks",
    "fragmentation",
    "latency",
    "crosscpu",
    "anomalies",
    "callgraph",
    "what-if",
    "event-counts",
];

/// The report of that name.
pub fn report(name: &str) -> Result<Box<dyn Report>> {
    let found = NAMES.iter().zip(reports()).find(|(n, _)| **n == name);
    found.map(|(_, report)| report).ok_or_else(|| {
        Failure::new(format!("there is no report {name:?}"))
            .hint(format!("one of events, objects, call-sites, {}", NAMES.join(", ")))
    })
}
