//! Sums by site, cache and allocating origin: sums by any property of an allocation are made of them.

use std::collections::HashMap;

use super::collector::StateCollector;
use super::sums::grown;
use crate::int_hash::IntHash;
use crate::ledger::totals::Totals;
use crate::ledger::{Closed, Interests, Receiver};
use crate::stream::NameId;

/// Collects sums by site, cache and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups;

impl StateCollector for Groups {
    type State = GroupSums;

    const INTERESTS: Interests = Interests::LIVES;
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
#[derive(Debug, Default)]
pub struct GroupSums {
    totals: Vec<Totals>,
    numbers: HashMap<Group, u32, IntHash>,
    /// By site, the group that was last added to, and its number: often the next one too.
    last: Vec<Option<(Group, u32)>>,
}

impl GroupSums {
    /// Groups with their sums.
    pub fn iter(&self) -> impl Iterator<Item = (&Group, &Totals)> {
        self.numbers.iter().filter_map(|(group, number)| Some((group, self.totals.get(*number as usize)?)))
    }

    #[inline]
    fn of(&mut self, group: Group) -> &mut Totals {
        let last = grown(&mut self.last, group.site);
        let number = match last {
            Some((same, number)) if *same == group => *number,
            _ => {
                let next = self.totals.len() as u32;
                let number = *self.numbers.entry(group).or_insert(next);
                *last = Some((group, number));
                number
            }
        };
        grown(&mut self.totals, number)
    }
}

impl Receiver for GroupSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        let group = Group { site: closed.life.site, cache: closed.cache, origin: closed.life.origin };
        *self.of(group) += &closed.totals();
    }
}
