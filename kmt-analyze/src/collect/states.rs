//! States of collectors in a pass: each event goes only to the states that need it.

use std::any::Any;

use super::collector::{Collector, PassFacts};
use crate::ledger::Interests;
use crate::ledger::batch::Batch;

/// States of some collectors, with the numbers of the collectors.
#[derive(Default)]
pub struct States(Vec<(usize, Box<dyn AnyState>)>);

impl States {
    /// States of all collectors, in their order.
    pub(super) fn new(states: impl Iterator<Item = Box<dyn AnyState>>) -> Self {
        Self(states.enumerate().collect())
    }

    /// Delivers events to each state.
    pub fn take(&mut self, batch: &Batch) {
        self.0.iter_mut().for_each(|(_, state)| state.take(batch));
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that take as long as many others together, and the others.
    pub fn by_weight(self) -> (Self, Self) {
        let (heavy, light) = self.0.into_iter().partition(|(_, state)| state.is_heavy());
        (Self(heavy), Self(light))
    }

    /// The states in `count` groups.
    pub fn split(self, count: usize) -> Vec<Self> {
        let mut groups: Vec<Self> = (0..count).map(|_| Self::default()).collect();
        for (state, group) in self.0.into_iter().zip((0..count).cycle()) {
            if let Some(group) = groups.get_mut(group) {
                group.0.push(state);
            }
        }
        groups
    }

    /// The states of all groups.
    pub fn join(groups: impl IntoIterator<Item = Self>) -> Self {
        let mut all: Vec<_> = groups.into_iter().flat_map(|group| group.0).collect();
        all.sort_by_key(|(number, _)| *number);
        Self(all)
    }

    /// Results of all collectors, in their order.
    pub(super) fn finish(self) -> impl Iterator<Item = Box<dyn Any>> {
        self.0.into_iter().map(|(_, state)| state.finish())
    }
}

/// State of a collector of any type.
pub(super) trait AnyState: Send {
    fn is_heavy(&self) -> bool;
    fn take(&mut self, batch: &Batch);
    fn finish(self: Box<Self>) -> Box<dyn Any>;
}

/// State of a collector, and the events that it receives.
struct State<C: Collector> {
    state: C::State,
    interests: Interests,
}

/// Begins the state of a collector.
pub(super) fn begin<C: Collector>(collector: &C, facts: &PassFacts) -> Box<dyn AnyState> {
    let interests = if facts.has_stacks { C::INTERESTS } else { C::INTERESTS - Interests::STACKS };
    Box::new(State::<C> { state: collector.begin(facts), interests })
}

impl<C: Collector> AnyState for State<C> {
    fn is_heavy(&self) -> bool {
        C::IS_HEAVY
    }

    fn take(&mut self, batch: &Batch) {
        batch.deliver(self.interests, C::IN_ORDER, &mut self.state);
    }

    fn finish(self: Box<Self>) -> Box<dyn Any> {
        Box::new(C::finish(self.state))
    }
}
