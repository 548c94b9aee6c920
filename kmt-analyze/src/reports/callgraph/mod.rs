//! `callgraph`: slab bytes by call stack, where stacks were recorded.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::analysis::page_callers::of_users;
use crate::collect::Collectors;
use crate::collect::calls::StackSums;
use crate::collect::{Calls, Handle};
use crate::pass;
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::render::text::{count, percent};
use crate::reports::common::basis::{Basis, Input};
use crate::reports::common::labels::Labels;
use crate::reports::common::trust::recorded;
use crate::reports::common::{Context, View};
use crate::reports::report::{Page, Report};
use kmt_format::schema::Meaning;

/// What branches are weighed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Weight {
    /// Bytes allocated
    #[default]
    Alloc,
    /// Bytes live at the end
    Live,
    /// Allocations
    Count,
}

/// The report.
#[derive(Debug, Default)]
pub struct CallGraph {
    /// What branches are weighed by.
    pub weight: Weight,
    /// From the outermost caller, instead of from the allocating function.
    pub top_down: bool,
    /// Branches of less than this many percent are summed up.
    pub min_percent: f64,
}

#[derive(Debug, Default)]
struct Node {
    sums: StackSums,
    children: BTreeMap<u64, Node>,
}

impl Node {
    fn add(&mut self, sums: &StackSums, path: &mut dyn Iterator<Item = u64>) {
        self.sums.allocs = self.sums.allocs.saturating_add(sums.allocs);
        self.sums.bytes_alloc = self.sums.bytes_alloc.saturating_add(sums.bytes_alloc);
        self.sums.live = self.sums.live.saturating_add(sums.live);
        self.sums.bytes_live = self.sums.bytes_live.saturating_add(sums.bytes_live);
        if let Some(address) = path.next() {
            self.children.entry(address).or_default().add(sums, path);
        }
    }
}

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// What branches are weighed by
    #[arg(long, value_enum, default_value = "alloc")]
    by: Weight,
    /// From the outermost caller down, instead of from the allocating function up
    #[arg(long)]
    top_down: bool,
    /// Sum up branches of less than this many percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    min: f64,
}

impl Report for CallGraph {
    type Options = Options;
    type Handles = Handle<Calls>;
    type Rows = Page;

    const NAME: &'static str = "callgraph";
    const KEY: &'static str = "callgraph";
    const TITLE: &'static str = "callgraph";
    const ABOUT: &'static str = "Slab bytes by call stack, where stacks were recorded";
    const HAS_LINES: bool = false;

    fn new(options: Options, _: &Selection) -> Self {
        Self { weight: options.by, top_down: options.top_down, min_percent: options.min }
    }

    fn usual() -> Option<Self> {
        Some(Self { min_percent: 5.0, ..Self::default() })
    }

    fn rests_on(&self) -> Input {
        Input::SlabAllocs
    }

    fn refuses(&self, context: &Context<'_, '_>, result: &pass::Analysis) -> Option<String> {
        let has_stacks = recorded(context.session, result, Meaning::KERNEL_STACK) == Some(true);
        let lacks = Basis::of(context.session, result).lacks(self.rests_on());
        let why =
            "no stacks were recorded: record with --stack 'kmem:kmalloc' --stack 'kmem:kmem_cache_alloc'";
        lacks.or((!has_stacks).then(|| why.to_owned()))
    }

    fn collect(&self, _: &Context<'_, '_>, collectors: &mut Collectors) -> Self::Handles {
        collectors.add(Calls)
    }

