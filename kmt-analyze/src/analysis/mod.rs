//! Numbers from events. Nothing here prints, and nothing fails: what is damaged or uncertain becomes a number.

pub mod addresses;
pub mod caches;
pub mod direct_map;
pub mod ledger;
pub mod losses;
pub mod pass;
pub mod sites;
pub mod totals;
