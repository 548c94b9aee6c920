//! Rules of trace_analyze.py's account file: one object for each pointer; an allocation of a pointer in use stays with
//! its first caller; frees are credited to the caller that allocated.
//!
//! The rules differ from the ledger's on purpose: users of trace_analyze.py compare these numbers with those of old
//! recordings. `account` gives every allocation and free in the kernel's order, and prints the sums of each caller.
//! Windows and conditions on lifetimes are applied here, since they depend on both ends.

use std::collections::{BTreeMap, HashMap};

use crate::collect::sums::{Sums, sums};
use crate::int_hash::IntHash;
use crate::pass::condition::Condition;
use crate::pass::filter::meets;
use crate::trace::ages::Ages;

/// Sums of one caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caller {
    /// Bytes of all allocations.
    pub total_dynamic: u64,
    /// Bytes that seem in use.
    pub current_dynamic: u64,
    /// Bytes requested of those that seem in use.
    pub current_req: u64,
    /// Allocations.
    pub alloc_count: u64,
    /// Frees of objects allocated here.
    pub free_count: u64,
}

sums!(Caller: total_dynamic, current_dynamic, current_req, alloc_count, free_count);

impl Caller {
    /// Bytes in use beyond those requested.
    pub fn waste(&self) -> u64 {
        self.current_dynamic.saturating_sub(self.current_req)
    }
}

/// An allocation, as the account needs it.
#[derive(Debug, Clone, Copy)]
pub struct AccountObject {
    /// Caller.
    pub call_site: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Bytes requested.
    pub bytes_req: u64,
    /// Time of the allocation.
    pub born: u64,
    /// True if it counts. Others are followed too: a free ends the last allocation of its pointer.
    pub is_selected: bool,
}

/// The account so far.
#[derive(Debug, Default)]
pub struct Account {
    objects: HashMap<u64, AccountObject, IntHash>,
    /// First and last time at which allocations and frees count. Objects allocated before are in use, and what is freed
    /// later is.
    window: (u64, u64),
    /// Conditions on the time from an allocation to its free; with any, allocations without a free do not count.
    lifetimes: Vec<Condition>,
    ages: Ages,
    /// By call site.
    pub callers: BTreeMap<u64, Caller>,
    /// Allocations of a pointer that was in use.
    pub duplicates: u64,
    /// Frees without an allocation in the trace.
    pub unmatched_frees: u64,
}

impl Account {
    /// An account of what counts in a window, and meets conditions on its lifetime.
    pub fn new(window: (u64, u64), lifetimes: Vec<Condition>, ages: Ages) -> Self {
        Self { window, lifetimes, ages, ..Self::default() }
    }

    /// Adds an allocation; a failed one is not in the account.
    pub fn alloc(&mut self, ptr: u64, object: AccountObject) {
        if ptr == 0 {
            return;
        }
        let is_counted = object.is_selected && self.in_window(object.born);
        if object.is_selected && self.lifetimes.is_empty() {
            self.add(&object);
        }
        let before = self.objects.insert(ptr, object);
        self.duplicates += u64::from(before.is_some() && is_counted);
    }

    fn in_window(&self, time: u64) -> bool {
        (self.window.0..=self.window.1).contains(&time)
    }

    fn add(&mut self, object: &AccountObject) {
        if object.born > self.window.1 {
            return;
        }
        let is_counted = self.in_window(object.born);
        let caller = self.callers.entry(object.call_site).or_default();
        caller.current_dynamic = caller.current_dynamic.saturating_add(object.bytes_alloc);
        caller.current_req = caller.current_req.saturating_add(object.bytes_req);
        if is_counted {
            caller.alloc_count += 1;
            caller.total_dynamic = caller.total_dynamic.saturating_add(object.bytes_alloc);
        }
    }

