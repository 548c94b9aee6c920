//! Each rule on crafted events, and random events against a slow model.

use std::collections::HashMap;

use super::lives::ADDRESS_BITS;
use super::*;
use crate::analysis::direct_map::DirectMap;
use crate::analysis::totals::Totals;
use crate::stream::op::What;
use crate::stream::{FreeSite, Origin, PageSite, Site};

const MS: u64 = 1_000_000;
const PTR: u64 = 0xffff_8880_0012_3000;
const BASE: u64 = 0xffff_8880_0000_0000;

/// Selects everything; whether it says so decides which way the ledger goes.
struct All {
    is_open: bool,
}

impl Select for All {
    fn site(&self, _: &Interner, _: &Site) -> bool {
        true
    }
    fn page_site(&self, _: &Interner, _: &PageSite) -> bool {
        true
    }
    fn origin(&self, _: Origin) -> bool {
        true
    }
    fn events(&self) -> bool {
        true
    }
    fn is_open(&self) -> bool {
        self.is_open
    }
    fn lifetimes(&self) -> bool {
        false
    }
    fn lifetime(&self, _: Option<u64>) -> bool {
        true
    }
}

static SHORT_WAY: All = All { is_open: true };
static LONG_WAY: All = All { is_open: false };

struct Bench<'l> {
    ledger: Ledger<'l>,
    interner: SharedInterner,
}

/// Site numbers of the test bench.
const SMALL: u32 = 0;
const CACHE: u32 = 1;
const LARGE_INNER: u32 = 2;
const LARGE_OUTER: u32 = 3;

fn interner() -> SharedInterner {
    let site = |api, call_site, bytes_req, bytes_alloc| Site {
        api,
        class: 0,
        call_site,
        bytes_req,
        bytes_alloc,
        gfp_flags: 0,
        node: -1,
        cache: None,
    };
    let mut interner = Interner::default();
    for site in [
        site(Api::Kmalloc, 1, 100, 128),
        site(Api::Cache, 2, 256, 256),
        site(Api::Kmalloc, 3, 16_000, 16_384),
        site(Api::Kmalloc, 4, 16_000, 16_384),
    ] {
        interner.sites.number(&site);
    }
    for api in Api::ALL {
        interner.frees.number(&FreeSite { api, class: 0, call_site: 9, cache: None });
    }
    for order in 0..4 {
        interner.pages.number(&PageSite { order, ..PageSite::default() });
    }
    interner.into()
}

fn direct_map() -> DirectMap {
    DirectMap { base: BASE & ADDRESS_BITS, base_address: BASE, votes: 9, votes_all: 9 }
}

fn rules(window: (u64, u64)) -> Rules {
    let direct_map = Some(direct_map());
    Rules {
        page_size: 4096,
        late_bound: MS,
        late_frees: true,
        direct_map,
        window,
        no_frame: u64::MAX,
        last: 1_000 * MS,
        deferred_max: 100 * MS,
    }
}

fn bench_in<'l>(losses: &'l Losses, window: (u64, u64), select: &'l All) -> Bench<'l> {
    bench_by(rules(window), losses, select)
}

fn bench_by<'l>(rules: Rules, losses: &'l Losses, select: &'l All) -> Bench<'l> {
    Bench { ledger: Ledger::new(rules, losses, select, Sinks::default(), None), interner: interner() }
}

/// CPU and task.
fn here() -> Origin {
    Origin { cpu: 0, pid: 7, level: 0, name: 0 }
}

