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
use super::session::Session;
use super::sizes::Sizes;
use super::sorting::SortKey;
use super::summary::Summary;
use super::tasks::TaskLoad;
use super::timeline::{Course, Key};
use super::what_if::WhatIf;
use crate::failure::{Failure, Outcome, Result};

/// Prints every report, `limit` rows each.
pub fn run(session: &Session<'_>, selection: &Selection, limit: usize, as_json: bool) -> Result<Outcome> {
    if selection.filter(session).is_about_lifetimes() {
        return Err(Failure::new(
            "not all reports can select by lifetime: what is live at an instant has none yet",
        )
        .hint("lifetimes, callers, caches and timeline can"));
    }
    let sort = || vec![SortKey::Alloc];
    let reports: [&dyn Report; 17] = [
        &Summary,
        &Callers { sort: sort(), part: None },
        &Caches { sort: sort(), part: None },
        &Sizes { sort: sort() },
        &TaskLoad { sort: sort() },
        &Pages,
        &LifetimeTable { sort: vec![LifetimeKey::Count], bound: None },
        &PeakTable,
        &Course { by: Key::Kind, steps: 20, lines: 8 },
        &Leaks,
        &Fragmentation,
        &Latency::default(),
        &CrossCpu,
        &Anomalies,
        &CallGraph { min_percent: 5.0, ..CallGraph::default() },
        &WhatIf::usual(),
        &Events,
    ];
    parts::run(session, selection, Some(limit), as_json, &reports)
}
