//! Tests of kmt-analyze on captures: one program, so that what they share is linked once.

mod allocinfo;
mod anonymize;
mod attack;
mod cache_names;
mod charts;
mod cli;
mod diff_modules;
mod documents;
mod edit;
mod ended;
mod escaping;
mod export;
mod file_size;
mod findings;
#[cfg(feature = "dwarf")]
mod footprint;
mod fuzz_seeds;
mod generated;
mod groups;
mod honest;
mod hostile;
mod import;
mod joint;
mod latency_migration;
mod latency_rules;
mod later;
mod leaks;
mod library;
mod life_groups;
mod model;
mod page;
mod page_combinations;
mod page_frames;
mod page_groups;
mod passed_over;
mod properties;
mod ranges;
mod real_kernels;
mod registry;
mod reports;
mod screens;
mod selections;
#[cfg(feature = "dwarf")]
pub mod source;
mod stacks;
mod stalls;
mod standard_error;
mod stored;
#[path = "../support/mod.rs"]
mod support;
mod symbols;
mod task_names;
mod ticks;
mod unseen;
mod views;
mod waste;
