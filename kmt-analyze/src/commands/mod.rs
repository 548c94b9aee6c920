//! One file a report: from options to output.

pub mod caches;
pub mod callers;
pub mod compat;
pub mod dump;
pub mod events;
pub mod follow;
pub mod info;
pub mod lifetimes;
pub mod names;
pub mod pages;
pub mod peak;
pub mod report;
pub mod selection;
pub mod session;
pub mod sizes;
pub mod sorting;
pub mod summary;
pub mod tasks;
pub mod timeline;
pub mod trust;
pub mod who;
