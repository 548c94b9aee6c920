//! Sums by task: of the objects and pages that it allocated, and of what it freed.

use std::collections::HashMap;

use super::grown;
use crate::int_hash::IntHash;
use crate::ledger::lives::{End, Free};
use crate::ledger::page_totals::FrameTotals;
use crate::ledger::totals::Totals;
use crate::ledger::{Closed, ClosedFrames};

/// Sums by CPU, task and level.
#[derive(Debug, Default)]
pub struct Tasks {
    /// By number of the origin that allocated.
    pub origins: Vec<TaskSums>,
    /// Bytes handed from one task to another: allocating and freeing origin, objects, bytes.
    pub handed: HashMap<(u32, u32), (u64, u64), IntHash>,
}

/// Sums of one origin.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskSums {
    /// Slab objects that it allocated.
    pub slab: Totals,
    /// Pages that it allocated.
    pub pages: FrameTotals,
    /// Slab objects that it freed, whoever had allocated them.
    pub freed_here: u64,
    /// Bytes of those that the trace knows.
    pub bytes_freed_here: u64,
}

impl Tasks {
    /// A life is added up.
    #[inline]
    pub fn closed(&mut self, closed: &Closed) {
        let sums = grown(&mut self.origins, closed.life.origin);
        let bytes = closed.bytes_alloc;
        let if_so = |is: bool, number: u64| if is { number } else { 0 };
        sums.slab += &Totals {
            alloc_events: closed.is_born.into(),
            bytes_req: if_so(closed.is_born, closed.bytes_req),
            bytes_alloc: if_so(closed.is_born, bytes),
            frees_matched: closed.is_freed.into(),
            bytes_freed: if_so(closed.is_freed, bytes),
            freed_unseen: closed.is_unseen.into(),
            bytes_freed_unseen: if_so(closed.is_unseen, bytes),
            live: closed.is_live.into(),
            bytes_live: if_so(closed.is_live, bytes),
            bytes_req_live: if_so(closed.is_live, closed.bytes_req),
            waiting: closed.is_waiting.into(),
            bytes_waiting: if_so(closed.is_waiting, bytes),
            uncertain: closed.uncertain.into(),
            live_uncertain: (closed.uncertain && closed.is_live).into(),
            bytes_live_uncertain: if_so(closed.uncertain && closed.is_live, bytes),
            freed_unseen_uncertain: (closed.uncertain && closed.is_unseen).into(),
        };
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

    /// Frames are added up.
    pub fn closed_frames(&mut self, closed: &ClosedFrames) {
        let sums = &mut grown(&mut self.origins, closed.origin).pages;
        *sums += &closed.sums;
        sums.frames_alloc += if closed.is_born { closed.frames } else { 0 };
    }

    /// A free of something that the trace does not know.
    pub fn unmatched(&mut self, free: &Free) {
        grown(&mut self.origins, free.origin).freed_here += 1;
    }
}
