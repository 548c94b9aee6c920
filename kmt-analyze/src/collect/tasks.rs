//! Sums by task: allocated objects and pages, freed objects, kmalloc by call site; and starts and exits of tasks.
//!
//! `tasks` reports the sums, findings those of the recorder itself. `leaks` needs parents, starts and exits.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::collector::{PassFacts, StateCollector};
use super::sums::{Sums, grown, sums};
use crate::int_hash::IntHash;
use crate::ledger::lives::{End, Free, NoLife};
use crate::ledger::totals::{FrameTotals, Totals};
use crate::ledger::{Closed, ClosedFrames, FreedPlain, Interests, PageGroup, PlainLife, Receiver, SideEvent};
use crate::stream::{Api, SideEventKind};

/// Collects sums by CPU, task and level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tasks;

impl StateCollector for Tasks {
    type State = TaskSums;

    const INTERESTS: Interests = Interests::PLAIN_LIVES.union(Interests::FRAMES).union(Interests::UNMATCHED);
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
        grown(&mut self.origins, closed.life.origin).slab += &closed.totals();
        if let End::Freed { free, .. } = closed.end {
            if closed.is_freed {
                self.freed(closed.life.origin, free.origin, closed.bytes_alloc);
            }
        }
    }

    #[inline]
    fn freed_plain(&mut self, FreedPlain { plain, op, .. }: &FreedPlain) {
        plain.add_freed(&mut grown(&mut self.origins, plain.life.origin).slab);
        self.freed(plain.life.origin, op.origin, plain.bytes_alloc);
    }

    fn implied_free_plain(&mut self, plain: &PlainLife, _: u64) {
        plain.add_implied(&mut grown(&mut self.origins, plain.life.origin).slab);
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

    fn unmatched(&mut self, _: u64, free: &Free, _: NoLife) {
        grown(&mut self.origins, free.origin).freed_here += 1;
    }
}

impl TaskSums {
    /// Adds an object that was freed in the window.
    #[inline]
    fn freed(&mut self, born_at: u32, freed_at: u32, bytes: u64) {
        let freer = grown(&mut self.origins, freed_at);
        freer.freed_here += 1;
        freer.bytes_freed_here += bytes;
        if freed_at != born_at {
            let handed = self.handed.entry((born_at, freed_at)).or_default();
            handed.0 += 1;
            handed.1 += bytes;
        }
    }
}

/// Collects what one task allocates by kmalloc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskKmalloc(pub i32);

impl StateCollector for TaskKmalloc {
    type State = TaskKmallocSums;

    const INTERESTS: Interests = Interests::PLAIN_LIVES;

    fn begin(&self, _: &PassFacts) -> TaskKmallocSums {
        TaskKmallocSums { pid: self.0, callers: Vec::new() }
    }
}

/// Sums of one task.
#[derive(Debug, Default)]
pub struct TaskKmallocSums {
    pid: i32,
    /// By number of the call site and interface.
    pub callers: Vec<Kmalloc>,
}

/// Bytes of kmalloc.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kmalloc {
    /// Bytes allocated.
    pub alloc: u64,
    /// Bytes allocated beyond the requested ones.
    pub wasted: u64,
}

impl Receiver for TaskKmallocSums {
    #[inline]
    fn closed(&mut self, closed: &Closed) {
        if closed.is_born {
            self.born(&PlainLife::of(closed));
        }
    }

    #[inline]
    fn freed_plain(&mut self, FreedPlain { plain, .. }: &FreedPlain) {
        self.born(plain);
    }

    fn implied_free_plain(&mut self, plain: &PlainLife, _: u64) {
        self.born(plain);
    }
}

impl TaskKmallocSums {
    /// Adds an object that was allocated in the window.
    #[inline]
    fn born(&mut self, life: &PlainLife) {
        if life.pid == self.pid && life.api == Api::Kmalloc {
            let wasted = life.bytes_alloc.saturating_sub(life.bytes_req);
            grown(&mut self.callers, life.caller).absorb(Kmalloc { alloc: life.bytes_alloc, wasted });
        }
    }
}

sums!(Kmalloc: alloc, wasted);

/// `CLONE_THREAD`: the new task is a thread of the process that starts it (include/uapi/linux/sched.h).
const CLONE_THREAD: u64 = 0x0001_0000;

