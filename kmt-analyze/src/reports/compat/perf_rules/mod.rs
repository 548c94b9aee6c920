//! The rules of `perf kmem stat` (tools/perf/builtin-kmem.c, Linux 6.1 to 7.2): what it counts of the same events, with
//! all that it gets wrong, so that what it prints can be printed.

mod order;
mod pages;
mod queue;
mod slab;

pub use order::{PerfKey, sorted_pages, sorted_slab};
pub use pages::{Gfp, PageRow, PerfPageKey, PerfPages};
pub use queue::{PageQueue, Waiting};
pub use slab::{Slab, SlabRow};

/// Internal fragmentation in percent.
pub fn fragmentation(bytes_req: u64, bytes_alloc: u64) -> f64 {
    if bytes_alloc == 0 { 0.0 } else { 100.0 - 100.0 * bytes_req as f64 / bytes_alloc as f64 }
}
