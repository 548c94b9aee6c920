//! Sums by site, cache and allocating origin: sums by any property of an allocation are made of them.

use std::collections::{BTreeMap, HashMap};

use super::collector::SumCollector;
use super::sums::{Sums, grown};
use crate::int_hash::IntHash;
use crate::ledger::totals::Totals;
use crate::ledger::{Closed, Interests, Receiver};
use crate::stream::NameId;

/// Collects sums by site, cache and origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups;

impl SumCollector for Groups {
    type Sums = GroupSums;

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

impl Sums for GroupSums {
    fn absorb(&mut self, other: Self) {
        other.iter().for_each(|(group, totals)| *self.of(*group) += totals);
    }
}

/// Equal if all groups have the same sums.
impl PartialEq for GroupSums {
    fn eq(&self, other: &Self) -> bool {
        let sums = |groups: &Self| {
            groups.iter().map(|(group, totals)| (*group, *totals)).collect::<BTreeMap<_, _>>()
        };
        sums(self) == sums(other)
    }
}

impl Receiver for GroupSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        let group = Group { site: closed.life.site, cache: closed.cache, origin: closed.life.origin };
        *self.of(group) += &closed.totals();
    }
}