/// Collects starts and exits of tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskLifetimes {
    /// Processes of threads that the file lists, by thread.
    pub processes: Arc<BTreeMap<i32, i32>>,
}

impl StateCollector for TaskLifetimes {
    type State = TaskEvents;

    const INTERESTS: Interests = Interests::TASKS;

    fn begin(&self, _: &PassFacts) -> TaskEvents {
        TaskEvents { processes: Arc::clone(&self.processes), ..TaskEvents::default() }
    }
}

/// Start of a task. The later one is greater; of two at once, that of the task with the higher id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Start {
    pub time: u64,
    /// The task that started it.
    pub parent: i32,
    /// True if it is a thread of its parent's process.
    pub is_thread: bool,
}

/// Starts and exits in the window, by thread id. An id that is used again has its last start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskEvents {
    /// Last start of each task.
    pub starts: HashMap<i32, Start, IntHash>,
    /// Last exit of each task.
    pub exits: HashMap<i32, u64, IntHash>,
    /// Number of starts.
    pub started: u64,
    /// Processes of threads that were there before, by thread.
    pub processes: Arc<BTreeMap<i32, i32>>,
}

impl Receiver for TaskEvents {
    fn side_event(&mut self, event: &SideEvent) {
        let Some(pid) = event.numbers.first().copied().flatten().map(|pid| pid as i32) else { return };
        match event.kind {
            SideEventKind::NewTask => {
                let flags = event.numbers.get(1).copied().flatten().unwrap_or(0);
                let start = Start {
                    time: event.time,
                    parent: event.origin.pid,
                    is_thread: flags & CLONE_THREAD != 0,
                };
                self.started += 1;
                let last = self.starts.entry(pid).or_default();
                *last = start.max(*last);
            }
            SideEventKind::TaskExit => {
                let exit = self.exits.entry(pid).or_default();
                *exit = event.time.max(*exit);
            }
            _ => {}
        }
    }
}

impl TaskEvents {
    /// True if a task has exited, and its id is not that of a later task.
    pub fn has_exited(&self, pid: i32) -> bool {
        let Some(exit) = self.exits.get(&pid) else { return false };
        self.starts.get(&pid).is_none_or(|start| start.time <= *exit)
    }

    /// The task that started the process of a task; a thread of it may have. `None`: the process was there before the
    /// window.
    pub fn parent(&self, pid: i32) -> Option<i32> {
        let start = self.starts.get(&self.process(pid)).filter(|start| !start.is_thread)?;
        Some(start.parent)
    }

    /// The process of a thread; a process is its own.
    pub fn process(&self, pid: i32) -> i32 {
        let mut own = pid;
        // Threads start threads.
        for _ in 0..DEPTH_MAX {
            match self.starts.get(&own).filter(|start| start.is_thread) {
                Some(start) => own = start.parent,
                None => break,
            }
        }
        self.processes.get(&own).copied().unwrap_or(own)
    }
}

/// Longest chain of threads that start each other.
const DEPTH_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Origin;

    #[test]
    fn tasks_have_parents_and_ends() {
        let mut events = TaskEvents::default();
        let mut see = |kind, time, parent, numbers: [Option<u64>; 2]| {
            let mut all = [None; crate::stream::side_events::FIELDS];
            all[..2].copy_from_slice(&numbers);
            let origin = Origin { pid: parent, ..Origin::default() };
            events.side_event(&SideEvent { kind, numbers: all, time, origin });
        };
        see(SideEventKind::NewTask, 1, 50, [Some(51), Some(0)]);
        see(SideEventKind::NewTask, 2, 51, [Some(52), Some(CLONE_THREAD)]);
        see(SideEventKind::TaskExit, 3, 51, [Some(51), None]);
        see(SideEventKind::TaskExit, 4, 60, [Some(60), None]);
        see(SideEventKind::NewTask, 5, 7, [Some(60), Some(0)]);
        assert_eq!([51, 52, 60, 9].map(|pid| events.parent(pid)), [Some(50), Some(50), Some(7), None]);
        events.processes = Arc::new([(70, 7), (71, 7)].into());
        assert_eq!([51, 52, 60, 9, 70, 71].map(|pid| events.process(pid)), [51, 51, 60, 9, 7, 7]);
        assert_eq!([51, 52, 60].map(|pid| events.has_exited(pid)), [true, false, false]);
        assert_eq!(events.started, 3);
    }
}
