//! One file a report: from options to output.

pub mod caches;
pub mod callers;
pub mod dump;
pub mod follow;
pub mod info;
pub mod session;
pub mod names;
pub mod selection;
pub mod sorting;
pub mod trust;
pub mod summary;
