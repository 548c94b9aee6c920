//! Parts shared by the rows of several reports: sums, bounds, addresses.
//!
//! A sum is unknown if its events were not recorded: `null` in JSON, a mark in tables. [`RecordedSums`] decides it.

use std::ops::Deref;

use serde::{Serialize, Serializer};

use super::basis::Basis;
use crate::collect::AreaKind;
use crate::collect::sums::sums;
use crate::ledger::totals::{FrameTotals, Totals};
use crate::pass::coverage::Coverage;
use crate::pass::coverage::bounds::LiveSpan;
use crate::pass::weights::Estimate;
use crate::render::words::escaped;
use crate::stream::Api;

/// An address or a pointer: `"0xffff..."`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transparent))]
pub struct Address(#[cfg_attr(test, schemars(with = "String"))] pub u64);

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

/// Text of the target; bytes that are not UTF-8 are escaped as `\xNN`.
pub fn text(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| escaped(bytes), str::to_owned)
}

/// Sums of slab objects; `null`: the events of the number were not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlabSums {
    /// Successful allocations, a kmalloc that reports twice counted once.
    pub alloc_events: Option<u64>,
    /// Bytes requested.
    pub bytes_req: Option<u64>,
    /// Bytes allocated.
    pub bytes_alloc: Option<u64>,
    /// bytes_alloc - bytes_req, over all allocations.
    pub bytes_wasted: Option<u64>,
    /// 100 x bytes_wasted / bytes_alloc.
    pub internal_fragmentation_percent: Option<f64>,
    /// Frees that ended a life seen in the trace.
    pub frees_matched: Option<u64>,
    /// Bytes of those lives.
    pub bytes_freed: Option<u64>,
    /// Implied frees: the address or page was reused, and no free event was recorded.
    pub freed_unseen: Option<u64>,
    /// Bytes of those lives.
    pub bytes_freed_unseen: Option<u64>,
    /// Objects live at the end of the window, allocated in the trace.
    pub live: Option<u64>,
    /// Bytes of live objects.
    pub bytes_live: Option<u64>,
    /// bytes_alloc - bytes_req, over live objects.
    pub bytes_wasted_live: Option<u64>,
    /// Lives that cross a loss, or whose free is ambiguous.
    pub uncertain: Option<u64>,
    /// Bytes of live objects that cross a loss, or whose free is ambiguous.
    pub bytes_live_uncertain: Option<u64>,
}

impl SlabSums {
    /// Sums from totals; `null` where events were not recorded.
    pub fn of(t: &Totals, recorded: RecordedSums) -> Self {
        let alloc = |number: u64| recorded.allocs.then_some(number);
        let life = |number: u64| recorded.lives.then_some(number);
        Self {
            alloc_events: alloc(t.alloc_events),
            bytes_req: alloc(t.bytes_req),
            bytes_alloc: alloc(t.bytes_alloc),
            bytes_wasted: alloc(t.bytes_wasted()),
            internal_fragmentation_percent: recorded.allocs.then(|| t.internal_fragmentation_percent()),
            frees_matched: life(t.frees_matched),
            bytes_freed: life(t.bytes_freed),
            freed_unseen: life(t.implied_frees),
            bytes_freed_unseen: life(t.bytes_freed_implied),
            live: life(t.live),
            bytes_live: life(t.bytes_live),
            bytes_wasted_live: life(t.bytes_wasted_live()),
            uncertain: life(t.uncertain),
            bytes_live_uncertain: life(t.bytes_live_uncertain),
        }
    }
}

/// Sums of pages; `null`: the events of the number were not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FrameSums {
    /// Successful allocations.
    pub alloc_events: Option<u64>,
    /// Allocations that returned no page.
    pub alloc_failures: Option<u64>,
    #[serde(flatten)]
    pub pages: PageAmounts,
}

/// Sums of pages without their events; `null`: the events of the number were not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PageAmounts {
    /// Pages allocated.
    pub pages_alloc: Option<u64>,
    /// Bytes of pages allocated.
    pub bytes_alloc: Option<u64>,
    /// Pages freed.
    pub pages_freed: Option<u64>,
    /// Bytes of pages freed.
    pub bytes_freed: Option<u64>,
    /// Implied frees: pages allocated again while they seemed live.
    pub pages_freed_unseen: Option<u64>,
    /// Bytes of implied frees.
    pub bytes_freed_unseen: Option<u64>,
    /// Pages allocated at the end of the window.
    pub pages_live: Option<u64>,
    /// Bytes of pages allocated at the end of the window.
    pub bytes_live: Option<u64>,
    /// Pages of allocations that cross a loss.
    pub pages_uncertain: Option<u64>,
    /// Bytes of live pages of allocations that cross a loss.
    pub bytes_live_uncertain: Option<u64>,
}

