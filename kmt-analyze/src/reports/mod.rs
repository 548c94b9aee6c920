//! Reports: one folder each, and one line each in the registry.

pub mod account;
pub mod all;
pub mod anomalies;
pub mod caches;
pub mod callers;
pub mod callgraph;
pub mod common;
pub mod compat;
pub mod crosscpu;
pub mod diff;
pub mod document;
pub mod events;
pub mod findings;
pub mod fragmentation;
pub mod grouped;
pub mod info;
#[cfg(test)]
mod keys_doc;
pub mod latency;
pub mod leaks;
pub mod lifetimes;
pub mod output;
pub mod pages;
pub mod peak;
pub mod registry;
pub mod report;
pub mod run;
pub mod sizes;
pub mod slabinfo;
pub mod summary;
pub mod tasks;
pub mod timeline;
pub mod what_if;
pub mod who;