impl Bench<'_> {
    fn enter(&mut self, kind: Kind, number: u32, value: u64, time: u64, origin: Origin) -> &mut Self {
        let mut interner = Interner::lock(&self.interner);
        let origin = interner.origins.number(&origin);
        let interned = interner.len();
        drop(interner);
        let op = Op { time, value, what: What::new(kind, number), origin };
        self.ledger.enter(&[op], &self.interner, interned);
        self
    }

    fn alloc(&mut self, site: u32, ptr: u64, time: u64) -> &mut Self {
        self.enter(Kind::Alloc, site, ptr, time, here())
    }

    fn kfree(&mut self, ptr: u64, time: u64) -> &mut Self {
        self.enter(Kind::Kfree, 0, ptr, time, here())
    }

    fn cache_free(&mut self, ptr: u64, time: u64) -> &mut Self {
        self.enter(Kind::CacheFree, 1, ptr, time, here())
    }

    fn free_rcu(&mut self, ptr: u64, time: u64) -> &mut Self {
        self.enter(Kind::FreeRcu, 0, ptr, time, here())
    }

    fn page_free(&mut self, ptr: u64, time: u64) -> &mut Self {
        self.enter(Kind::PageFree, 0, (ptr - BASE) >> 12, time, here())
    }

    fn page_alloc(&mut self, ptr: u64, time: u64) -> &mut Self {
        self.enter(Kind::PageAlloc, 0, (ptr - BASE) >> 12, time, here())
    }
}

/// Totals of all sites, and the counts of both interfaces.
fn balance(bench: Bench<'_>) -> (Totals, EventCounts, Balance) {
    let balance = bench.ledger.finish();
    let mut totals = Totals::default();
    balance.sites.iter().flatten().for_each(|(_, t)| totals += t);
    let mut counts = balance.counts[0];
    counts += &balance.counts[1];
    (totals, counts, balance)
}

/// Every case goes both ways.
fn check(events: impl Fn(&mut Bench<'_>), expected: impl Fn(&Totals, &EventCounts, &Balance)) {
    for select in [&SHORT_WAY, &LONG_WAY] {
        let losses = Losses::default();
        let mut bench = bench_in(&losses, (0, u64::MAX), select);
        events(&mut bench);
        let (totals, counts, balance) = balance(bench);
        let lives = totals.frees_matched + totals.freed_unseen + totals.live;
        assert_eq!(totals.alloc_events, lives, "every life has one end");
        assert_eq!(totals.bytes_alloc, totals.bytes_freed + totals.bytes_freed_unseen + totals.bytes_live);
        expected(&totals, &counts, &balance);
    }
}

#[test]
fn r1_addresses_ignore_the_tag_byte() {
    check(
        |b| {
            b.alloc(SMALL, PTR, 1).kfree(PTR & !(0xff << 56) | 0xf3 << 56, 2);
        },
        |t, _, _| assert_eq!((t.frees_matched, t.live), (1, 0)),
    );
}

#[test]
fn r2_address_zero_is_a_failure() {
    check(
        |b| {
            b.alloc(SMALL, 0, 1).alloc(CACHE, 0, 2);
        },
        |t, c, b| {
            assert_eq!((t.alloc_events, t.bytes_alloc, c.alloc_failures), (0, 0, 2));
            assert_eq!((b.raw.alloc_events, b.raw.bytes_alloc), (2, 384), "raw sums leave nothing out");
        },
    );
}

#[test]
fn r3_frees_of_no_object() {
    check(
        |b| {
            b.kfree(0, 1).kfree(16, 2).kfree(1, 3).kfree(PTR, 4);
        },
        |t, c, b| {
            assert_eq!((c.null_frees, c.zero_size_frees, c.unmatched_frees()), (1, 2, 1));
            assert_eq!((t.frees_matched, b.raw.free_events), (0, 4));
        },
    );
}

#[test]
fn r4_double_report_is_one_life_at_the_outer_site() {
    check(
        |b| {
            b.alloc(LARGE_INNER, PTR, 10).alloc(LARGE_OUTER, PTR, 10 + MS).kfree(PTR, 20 + MS);
        },
        |t, c, b| {
            assert_eq!((t.alloc_events, c.double_reports, t.frees_matched), (1, 1, 1));
            assert_eq!(b.sites[LARGE_OUTER as usize][0].1.alloc_events, 1);
            assert!(b.sites[LARGE_INNER as usize].is_empty());
        },
    );
    // Too late, too small, or by another task: an allocation of a live address.
    check(
        |b| {
            b.alloc(LARGE_INNER, PTR, 10).alloc(LARGE_OUTER, PTR, 11 + MS);
        },
        |t, c, _| assert_eq!((t.alloc_events, c.double_reports, t.freed_unseen), (2, 0, 1)),
    );
    check(
        |b| {
            b.alloc(SMALL, PTR, 10).alloc(SMALL, PTR, 11);
        },
        |t, c, _| assert_eq!((t.alloc_events, c.double_reports, t.freed_unseen), (2, 0, 1)),
    );
    check(
        |b| {
            b.alloc(LARGE_INNER, PTR, 10);
            b.enter(Kind::Alloc, LARGE_OUTER, PTR, 11, Origin { pid: 8, ..here() });
        },
        |t, c, _| assert_eq!((t.alloc_events, c.double_reports), (2, 0)),
    );
}

#[test]
fn r5_allocation_of_a_live_address_ends_the_old_life_unseen() {
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).alloc(SMALL, PTR, 5).kfree(PTR, 9);
        },
        |t, c, _| {
            assert_eq!((t.freed_unseen, t.bytes_freed_unseen), (1, 256));
            assert_eq!((t.frees_matched, t.bytes_freed), (1, 128));
            assert_eq!((t.uncertain, c.late_frees), (0, 0));
        },
    );
}

