//! Sums by task: allocated objects and pages, and freed objects.

use std::collections::HashMap;

use super::collector::StateCollector;
use super::sums::{grown, sums};
use crate::int_hash::IntHash;
use crate::ledger::lives::{End, Free, NoLife};
use crate::ledger::page_totals::FrameTotals;
use crate::ledger::totals::Totals;
use crate::ledger::{Closed, ClosedFrames, Interests, PageGroup, Receiver};

/// Collects sums by CPU, task and level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tasks;

impl StateCollector for Tasks {
    type State = TaskSums;

    const INTERESTS: Interests = Interests::LIVES.union(Interests::FRAMES).union(Interests::UNMATCHED);
}

/// Sums of all origins.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TaskSums {
    /// By number of the allocating origin.
    pub origins: Vec<OriginSums>,
    /// Objects that another origin freed: allocating and freeing origin, objects, bytes.
    pub handed: HashMap<(u32, u32), (u64, u64), IntHash>,
}

/// Sums of one origin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OriginSums {
    /// Slab objects that it allocated.
    pub slab: Totals,
    /// Pages that it allocated.
    pub pages: FrameTotals,
    /// Slab objects that it freed, allocated by any task.
    pub freed_here: u64,
    /// Bytes of those allocated in the trace.
    pub bytes_freed_here: u64,
}

sums!(OriginSums: slab, pages, freed_here, bytes_freed_here);

impl Receiver for TaskSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        let sums = grown(&mut self.origins, closed.life.origin);
        let bytes = closed.bytes_alloc;
        sums.slab += &closed.totals();
        if let End::Freed { free, .. } = closed.end {
            if closed.is_freed {
                let freer = grown(&mut self.origins, free.origin);
                freer.freed_here += 1;
                freer.bytes_freed_here += bytes;
                if free.origin != closed.life.origin {
                    let handed = self.handed.entry((closed.life.origin, free.origin)).or_default();
                    handed.0 += 1;
                    handed.1 += bytes;
                }
            }
        }
    }

    fn closed_frames(&mut self, closed: &ClosedFrames) {
        let sums = &mut grown(&mut self.origins, closed.origin).pages;
        *sums += &closed.sums;
        if closed.is_born {
            sums.frames_alloc = sums.frames_alloc.saturating_add(closed.frames);
            sums.alloc_events += u64::from(closed.is_last);
        }
    }

    fn page_failed(&mut self, group: PageGroup) {
        grown(&mut self.origins, group.origin).pages.alloc_failures += 1;
    }

    fn unmatched(&mut self, free: &Free, _: NoLife) {
        grown(&mut self.origins, free.origin).freed_here += 1;
    }
}
