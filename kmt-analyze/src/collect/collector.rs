//! Collectors gather more than sums by site: one state each, begun before a pass and finished after it.
//!
//! A set of collectors belongs to a pass; a handle gives the typed result of one. Each event goes only to the states that need
//! it.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

use crate::ledger::batch::Batch;
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
fn begin<C: Collector>(collector: &C, facts: &PassFacts) -> Box<dyn AnyState> {
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

/// Typed key to the result of a collector that was added to a pass.
pub struct Handle<C> {
    index: usize,
    collector: PhantomData<fn() -> C>,
}

impl<C> Clone for Handle<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Handle<C> {}

impl<C> fmt::Debug for Handle<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.index)
    }
}

/// Collectors of a pass.
#[derive(Default)]
pub struct Collectors {
    all: Vec<Box<dyn AnyCollector>>,
}

impl Collectors {
    /// Adds a collector. An equal one shares its result.
    pub fn add<C: Collector>(&mut self, collector: C) -> Handle<C> {
        let is_equal = |other: &dyn AnyCollector| other.as_any().downcast_ref() == Some(&collector);
        let index = self.all.iter().position(|other| is_equal(&**other)).unwrap_or_else(|| {
            self.all.push(Box::new(collector));
            self.all.len() - 1
        });
        Handle { index, collector: PhantomData }
    }

    /// Events that the collectors need.
    pub fn interests(&self, has_stacks: bool) -> Interests {
        let all: Interests = self.all.iter().map(|collector| collector.interests()).collect();
        if has_stacks { all } else { all - Interests::STACKS }
    }

    /// States of all collectors before the first event.
    pub fn begin(&self, facts: &PassFacts) -> States {
        States::new(self.all.iter().map(|collector| collector.any_begin(facts)))
    }
}

impl fmt::Debug for Collectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collectors({})", self.all.len())
    }
}

/// Results of the collectors of a pass.
#[derive(Debug, Default)]
pub struct Collected {
    outputs: Vec<Box<dyn Any>>,
}

impl Collected {
    /// Results of all collectors of a pass, after its last event.
    pub fn new(states: States) -> Self {
        Self { outputs: states.finish().collect() }
    }

    /// The result of a collector.
    ///
    /// # Panics
    ///
    /// If the handle is of another pass: a handle belongs to the [`Collectors`] that returned it.
    pub fn get<C: Collector>(&self, handle: Handle<C>) -> &C::Output {
        let output = self.outputs.get(handle.index).and_then(|output| output.downcast_ref());
        match output {
            Some(output) => output,
            None => panic!("the handle of a collector was given to the result of another pass"),
        }
    }
}

/// A collector of any type.
trait AnyCollector {
    fn as_any(&self) -> &dyn Any;
    fn interests(&self) -> Interests;
    fn any_begin(&self, facts: &PassFacts) -> Box<dyn AnyState>;
}

impl<C: Collector> AnyCollector for C {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn interests(&self) -> Interests {
        C::INTERESTS
    }

    fn any_begin(&self, facts: &PassFacts) -> Box<dyn AnyState> {
        begin(self, facts)
    }
}
