//! What reports share: the selection, what numbers rest on, bounds, names, order of rows.

pub mod basis;
pub mod cells;
pub mod context;
pub mod known;
pub mod labels;
pub mod live_bounds;
pub mod page_sums;
pub mod recorded;
pub mod rows;
pub mod shown;
pub mod sorting;
pub mod stated;
pub mod trust;

pub use context::{Context, View};
