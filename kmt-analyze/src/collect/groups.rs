//! Sums by site, cache and allocating origin: sums by any property of an allocation are made of them.

use std::collections::HashMap;

use super::collector::{Collector, Share};
use super::sums::{Sums, merged};
use crate::int_hash::IntHash;
use crate::ledger::totals::Totals;
use crate::ledger::{Closed, Interests, Receiver};
use crate::stream::NameId;

/// Collects sums by site, cache and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups;

impl Collector for Groups {
    type Part = GroupSums;
    type Output = GroupSums;

    fn interests(&self) -> Interests {
        Interests::LIVES
    }

    fn partition(&self, _: &Share) -> GroupSums {
        GroupSums::default()
    }

    fn merge(&self, first: GroupSums, others: Vec<GroupSums>) -> GroupSums {
        merged(first, others)
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

impl Sums for GroupSums {
    fn absorb(&mut self, other: Self) {
        for (group, totals) in other.0 {
            *self.0.entry(group).or_default() += &totals;
        }
    }
}

impl Receiver for GroupSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        let group = Group { site: closed.life.site, cache: closed.cache, origin: closed.life.origin };
        *self.0.entry(group).or_default() += &closed.totals();
    }
}
