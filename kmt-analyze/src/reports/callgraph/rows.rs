//! The call graph as rows: sums of call stacks, joined to a tree.
//!
//! Stacks come from the collector of calls, the outermost function first. Small branches are left out, with their sum.

use std::collections::BTreeMap;

use serde::Serialize;

use super::CallGraph;
use crate::collect::sums::{CallSums, StackSums, Sums, sums};
use crate::reports::common::ReportContext;
use crate::reports::common::labels::{Labels, SourceRow};
use crate::reports::common::page_sums::of_users;
use crate::reports::common::rows::Address;
use crate::sort_rows::SortRows;

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallGraphRows {
    /// The call graph; `null`: no allocation has a stack.
    pub callgraph: Option<CallTree>,
}

/// The call graph.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallTree {
    /// Weight of branches: `bytes_alloc`, `bytes_live`, `alloc_events`.
    #[cfg_attr(test, schemars(with = "String"))]
    pub weight: TreeWeight,
    /// True with --pages: of pages, not of slab objects.
    pub pages: bool,
    /// Starts at the outermost caller, not at the allocating function.
    pub top_down: bool,
    /// Allocations without a stack.
    pub without_stack: CallSumsRow,
    /// All stacks.
    pub root: CallNode,
}

/// A function with the sums of all stacks through it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallNode {
    /// Sums of all stacks through it.
    #[serde(flatten)]
    pub sums: CallSumsRow,
    /// The next functions, the heaviest first; light ones are left out.
    pub children: Vec<CallNode>,
    /// Address of the call; the root has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// Function and offset, or the address; the root has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Functions of the symbol with their source lines, the innermost inlined one first; absent: not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<SourceRow>,
    /// Number of next functions that are left out.
    #[serde(skip)]
    pub light_children: usize,
}

/// The call graph of a trace.
pub fn compute(context: &ReportContext<'_, '_>, calls: &CallSums, options: &CallGraph) -> CallGraphRows {
    let analysis = context.analysis;
    if calls.stacks.is_empty() {
        return CallGraphRows { callgraph: None };
    }
    let labels = Labels::new(context.session);
    let mut root = Node::default();
    let mut numbers: Vec<_> = calls.stacks.iter().collect();
    numbers.sort_rows_by_key(|(stack, _)| **stack);
    for (stack, sums) in numbers {
        let addresses = analysis.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
        let mut path: Vec<u64> = of_users(addresses, |a| labels.symbol(a)).collect();
        if options.top_down {
            path.reverse();
        }
        root.add(sums.into(), &mut path.into_iter());
    }
    let weight = options.by.unwrap_or_default();
    let min = (weight.of(&root.sums) as f64 * options.min / 100.0).ceil() as u64;
    let tree = CallTree {
        weight,
        pages: options.pages,
        top_down: options.top_down,
        without_stack: (&calls.without).into(),
        root: node(&root, None, &labels, weight, min.max(1)),
    };
    CallGraphRows { callgraph: Some(tree) }
}

fn node(
    from: &Node,
    address: Option<u64>,
    labels: &Labels<'_, '_>,
    weight: TreeWeight,
    min: u64,
) -> CallNode {
    let children = from.heavy_children(weight, min);
    CallNode {
        sums: from.sums,
        light_children: from.children.len() - children.len(),
        children: children
            .into_iter()
            .map(|(address, child)| node(child, Some(address), labels, weight, min))
            .collect(),
        address: address.map(Address),
        source: address.map_or(Vec::new(), |address| labels.located(address).into_source()),
        symbol: address.map(|address| labels.symbol(address)),
    }
}

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
        out.sort_rows_by_key(|(address, n)| (std::cmp::Reverse(weight.of(&n.sums)), *address));
        out
    }
}
