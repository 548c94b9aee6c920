//! Events that begin and end stalls, functions of the function graph tracer, and stalls of a task until its allocation.
//!
//! An allocation that waited ends after its stalls, so they are kept for each task until then.

use std::collections::HashMap;

use super::StallSums;
use super::kinds::{Compactors, Delayed, Stall};
use crate::int_hash::IntHash;
use crate::ledger::{PageEvent, SideEvent};
use crate::stream::{Op, Origin, SideEventKind, SideNumbers};

/// Bits of reclaim_flags (include/trace/events/vmscan.h, 4.4 to 7.2).
const RECLAIM_WB_FILE: u64 = 0x2;
const RECLAIM_WB_SYNC: u64 = 0x4;

impl StallSums {
    /// Adds a side event.
    pub(super) fn event(&mut self, event: &SideEvent) {
        let n = event.numbers;
        let pid = event.origin.pid;
        match event.kind {
            SideEventKind::NewTask | SideEventKind::TaskExit => {}
            SideEventKind::DirectBegin => {
                *self.tasks.entry(pid).or_default().direct.entry(n[0]).or_default() += 1;
                self.begin(Stall::Direct, event);
            }
            SideEventKind::DirectEnd => {
                let length = self.end(Stall::Direct, event);
                let task = self.tasks.entry(pid).or_default();
                task.direct_time = task.direct_time.saturating_add(length.unwrap_or(0));
                task.direct_reclaimed.add(n[0]);
            }
            SideEventKind::MemcgBegin => self.begin(Stall::Memcg, event),
            SideEventKind::MemcgEnd => drop(self.end(Stall::Memcg, event)),
            SideEventKind::SoftLimitBegin => self.begin(Stall::SoftLimit, event),
            SideEventKind::SoftLimitEnd => drop(self.end(Stall::SoftLimit, event)),
            SideEventKind::NodeBegin => self.begin(Stall::Node, event),
            SideEventKind::NodeEnd => drop(self.end(Stall::Node, event)),
            SideEventKind::KswapdWake => {
                let is_awake = self.open.get(&pid).is_some_and(|o| o.contains_key(&Stall::Kswapd(n[0])));
                let task = self.tasks.entry(pid).or_default();
                let wakes = if is_awake { &mut task.rewakes } else { &mut task.wakes };
                *wakes.entry(n[1]).or_default() += 1;
                if !is_awake {
                    self.begin(Stall::Kswapd(n[0]), event);
                }
            }
            SideEventKind::KswapdSleep => drop(self.end(Stall::Kswapd(n[0]), event)),
            SideEventKind::WakeupKswapd => {
                *self.tasks.entry(pid).or_default().wakeups.entry(n[0]).or_default() += 1;
            }
            SideEventKind::ShrinkBegin => self.begin(Stall::Shrinker(n[1], n[0]), event),
            SideEventKind::ShrinkEnd => {
                let stall = Stall::Shrinker(n[1], n[0]);
                self.end(stall, event);
                // A shrinker may return SHRINK_STOP, ~0UL.
                let objects = n[2].map(|objects| u64::try_from(objects as i64).unwrap_or(0));
                self.shrunk.entry(stall).or_default().add(objects);
            }
            SideEventKind::LruIsolate => self.isolate(pid, &n),
            SideEventKind::ShrinkInactive => {
                let is_anon = n[1].map(|flags| flags & RECLAIM_WB_FILE == 0);
                self.tasks.entry(pid).or_default().reclaimed.add(is_anon, n[0]);
            }
            SideEventKind::WritePage => {
                let is_async = n[0].map(|flags| flags & RECLAIM_WB_SYNC == 0);
                self.tasks.entry(pid).or_default().written.add(is_async, Some(1));
            }
            SideEventKind::TryCompact => drop(self.compacting.insert(pid, event.time)),
            SideEventKind::CompactBegin => self.begin(self.compaction(pid), event),
            SideEventKind::CompactEnd => drop(self.end(self.compaction(pid), event)),
            kind @ (SideEventKind::IsolateMigrate
            | SideEventKind::IsolateFree
            | SideEventKind::CompactMigrate
            | SideEventKind::MigratePages) => self.tasks.entry(pid).or_default().migrate(kind, &n),
            SideEventKind::GraphEntry => self.functions.enter(event),
            SideEventKind::GraphExit => match self.functions.exit(event) {
                Some((function, begin, end)) => self.add(Stall::Function(function), event.origin, begin, end),
                None => self.ends_without_begin += 1,
            },
            SideEventKind::Fallback
            | SideEventKind::PcpuDrain
            | SideEventKind::ZoneLocked
            | SideEventKind::FreeBatched
            | SideEventKind::VmallocAlloc
            | SideEventKind::VmallocFree
            | SideEventKind::PercpuAlloc
            | SideEventKind::PercpuFail
            | SideEventKind::PercpuFree => {}
        }
    }

    /// Scanned pages of inactive lists only, as vmstat counts; active ones are rotated.
    fn isolate(&mut self, pid: i32, n: &SideNumbers) {
        let [scanned, isolate_mode, lru, file, ..] = *n;
        let (is_inactive, is_anon) = match lru {
            // enum lru_list: inactive and active anonymous, inactive and active file.
            Some(lru) => (Some(lru == 0 || lru == 2), Some(lru < 2)),
            // ISOLATE_ACTIVE alone was 2.
            None => (isolate_mode.map(|mode| mode != 2), file.map(|file| file == 0)),
        };
        match is_inactive {
            Some(true) => self.tasks.entry(pid).or_default().scanned.add(is_anon, scanned),
            Some(false) => {}
            None => self.tasks.entry(pid).or_default().scanned.add(None, None),
        }
    }

