//! Sums of several parts.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use crate::ledger::page_totals::FrameTotals;
use crate::ledger::totals::Totals;

/// A sum, or a collection of sums.
pub trait Sums {
    /// Adds the sums of another part.
    fn absorb(&mut self, other: Self);
}

/// Sum of several parts.
pub fn merged<S: Sums>(mut first: S, others: Vec<S>) -> S {
    others.into_iter().for_each(|other| first.absorb(other));
    first
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

/// Sums that are the sums of these fields; other fields are settings, the same in all parts.
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

/// Unknown if a part is.
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

/// By index; missing elements of the shorter one are empty.
impl<T: Sums + Default> Sums for Vec<T> {
    fn absorb(&mut self, mut other: Self) {
        if self.len() < other.len() {
            std::mem::swap(self, &mut other);
        }
        self.iter_mut().zip(other).for_each(|(own, other)| own.absorb(other));
    }
}

impl<K: Ord, V: Sums + Default> Sums for BTreeMap<K, V> {
    fn absorb(&mut self, other: Self) {
        for (key, value) in other {
            self.entry(key).or_default().absorb(value);
        }
    }
}

impl<K: Hash + Eq, V: Sums + Default, H: BuildHasher> Sums for HashMap<K, V, H> {
    fn absorb(&mut self, other: Self) {
        for (key, value) in other {
            self.entry(key).or_default().absorb(value);
        }
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
