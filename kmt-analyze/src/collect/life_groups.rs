//! Lifetimes by site, cache and allocating origin: lifetimes by any property of an allocation are made of them.

use std::collections::HashMap;

use super::collector::{PassFacts, StateCollector};
use super::groups::Group;
use super::lifetimes::CallerLives;
use super::survival::Horizon;
use crate::int_hash::IntHash;
use crate::ledger::{Closed, Interests, Receiver};

/// Collects lifetimes by site, cache and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifeGroups {
    /// Lifetimes with which those of the objects are compared, in the clock's unit.
    pub outlive: Option<[u64; 2]>,
}

impl StateCollector for LifeGroups {
    type State = LifeGroupSums;

    const INTERESTS: Interests = Interests::LIVES;

    fn begin(&self, facts: &PassFacts) -> LifeGroupSums {
        LifeGroupSums { horizon: Horizon::new(self.outlive, &facts.rules), ..LifeGroupSums::default() }
    }
}

/// Lives of all groups.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LifeGroupSums {
    /// By site, cache and origin.
    pub groups: HashMap<Group, CallerLives, IntHash>,
    horizon: Horizon,
}

impl Receiver for LifeGroupSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        if !closed.is_born {
            return;
        }
        let group = Group { site: closed.life.site, cache: closed.cache, origin: closed.life.origin };
        self.groups.entry(group).or_default().add(closed, &self.horizon);
    }
}