#[test]
fn r6_two_frees_behind_two_allocations_are_a_late_free() {
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).cache_free(PTR, 6).cache_free(PTR, 90);
        },
        |t, c, _| assert_eq!((t.frees_matched, t.freed_unseen, t.uncertain, c.late_frees), (2, 0, 0, 1)),
    );
    // Without the second free the first one is the new life's; the old one is uncertain.
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).cache_free(PTR, 6);
        },
        |t, c, _| assert_eq!((t.frees_matched, t.freed_unseen, t.uncertain, c.late_frees), (1, 1, 1, 0)),
    );
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).cache_free(PTR, 6).alloc(CACHE, PTR, 7);
        },
        |t, _, _| assert_eq!((t.frees_matched, t.freed_unseen, t.live, t.uncertain), (1, 1, 1, 1)),
    );
    // Too late for a late free, or a kfree: plainly unseen, and the second free has no life.
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).cache_free(PTR, 6 + MS).cache_free(PTR, 7 + MS);
        },
        |t, c, _| assert_eq!((t.frees_matched, t.freed_unseen, t.uncertain, c.untraced_birth), (1, 1, 0, 1)),
    );
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).kfree(PTR, 6).cache_free(PTR, 7);
        },
        |t, c, _| assert_eq!((t.frees_matched, t.freed_unseen, c.untraced_birth), (1, 1, 1)),
    );
}

#[test]
fn r13_what_is_handed_over_is_over() {
    // Freed without an event and reused; freed with one; never heard of; handed over just before the end.
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).free_rcu(PTR, 5).alloc(CACHE, PTR, 9).cache_free(PTR, 10);
            b.alloc(SMALL, PTR + 512, 11).free_rcu(PTR + 512, 12).kfree(PTR + 512, 20);
            b.free_rcu(PTR + 1024, 21);
            b.alloc(CACHE, PTR + 2048, 22).free_rcu(PTR + 2048, 990 * MS);
        },
        |t, c, _| {
            assert_eq!((t.alloc_events, t.frees_matched, t.freed_unseen, t.live), (4, 4, 0, 0));
            assert_eq!((t.waiting, t.bytes_waiting), (1, 256), "the others had time to be freed");
            assert_eq!((c.unmatched_frees(), c.mixed_api_frees), (0, 0));
        },
    );
    // A second free behind the first one is one too many.
    check(
        |b| {
            b.alloc(SMALL, PTR, 1).free_rcu(PTR, 2).kfree(PTR, 3).kfree(PTR, 4);
        },
        |t, c, _| assert_eq!((t.frees_matched, c.untraced_birth), (1, 1)),
    );
}

