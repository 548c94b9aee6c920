//! Addresses of objects as the kernel prints them.
//!
//! The ledger drops the upper byte of an address, since arm64 has tags there (KASAN, MTE). It is the same for all objects of a
//! kernel, and the first pointer of the trace shows it.

use kmt_format::schema::Role;

use crate::trace::session::Session;

/// Largest number of inspected events without a pointer.
const EVENTS_MAX: u32 = 10_000;

/// Smallest pointer that is an object: kmalloc of no bytes returns 16 (`ZERO_SIZE_PTR`, include/linux/slab.h).
const ZERO_SIZE_PTR: u64 = 16;

/// Upper byte of the addresses of kernel objects: all ones on most 64-bit machines, zero on others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectAddresses {
    top: u64,
}

impl ObjectAddresses {
    /// The upper byte of a trace.
    pub fn of(session: &Session<'_>) -> Self {
        let mut merge = session.trace.merge();
        let mut inspected = 0;
        while let Some(run) = merge.next_run() {
            for event in run.events() {
                match event.uint_with(Role::PTR).filter(|&ptr| ptr > ZERO_SIZE_PTR) {
                    Some(ptr) => return Self { top: if ptr >> 56 == 0 { 0 } else { 0xff << 56 } },
                    None => inspected += 1,
                }
                if inspected > EVENTS_MAX {
                    return Self { top: 0 };
                }
            }
        }
        Self { top: 0 }
    }

    /// An address of the ledger with its upper byte.
    pub fn whole(self, address: u64) -> u64 {
        if address > ZERO_SIZE_PTR { address | self.top } else { address }
    }
}
