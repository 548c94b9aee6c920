//! Functions between a call site and the page allocator.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::render::words::escaped;
use crate::reports::common::page_callers::{is_allocator, is_tracer};
use crate::trace::names::function_of;

/// An allocator function between a call site and the event.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PassedOverRow {
    /// Function, without its offset.
    pub function: String,
    /// Pages allocated through it; `null`: allocations were not recorded.
    pub pages_alloc: Option<u64>,
}

/// Allocator functions of the stacks of one call site.
#[derive(Debug, Default)]
pub struct PassedOver {
    /// By function: smallest distance from the call site, and pages.
    functions: BTreeMap<String, (usize, u64)>,
}

impl PassedOver {
    /// Adds the pages of one stack, whose addresses begin with the innermost. A function that occurs twice in the stack
    /// counts once.
    pub fn add(&mut self, stack: &[u64], pages: u64, symbol: impl Fn(u64) -> Vec<u8>) {
        let symbols = stack.iter().filter(|&&address| address != 0).map(|&address| symbol(address));
        let passed: Vec<Vec<u8>> =
            symbols.take_while(|symbol| is_allocator(symbol)).filter(|symbol| !is_tracer(symbol)).collect();
        let mut of_stack = BTreeMap::new();
        for (distance, symbol) in passed.iter().rev().enumerate() {
            of_stack.entry(function_of(&escaped(symbol))).or_insert(distance);
        }
        for (function, distance) in of_stack {
            let sums = self.functions.entry(function).or_insert((distance, 0));
            *sums = (sums.0.min(distance), sums.1.saturating_add(pages));
        }
    }

    /// Functions passed over, the one that the call site calls first.
    pub fn rows(self, is_recorded: bool) -> Vec<PassedOverRow> {
        let mut functions: Vec<_> = self.functions.into_iter().collect();
        functions.sort_by_key(|(_, (distance, _))| *distance);
        let row = |(function, (_, pages)): (String, (usize, u64))| PassedOverRow {
            function,
            pages_alloc: is_recorded.then_some(pages),
        };
        functions.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 7] = [
        "trace_event_raw_event_mm_page_alloc+0x1/0x2",
        "__alloc_pages+0x26b/0x320",
        "alloc_pages_mpol+0x86/0x170",
        "folio_alloc_noprof+0x5c/0xb0",
        "alloc_pages_mpol+0x90/0x170",
        "page_cache_ra_unbounded+0x10/0x20",
        "kmalloc_of_a_caller+0x1/0x2",
    ];

    fn functions(stacks: &[(&[usize], u64)]) -> Vec<(String, u64)> {
        let mut passed = PassedOver::default();
        for (stack, pages) in stacks {
            let stack: Vec<u64> = stack.iter().map(|index| *index as u64 + 1).collect();
            passed.add(&stack, *pages, |address| NAMES[address as usize - 1].as_bytes().to_vec());
        }
        passed.rows(true).into_iter().map(|row| (row.function, row.pages_alloc.unwrap())).collect()
    }

    #[test]
    fn the_functions_below_a_call_site_are_in_the_order_of_calls() {
        let one = functions(&[(&[0, 1, 2, 3, 5, 6], 4)]);
        let names: Vec<&str> = one.iter().map(|row| row.0.as_str()).collect();
        assert_eq!(names, ["folio_alloc_noprof", "alloc_pages_mpol", "__alloc_pages"]);
        assert!(one.iter().all(|row| row.1 == 4));
        let both = functions(&[(&[1, 2, 3, 5], 4), (&[0, 1, 5], 2), (&[5], 9)]);
        let expected = [("__alloc_pages", 6), ("folio_alloc_noprof", 4), ("alloc_pages_mpol", 4)];
        assert_eq!(both, expected.map(|(name, pages)| (name.to_owned(), pages)));
    }

    #[test]
    fn a_function_that_occurs_twice_counts_once() {
        let found = functions(&[(&[2, 3, 4, 5], 3)]);
        let expected = [("alloc_pages_mpol", 3), ("folio_alloc_noprof", 3)];
        assert_eq!(found, expected.map(|(name, pages)| (name.to_owned(), pages)));
    }
}
