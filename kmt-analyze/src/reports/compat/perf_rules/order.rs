//! Orders of rows: the keys of `perf kmem stat --sort`, and the order of page events.
//!
//! A page event waits until it is known if a stack follows; then it is counted at the call site of the stack.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use super::{PageRow, PerfPageKey, SlabRow, fragmentation};
use crate::sort_rows::SortRows;

/// A key of perf's: the largest value is the first. perf's slab tables and its page tables have different keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PerfKey {
    /// Address of the object
    Ptr,
    /// Frame of the page
    #[value(alias = "pfn")]
    Page,
    /// Address of the call site
    Callsite,
    /// Allocations
    Hit,
    /// Bytes allocated
    Bytes,
    /// Share of the allocated bytes that were not requested
    Frag,
    /// Frees on another CPU
    Pingpong,
    /// Order
    Order,
    /// Migrate type
    #[value(aliases = ["mtype", "migratetype"])]
    Migtype,
    /// Flags
    #[value(alias = "gfp_flags")]
    Gfp,
}

/// Keys of slab tables, if no others are given.
const SLAB: [PerfKey; 3] = [PerfKey::Frag, PerfKey::Hit, PerfKey::Bytes];
/// Keys of page tables, if no others are given.
const PAGES: [PerfKey; 2] = [PerfKey::Bytes, PerfKey::Hit];

impl PerfKey {
    /// True if tables of pages, or of slab objects, have it: by call site, or by frame and pointer.
    pub fn is_of(self, is_page: bool, by_caller: bool) -> bool {
        match self {
            Self::Callsite | Self::Hit | Self::Bytes => true,
            Self::Ptr => !is_page && !by_caller,
            Self::Page => is_page && !by_caller,
            Self::Frag | Self::Pingpong => !is_page,
            Self::Order | Self::Migtype | Self::Gfp => is_page,
        }
    }

    fn of_slab(self, (a_at, a): &(u64, SlabRow), (b_at, b): &(u64, SlabRow)) -> Ordering {
        let frag = |row: &SlabRow| fragmentation(row.bytes_req, row.bytes_alloc);
        match self {
            Self::Ptr => b_at.cmp(a_at),
            Self::Callsite => b.call_site.cmp(&a.call_site),
            Self::Hit => b.hit.cmp(&a.hit),
            Self::Bytes => b.bytes_alloc.cmp(&a.bytes_alloc),
            Self::Frag => frag(b).total_cmp(&frag(a)),
            Self::Pingpong => b.pingpong.cmp(&a.pingpong),
            Self::Page | Self::Order | Self::Migtype | Self::Gfp => Ordering::Equal,
        }
    }

    fn of_page(self, (a_key, a): &(PerfPageKey, PageRow), (b_key, b): &(PerfPageKey, PageRow)) -> Ordering {
        match self {
            Self::Page => b_key.0.cmp(&a_key.0),
            Self::Callsite => b.call_site.cmp(&a.call_site),
            Self::Hit => b.allocs.cmp(&a.allocs),
            Self::Bytes => b.alloc_bytes.cmp(&a.alloc_bytes),
            Self::Order => b_key.1.cmp(&a_key.1),
            Self::Migtype => b_key.2.cmp(&a_key.2),
            Self::Gfp => b_key.3.cmp(&a_key.3),
            Self::Ptr | Self::Frag | Self::Pingpong => Ordering::Equal,
        }
    }
}

/// Rows of slab objects in the order of these keys; what is equal stays in the order of addresses.
pub fn sorted_slab(mut rows: Vec<(u64, SlabRow)>, keys: &[PerfKey]) -> Vec<(u64, SlabRow)> {
    let keys = if keys.is_empty() { &SLAB } else { keys };
    rows.sort_rows_by(|a, b| first(keys, |key| key.of_slab(a, b)));
    rows
}

/// Rows of pages in the order of these keys; what is equal stays in the order of frames or call sites.
pub fn sorted_pages(mut rows: Vec<(PerfPageKey, PageRow)>, keys: &[PerfKey]) -> Vec<(PerfPageKey, PageRow)> {
    let keys = if keys.is_empty() { &PAGES } else { keys };
    rows.sort_rows_by(|a, b| first(keys, |key| key.of_page(a, b)));
    rows
}

