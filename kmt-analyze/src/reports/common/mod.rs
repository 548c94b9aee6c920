//! Code shared by reports: selection, recorded events, bounds, names, order of rows.

pub mod answer;
pub mod basis;
mod candidates;
pub mod cells;
pub mod changes;
pub mod context;
pub mod date;
pub mod difference;
pub mod early_end;
pub mod labels;
pub mod lead;
pub mod live_bounds;
pub mod lost_before;
pub mod page_callers;
pub mod page_sums;
pub mod recorded_sums;
mod report_context;
pub mod ring;
pub mod rows;
pub mod shown;
pub mod sorting;
pub mod stated;
pub mod symbol;
pub mod trust;
pub mod whole_time;

pub use context::{Context, View};
pub use report_context::ReportContext;
