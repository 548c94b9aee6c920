//! What a file holds besides its events, and how it is opened: losses, names of tasks, the kernel, snapshots, times.

pub mod aliases;
pub mod buddy;
pub mod comms;
pub mod event_names;
pub mod kernel;
pub mod losses;
pub mod open;
pub mod session;
pub mod slabinfo;
pub mod snapshots;
pub mod time_range;
pub mod unknown;
