//! Sums of call stacks as a tree.

use std::collections::BTreeMap;

use crate::collect::calls::StackSums;

/// Weight of branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum TreeWeight {
    /// Bytes allocated
    #[default]
    Alloc,
    /// Bytes live at the end
    Live,
    /// Allocations
    Count,
}

impl TreeWeight {
    /// Weight of sums.
    pub fn of(self, sums: &StackSums) -> u64 {
        match self {
            Self::Alloc => sums.bytes_alloc,
            Self::Live => sums.bytes_live,
            Self::Count => sums.allocs,
        }
    }

    /// Its key in the rows.
    pub fn key(self) -> &'static str {
        match self {
            Self::Alloc => "bytes_alloc",
            Self::Live => "bytes_live",
            Self::Count => "alloc_events",
        }
    }
}

/// A function on a stack, with the sums of all stacks through it.
#[derive(Debug, Default)]
pub struct Node {
    /// Sums of all stacks through it.
    pub sums: StackSums,
    /// The next functions, by address.
    pub children: BTreeMap<u64, Node>,
}

impl Node {
    /// Adds the sums of a stack; `path` has its addresses from here on.
    pub fn add(&mut self, sums: &StackSums, path: &mut dyn Iterator<Item = u64>) {
        self.sums.allocs = self.sums.allocs.saturating_add(sums.allocs);
        self.sums.bytes_alloc = self.sums.bytes_alloc.saturating_add(sums.bytes_alloc);
        self.sums.live = self.sums.live.saturating_add(sums.live);
        self.sums.bytes_live = self.sums.bytes_live.saturating_add(sums.bytes_live);
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