fn first(keys: &[PerfKey], order: impl Fn(PerfKey) -> Ordering) -> Ordering {
    keys.iter().map(|&key| order(key)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// A page event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// An allocation; frame, or none if it failed; order, migrate type, flags; addresses of its stack.
    Alloc {
        /// First frame.
        pfn: Option<u64>,
        /// Order, migrate type, flags.
        key: (u32, u32, u32),
        /// The stack, innermost first.
        stack: Vec<u64>,
    },
    Free {
        /// First frame.
        pfn: u64,
        /// log2 of the number of pages.
        order: u32,
    },
}

/// CPU and level of an event.
pub type CpuAndLevel = (u32, u64);

/// Events in their order.
#[derive(Debug, Default)]
pub struct PageQueue {
    /// Events, and whether their stacks may still come.
    items: VecDeque<(Waiting, bool)>,
    /// Number of the first of them.
    first: u64,
    /// By CPU and level, the number of the event whose stack may still come there: one at a time.
    waiting: BTreeMap<CpuAndLevel, u64>,
}

/// More than any CPU's worth of events between an event and its stack.
const WAITING_MAX: usize = 65_536;

impl PageQueue {
    /// An event happened there: nothing of that level of the CPU waits any longer.
    pub fn happened(&mut self, level: CpuAndLevel) {
        if let Some(number) = self.waiting.remove(&level) {
            self.has_all(number);
        }
    }

    /// Events of that CPU were lost.
    pub fn lost(&mut self, cpu: u32) {
        while let Some((&level, _)) = self.waiting.range((cpu, 0)..=(cpu, u64::MAX)).next() {
            self.happened(level);
        }
    }

    fn at(&mut self, number: u64) -> Option<&mut (Waiting, bool)> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.items.get_mut(at)
    }

    /// No stack of that event comes any more.
    fn has_all(&mut self, number: u64) {
        if let Some((_, waits)) = self.at(number) {
            *waits = false;
        }
    }

    /// The number of the event that is pushed next.
    pub fn next_number(&self) -> u64 {
        self.first + self.items.len() as u64
    }

    /// Adds a page event; with its level if a stack may follow there.
    pub fn push(&mut self, event: Waiting, level: Option<CpuAndLevel>) {
        if let Some(level) = level {
            self.happened(level);
            self.waiting.insert(level, self.next_number());
        }
        self.items.push_back((event, level.is_some()));
    }

    /// The stack of the event of that number.
    pub fn stack(&mut self, number: u64, addresses: Vec<u64>) {
        if let Some((Waiting::Alloc { stack, .. }, waits)) = self.at(number) {
            *stack = addresses;
            *waits = false;
        }
    }

    /// The next event that waits for nothing; at the end, any.
    pub fn pop(&mut self, is_end: bool) -> Option<Waiting> {
        let is_due = is_end || self.items.len() > WAITING_MAX;
        self.items.front().filter(|(_, waits)| is_due || !waits)?;
        self.first += 1;
        self.items.pop_front().map(|(event, _)| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_that_differs_decides() {
        let row = |at: u64, hit, bytes_alloc, pingpong| {
            (at, SlabRow { bytes_alloc, bytes_req: 8, hit, pingpong, call_site: 100 - at })
        };
        let rows = [row(1, 5, 64, 0), row(2, 5, 32, 9), row(3, 7, 16, 0)];
        let order = |keys: &[PerfKey]| {
            let rows = sorted_slab(rows.to_vec(), keys);
            rows.iter().map(|(at, _)| *at).collect::<Vec<_>>()
        };
        assert_eq!(order(&[PerfKey::Ptr]), [3, 2, 1]);
        assert_eq!(order(&[PerfKey::Callsite]), [1, 2, 3]);
        assert_eq!(order(&[PerfKey::Hit, PerfKey::Bytes]), [3, 1, 2]);
        assert_eq!(order(&[PerfKey::Pingpong, PerfKey::Hit]), [2, 3, 1]);
        assert_eq!(order(&[]), [1, 2, 3]);
    }

    fn alloc(pfn: u64) -> Waiting {
        Waiting::Alloc { pfn: Some(pfn), key: (0, 0, 0), stack: Vec::new() }
    }

    #[test]
    fn events_wait_for_the_stack_of_their_place() {
        let mut queue = PageQueue::default();
        let number = queue.next_number();
        queue.push(alloc(1), Some((0, 7)));
        queue.push(alloc(2), Some((1, 7)));
        queue.push(Waiting::Free { pfn: 9, order: 0 }, None);
        assert_eq!(queue.pop(false), None, "the first one waits");
        queue.stack(number, vec![5]);
        assert_eq!(queue.pop(false), Some(Waiting::Alloc { pfn: Some(1), key: (0, 0, 0), stack: vec![5] }));
        assert_eq!(queue.pop(false), None);
        queue.lost(0);
        assert_eq!(queue.pop(false), None, "another CPU's loss");
        queue.lost(1);
        assert_eq!(queue.pop(false), Some(alloc(2)));
        assert_eq!(queue.pop(false), Some(Waiting::Free { pfn: 9, order: 0 }));
        queue.push(alloc(3), Some((0, 7)));
        queue.push(alloc(4), Some((0, 7)));
        assert_eq!((queue.pop(false), queue.pop(false)), (Some(alloc(3)), None), "one at a time");
        assert_eq!((queue.pop(true), queue.pop(true)), (Some(alloc(4)), None));
    }
}
