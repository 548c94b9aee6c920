//! Events that begin and end stalls.

use super::StallSums;
use super::kinds::{Compactors, Stall};
use crate::ledger::SideEvent;
use crate::stream::{SideEventKind, SideNumbers};

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