    /// Kind of a compaction: direct if the task announced it, which kcompactd does not do.
    fn compaction(&self, pid: i32) -> Stall {
        let is_direct = match &self.compactors {
            Compactors::Announced => self.compacting.contains_key(&pid),
            Compactors::AllBut(pids) => pids.binary_search(&pid).is_err(),
        };
        if is_direct { Stall::DirectCompaction } else { Stall::Compaction }
    }
}

/// Stalls of each task, until its allocation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    stalls: HashMap<i32, Vec<(Stall, u64)>, IntHash>,
    /// Stalls beyond the limit of undecided ones.
    dropped: u64,
}

/// Largest number of undecided stalls of one task: page allocations may not be recorded.
const WAITING_MAX: usize = 64;

impl Waiting {
    /// Adds a stall of a task.
    pub(super) fn add(&mut self, pid: i32, stall: Stall, length: u64) {
        let stalls = self.stalls.entry(pid).or_default();
        if stalls.len() < WAITING_MAX { stalls.push((stall, length)) } else { self.dropped += 1 }
    }

    /// Number of stalls without an allocation after them.
    pub(super) fn count(&self) -> u64 {
        self.stalls.values().map(Vec::len).sum::<usize>() as u64 + self.dropped
    }
}

impl StallSums {
    /// Adds a page allocation, or its failure: the task may have waited for it.
    pub(super) fn delayed_pages(&mut self, event: &PageEvent) {
        let pid = event.origin.pid;
        self.compacting.remove(&pid);
        let before = self.answered.remove(pid).unwrap_or_default();
        self.count_delayed(before);
        let Some(waiting) = self.waiting.stalls.get_mut(&pid).filter(|w| !w.is_empty()) else { return };
        let (page_site, failed) = (event.op.code.number(), event.failed);
        let delayed = |(stall, length)| (Delayed { stall, page_site, slab_site: None, failed }, length);
        let answered = waiting.drain(..).map(delayed).collect();
        if failed || event.site.is_movable() {
            self.count_delayed(answered);
        } else {
            self.answered.insert(pid, answered, Some(event));
        }
    }

    /// Adds a slab allocation.
    pub(super) fn delayed_slab(&mut self, op: &Op, origin: Origin) {
        if let Some((mut answered, is_its)) = self.answered.remove_for(op, origin) {
            if is_its {
                answered.iter_mut().for_each(|(delayed, _)| delayed.slab_site = Some(op.code.number()));
            }
            self.count_delayed(answered);
        }
    }

    pub(super) fn count_delayed(&mut self, answered: Vec<(Delayed, u64)>) {
        for (delayed, length) in answered {
            self.delayed.entry(delayed).or_default().add(length);
        }
    }
}

/// Open functions of each stack, by rising depth: function, depth, time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OpenFunctions(HashMap<i32, Vec<(u64, u64, u64)>, IntHash>);

/// Largest depth of a function in the kernel (FTRACE_RETFUNC_DEPTH).
const DEPTH_MAX: usize = 50;

/// Key of the function stack of an event: its task, or its CPU for the idle task.
fn stack_of(origin: Origin) -> i32 {
    if origin.pid == 0 { -1 - i32::try_from(origin.cpu).unwrap_or(0) } else { origin.pid }
}

impl OpenFunctions {
    /// Adds the entry of a function.
    pub(super) fn enter(&mut self, event: &SideEvent) {
        let (Some(func), Some(depth)) = (event.numbers[0], event.numbers[1]) else { return };
        let open = self.0.entry(stack_of(event.origin)).or_default();
        // Functions at this depth or deeper have ended, and their exits were lost.
        while open.last().is_some_and(|(_, other, _)| *other >= depth) {
            open.pop();
        }
        open.push((func, depth, event.time));
    }

    /// Number of functions around the one that the event ended, or else of open ones. A tracer with a threshold records
    /// exits alone, and their depth.
    pub(super) fn around(&self, event: &SideEvent) -> usize {
        let open = self.0.get(&stack_of(event.origin)).map_or(0, Vec::len);
        let depth = event.numbers[1].filter(|_| event.kind == SideEventKind::GraphExit).unwrap_or(0);
        open.max(usize::try_from(depth).unwrap_or(0).min(DEPTH_MAX))
    }

    /// Function of an exit with its begin and end; `None`: they are unknown.
    pub(super) fn exit(&mut self, event: &SideEvent) -> Option<(u64, u64, u64)> {
        let [func, depth, call, ret, ..] = event.numbers;
        let (func, depth) = func.zip(depth)?;
        let times = call.zip(ret).filter(|&(call, ret)| call != 0 && ret >= call);
        let open = self.0.entry(stack_of(event.origin)).or_default();
        let entered = open.binary_search_by_key(&depth, |e| e.1).ok();
        let entered = entered.filter(|&at| open.get(at).is_some_and(|e| e.0 == func));
        let entered = entered.and_then(|at| open.drain(at..).next());
        let (begin, end) = times.or(entered.map(|(.., time)| (time, event.time)))?;
        Some((func, begin, end))
    }
}
