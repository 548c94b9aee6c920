//! Rules of trace_analyze.py's account file: one object for each pointer; an allocation of a pointer in use stays with
//! its first caller; frees are credited to the caller that allocated.

use std::collections::{BTreeMap, HashMap};

use crate::int_hash::IntHash;

/// Sums of one caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caller {
    /// Bytes of all allocations.
    pub total_dynamic: u64,
    /// Bytes that seem in use.
    pub current_dynamic: u64,
    /// Bytes requested of those.
    pub current_req: u64,
    /// Allocations.
    pub alloc_count: u64,
    /// Frees of objects allocated here.
    pub free_count: u64,
}

impl Caller {
    /// Bytes in use beyond those requested.
    pub fn waste(&self) -> u64 {
        self.current_dynamic.saturating_sub(self.current_req)
    }
}

#[derive(Debug, Clone, Copy)]
struct AccountObject {
    call_site: u64,
    bytes_alloc: u64,
    bytes_req: u64,
}

/// The account so far.
#[derive(Debug, Default)]
pub struct Account {
    objects: HashMap<u64, AccountObject, IntHash>,
    /// By call site.
    pub callers: BTreeMap<u64, Caller>,
    /// Allocations of a pointer that was in use.
    pub duplicates: u64,
    /// Frees without an allocation in the trace.
    pub unmatched_frees: u64,
}

impl Account {
    /// Adds an allocation; a failed one is not in the account.
    pub fn alloc(&mut self, ptr: u64, call_site: u64, bytes_req: u64, bytes_alloc: u64) {
        if ptr == 0 {
            return;
        }
        let caller = self.callers.entry(call_site).or_default();
        caller.alloc_count += 1;
        caller.total_dynamic = caller.total_dynamic.saturating_add(bytes_alloc);
        caller.current_dynamic = caller.current_dynamic.saturating_add(bytes_alloc);
        caller.current_req = caller.current_req.saturating_add(bytes_req);
        let before = self.objects.insert(ptr, AccountObject { call_site, bytes_alloc, bytes_req });
        self.duplicates += u64::from(before.is_some());
    }

    /// Adds a free.
    pub fn free(&mut self, ptr: u64) {
        if ptr == 0 {
            return;
        }
        let Some(object) = self.objects.remove(&ptr) else {
            self.unmatched_frees += 1;
            return;
        };
        let caller = self.callers.entry(object.call_site).or_default();
        caller.free_count += 1;
        caller.current_dynamic = caller.current_dynamic.saturating_sub(object.bytes_alloc);
        caller.current_req = caller.current_req.saturating_sub(object.bytes_req);
    }

    /// Sums over all callers.
    pub fn sum(&self) -> Caller {
        let mut sum = Caller::default();
        for caller in self.callers.values() {
            sum.total_dynamic = sum.total_dynamic.saturating_add(caller.total_dynamic);
            sum.current_dynamic = sum.current_dynamic.saturating_add(caller.current_dynamic);
            sum.current_req = sum.current_req.saturating_add(caller.current_req);
            sum.alloc_count += caller.alloc_count;
            sum.free_count += caller.free_count;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frees_are_credited_to_the_allocating_caller() {
        let mut account = Account::default();
        account.alloc(0x10, 1, 20, 32);
        account.alloc(0x20, 2, 20, 32);
        account.alloc(0x20, 1, 8, 8);
        account.free(0x20);
        account.free(0x30);
        account.free(0);
        assert_eq!((account.duplicates, account.unmatched_frees), (1, 1));
        let first =
            Caller { total_dynamic: 40, current_dynamic: 32, current_req: 20, alloc_count: 2, free_count: 1 };
        assert_eq!(account.callers[&1], first);
        assert_eq!(account.callers[&2].current_dynamic, 32);
        assert_eq!((account.sum().alloc_count, account.sum().waste()), (3, 24));
    }
}
