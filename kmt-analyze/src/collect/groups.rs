//! Sums by site, cache and allocating origin: sums by any property of an allocation are made of them.

use std::collections::HashMap;

use super::collector::SumCollector;
use super::sums::sums;
use crate::int_hash::IntHash;
use crate::ledger::totals::Totals;
use crate::ledger::{Closed, Interests, Receiver};
use crate::stream::NameId;

/// Collects sums by site, cache and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups;

impl SumCollector for Groups {
    type Sums = GroupSums;

    fn interests(&self) -> Interests {
        Interests::LIVES
    }
}

/// Common properties of some allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// Number of the site.
    pub site: u32,
    /// Cache, if an event names it.
    pub cache: Option<NameId>,
    /// Number of the CPU and task that allocated.
    pub origin: u32,
}

/// Sums of all groups.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GroupSums(pub HashMap<Group, Totals, IntHash>);

sums!(GroupSums: 0);

impl Receiver for GroupSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        let group = Group { site: closed.life.site, cache: closed.cache, origin: closed.life.origin };
        *self.0.entry(group).or_default() += &closed.totals();
    }
}
