//! Code shared by reports: selection, recorded events, bounds, names, order of rows.
//!
//! `context` and `report_context` have the trace and the results of a pass; `basis` the events that a report needs,
//! `stated` and `trust` the selection and how far numbers can be trusted. `labels`, `rows`, `cells`, `lead` and
//! `sorting` are for rows and screens.

pub mod ages;
pub mod basis;
pub mod cells;
pub mod context;
pub mod date;
pub mod labels;
pub mod lead;
pub mod lost_before;
pub mod page_sums;
pub mod record_again;
pub mod report_context;
pub mod ring;
pub mod rows;
pub mod sliced;
pub mod sorting;
pub mod stated;
pub mod trust;

pub use context::{Context, View};
pub use report_context::ReportContext;