    /// Adds a free. `is_selected`: it counts if the trace has no allocation for it.
    pub fn free(&mut self, ptr: u64, time: u64, is_selected: bool) {
        if ptr == 0 {
            return;
        }
        let is_counted = self.in_window(time);
        let Some(object) = self.objects.remove(&ptr) else {
            self.unmatched_frees += u64::from(is_counted && is_selected);
            return;
        };
        let meets_all = meets(&self.lifetimes, self.ages.length(object.born, time));
        if !object.is_selected || !meets_all || object.born > self.window.1 {
            return;
        }
        if !self.lifetimes.is_empty() {
            self.add(&object);
        }
        if time > self.window.1 {
            return;
        }
        let caller = self.callers.entry(object.call_site).or_default();
        caller.free_count += u64::from(is_counted);
        caller.current_dynamic = caller.current_dynamic.saturating_sub(object.bytes_alloc);
        caller.current_req = caller.current_req.saturating_sub(object.bytes_req);
    }

    /// Leaves out callers of which nothing is in use, and nothing counts.
    pub fn leave_out_unused(&mut self) {
        self.callers.retain(|_, sums| *sums != Caller::default());
    }

    /// Sums over all callers.
    pub fn sum(&self) -> Caller {
        let mut sum = Caller::default();
        self.callers.values().for_each(|caller| sum.absorb(*caller));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::clock::Clock;

    fn object(call_site: u64, bytes_req: u64, bytes_alloc: u64, born: u64) -> AccountObject {
        AccountObject { call_site, bytes_alloc, bytes_req, born, is_selected: true }
    }

    #[test]
    fn frees_are_credited_to_the_allocating_caller() {
        let mut account = Account::new((0, u64::MAX), Vec::new(), Ages::default());
        account.alloc(0x10, object(1, 20, 32, 1));
        account.alloc(0x20, object(2, 20, 32, 2));
        account.alloc(0x20, object(1, 8, 8, 3));
        account.free(0x20, 4, true);
        account.free(0x30, 5, true);
        account.free(0, 6, true);
        assert_eq!((account.duplicates, account.unmatched_frees), (1, 1));
        let first =
            Caller { total_dynamic: 40, current_dynamic: 32, current_req: 20, alloc_count: 2, free_count: 1 };
        assert_eq!(account.callers[&1], first);
        assert_eq!(account.callers[&2].current_dynamic, 32);
        assert_eq!((account.sum().alloc_count, account.sum().waste()), (3, 24));
    }

    #[test]
    fn what_was_allocated_before_the_window_is_in_use_and_not_counted() {
        let mut account = Account::new((10, 15), Vec::new(), Ages::default());
        // Where a clock steps back, what is after the window comes too.
        for (ptr, born) in [(0x10, 1), (0x20, 2), (0x30, 3), (0x70, 16), (0x40, 11)] {
            account.alloc(ptr, object(ptr, 20, 32, born));
        }
        account.free(0x10, 5, true);
        account.free(0x20, 12, true);
        account.free(0x50, 9, true);
        account.free(0x60, 13, true);
        account.free(0x30, 17, true);
        account.leave_out_unused();
        let sums = |total, current, req, allocs, frees| Caller {
            total_dynamic: total,
            current_dynamic: current,
            current_req: req,
            alloc_count: allocs,
            free_count: frees,
        };
        let expected =
            [(0x20, sums(0, 0, 0, 0, 1)), (0x30, sums(0, 32, 20, 0, 0)), (0x40, sums(32, 32, 20, 1, 0))];
        assert_eq!(account.callers, BTreeMap::from(expected));
        assert_eq!(account.unmatched_frees, 1);
    }

    #[test]
    fn conditions_on_lifetimes_are_about_pairs() {
        let longer = Condition::parse("lifetime>4ns").unwrap().in_units_of(&Clock::nanoseconds()).unwrap();
        let mut account = Account::new((0, u64::MAX), vec![longer], Ages::default());
        for ptr in [0x10, 0x20, 0x30] {
            account.alloc(ptr, object(ptr, 20, 32, 1));
        }
        account.free(0x10, 5, true);
        account.free(0x20, 6, true);
        let second = Caller { total_dynamic: 32, alloc_count: 1, free_count: 1, ..Caller::default() };
        assert_eq!(account.callers, BTreeMap::from([(0x20, second)]));
    }
}
