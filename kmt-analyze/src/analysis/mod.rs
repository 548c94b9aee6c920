//! Computing what reports print. Nothing here prints, and nothing here reads files.

pub mod account;
pub mod difference;
pub mod leaks;
pub mod legacy;
pub mod page_callers;
pub mod perf_kmem;