impl Deref for FrameSums {
    type Target = PageAmounts;

    fn deref(&self) -> &PageAmounts {
        &self.pages
    }
}

impl FrameSums {
    /// Sums from totals; `null` where events were not recorded.
    pub fn of(t: &FrameTotals, page_size: u64, recorded: RecordedSums) -> Self {
        let alloc = |number: u64| recorded.allocs.then_some(number);
        let life = |number: u64| recorded.lives.then_some(number);
        let bytes = |frames: u64| frames.saturating_mul(page_size);
        Self {
            alloc_events: alloc(t.alloc_events),
            alloc_failures: alloc(t.alloc_failures),
            pages: PageAmounts {
                pages_alloc: alloc(t.frames_alloc),
                bytes_alloc: alloc(bytes(t.frames_alloc)),
                pages_freed: life(t.frames_freed),
                bytes_freed: life(bytes(t.frames_freed)),
                pages_freed_unseen: life(t.frames_freed_implied),
                bytes_freed_unseen: life(bytes(t.frames_freed_implied)),
                pages_live: life(t.frames_live),
                bytes_live: life(bytes(t.frames_live)),
                pages_uncertain: life(t.frames_uncertain),
                bytes_live_uncertain: life(bytes(t.frames_live_uncertain)),
            },
        }
    }
}

/// Sums of all events that samples stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Estimated {
    /// Allocations.
    pub alloc_events: u64,
    /// Bytes requested.
    pub bytes_req: u64,
    /// Bytes allocated.
    pub bytes_alloc: u64,
}

sums!(Estimated: alloc_events, bytes_req, bytes_alloc);

impl Estimated {
    /// Bytes allocated beyond those requested.
    pub fn bytes_wasted(&self) -> u64 {
        self.bytes_alloc.saturating_sub(self.bytes_req)
    }
}

impl From<Estimate> for Estimated {
    fn from(e: Estimate) -> Self {
        let whole = |number: f64| number.round() as u64;
        Self {
            alloc_events: whole(e.alloc_events),
            bytes_req: whole(e.bytes_req),
            bytes_alloc: whole(e.bytes_alloc),
        }
    }
}

/// Share of the frees of a row that have events, and the bounds of its live objects.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LiveRange {
    /// `all`, `partly`, `none`; `unknown`: no life ended, or too few compared with the live objects.
    pub frees_seen: Option<&'static str>,
    /// Share of the lives that ended with an event.
    pub frees_seen_percent: Option<f64>,
    /// Objects live at the end: at least, at most.
    pub live_range: Option<[u64; 2]>,
    /// Bytes live at the end: at least, at most.
    pub bytes_live_range: Option<[u64; 2]>,
}

impl LiveRange {
    /// Bounds of a row; `null` if frees were not recorded.
    pub fn of(totals: &Totals, live: Option<LiveSpan>, lives_are_recorded: bool) -> Self {
        let coverage = Coverage::of(totals);
        let live = live.filter(|_| lives_are_recorded);
        Self {
            frees_seen: lives_are_recorded.then(|| coverage.free_events().name()),
            frees_seen_percent: coverage.recorded_percent().filter(|_| lives_are_recorded),
            live_range: live.map(|l| l.objects),
            bytes_live_range: live.map(|l| l.bytes),
        }
    }
}

/// Sums whose events were recorded completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedSums {
    /// True for sums of allocations.
    pub allocs: bool,
    /// True for sums of frees.
    pub frees: bool,
    /// True for sums of lives: allocations and frees were recorded.
    pub lives: bool,
}

impl RecordedSums {
    /// Sums of slab objects: of one interface, or of all that were recorded.
    pub fn slab(basis: &Basis, api: Option<Api>) -> Self {
        let both = || Api::ALL.iter().map(|&api| (basis.allocs(Some(api)), basis.frees(Some(api))));
        // A sum over both interfaces is unknown if one of them lacks the events and has others.
        let lacks_allocs = api.is_none() && both().any(|(allocs, frees)| frees && !allocs);
        let lacks_frees = api.is_none() && both().any(|(allocs, frees)| allocs && !frees);
        Self {
            allocs: basis.allocs(api) && !lacks_allocs,
            frees: basis.frees(api) && !lacks_frees,
            lives: basis.ends(api) && !lacks_allocs,
        }
    }

    /// Sums of areas.
    pub fn areas(basis: &Basis, kind: AreaKind) -> Self {
        let [allocs, frees] = basis.areas(kind);
        Self { allocs, frees, lives: allocs && frees }
    }

    /// Sums of pages.
    pub fn pages(basis: &Basis) -> Self {
        Self { allocs: basis.page_allocs, frees: basis.page_frees, lives: basis.page_ends() }
    }
}
