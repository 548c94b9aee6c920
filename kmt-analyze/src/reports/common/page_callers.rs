//! Callers of the page allocator: the first function in a call stack outside the allocator.

pub use kmt_common::allocators::is_allocator;

use crate::trace::names::Symbolizer;

/// Functions of the tracer at the innermost end of its stacks, as a regular expression for whole names.
pub const TRACER: &str = "trace_event_raw_event_.*|__traceiter_.*|stack_trace.*";

/// True if a symbol is of the tracer: stacks that ftrace records begin in it, those of perf do not.
pub fn is_tracer(symbol: &[u8]) -> bool {
    ["trace_event_raw_event_", "__traceiter_", "stack_trace"]
        .iter()
        .any(|name| symbol.starts_with(name.as_bytes()))
}

/// Part of a stack outside the tracer and the allocator, from its innermost function; without zeros, which stand for
/// unknown frames.
pub fn of_users<'s>(
    stack: &'s [u64],
    mut symbol: impl FnMut(u64) -> String + 's,
) -> impl Iterator<Item = u64> + 's {
    stack
        .iter()
        .copied()
        .filter(|&address| address != 0)
        .skip_while(move |&address| is_allocator(symbol(address).as_bytes()))
}

/// Call site of an allocation of pages: the innermost address of its stack outside the allocator; `None`: no stack.
pub fn caller(stack: &[u64], symbols: &Symbolizer<'_>) -> Option<u64> {
    first(stack, |address| !is_allocator(&symbols.raw(address)))
}

fn first(stack: &[u64], is_it: impl Fn(u64) -> bool) -> Option<u64> {
    stack.iter().copied().find(|&address| address != 0 && is_it(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocator_frames_are_passed_over() {
        let names: [&[u8]; 5] = [
            b"__alloc_frozen_pages_noprof+0x26b/0x320",
            b"alloc_pages_mpol+0x86/0x170",
            b"folio_alloc_noprof+0x5c/0xb0",
            b"page_cache_ra_unbounded+0x10/0x20",
            b"filemap_read+0x1/0x2",
        ];
        let outside = |a: u64| !is_allocator(names[a as usize - 1]);
        assert_eq!(first(&[1, 2, 3, 4, 5], outside), Some(4));
        assert_eq!(first(&[1, 2], outside), None);
        assert!(!is_allocator(b"ext4_alloc_inode+0x1"));
    }
}
