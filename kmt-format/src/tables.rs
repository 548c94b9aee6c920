//! Facts that a file keeps in tables with texts: source lines, cgroups, totals without events.
//!
//! Programs write them from other sources than the ring buffer. Spec sections "LINE", "CGRP" and "SUMS".

use std::borrow::Cow;

use crate::schema::Meaning;

/// A function that an address is in, and the line of its source.
///
/// An address has several where functions were inlined: the innermost has `depth` 0, the one in the symbol
/// table the highest.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceLine<'d> {
    /// The address as events have it: a return address is not moved back.
    pub address: u64,
    /// Function; empty if not known.
    pub function: Cow<'d, [u8]>,
    /// Path of the source file; empty if not known.
    pub file: Cow<'d, [u8]>,
    /// Line, from 1; 0 if not known.
    pub line: u32,
    /// Number of functions inlined into this one on the way to the address.
    pub depth: u16,
}

/// The cgroup that a task is in from some time on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CgroupRecord<'d> {
    /// Since when, in the clock's unit; 0 if not known.
    pub time: u64,
    /// Thread id.
    pub pid: i32,
    /// Number of the cgroup in its hierarchy (the inode of its folder); 0 if not known.
    pub id: u64,
    /// Number of the hierarchy as `/proc/PID/cgroup` has it; 0 for version 2.
    pub hierarchy: u32,
    /// Path from the root of the hierarchy.
    pub path: Cow<'d, [u8]>,
}

/// Totals of one call site within a time, without the events themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SiteSums<'d> {
    /// Start of the time, in the clock's unit.
    pub time_first: u64,
    /// End of the time.
    pub time_last: u64,
    /// Return address of the allocator's caller; 0 if only the function is known.
    pub call_site: u64,
    /// Function; empty if only the address is known.
    pub function: Cow<'d, [u8]>,
    /// Meaning of the events.
    pub meaning: Meaning,
    /// Events.
    pub events: Option<u64>,
    /// Sum of the bytes requested.
    pub bytes_req: Option<u64>,
    /// Sum of the bytes handed out.
    pub bytes_alloc: Option<u64>,
}

impl SourceLine<'_> {
    /// The line of that address: function, file and line not known, depth 0, to be set.
    pub fn new(address: u64) -> Self {
        Self { address, function: Cow::default(), file: Cow::default(), line: 0, depth: 0 }
    }
}

impl<'d> CgroupRecord<'d> {
    /// A task's cgroup of version 2 by its path: time and number not known, to be set.
    pub fn new(pid: i32, path: impl Into<Cow<'d, [u8]>>) -> Self {
        Self { time: 0, pid, id: 0, hierarchy: 0, path: path.into() }
    }
}

impl SiteSums<'_> {
    /// Events of that meaning within a time: call site, function and sums not known, to be set.
    pub fn new(meaning: Meaning, time_first: u64, time_last: u64) -> Self {
        Self {
            time_first,
            time_last,
            call_site: 0,
            function: Cow::default(),
            meaning,
            events: None,
            bytes_req: None,
            bytes_alloc: None,
        }
    }
}
