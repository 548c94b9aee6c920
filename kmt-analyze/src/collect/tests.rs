//! Collectors with events made by hand.
//!
//! Events are given to a state directly, without a trace and a ledger. Here are cases that recordings rarely have:
//! stalls that never end, shrinkers that share a function, fallbacks in the middle of a block, survivors that pin slab
//! pages.

use super::fallbacks::Fallback;
use super::occupancy::{CacheEvidence, OccupancyState};
use super::stalls::Stall;
use super::*;
use crate::ledger::SiteInfo;
use crate::ledger::direct_map::DirectMap;
use crate::ledger::lives::{End, Life};
use crate::ledger::{Change, Closed, PageEvent, Receiver, Rules, SideEvent};
use crate::stream::op::{Kind, OpCode};
use crate::stream::{Api, Op, Origin, PageSite, SideEventKind, SideNumbers};
use crate::trace::ages::Ages;

pub(super) const BASE: u64 = 0x00ff_8880_0000_0000;

pub(super) fn rules() -> Rules {
    let direct_map = Some(DirectMap { base: BASE, base_address: 0xff << 56 | BASE, votes: 9, votes_all: 9 });
    Rules {
        page_size: 4096,
        late_bound: 1_000_000,
        late_frees: true,
        direct_map,
        window: (0, u64::MAX),
        no_frame: u64::MAX,
        last: u64::MAX,
        deferred_max: 15_000_000_000,
        ages: Ages::default(),
        cpus: 0,
    }
}

fn begun<C: Collector>(collector: &C) -> C::State {
    collector.begin(&PassFacts { rules: rules(), has_stacks: true })
}

fn origin(pid: i32) -> Origin {
    Origin { cpu: 0, pid, ..Origin::default() }
}

fn noted(kind: SideEventKind, pid: i32, time: u64, numbers: &[u64]) -> SideEvent {
    let mut all = SideNumbers::default();
    all.iter_mut().zip(numbers).for_each(|(to, from)| *to = Some(*from));
    SideEvent { kind, numbers: all, time, origin: origin(pid) }
}

fn page(op: &Op, pid: i32, order: u8, migratetype: i32) -> PageEvent {
    let site = PageSite { order, migratetype, ..PageSite::default() };
    PageEvent { op: *op, site, origin: origin(pid), failed: false, counted: true }
}

fn page_op(pfn: u64, site: u32, time: u64) -> Op {
    Op { time, value: pfn, code: OpCode::new(Kind::PageAlloc, site), origin: 0 }
}

fn slab_op(address: u64, site: u32) -> Op {
    Op { time: 0, value: address, code: OpCode::new(Kind::Alloc, site), origin: 0 }
}

#[test]
fn shrinkers_that_share_a_function_are_told_apart() {
    let mut stalls = begun(&Stalls::default());
    let (function, one, other) = (0xf0, 0x10, 0x20);
    stalls.side_event(&noted(SideEventKind::ShrinkBegin, 1, 100, &[one, function]));
    // Another task, and another shrinker of the same function, in between.
    stalls.side_event(&noted(SideEventKind::ShrinkBegin, 2, 110, &[one, function]));
    stalls.side_event(&noted(SideEventKind::ShrinkEnd, 1, 150, &[one, function, 7]));
    stalls.side_event(&noted(SideEventKind::ShrinkBegin, 1, 160, &[other, function]));
    stalls.side_event(&noted(SideEventKind::ShrinkEnd, 1, 165, &[other, function, u64::MAX]));
    stalls.side_event(&noted(SideEventKind::ShrinkEnd, 2, 210, &[one, function, 1]));
    stalls.side_event(&noted(SideEventKind::ShrinkEnd, 3, 220, &[one, function, 1]));
    let of = |shrinker| {
        let lengths = &stalls.kinds[&Stall::Shrinker(Some(function), Some(shrinker))];
        (
            lengths.count(),
            lengths.sum(),
            lengths.max(),
            stalls.shrunk[&Stall::Shrinker(Some(function), Some(shrinker))].recorded(),
        )
    };
    assert_eq!(of(one), (2, 150, Some(100), Some(9)), "the end without a beginning frees, and takes no time");
    assert_eq!(of(other), (1, 5, Some(5), Some(0)), "SHRINK_STOP is no number of objects");
    assert_eq!(stalls.ends_without_begin, 1);
}

