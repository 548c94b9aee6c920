//! Parts of one partition: each event goes only to the parts that need it.

use std::any::Any;

use super::collector::Route;
use crate::ledger::batch::Batch;
use crate::ledger::{Interests, Receiver};

/// Parts of some collectors.
#[derive(Default)]
pub struct Parts(Vec<Part>);

/// Part of one collector.
pub(super) struct Part {
    /// Place of the collector.
    pub index: usize,
    pub interests: Interests,
    pub route: Route,
    pub is_heavy: bool,
    pub part: Box<dyn AnyPart>,
}

impl Parts {
    /// Parts, by the places of their collectors.
    pub(super) fn new(parts: impl Iterator<Item = Part>) -> Self {
        Self(parts.enumerate().map(|(index, part)| Part { index, ..part }).collect())
    }

    /// Delivers events to each part.
    pub fn take(&mut self, batch: &Batch) {
        for Part { interests, route, part, .. } in &mut self.0 {
            part.take(batch, *interests, *route != Route::Any);
        }
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that take as long as many others together, and the others.
    pub fn by_weight(self) -> (Self, Self) {
        let (heavy, light) = self.0.into_iter().partition(|part| part.is_heavy);
        (Self(heavy), Self(light))
    }

    /// The parts in `count` groups.
    pub fn split(self, count: usize) -> Vec<Self> {
        let mut groups: Vec<Self> = (0..count).map(|_| Self::default()).collect();
        for (part, group) in self.0.into_iter().zip((0..count).cycle()) {
            if let Some(group) = groups.get_mut(group) {
                group.0.push(part);
            }
        }
        groups
    }

    /// The parts of all groups.
    pub fn join(groups: impl IntoIterator<Item = Self>) -> Self {
        let mut all: Vec<_> = groups.into_iter().flat_map(|group| group.0).collect();
        all.sort_by_key(|part| part.index);
        Self(all)
    }

    pub(super) fn into_parts(self) -> impl Iterator<Item = Box<dyn AnyPart>> {
        self.0.into_iter().map(|part| part.part)
    }
}

/// A part of any type.
pub(super) trait AnyPart: Send {
    fn take(&mut self, batch: &Batch, wanted: Interests, in_order: bool);
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<R: Receiver + Send + 'static> AnyPart for R {
    fn take(&mut self, batch: &Batch, wanted: Interests, in_order: bool) {
        batch.deliver(wanted, in_order, self);
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
