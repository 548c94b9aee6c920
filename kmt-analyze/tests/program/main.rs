//! Tests of kmt-analyze on captures: one program, so that what they share is linked once.
//!
//! Where a new test goes: the first line of each module is what it tests. By what is tested:
//!
//! - a rule of every report, export or command: `honest`, `registry`, `lines`, `joint`, `repeated`, `reports`,
//!   `properties`, `later`
//! - one thing in all outputs: `cache_names`, `task_names`, `escaping`, `stacks`, `damaged`, `duplicates`, `followed`,
//!   `selected_alike` (one selection in reports, exports, page and dump)
//! - what is selected, grouped, sorted: `selections`, `groups`, `life_groups`, `page_groups`, `page_combinations`,
//!   `sorting`, `ticks`
//! - the figures of one report, against loops over the dump: `areas`, `stalls`, `latency_*`, `waste`, `page_frames`,
//!   `passed_over`, `views`, `baseline`, `allocinfo`, `balance`, `balance_*`, `cgroups`, `diff_modules`, `unseen`, `freed_again`
//! - a boot: `boot`, `before_clock`
//! - growth and its words: `findings`, `findings_*`, `leaks`, `old_survivors`, `generated`; the ledger itself: `model`
//! - sums in place of events: `survivors`, `survivor_reports`
//! - losses, cut recordings, recordings in several files: `lossy`, `ranges`, `ring`, `oom`, `parts`, `early_end`, `whole_time`, `perhaps`, `generated::lost_part`, `generated::part_of_time`
//! - what is read, and written again: `import`, `edit`, `sliced`, `anonymize`, `attack`, `symbols`, `stored`, `export`, `charts`,
//!   `page`; files of survivors and sums: `survivors`, `survivors_copied`
//! - source and code sizes: `source`, `real_kernels`, `debug_information`, `footprint`
//! - screens, words, hints, guide: `screens`, `first_screen`, `words`, `hints`, `commands`, `documents`
//! - the process and hostile input: `cli`, `ended`, `file_size`, `standard_error`, `hostile`, `fuzz_seeds`; the library:
//!   `library`
//!
//! Made for others: `slab_records` (records of a ring buffer), `survivor_pairs` (files of survivors, compared).

mod allocinfo;
mod anonymize;
mod areas;
mod attack;
mod balance;
mod balance_growth;
mod balance_pages;
mod balance_parts;
mod balance_pools;
mod balance_times;
mod balance_words;
mod baseline;
mod before_clock;
mod boot;
mod cache_names;
mod candidates;
mod cgroups;
mod charts;
mod cli;
mod commands;
mod damaged;
mod debug_information;
mod diff_losses;
mod diff_modules;
mod diff_pages;
mod documents;
mod duplicates;
mod early_end;
mod edit;
mod ended;
mod escaping;
mod export;
mod file_size;
mod findings;
mod findings_failures;
mod findings_waste;
mod first_screen;
mod followed;
#[cfg(feature = "dwarf")]
mod footprint;
mod freed_again;
mod fuzz_seeds;
mod generated;
mod groups;
mod hints;
mod honest;
mod hostile;
mod import;
mod joint;
mod latency_migration;
mod latency_rules;
mod later;
mod leak_makers;
mod leaks;
mod library;
mod life_groups;
mod lines;
mod lossy;
mod model;
mod old_survivors;
mod oom;
mod page;
mod page_combinations;
mod page_frames;
mod page_groups;
mod parts;
mod passed_over;
mod perhaps;
mod properties;
mod ranges;
mod real_kernels;
mod registry;
mod repeated;
mod reports;
mod ring;
mod screens;
mod selected_alike;
mod selections;
mod slab_copies;
mod slab_records;
mod sliced;
mod sorting;
#[cfg(feature = "dwarf")]
pub mod source;
mod stacks;
mod stalls;
mod standard_error;
mod stored;
#[path = "../support/mod.rs"]
mod support;
mod survivor_pairs;
mod survivor_reports;
mod survivors;
mod survivors_copied;
mod symbols;
mod task_names;
mod ticks;
mod unseen;
mod views;
mod waste;
mod whole_time;
mod words;