#[test]
fn kswapd_wakes_once_until_it_sleeps() {
    let collector = Stalls { threshold: Some(50), ..Stalls::default() };
    let mut stalls = begun(&collector);
    for (kind, time, numbers) in [
        (SideEventKind::KswapdWake, 10, vec![0, 0]),
        (SideEventKind::KswapdWake, 20, vec![0, 3]),
        (SideEventKind::KswapdSleep, 70, vec![0]),
        (SideEventKind::KswapdWake, 80, vec![0, 0]),
        (SideEventKind::KswapdSleep, 85, vec![0]),
    ] {
        stalls.side_event(&noted(kind, 9, time, &numbers));
    }
    let task = &stalls.tasks[&9];
    assert_eq!((task.wakes[&Some(0)], task.rewakes[&Some(3)]), (2, 1));
    assert_eq!(stalls.kinds[&Stall::Kswapd(Some(0))].sum(), 65);
    let stalls = Stalls::finish(stalls);
    assert_eq!((stalls.begins_without_end, stalls.without_allocation), (0, 0));
    assert_eq!(stalls.intervals.len(), 1, "60 is beyond the threshold, 5 is not");
}

#[test]
fn a_stall_is_charged_to_the_allocation_behind_it() {
    let mut stalls = begun(&Stalls::default());
    stalls.side_event(&noted(SideEventKind::TryCompact, 1, 5, &[3]));
    stalls.side_event(&noted(SideEventKind::CompactBegin, 1, 10, &[1]));
    stalls.side_event(&noted(SideEventKind::CompactEnd, 1, 30, &[1, 8]));
    stalls.side_event(&noted(SideEventKind::CompactBegin, 2, 10, &[1]));
    stalls.side_event(&noted(SideEventKind::CompactEnd, 2, 15, &[1, 8]));
    stalls.side_event(&noted(SideEventKind::DirectBegin, 1, 40, &[3]));
    stalls.side_event(&noted(SideEventKind::DirectEnd, 1, 100, &[32]));
    let op = page_op(0x100, 4, 110);
    stalls.page_alloc(&page(&op, 1, 3, 0));
    stalls.slab_alloc(&slab_op(BASE + (0x103 << 12) + 64, 6), origin(1), true);
    // The next page is not for a slab object: the object is on another page.
    stalls.side_event(&noted(SideEventKind::DirectBegin, 1, 200, &[0]));
    stalls.side_event(&noted(SideEventKind::DirectEnd, 1, 201, &[1]));
    let op = page_op(0x200, 5, 210);
    stalls.page_alloc(&page(&op, 1, 0, 0));
    stalls.slab_alloc(&slab_op(BASE + (0x999 << 12), 7), origin(1), true);
    let stalls = Stalls::finish(stalls);
    assert_eq!(
        (stalls.begins_without_end, stalls.without_allocation),
        (0, 0),
        "background compaction delays nobody"
    );
    let rows: Vec<_> = stalls
        .delayed
        .iter()
        .map(|(d, s)| (d.stall, d.page_site, d.slab_site, (s.count, s.total, s.max)))
        .collect();
    assert_eq!(
        rows,
        [
            (Stall::Direct, 4, Some(6), (1, 60, 60)),
            (Stall::Direct, 5, None, (1, 1, 1)),
            (Stall::DirectCompaction, 4, Some(6), (1, 20, 20)),
        ]
    );
    assert_eq!(stalls.kinds[&Stall::Compaction].sum(), 5);
}

#[test]
fn what_never_ends_does_not_pile_up() {
    let mut stalls = begun(&Stalls::default());
    for time in 0..1_000 {
        // Ends were lost, and page allocations were not recorded.
        stalls.side_event(&noted(SideEventKind::GraphEntry, 1, time, &[time, 3]));
        stalls.side_event(&noted(SideEventKind::DirectBegin, 1, time, &[0]));
        stalls.side_event(&noted(SideEventKind::DirectEnd, 1, time, &[0]));
    }
    let stalls = Stalls::finish(stalls);
    assert_eq!((stalls.begins_without_end, stalls.without_allocation), (0, 1_000));
    assert!(stalls.delayed.is_empty());
}

