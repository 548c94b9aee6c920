//! Sums that are added to each other field by field, and slab objects by their allocation stack.
//!
//! The macros make `Sums` of a struct from its fields, so that no field is forgotten. `Calls` needs recorded stacks.

use std::collections::HashMap;

use super::collector::{PassFacts, StateCollector};
use crate::int_hash::IntHash;
use crate::ledger::totals::{FrameTotals, Totals};
use crate::ledger::{Closed, Interests, Receiver};

/// A sum, or a collection of sums.
pub trait Sums {
    /// Adds other sums.
    fn absorb(&mut self, other: Self);
}

/// Types with `+=` for references.
macro_rules! added {
    ($($sums:ty)+) => {
        $(impl Sums for $sums {
            fn absorb(&mut self, other: Self) {
                *self += &other;
            }
        })+
    };
}

added!(Totals FrameTotals);

macro_rules! saturating {
    ($($number:ty)+) => {
        $(impl Sums for $number {
            fn absorb(&mut self, other: Self) {
                *self = self.saturating_add(other);
            }
        })+
    };
}

saturating!(u32 u64 i32 i64 u128);

/// Sums that are the sums of these fields.
macro_rules! sums {
    ($sums:ty: $($field:tt),+) => {
        impl $crate::collect::sums::Sums for $sums {
            fn absorb(&mut self, other: Self) {
                $($crate::collect::sums::Sums::absorb(&mut self.$field, other.$field);)+
            }
        }
    };
}
pub(crate) use sums;

/// Unknown if one of them is.
impl<T: Sums> Sums for Option<T> {
    fn absorb(&mut self, other: Self) {
        match (&mut *self, other) {
            (Some(own), Some(other)) => own.absorb(other),
            _ => *self = None,
        }
    }
}

impl<A: Sums, B: Sums> Sums for (A, B) {
    fn absorb(&mut self, other: Self) {
        self.0.absorb(other.0);
        self.1.absorb(other.1);
    }
}

impl<T: Sums, const N: usize> Sums for [T; N] {
    fn absorb(&mut self, other: Self) {
        self.iter_mut().zip(other).for_each(|(own, other)| own.absorb(other));
    }
}

/// Element of a vector that grows with its indices; spare capacity is not touched.
#[inline]
pub fn grown<T: Default>(items: &mut Vec<T>, number: u32) -> &mut T {
    let number = number as usize;
    if items.len() <= number {
        items.resize_with(number + 1, T::default);
    }
    &mut items[number]
}

/// Collects slab objects by allocation stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Time at which objects count as live; `None`: the end of the window.
    pub until: Option<u64>,
    /// True if live objects count only where they were allocated in the window.
    pub is_of_window: bool,
}

impl StateCollector for Calls {
    type State = CallSums;

    const INTERESTS: Interests = Interests::LIVES.union(Interests::SLAB_STACKS);

    fn begin(&self, _: &PassFacts) -> CallSums {
        CallSums { of: *self, ..CallSums::default() }
    }
}

/// Sums of one stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackSums {
    /// Objects allocated.
    pub allocs: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Objects live at the end.
    pub live: u64,
    /// Bytes live at the end.
    pub bytes_live: u64,
    /// Number of the call site and interface, the highest one if there are several.
    pub caller: Option<u32>,
}

/// Sums by stack.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CallSums {
    of: Calls,
    /// By number of the stack.
    pub stacks: HashMap<u32, StackSums, IntHash>,
    /// Objects without a stack.
    pub without: StackSums,
}

impl Receiver for CallSums {
    fn closed(&mut self, closed: &Closed) {
        let sums = match closed.stack {
            Some(stack) => self.stacks.entry(stack).or_default(),
            None => &mut self.without,
        };
        let (bytes, is_live) = (closed.bytes_alloc, closed.is_live_at(self.of.until));
        let is_live = is_live && (closed.is_born || !self.of.is_of_window);
        sums.allocs += u64::from(closed.is_born);
        sums.bytes_alloc = sums.bytes_alloc.saturating_add(if closed.is_born { bytes } else { 0 });
        sums.live += u64::from(is_live);
        sums.bytes_live = sums.bytes_live.saturating_add(if is_live { bytes } else { 0 });
        sums.caller = sums.caller.max(Some(closed.caller));
    }
}
