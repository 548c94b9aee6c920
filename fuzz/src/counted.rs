//! A collector of the `library` target: counts events of the ledger as a receiver gets them, and holds them against totals.

use kmt_analyze::collect::{
    Change, Closed, ClosedFrames, Collector, FoldedLives, FoldedPages, FrameTotals, Free, Interests, NoLife,
    Op, Origin, PageEvent, PassFacts, Receiver,
};
use kmt_analyze::reports::SummaryRows;

/// Counts all events that a receiver can get of lives and pages.
#[derive(Debug, PartialEq)]
pub struct Counting;

/// Numbers of events by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counted {
    /// End of the window: how many events come after it depends on what else is wanted.
    until: u64,
    births: u64,
    ends: u64,
    allocs: u64,
    born: u64,
    freed: u64,
    unseen: u64,
    live: u64,
    uncertain: u64,
    bytes_alloc: u64,
    bytes_freed: u64,
    bytes_live: u64,
    cross_cpu_frees: u64,
    unmatched: u64,
    before: u64,
    page_allocs: u64,
    page_frees: u64,
    frames: FrameTotals,
    /// Lives that are in the file as sums: they have no changes.
    folded: u64,
}

impl Receiver for Counted {
    fn closed(&mut self, life: &Closed) {
        self.born += u64::from(life.is_born);
        self.freed += u64::from(life.is_freed);
        self.unseen += u64::from(life.is_implied_free);
        self.live += u64::from(life.is_live);
        self.uncertain += u64::from(life.uncertain);
        self.bytes_alloc += if life.is_born { life.bytes_alloc } else { 0 };
        self.bytes_freed += if life.is_freed { life.bytes_alloc } else { 0 };
        self.bytes_live += if life.is_live { life.bytes_alloc } else { 0 };
        let is_elsewhere = life.freed_at.is_some_and(|place| place.cpu != life.born_at.cpu);
        self.cross_cpu_frees += u64::from(life.is_freed && is_elsewhere);
    }

    fn unmatched(&mut self, _: u64, _: &Free, no_life: NoLife) {
        self.unmatched += 1;
        self.before += u64::from(no_life == NoLife::Before);
    }

    fn changed(&mut self, change: &Change) {
        let counts = change.selected && change.time <= self.until;
        *(if change.is_birth { &mut self.births } else { &mut self.ends }) += u64::from(counts);
    }

    fn slab_alloc(&mut self, _: &Op, _: Origin, counted: bool) {
        self.allocs += u64::from(counted);
    }

    fn page_alloc(&mut self, event: &PageEvent) {
        self.page_allocs += u64::from(event.counted);
    }

    fn page_free(&mut self, event: &PageEvent) {
        self.page_frees += u64::from(event.counted);
    }

    fn closed_frames(&mut self, closed: &ClosedFrames) {
        self.frames += &closed.sums;
    }

    fn folded(&mut self, lives: &FoldedLives) {
        let (count, bytes) = (lives.sums.count, lives.sums.count.saturating_mul(lives.bytes_alloc));
        for (sum, more) in [
            (&mut self.born, count),
            (&mut self.freed, count),
            (&mut self.folded, count),
            (&mut self.bytes_alloc, bytes),
            (&mut self.bytes_freed, bytes),
            (&mut self.cross_cpu_frees, lives.sums.cross_cpu),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    fn folded_pages(&mut self, pages: &FoldedPages) {
        let count = pages.sums.count;
        for (sum, more) in [
            (&mut self.page_allocs, count),
            (&mut self.page_frees, count),
            (&mut self.frames.frames_freed, count.saturating_mul(1 << pages.kind.order)),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

impl Collector for Counting {
    type State = Counted;
    type Output = Counted;

    const INTERESTS: Interests = Interests::LIVES
        .union(Interests::CHANGES)
        .union(Interests::SLAB_ALLOCS)
        .union(Interests::UNMATCHED)
        .union(Interests::PAGES)
        .union(Interests::FRAMES);

    fn begin(&self, facts: &PassFacts) -> Counted {
        Counted { until: facts.rules.window.1, ..Counted::default() }
    }

    fn finish(state: Counted) -> Counted {
        state
    }
}

impl Counted {
    /// Holds the counts against the totals of the same pass. Totals whose events were not recorded are `None`.
    pub fn check(&self, totals: &SummaryRows, is_everything_selected: bool) {
        let same = |name: &str, own: u64, total: Option<u64>| {
            assert_eq!(own, total.unwrap_or(own), "{name}: of the collector, of summary");
        };
        if let Some(slab) = &totals.slab {
            let all = &slab.totals;
            same("alloc_events", self.born, all.alloc_events);
            same("free_events", self.freed + self.unmatched, all.free_events);
            same("frees_matched", self.freed, all.frees_matched);
            same("frees_unmatched", self.unmatched, all.frees_unmatched);
            same("frees_allocated_before", self.before, all.frees_allocated_before);
            same("freed_unseen", self.unseen, all.freed_unseen);
            same("live", self.live, all.live);
            same("uncertain", self.uncertain, all.uncertain);
            same("bytes_alloc", self.bytes_alloc, all.bytes_alloc);
            same("bytes_freed", self.bytes_freed, all.bytes_freed);
            same("bytes_live", self.bytes_live, all.bytes_live);
            same("cross_cpu_frees", self.cross_cpu_frees, all.cross_cpu_frees);
            if is_everything_selected {
                self.check_changes(all.double_reports);
                let all = slab.raw.alloc_events.unwrap_or(u64::MAX);
                assert!(
                    self.allocs <= all,
                    "{} of {all} allocations follow pages or a side event",
                    self.allocs
                );
            }
        }
        if let Some(pages) = &totals.pages {
            same("page allocs", self.page_allocs, pages.sums.raw.alloc_events);
            same("page frees", self.page_frees, pages.sums.raw.free_events);
            same("pages_freed", self.frames.frames_freed, pages.sums.sums.pages_freed);
            same("pages_live", self.frames.frames_live, pages.sums.sums.pages_live);
        }
    }

    /// Every object begins once and ends once or is live; the second report of a kmalloc ends it at one site and begins
    /// it at another (R4).
    fn check_changes(&self, double_reports: Option<u64>) {
        assert_eq!(self.born, self.freed + self.unseen + self.live, "lives by their ends");
        assert_eq!(self.births - self.ends, self.live, "births without ends");
        let Some(double_reports) = double_reports else { return };
        assert_eq!(self.births + self.folded, self.born + double_reports, "births");
    }
}
