//! Generated work of a kernel: events of two CPUs whose truth is known.

use std::collections::VecDeque;

use crate::model::next;
use crate::support::model::{Event, What};

/// Start of the direct map.
const BASE: u64 = 0xffff_8880_0000_0000;
/// Sizes of a size class and of a request from it, in bytes.
const SIZES: [(u64, u64); 5] = [(64, 40), (192, 192), (512, 300), (1024, 1000), (4096, 2100)];

/// Kinds of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Work {
    /// Objects that live shortly, and few that stay.
    Steady,
    /// Most of what stays is allocated first.
    Startup,
    /// Allocations grow all the time.
    Leak,
    /// Long bursts of allocations that stay, one call site each.
    Bursts,
}

pub const WORKS: [Work; 4] = [Work::Steady, Work::Startup, Work::Leak, Work::Bursts];

/// State of the generator.
struct Machine {
    seed: u64,
    time: u64,
    events: Vec<Event>,
    /// Free slots of each size, used again last in, first out.
    free: [Vec<u64>; SIZES.len()],
    made: u64,
    /// Live objects that are freed later: size, address.
    queue: VecDeque<(usize, u64)>,
    /// Live pages that are freed later: frame, order.
    pages: VecDeque<(u64, u64)>,
    free_pages: [Vec<u64>; 3],
}

/// Events of a trace, about `count`.
pub fn events(seed: u64, work: Work, count: usize) -> Vec<Event> {
    let mut machine = Machine {
        seed,
        time: 1_000_000,
        events: Vec::new(),
        free: Default::default(),
        made: 0,
        queue: VecDeque::new(),
        pages: VecDeque::new(),
        free_pages: Default::default(),
    };
    while machine.events.len() < count {
        let done = machine.events.len() as f64 / count as f64;
        machine.step(work, done);
    }
    machine.events
}

impl Machine {
    fn below(&mut self, end: u64) -> u64 {
        next(&mut self.seed) % end
    }

    fn push(&mut self, what: What) {
        let step = self.below(4_000);
        self.time += 1 + step;
        let cpu = self.below(2);
        self.events.push(Event { time: self.time, cpu, pid: 7 + cpu as i64, what });
    }

    fn step(&mut self, work: Work, done: f64) {
        let stays = match work {
            Work::Steady => self.below(50) == 0,
            Work::Startup => done < 0.2 || self.below(50) == 0,
            Work::Leak => self.below(5) == 0,
            Work::Bursts => (done * 10.0) as u64 % 3 == 1,
        };
        match self.below(10) {
            0..=6 => self.alloc(stays, work == Work::Bursts),
            // Freed, but allocated before the trace.
            7 if self.below(4) == 0 => {
                let ptr = BASE + (1 << 33) + self.below(1 << 20) * 64;
                self.push(What::Free { kfree: false, ptr });
            }
            7 if self.below(20) == 0 => self.push(What::Free { kfree: true, ptr: 0 }),
            7 => self.page(stays),
            _ => self.ends(),
        }
        if self.queue.len() > 40 {
            self.ends();
        }
    }

    fn alloc(&mut self, stays: bool, is_burst: bool) {
        let at = if stays && is_burst { 2 } else { self.below(SIZES.len() as u64) as usize };
        let (alloc, req) = SIZES[at];
        let ptr = self.free[at].pop().unwrap_or_else(|| {
            self.made += 1;
            BASE + ((at as u64 + 1) << 28) + self.made * alloc
        });
        let kmalloc = at % 2 == 0;
        self.push(What::Alloc { kmalloc, site: 30 + at as u64, ptr, req, alloc });
        if !stays {
            self.queue.push_back((at, ptr));
        }
    }

    /// Some object is freed, one of 30 without an event.
    fn ends(&mut self) {
        let old = self.below(1 + self.queue.len() as u64) as usize;
        let Some((at, ptr)) = self.queue.swap_remove_back(old) else { return };
        self.free[at].push(ptr);
        if self.below(30) > 0 {
            self.push(What::Free { kfree: at % 2 == 0, ptr });
        }
    }

    fn page(&mut self, stays: bool) {
        if self.pages.len() > 10 || self.below(3) == 0 {
            let Some((pfn, order)) = self.pages.pop_front() else { return };
            self.free_pages[order as usize].push(pfn);
            self.push(What::PageFree { pfn, order });
            return;
        }
        let order = [0, 0, 0, 0, 1, 2][self.below(6) as usize];
        let pfn = self.free_pages[order as usize].pop().unwrap_or_else(|| {
            self.made += 1;
            0x10_0000 + self.made * 4
        });
        self.push(What::PageAlloc { pfn, order, movable: true });
        if !stays {
            self.pages.push_back((pfn, order));
        }
    }
}
