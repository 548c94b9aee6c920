//! Computing what reports print. Nothing here prints, and nothing here reads files.

pub mod account;
pub mod aliases;
pub mod amount;
pub mod buddy;
pub mod caches;
pub mod comms;
pub mod difference;
pub mod direct_map;
pub mod figures;
pub mod filter;
pub mod int_hash;
pub mod kernel;
pub mod leaks;
pub mod ledger;
pub mod legacy;
pub mod losses;
pub mod page_callers;
pub mod page_totals;
pub mod pass;
pub mod perf_kmem;
pub mod ranges;
pub mod sinks;
pub mod size_classes;
pub mod slabinfo;
pub mod term;
pub mod totals;