#[test]
fn functions_without_times_of_their_own_are_timed_by_their_events() {
    let mut stalls = begun(&Stalls::default());
    stalls.side_event(&noted(SideEventKind::GraphEntry, 1, 100, &[0xa, 0]));
    stalls.side_event(&noted(SideEventKind::GraphEntry, 1, 110, &[0xb, 1]));
    stalls.side_event(&noted(SideEventKind::GraphExit, 1, 130, &[0xb, 1]));
    stalls.side_event(&noted(SideEventKind::GraphExit, 1, 160, &[0xa, 0]));
    stalls.side_event(&noted(SideEventKind::GraphExit, 1, 500, &[0xa, 0, 300, 450]));
    let sums = |f| (stalls.kinds[&Stall::Function(f)].count(), stalls.kinds[&Stall::Function(f)].sum());
    assert_eq!((sums(0xb), sums(0xa)), ((1, 20), (2, 210)));
    // The idle task runs on every CPU at once.
    let idle = |kind, cpu, time, numbers: &[u64]| SideEvent {
        origin: Origin { cpu, pid: 0, ..Origin::default() },
        ..noted(kind, 0, time, numbers)
    };
    stalls.side_event(&idle(SideEventKind::GraphEntry, 0, 1_000, &[0xc, 0]));
    stalls.side_event(&idle(SideEventKind::GraphEntry, 1, 1_010, &[0xc, 0]));
    stalls.side_event(&idle(SideEventKind::GraphExit, 0, 1_020, &[0xc, 0]));
    stalls.side_event(&idle(SideEventKind::GraphExit, 1, 1_060, &[0xc, 0]));
    let lengths = &stalls.kinds[&Stall::Function(0xc)];
    assert_eq!((lengths.sum(), lengths.max()), (70, Some(50)));
}

#[test]
fn a_fallback_has_its_page_and_its_object() {
    let mut fallbacks = begun(&Fallbacks);
    fallbacks.side_event(&noted(SideEventKind::Fallback, 1, 10, &[0x100, 0, 4, 0, 1, 0]));
    let op = page_op(0x103, 7, 11);
    fallbacks.page_alloc(&page(&op, 1, 0, 0));
    fallbacks.slab_alloc(&slab_op(BASE + (0x103 << 12), 5), origin(1), true);
    // One whose page is not for slab, and one after which the task requests another type.
    fallbacks.side_event(&noted(SideEventKind::Fallback, 1, 15, &[0x180, 0, 4, 0, 2, 0]));
    let op = page_op(0x700, 8, 16);
    fallbacks.page_alloc(&page(&op, 1, 0, 0));
    fallbacks.slab_alloc(&slab_op(BASE, 6), origin(1), true);
    fallbacks.side_event(&noted(SideEventKind::Fallback, 1, 20, &[0x200, 0, 9, 0, 1, 1]));
    let op = page_op(0x900, 7, 21);
    fallbacks.page_alloc(&page(&op, 1, 0, 1));
    let fallbacks = Fallbacks::finish(fallbacks);
    let mut found: Vec<Fallback> = fallbacks.keys().copied().collect();
    found.sort();
    let found: Vec<_> = found.iter().map(|f| (f.page_site, f.slab_site, f.change_ownership)).collect();
    assert_eq!(
        found,
        [(Some(7), Some(5), Some(false)), (None, None, Some(true)), (Some(8), None, Some(false))]
    );
}

