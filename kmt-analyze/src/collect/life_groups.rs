//! Lifetimes by site, cache and allocating origin: lifetimes by any property of an allocation are made of them.

use std::collections::HashMap;

use super::collector::SumCollector;
use super::groups::Group;
use super::lifetimes::CallerLives;
use super::sums::sums;
use crate::int_hash::IntHash;
use crate::ledger::{Closed, Interests, Receiver};

/// Collects lifetimes by site, cache and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifeGroups;

impl SumCollector for LifeGroups {
    type Sums = LifeGroupSums;

    fn interests(&self) -> Interests {
        Interests::LIVES
    }
}

/// Lives of all groups.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LifeGroupSums(pub HashMap<Group, CallerLives, IntHash>);

sums!(LifeGroupSums: 0);

impl Receiver for LifeGroupSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        let group = Group { site: closed.life.site, cache: closed.cache, origin: closed.life.origin };
        self.0.entry(group).or_default().add(closed);
    }
}