/// Since 5.19 kmem_cache_free is logged before the object can be another's: what seems late is a free without an event.
#[test]
fn r6_and_r7_know_no_late_frees_on_later_kernels() {
    let losses = Losses::default();
    let rules = Rules { late_frees: false, ..rules((0, u64::MAX)) };
    let counts = |events: &dyn Fn(&mut Bench<'_>)| {
        let mut bench = bench_by(rules, &losses, &LONG_WAY);
        events(&mut bench);
        let (t, c, _) = balance(bench);
        (t.frees_matched, t.freed_unseen, t.uncertain, c.late_frees, c.untraced_birth)
    };
    let recycled = counts(&|b| {
        b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).cache_free(PTR, 6);
    });
    assert_eq!(recycled, (1, 1, 0, 0, 0), "the first life ended unseen, and that is certain");
    let twice = counts(&|b| {
        b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).cache_free(PTR, 6).cache_free(PTR, 90);
    });
    assert_eq!(twice, (1, 1, 0, 0, 1));
    let page = counts(&|b| {
        b.alloc(CACHE, PTR, 1).page_free(PTR, 5).cache_free(PTR, 6);
    });
    assert_eq!(page, (0, 1, 0, 0, 1));
}

#[test]
fn r7_a_page_event_under_an_object_ends_it() {
    for by_alloc in [false, true] {
        check(
            |b| {
                b.alloc(CACHE, PTR + 64, 1).alloc(SMALL, PTR + 4096, 1);
                if by_alloc {
                    b.page_alloc(PTR, 5)
                } else {
                    b.page_free(PTR, 5)
                };
            },
            |t, _, _| assert_eq!((t.freed_unseen, t.live, t.uncertain), (1, 1, 0)),
        );
    }
    // Kernels that log late free the page first.
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).page_free(PTR, 5).cache_free(PTR, 6);
        },
        |t, c, _| assert_eq!((t.frees_matched, t.freed_unseen, c.late_frees), (1, 0, 1)),
    );
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).page_free(PTR, 5).cache_free(PTR, 6 + MS);
        },
        |t, c, _| assert_eq!((t.freed_unseen, c.late_frees, c.untraced_birth), (1, 0, 1)),
    );
    // A page of 2^2 frames ends what lies in its last frame.
    check(
        |b| {
            b.alloc(CACHE, BASE + (7 << 12), 1);
            b.enter(Kind::PageFree, 2, 4, 5, here());
        },
        |t, _, _| assert_eq!(t.freed_unseen, 1),
    );
}

#[test]
fn r9_a_free_matches_by_whichever_interface_it_came() {
    check(
        |b| {
            b.alloc(CACHE, PTR, 1)
                .kfree(PTR, 2)
                .alloc(SMALL, PTR, 3)
                .cache_free(PTR, 4)
                .cache_free(PTR + 64, 5);
        },
        |t, c, b| {
            assert_eq!((t.frees_matched, c.mixed_api_frees), (2, 2));
            assert_eq!(
                b.counts[Api::Cache as usize].unmatched_frees(),
                1,
                "an unmatched free counts under its own"
            );
            assert_eq!(b.sites[CACHE as usize][0].1.frees_matched, 1, "a matched one under the life's");
        },
    );
}

#[test]
fn r10_unmatched_frees_are_told_apart() {
    check(
        |b| {
            b.kfree(PTR, 1).kfree(PTR, 2);
            b.page_alloc(PTR + 4096, 3).kfree(PTR + 4096, 4);
            b.page_alloc(PTR + 8192, 5).page_free(PTR + 8192, 6).kfree(PTR + 8192, 7);
        },
        |_, c, _| assert_eq!((c.allocated_before, c.untraced_birth), (2, 2)),
    );
}

#[test]
fn r11_frees_on_another_cpu() {
    check(
        |b| {
            b.alloc(SMALL, PTR, 1).alloc(SMALL, PTR + 64, 1);
            b.enter(Kind::Kfree, 0, PTR, 2, Origin { cpu: 3, ..here() });
            b.kfree(PTR + 64, 3);
        },
        |t, c, _| assert_eq!((t.frees_matched, c.cross_cpu_frees), (2, 1)),
    );
}

