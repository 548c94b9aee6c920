//! Collectors: gather more than sums by site, in one pass.
//!
//! A [`Collector`] describes the data; [`Collectors::add`] returns a [`Handle`] for it, and [`Collected::get`] its
//! result. Events that no collector needs cost nothing.

pub(crate) mod amount;
pub(crate) mod anomalies;
pub(crate) mod area_groups;
pub(crate) mod calls;
mod collector;
pub(crate) mod crosscpu;
pub(crate) mod fallbacks;
pub(crate) mod flows;
pub(crate) mod groups;
pub(crate) mod growth;
pub(crate) mod histogram;
pub(crate) mod life_groups;
pub(crate) mod lifetimes;
pub(crate) mod mixing;
pub(crate) mod moments;
pub(crate) mod occupancy;
mod occupancy_sums;
pub(crate) mod page_failures;
pub(crate) mod page_groups;
mod page_needs;
pub(crate) mod page_stacks;
pub(crate) mod page_use;
pub(crate) mod peak;
pub(crate) mod reasons;
pub(crate) mod replay;
mod set;
pub(crate) mod sorted;
pub(crate) mod spool;
pub(crate) mod stalls;
mod states;
pub(crate) mod step_row;
pub(crate) mod steps;
pub(crate) mod sums;
pub(crate) mod survival;
pub(crate) mod task_kmalloc;
pub(crate) mod task_lifetimes;
pub(crate) mod tasks;
pub(crate) mod timeline;
pub(crate) mod unmatched;
pub(crate) mod who;
pub(crate) mod who_frame;

pub use anomalies::Anomalies;
pub use area_groups::AreaGroups;
pub use calls::Calls;
pub use collector::{Collector, PassFacts};
pub use crosscpu::CrossCpu;
pub use fallbacks::Fallbacks;
pub use groups::Groups;
pub use growth::Growth;
pub use life_groups::LifeGroups;
pub use lifetimes::Lifetimes;
pub use mixing::Mixing;
pub use moments::Moments;
pub use occupancy::Occupancy;
pub use page_failures::PageFailures;
pub use page_groups::PageGroups;
pub use page_stacks::PageStacks;
pub use page_use::PageUse;
pub use peak::Peak;
pub use reasons::Reasons;
pub use replay::Replay;
pub use set::{Collected, Collectors, Handle};
pub use spool::{LifeSpool, Object, SpooledObjects};
pub use stalls::Stalls;
pub(crate) use states::States;
pub use steps::Steps;
pub use task_kmalloc::TaskKmalloc;
pub use task_lifetimes::TaskLifetimes;
pub use tasks::Tasks;
pub use timeline::Timeline;
pub use unmatched::Unmatched;
pub use who::Who;
pub use who_frame::WhoFrame;

pub use crate::ledger::lives::{End, Free, Life, NoLife};
pub use crate::ledger::page_totals::FrameTotals;
pub use crate::ledger::{
    Area, AreaKind, Change, Closed, ClosedArea, ClosedFrames, Interests, PageEvent, Receiver, Rules,
    SideEvent, SiteInfo,
};
pub use crate::stream::{Api, Op, Origin, PageSite, SideEventKind};

#[cfg(test)]
mod tests;
