//! Sums that are added to each other field by field.

use crate::ledger::page_totals::FrameTotals;
use crate::ledger::totals::Totals;

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
