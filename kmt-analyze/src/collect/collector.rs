//! Collectors gather more than sums by site: one state each, begun before a pass and finished after it.

use crate::ledger::{Interests, Receiver, Rules};

/// Description of data to collect in a pass.
///
/// A pass begins a state, delivers its events to it, and finishes it. Equal collectors of one type share their state.
pub trait Collector: PartialEq + 'static {
    /// Receives the events of the pass.
    type State: Receiver + Send + 'static;
    /// Result of the pass.
    type Output: 'static;

    /// Events that the state receives.
    const INTERESTS: Interests;

    /// True if events of several methods come in order. Else only those of each method do: those of several methods come
    /// one method after the other.
    const IN_ORDER: bool = false;

    /// True if it takes as long as many others together: it gets a core of its own, or that of the ledger.
    const IS_HEAVY: bool = false;

    /// The state before the first event.
    fn begin(&self, facts: &PassFacts) -> Self::State;

    /// The result, after the last event.
    fn finish(state: Self::State) -> Self::Output;
}

/// A collector whose result is its state.
pub trait StateCollector: PartialEq + 'static {
    /// Receives the events of the pass.
    type State: Receiver + Default + Send + 'static;

    /// Events that the state receives.
    const INTERESTS: Interests;

    /// True if events of several methods come in order.
    const IN_ORDER: bool = false;

    /// The state before the first event.
    fn begin(&self, _facts: &PassFacts) -> Self::State {
        Self::State::default()
    }
}

impl<C: StateCollector> Collector for C {
    type State = C::State;
    type Output = C::State;

    const INTERESTS: Interests = <C as StateCollector>::INTERESTS;
    const IN_ORDER: bool = <C as StateCollector>::IN_ORDER;

    fn begin(&self, facts: &PassFacts) -> C::State {
        StateCollector::begin(self, facts)
    }

    fn finish(state: C::State) -> C::State {
        state
    }
}

/// Facts that are known before a pass.
#[derive(Debug, Clone, Copy)]
pub struct PassFacts {
    /// Rules of the pass.
    pub rules: Rules,
    /// True if the trace has call stacks.
    pub has_stacks: bool,
}
