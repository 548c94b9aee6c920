//! Lifetimes by site, cache and allocating origin: lifetimes by any property of an allocation are made of them.

use std::collections::HashMap;

use super::collector::{Collector, Share};
use super::groups::Group;
use super::lifetimes::CallerLives;
use super::sums::{Sums, merged};
use crate::int_hash::IntHash;
use crate::ledger::{Closed, Interests, Receiver};

/// Collects lifetimes by site, cache and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifeGroups;

impl Collector for LifeGroups {
    type Part = LifeGroupSums;
    type Output = LifeGroupSums;

    fn interests(&self) -> Interests {
        Interests::LIVES
    }

    fn partition(&self, _: &Share) -> LifeGroupSums {
        LifeGroupSums::default()
    }

    fn merge(&self, first: LifeGroupSums, others: Vec<LifeGroupSums>) -> LifeGroupSums {
        let mut out = merged(first, others);
        out.0.values_mut().for_each(|lives| lives.freed_by.sort());
        out
    }
}

/// Lives of all groups.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LifeGroupSums(pub HashMap<Group, CallerLives, IntHash>);

impl Sums for LifeGroupSums {
    fn absorb(&mut self, other: Self) {
        for (group, lives) in other.0 {
            self.0.entry(group).or_default().absorb(lives);
        }
    }
}

impl Receiver for LifeGroupSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        let group = Group { site: closed.life.site, cache: closed.cache, origin: closed.life.origin };
        self.0.entry(group).or_default().add(closed);
    }
}
