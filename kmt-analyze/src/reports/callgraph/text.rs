//! The call graph as an indented tree.

use super::rows::{CallGraphRows, CallNode};
use crate::render::text::{count, percent};

/// The tree, and its sums.
pub fn of(rows: &CallGraphRows) -> String {
    let Some(graph) = &rows.callgraph else {
        return "no stacks of slab allocations: record with --stack 'kmem:kmalloc' --stack 'kmem:kmem_cache_alloc'\n"
            .to_owned();
    };
    let sums = &graph.root.sums;
    let mut out = format!(
        "{} allocations with a stack, {} bytes, {} bytes live; {} without one\nweighed by {}, {}\n\n",
        count(sums.alloc_events),
        count(sums.bytes_alloc),
        count(sums.bytes_live),
        count(graph.without_stack.alloc_events),
        match graph.weight {
            "bytes_alloc" => "bytes allocated",
            "bytes_live" => "bytes live at the end",
            _ => "allocations",
        },
        if graph.top_down { "from the outermost caller down" } else { "from the allocating function up" },
    );
    branches(&graph.root, graph.root.weight, 0, &mut out);
    out
}

/// The branches of a node; `all` is the weight of the root.
fn branches(node: &CallNode, all: u64, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    for child in &node.children {
        let symbol = child.symbol.as_deref().unwrap_or_default();
        out.push_str(&format!(
            "{:>7} {:>14}  {indent}{symbol}\n",
            percent(child.weight, all),
            count(child.weight)
        ));
        // A chain without branches needs no steps to the right.
        let mut last = child;
        while let [only] = last.children.as_slice() {
            if only.weight != last.weight {
                break;
            }
            let symbol = only.symbol.as_deref().unwrap_or_default();
            out.push_str(&format!("{:>22}  {indent}| {symbol}\n", ""));
            last = only;
        }
        branches(last, all, depth + 1, out);
    }
    if node.light_children > 0 && !node.children.is_empty() {
        out.push_str(&format!("{:>22}  {indent}... {} smaller\n", "", node.light_children));
    }
}
