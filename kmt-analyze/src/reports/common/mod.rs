//! Code shared by reports: selection, recorded events, bounds, names, order of rows.

pub mod ages;
pub mod basis;
pub mod cells;
pub mod context;
pub mod date;
pub mod folded;
pub mod labels;
pub mod lead;
pub mod lost_before;
pub mod page_sums;
pub mod report_context;
pub mod ring;
pub mod rows;
pub mod sorting;
pub mod stated;
pub mod trust;

pub use context::{Context, View};
pub use report_context::ReportContext;
