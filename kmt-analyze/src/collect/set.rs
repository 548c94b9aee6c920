//! The collectors of a pass, their handles and results.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

use super::collector::{Collector, Share};
use super::parts::{AnyPart, Part, Parts};
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

    /// Parts that receive the events of one partition.
    pub fn partition(&self, share: &Share) -> Parts {
        Parts::new(self.all.iter().map(|c| c.any_part(share)))
    }

    /// Results of the parts of all partitions.
    pub fn merge(&self, partitions: Vec<Parts>) -> Collected {
        let mut columns: Vec<Vec<Box<dyn AnyPart>>> = self.all.iter().map(|_| Vec::new()).collect();
        for parts in partitions {
            columns.iter_mut().zip(parts.into_parts()).for_each(|(column, part)| column.push(part));
        }
        let merged = self.all.iter().zip(columns).map(|(collector, parts)| collector.any_merge(parts));
        Collected { outputs: merged.collect() }
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
    fn any_part(&self, share: &Share) -> Part;
    fn any_merge(&self, parts: Vec<Box<dyn AnyPart>>) -> Box<dyn Any>;
}

impl<C: Collector> AnyCollector for C {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn interests(&self) -> Interests {
        C::INTERESTS
    }

    fn any_part(&self, share: &Share) -> Part {
        Part {
            index: 0,
            interests: if share.has_stacks { C::INTERESTS } else { C::INTERESTS - Interests::STACKS },
            route: C::ROUTE,
            is_heavy: C::IS_HEAVY,
            part: Box::new(self.partition(share)),
        }
    }

    fn any_merge(&self, parts: Vec<Box<dyn AnyPart>>) -> Box<dyn Any> {
        // All parts were made by this collector: they have this type, and there is at least one.
        let mut parts = parts.into_iter().filter_map(|part| part.into_any().downcast().ok().map(|p| *p));
        match parts.next() {
            Some(first) => Box::new(self.merge(first, parts.collect())),
            None => Box::new(()),
        }
    }
}
