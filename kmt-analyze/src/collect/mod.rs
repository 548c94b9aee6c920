//! Collectors: gather more than sums by site, in one pass.
//!
//! A [`Collector`] describes the data; [`Collectors::add`] returns a [`Handle`] for it, and [`Collected::get`] its
//! result. Events that no collector needs cost nothing.

pub mod amount;
pub mod anomalies;
pub mod calls;
mod collector;
pub mod counts;
pub mod crosscpu;
pub mod fallbacks;
pub mod flows;
pub mod groups;
pub mod growth;
pub mod histogram;
pub mod kin;
pub mod life_groups;
pub mod lifetimes;
pub mod mixing;
pub mod moments;
pub mod occupancy;
mod occupancy_sums;
pub mod page_groups;
pub mod page_stacks;
pub mod page_use;
mod parts;
pub mod peak;
pub mod reasons;
pub mod replay;
mod set;
pub mod spool;
mod stack_join;
pub mod stalls;
pub mod step_row;
pub mod steps;
pub(crate) mod sums;
pub mod task_kmalloc;
pub mod tasks;
pub mod timeline;
pub mod unmatched;
pub mod who;

pub use anomalies::Anomalies;
pub use calls::Calls;
pub use collector::{Collector, Route, Share};
pub use crosscpu::CrossCpu;
pub use fallbacks::Fallbacks;
pub use groups::Groups;
pub use growth::Growth;
pub use kin::Kin;
pub use life_groups::LifeGroups;
pub use lifetimes::Lifetimes;
pub use mixing::Mixing;
pub use moments::Moments;
pub use occupancy::Occupancy;
pub use page_groups::PageGroups;
pub use page_stacks::PageStacks;
pub use page_use::PageUse;
pub use peak::Peak;
pub use reasons::Reasons;
pub use replay::Replay;
pub use set::{Collected, Collectors, Handle};
pub use spool::{LifeSpool, Object, Objects};
pub use stalls::Stalls;
pub use steps::Steps;
pub use task_kmalloc::TaskKmalloc;
pub use tasks::Tasks;
pub use timeline::Timeline;
pub use unmatched::Unmatched;
pub use who::Who;

#[cfg(test)]
mod partition_tests;
#[cfg(test)]
mod tests;
