//! The file apart from its events: opening, losses, names of tasks, the kernel, snapshots, times.
//!
//! Most of it comes from headers, metadata and snapshots of a file. `open` makes a `session`, which has the rest;
//! `names` decides names of symbols, caches and tasks for all outputs. Passes, reports and exports depend on it, and it
//! depends on none of them.

pub mod accounts;
pub mod ages;
pub mod aliases;
pub mod allocinfo;
pub mod boot_marks;
pub mod busy_tasks;
pub mod cgroups;
pub mod clock;
pub mod comms;
pub mod cpu_nodes;
pub mod event_names;
pub mod faults;
pub mod folded;
pub mod follow;
pub mod loss_spans;
pub mod loss_times;
pub mod losses;
pub mod meminfo;
pub mod named;
pub mod names;
pub mod object_addresses;
pub mod oom_log;
pub mod open;
pub mod parts;
pub mod session;
pub mod slabinfo;
pub mod sliced;
pub mod time_range;
pub mod unknown;
