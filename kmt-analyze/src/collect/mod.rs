//! Collectors: gather more than sums by site, in one pass.
//!
//! A [`Collector`] describes the data; [`Collectors::add`] returns a [`Handle`] for it, and [`Collected::get`] its
//! result. Events that no collector needs cost nothing.

pub(crate) mod anomalies;
pub(crate) mod boot;
mod collector;
pub(crate) mod fallbacks;
pub(crate) mod frees;
pub(crate) mod groups;
pub(crate) mod growth;
pub(crate) mod histogram;
pub(crate) mod lifetimes;
pub(crate) mod occupancy;
mod occupancy_sums;
pub(crate) mod page_use;
pub(crate) mod peak;
pub(crate) mod replay;
pub(crate) mod sorted;
pub(crate) mod spool;
pub(crate) mod stalls;
mod step_row;
pub(crate) mod steps;
pub(crate) mod sums;
pub(crate) mod tasks;
pub(crate) mod timeline;
pub(crate) mod who;

pub use anomalies::Anomalies;
pub use boot::BootMemory;
pub(crate) use collector::States;
pub use collector::{Collected, Collector, Collectors, Handle, PassFacts};
pub use fallbacks::{Fallbacks, Mixing};
pub use frees::{CrossCpu, Reasons, Unmatched};
pub use groups::{AreaGroups, Groups, PageGroups};
pub use growth::Growth;
pub use lifetimes::{LifeGroups, Lifetimes};
pub use occupancy::Occupancy;
pub use page_use::{PageFailures, PageStacks, PageUse};
pub use peak::{Moments, Peak};
pub use replay::Replay;
pub use spool::{LifeSpool, Object, SpooledObjects};
pub use stalls::Stalls;
pub use steps::Steps;
pub use sums::Calls;
pub use tasks::{TaskKmalloc, TaskLifetimes, Tasks};
pub use timeline::Timeline;
pub use who::{Who, WhoFrame};

pub use crate::ledger::lives::{End, Free, Life, NoLife};
pub use crate::ledger::totals::FrameTotals;
pub use crate::ledger::{
    Area, AreaKind, Change, Closed, ClosedArea, ClosedFrames, FoldedLives, FoldedPages, Interests, PageEvent,
    Receiver, Rules, SideEvent, SiteInfo,
};
pub use crate::stream::{Api, Op, Origin, PageSite, SideEventKind};

#[cfg(test)]
mod tests;