#[test]
fn a_window_selects_what_counts_and_not_what_matches() {
    let losses = Losses::default();
    let mut bench = bench_in(&losses, (10, 20), &SHORT_WAY);
    bench.alloc(SMALL, PTR, 1).kfree(PTR, 12); // freed in the window
    bench.alloc(SMALL, PTR + 64, 2); // lives through it
    bench.alloc(SMALL, PTR + 128, 11).kfree(PTR + 128, 30); // born in it, live at its end
    bench.alloc(SMALL, PTR + 192, 25).kfree(PTR + 192, 26); // behind it
    bench.alloc(SMALL, PTR + 256, 3).kfree(PTR + 256, 4); // before it
    let (t, c, _) = balance(bench);
    assert_eq!((t.alloc_events, t.frees_matched, t.live), (1, 1, 2));
    assert_eq!((t.bytes_freed, t.bytes_live, c.unmatched_frees()), (128, 256, 0));
}

/// Random events against a model that knows only allocations, frees and addresses in use.
#[test]
fn without_overlaps_the_ledger_is_a_plain_map() {
    let losses = Losses::default();
    let mut bench = bench_in(&losses, (0, u64::MAX), &SHORT_WAY);
    let mut model: HashMap<u64, u64> = HashMap::new();
    let (mut allocs, mut matched, mut unmatched, mut seed) = (0, 0, 0, 1u64);
    for time in 0..20_000u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        let ptr = PTR + (seed >> 33) % 500 * 64;
        if model.contains_key(&ptr) || (seed >> 60) == 0 {
            bench.kfree(ptr, time);
            if model.remove(&ptr).is_some() { matched += 1 } else { unmatched += 1 }
        } else {
            bench.alloc(SMALL, ptr, time);
            model.insert(ptr, 128);
            allocs += 1;
        }
    }
    let (t, c, _) = balance(bench);
    assert_eq!((t.alloc_events, t.frees_matched, c.unmatched_frees()), (allocs, matched, unmatched));
    assert_eq!((t.live, t.bytes_live), (model.len() as u64, model.values().sum::<u64>()));
}

#[test]
fn r12_pages_go_by_frame() {
    let losses = Losses::default();
    let mut bench = bench_in(&losses, (0, u64::MAX), &SHORT_WAY);
    // Order 3, freed in parts: one frame, then two, then all eight.
    bench.enter(Kind::PageAlloc, 3, 64, 1, here());
    bench.enter(Kind::PageFree, 0, 65, 2, here()).enter(Kind::PageFree, 1, 66, 3, here());
    bench.enter(Kind::PageFree, 3, 64, 4, here());
    // Frees of what is not allocated, and of exactly one allocation.
    bench.enter(Kind::PageFree, 0, 64, 5, here());
    bench.enter(Kind::PageAlloc, 1, 128, 6, here()).enter(Kind::PageFree, 1, 128, 7, here());
    // Allocated while live: two of four frames end unseen, the others stay.
    bench.enter(Kind::PageAlloc, 2, 256, 8, here()).enter(Kind::PageAlloc, 1, 258, 9, here());
    // A failure is no allocation.
    bench.enter(Kind::PageAlloc, 2, u64::MAX, 10, here());
    let frames = bench.ledger.finish().frames;
    let mut sum = crate::analysis::page_totals::FrameTotals::default();
    frames.sites.iter().for_each(|t| sum += t);
    assert_eq!((sum.alloc_events, sum.alloc_failures, sum.frames_alloc), (4, 1, 8 + 2 + 4 + 2));
    assert_eq!((sum.frames_freed, sum.frames_freed_unseen, sum.frames_live), (8 + 2, 2, 2 + 2));
    let counts = frames.counts;
    assert_eq!((counts.frees_matched, counts.frees_partial), (4, 2));
    assert_eq!((counts.free_only_events, counts.free_only_frames), (1, 1 + 3));
    assert_eq!((counts.raw_alloc_events, counts.raw_frames_alloc), (5, 8 + 2 + 4 + 2 + 4));
}
