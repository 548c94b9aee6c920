//! The collectors of a pass, their handles and results.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

use super::collector::{Collector, PassFacts};
use super::states::{self, AnyState, States};
use crate::ledger::Interests;

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
        states::begin(self, facts)
    }
}
