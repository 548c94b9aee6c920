//! Sums of call stacks as a tree.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::collect::calls::StackSums;
use crate::collect::sums::{Sums, sums};

/// Weight of branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, clap::ValueEnum)]
pub enum TreeWeight {
    /// Bytes allocated
    #[serde(rename = "bytes_alloc")]
    #[default]
    Alloc,
    /// Bytes live at the end
    #[serde(rename = "bytes_live")]
    Live,
    /// Allocations
    #[serde(rename = "alloc_events")]
    Count,
}

impl TreeWeight {
    /// Weight of sums.
    pub fn of(self, sums: &CallSumsRow) -> u64 {
        match self {
            Self::Alloc => sums.bytes_alloc,
            Self::Live => sums.bytes_live,
            Self::Count => sums.alloc_events,
        }
    }
}

/// Sums of slab objects, or of pages.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallSumsRow {
    /// Allocations.
    pub alloc_events: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
    /// Objects, or pages, live at the end.
    pub live: u64,
    /// Bytes live at the end.
    pub bytes_live: u64,
}

sums!(CallSumsRow: alloc_events, bytes_alloc, live, bytes_live);

impl From<&StackSums> for CallSumsRow {
    fn from(s: &StackSums) -> Self {
        Self { alloc_events: s.allocs, bytes_alloc: s.bytes_alloc, live: s.live, bytes_live: s.bytes_live }
    }
}

/// A function on a stack, with the sums of all stacks through it.
#[derive(Debug, Default)]
pub struct Node {
    /// Sums of all stacks through it.
    pub sums: CallSumsRow,
    /// The next functions, by address.
    pub children: BTreeMap<u64, Node>,
}

impl Node {
    /// Adds the sums of a stack; `path` has its addresses from here on.
    pub fn add(&mut self, sums: CallSumsRow, path: &mut dyn Iterator<Item = u64>) {
        self.sums.absorb(sums);
        if let Some(address) = path.next() {
            self.children.entry(address).or_default().add(sums, path);
        }
    }

    /// Children of that weight or more, the heaviest first.
    pub fn heavy_children(&self, weight: TreeWeight, min: u64) -> Vec<(u64, &Self)> {
        let mut out: Vec<(u64, &Self)> = self.children.iter().map(|(a, n)| (*a, n)).collect();
        out.retain(|(_, n)| weight.of(&n.sums) >= min);
        out.sort_by_key(|(address, n)| (std::cmp::Reverse(weight.of(&n.sums)), *address));
        out
    }
}