#[test]
fn a_block_has_the_type_of_what_did_not_fall_back() {
    let mut mixing = begun(&Mixing { pageblock_order: 9 });
    assert_eq!(Mixing::finish(mixing.clone()).block_type(0), None, "unknown before its first event");
    for pfn in 0..3 {
        let op = page_op(pfn, 0, 1);
        mixing.page_alloc(&page(&op, 1, 0, 1));
    }
    for pfn in 10..20 {
        mixing.side_event(&noted(SideEventKind::Fallback, 1, 2, &[pfn, 0, 3, 0, 1, 0]));
        let op = page_op(pfn, 0, 2);
        mixing.page_alloc(&page(&op, 1, 0, 0));
    }
    assert_eq!(Mixing::finish(mixing.clone()).block_type(0), Some(1));
    mixing.side_event(&noted(SideEventKind::Fallback, 1, 3, &[30, 0, 9, 2, 1, 1]));
    assert_eq!(Mixing::finish(mixing).block_type(0), Some(2), "it changed hands");
}

/// An object of 512 bytes at a position in a page.
fn object(state: &mut OccupancyState, pfn: u64, number: u64, time: u64, is_birth: bool) {
    let site = SiteInfo {
        bytes_req: 500,
        bytes_alloc: 512,
        cache: None,
        caller: 3,
        api: Api::Cache,
        is_large: false,
        selected: true,
    };
    let life = Life { born: time, site: 2, origin: 0 };
    let address = BASE + (pfn << 12) + number * 512;
    state.changed(&Change { address, life, site, selected: true, time, is_birth, is_deferred: false });
}

#[test]
fn slab_pages_come_and_go_and_survivors_pin_them() {
    let mut state = begun(&Occupancy { window: (0, 999), steps: 10 });
    let op = page_op(0x50, 0, 100);
    state.page_alloc(&page(&op, 1, 1, 0));
    (0..16).for_each(|n| object(&mut state, 0x50, n, 150, true));
    (1..16).for_each(|n| object(&mut state, 0x50, n, 250, false));
    // A page that is freed, one of user memory, and one older than the trace.
    let op = page_op(0x60, 0, 100);
    state.page_alloc(&page(&op, 1, 0, 0));
    object(&mut state, 0x60, 0, 160, true);
    object(&mut state, 0x60, 0, 170, false);
    let free = page_op(0x60, 0, 300);
    state.page_free(&page(&free, 1, 0, 0));
    let op = page_op(0x70, 0, 100);
    state.page_alloc(&page(&op, 1, 0, 1));
    object(&mut state, 0x80, 0, 400, true);
    let sums = Occupancy::finish(state.clone());
    let pages: Vec<_> =
        sums.pages.iter().map(|p| (p.pfn, p.is_old, p.evidence, p.live, p.peak_bytes)).collect();
    assert_eq!(
        pages,
        [(0x50, false, CacheEvidence::Site(2), 1, 8192), (0x80, true, CacheEvidence::Site(2), 1, 512)],
        "a movable page is no slab"
    );
    let turnover = sums.turnover[2];
    assert_eq!((turnover.slabs_born, turnover.frames_born, turnover.slabs_died), (2, 3, 1));
    let held: Vec<i64> = sums.steps.iter().map(|s| s.held).collect();
    assert_eq!((held[1], held[3], held.iter().sum::<i64>()), (12_288, -4096, 8192));
    assert_eq!(sums.steps.iter().map(|s| s.live).sum::<i64>(), 512);
    // The survivor pins the unused bytes.
    state.closed(&Closed {
        address: BASE + (0x50 << 12),
        life: Life { born: 150, site: 2, origin: 0 },
        end: End::Live,
        cache: None,
        stack: None,
        caller: 3,
        api: Api::Cache,
        bytes_req: 500,
        bytes_alloc: 512,
        born_at: origin(1),
        freed_at: None,
        is_born: true,
        is_freed: false,
        is_implied_free: false,
        is_live: true,
        is_waiting: false,
        uncertain: false,
        lost_at: None,
    });
    let sums = Occupancy::finish(state.clone());
    let pins = &sums.pins[3];
    assert_eq!((pins.objects, pins.sparse_objects, pins.sparse_bytes()), (1, 1, 7680.0));
    assert_eq!(sums.object_time[2], 849);
    // Freed pages older than the trace are counted by their objects.
    let free = page_op(0x80, 0, 500);
    state.page_free(&page(&free, 1, 0, 0));
    assert_eq!(Occupancy::finish(state).turnover[2].old_frames_died, 1);
}
