//! The file apart from its events: opening, losses, names of tasks, the kernel, snapshots, times.

pub mod aliases;
pub mod allocinfo;
mod arrivals;
pub mod buddy;
pub mod cgroups;
pub mod changes;
pub mod clock;
pub mod comms;
pub mod cpu_nodes;
pub mod descendants;
pub mod event_args;
pub mod event_names;
pub mod faults;
pub mod follow;
pub mod lines;
pub mod losses;
pub mod meminfo;
pub mod named;
pub mod open;
pub mod rare_events;
pub mod session;
pub mod slabinfo;
pub mod snapshots;
pub mod task_states;
pub mod time_range;
pub mod unknown;
pub mod zoneinfo;