    fn compute(&self, context: &Context<'_, '_>, result: &Analysis, handles: &Self::Handles) -> Page {
        let calls = result.get(*handles);
        let labels = Labels::new(context.session);
        let mut out = Map::new();
        if calls.stacks.is_empty() {
            out.insert("callgraph".into(), Value::Null);
            let text = "no stacks of slab allocations: record with --stack 'kmem:kmalloc' --stack 'kmem:kmem_cache_alloc'\n";
            return Page { json: out, text: text.to_owned() };
        }
        let mut root = Node::default();
        let mut numbers: Vec<_> = calls.stacks.iter().collect();
        numbers.sort_by_key(|(stack, _)| **stack);
        for (stack, sums) in numbers {
            let addresses = result.interner.stacks.get(*stack).map(Vec::as_slice).unwrap_or_default();
            let mut path: Vec<u64> = of_users(addresses, |a| labels.symbol(a)).collect();
            if self.top_down {
                path.reverse();
            }
            root.add(sums, &mut path.into_iter());
        }
        let all = self.weigh(&root.sums);
        let min = (all as f64 * self.min_percent / 100.0).ceil() as u64;
        out.insert("callgraph".into(), json!({
            "weight": match self.weight { Weight::Alloc => "bytes_alloc", Weight::Live => "bytes_live", Weight::Count => "alloc_events" },
            "top_down": self.top_down,
            "without_stack": sums_json(&calls.without),
            "root": self.node_json(&root, &labels, min.max(1)),
        }));
        let mut text = format!(
            "{} allocations with a stack, {} bytes, {} bytes live; {} without one\nweighed by {}, {}\n\n",
            count(root.sums.allocs),
            count(root.sums.bytes_alloc),
            count(root.sums.bytes_live),
            count(calls.without.allocs),
            match self.weight {
                Weight::Alloc => "bytes allocated",
                Weight::Live => "bytes live at the end",
                Weight::Count => "allocations",
            },
            if self.top_down { "from the outermost caller down" } else { "from the allocating function up" },
        );
        self.node_text(&root, &labels, all, min.max(1), 0, &mut text);
        Page { json: out, text }
    }

    fn text(&self, rows: &Page, _: &View) -> String {
        rows.text.clone()
    }
}

fn sums_json(sums: &StackSums) -> Value {
    json!({"alloc_events": sums.allocs, "bytes_alloc": sums.bytes_alloc, "live": sums.live, "bytes_live": sums.bytes_live})
}

impl CallGraph {
    fn weigh(&self, sums: &StackSums) -> u64 {
        match self.weight {
            Weight::Alloc => sums.bytes_alloc,
            Weight::Live => sums.bytes_live,
            Weight::Count => sums.allocs,
        }
    }

    /// Children by weight, with those that are too small left out.
    fn children<'n>(&self, node: &'n Node, min: u64) -> Vec<(u64, &'n Node)> {
        let mut out: Vec<(u64, &Node)> = node.children.iter().map(|(a, n)| (*a, n)).collect();
        out.retain(|(_, n)| self.weigh(&n.sums) >= min);
        out.sort_by_key(|(address, n)| (std::cmp::Reverse(self.weigh(&n.sums)), *address));
        out
    }

    fn node_json(&self, node: &Node, labels: &Labels<'_, '_>, min: u64) -> Value {
        let children: Vec<Value> = self
            .children(node, min)
            .into_iter()
            .map(|(address, child)| {
                let mut out = self.node_json(child, labels, min);
                if let Value::Object(map) = &mut out {
                    map.insert("address".into(), crate::render::json::address(address));
                    map.insert("symbol".into(), json!(labels.symbol(address)));
                }
                out
            })
            .collect();
        let mut out = sums_json(&node.sums);
        if let Value::Object(map) = &mut out {
            map.insert("children".into(), children.into());
        }
        out
    }

    fn node_text(
        &self,
        node: &Node,
        labels: &Labels<'_, '_>,
        all: u64,
        min: u64,
        depth: usize,
        out: &mut String,
    ) {
        let children = self.children(node, min);
        for (address, child) in &children {
            let weight = self.weigh(&child.sums);
            out.push_str(&format!(
                "{:>7} {:>14}  {}{}\n",
                percent(weight, all),
                count(weight),
                "  ".repeat(depth),
                labels.symbol(*address)
            ));
            // A chain without branches needs no steps to the right.
            let mut last = *child;
            while let [(address, only)] = self.children(last, min).as_slice() {
                if self.weigh(&only.sums) != self.weigh(&last.sums) {
                    break;
                }
                out.push_str(&format!("{:>22}  {}| {}\n", "", "  ".repeat(depth), labels.symbol(*address)));
                last = only;
            }
            self.node_text(last, labels, all, min, depth + 1, out);
        }
        let left = node.children.len() - children.len();
        if left > 0 && !children.is_empty() {
            out.push_str(&format!("{:>22}  {}... {} smaller\n", "", "  ".repeat(depth), left));
        }
    }
}
