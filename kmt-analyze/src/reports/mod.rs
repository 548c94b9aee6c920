//! Reports: one folder each, and one line each in the registry.
//!
//! A report has its options, its rows and its screen in a file or folder of its own; `report` has the trait, `registry`
//! the list, `run` the pass for several of them. `common` has what reports share. The `pub use` lines below are the
//! face for programs that run a report by its type.

pub(crate) mod account;
pub(crate) mod anomalies;
pub(crate) mod areas;
pub(crate) mod balance;
pub(crate) mod baseline;
pub(crate) mod boot;
pub(crate) mod caches;
pub(crate) mod callers;
pub(crate) mod callgraph;
pub(crate) mod column_order;
pub(crate) mod common;
pub(crate) mod compat;
pub(crate) mod crosscpu;
pub(crate) mod diff;
pub(crate) mod document;
pub(crate) mod events;
pub(crate) mod findings;
pub(crate) mod fragmentation;
pub(crate) mod grouped;
pub(crate) mod info;
#[cfg(all(test, feature = "dwarf"))]
pub(crate) mod json_schema;
pub(crate) mod latency;
pub(crate) mod leaks;
pub(crate) mod lifetimes;
pub(crate) mod memory;
pub(crate) mod output;
pub(crate) mod pages;
pub(crate) mod peak;
pub(crate) mod registry;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod sizes;
pub(crate) mod slabinfo;
pub(crate) mod summary;
pub(crate) mod tasks;
pub(crate) mod timeline;
pub(crate) mod waste;
pub(crate) mod what_if;
pub(crate) mod who;

pub use crate::render::look::Look;
pub use crate::render::screen::{Screen, page};
pub use anomalies::AnomalyReport;
pub use caches::Caches;
pub use callers::Callers;
pub use callgraph::CallGraph;
pub use common::{Context, ReportContext, View};
pub use crosscpu::CrossCpuReport;
pub use events::Events;
pub use findings::Findings;
pub use fragmentation::Fragmentation;
pub use grouped::Grouped;
pub use latency::Latency;
pub use leaks::Leaks;
pub use lifetimes::{Lifetimes, Temporary};
pub use pages::Pages;
pub use peak::PeakReport;
pub use registry::{Entry, REPORTS, ReportGroup};
pub use report::{AnyReport, Pending, Refusable, Report};
pub use run::{collect, needs};
pub use sizes::Sizes;
pub use slabinfo::SlabInfo;
pub use summary::{Summary, SummaryRows};
pub use tasks::TaskReport;
pub use timeline::TimelineReport;
pub use waste::WasteReport;
pub use what_if::WhatIf;
pub use who::WhoReport;
