//! The call graph as rows.

use serde::Serialize;

use super::CallGraph;
use super::tree::{CallSumsRow, Node, TreeWeight};
use crate::collect::calls::CallSums;
use crate::reports::common::ReportContext;
use crate::reports::common::labels::Labels;
use crate::reports::common::page_callers::of_users;
use crate::reports::common::rows::Address;
use crate::reports::common::symbol::SourceRow;

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
    numbers.sort_by_key(|(stack, _)| **stack);
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
