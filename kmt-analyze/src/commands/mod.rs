//! One file a report: from options to output.

pub mod caches;
pub mod callers;
pub mod dump;
pub mod follow;
pub mod info;
pub mod session;
pub mod slab_report;
pub mod summary;
