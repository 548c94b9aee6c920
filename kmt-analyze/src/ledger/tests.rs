//! Each rule on crafted events, and random events against a slow model.
//!
//! `bench` makes a ledger and enters events; each test names its rule, as in the list of rules. Both paths of the
//! ledger, the plain one and the general one, run every case. The model is a map from addresses to objects and shares
//! no code with the ledger.

mod again;
mod batches;
mod bench;
mod plain;

use std::collections::HashMap;

use bench::*;

use super::*;
use crate::stream::{Api, Origin};

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
        |t, c, _| assert_eq!((t.alloc_events, c.double_reports, t.implied_frees), (2, 0, 1)),
    );
    check(
        |b| {
            b.alloc(SMALL, PTR, 10).alloc(SMALL, PTR, 11);
        },
        |t, c, _| assert_eq!((t.alloc_events, c.double_reports, t.implied_frees), (2, 0, 1)),
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
fn r5_allocation_of_a_live_address_is_an_implied_free_of_the_old_life() {
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).alloc(SMALL, PTR, 5).kfree(PTR, 9);
        },
        |t, c, _| {
            assert_eq!((t.implied_frees, t.bytes_freed_implied), (1, 256));
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
        |t, c, _| assert_eq!((t.frees_matched, t.implied_frees, t.uncertain, c.late_frees), (2, 0, 0, 1)),
    );
    // Without the second free, the first one belongs to the new life; the old one is uncertain.
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).cache_free(PTR, 6);
        },
        |t, c, _| assert_eq!((t.frees_matched, t.implied_frees, t.uncertain, c.late_frees), (1, 1, 1, 0)),
    );
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).cache_free(PTR, 6).alloc(CACHE, PTR, 7);
        },
        |t, _, _| assert_eq!((t.frees_matched, t.implied_frees, t.live, t.uncertain), (1, 1, 1, 1)),
    );
    // Too late for a late free, or a kfree: an implied free, and the second free has no life.
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).cache_free(PTR, 6 + MS).cache_free(PTR, 7 + MS);
        },
        |t, c, _| assert_eq!((t.frees_matched, t.implied_frees, t.uncertain, c.untraced_birth), (1, 1, 0, 1)),
    );
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).alloc(CACHE, PTR, 5).kfree(PTR, 6).cache_free(PTR, 7);
        },
        |t, c, _| assert_eq!((t.frees_matched, t.implied_frees, c.untraced_birth), (1, 1, 1)),
    );
}

#[test]
fn r13_what_is_handed_over_is_over() {
    // Freed after the grace period without an event, and with one; an unknown address; too near to the end.
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).free_rcu(PTR, 5).alloc(CACHE, PTR, 9).cache_free(PTR, 10);
            b.alloc(SMALL, PTR + 512, 11).free_rcu(PTR + 512, 12).kfree(PTR + 512, 20);
            b.free_rcu(PTR + 1024, 21);
            b.alloc(CACHE, PTR + 2048, 22).free_rcu(PTR + 2048, 990 * MS);
        },
        |t, c, _| {
            assert_eq!((t.alloc_events, t.frees_matched, t.implied_frees, t.live), (4, 4, 0, 0));
            assert_eq!((t.waiting, t.bytes_waiting), (1, 256), "the others had time to be freed");
            assert_eq!((c.unmatched_frees(), c.mixed_api_frees), (0, 0));
        },
    );
    // A second free after the first one has no life.
    check(
        |b| {
            b.alloc(SMALL, PTR, 1).free_rcu(PTR, 2).kfree(PTR, 3).kfree(PTR, 4);
        },
        |t, c, _| assert_eq!((t.frees_matched, c.untraced_birth), (1, 1)),
    );
}

/// Since 5.19 kmem_cache_free is logged before the address can be reused: a free that seems late is a free without a
/// life.
#[test]
fn r6_and_r7_know_no_late_frees_on_later_kernels() {
    let losses = Losses::default();
    let rules = Rules { late_frees: false, ..rules((0, u64::MAX)) };
    let counts = |events: &dyn Fn(&mut Bench<'_>)| {
        let mut bench = bench_by(rules, &losses, &LONG_WAY);
        events(&mut bench);
        let (t, c, _) = balance(bench);
        (t.frees_matched, t.implied_frees, t.uncertain, c.late_frees, c.untraced_birth)
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
            |t, _, _| assert_eq!((t.implied_frees, t.live, t.uncertain), (1, 1, 0)),
        );
    }
    // Kernels with late free events free the page first.
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).page_free(PTR, 5).cache_free(PTR, 6);
        },
        |t, c, _| assert_eq!((t.frees_matched, t.implied_frees, c.late_frees), (1, 0, 1)),
    );
    check(
        |b| {
            b.alloc(CACHE, PTR, 1).page_free(PTR, 5).cache_free(PTR, 6 + MS);
        },
        |t, c, _| assert_eq!((t.implied_frees, c.late_frees, c.untraced_birth), (1, 0, 1)),
    );
    // A page of 2^2 frames ends the lives in its last frame.
    check(
        |b| {
            b.alloc(CACHE, BASE + (7 << 12), 1);
            b.enter(Kind::PageFree, 2, 4, 5, here());
        },
        |t, _, _| assert_eq!(t.implied_frees, 1),
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
    bench.alloc(SMALL, PTR + 192, 25).kfree(PTR + 192, 26); // after it
    bench.alloc(SMALL, PTR + 256, 3).kfree(PTR + 256, 4); // before it
    let (t, c, _) = balance(bench);
    assert_eq!((t.alloc_events, t.frees_matched, t.live), (1, 1, 2));
    assert_eq!((t.bytes_freed, t.bytes_live, c.unmatched_frees()), (128, 256, 0));
}

/// Random events against a model with allocations, frees and addresses in use only.
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
    // Frees of pages that are not allocated, and of exactly one allocation.
    bench.enter(Kind::PageFree, 0, 64, 5, here());
    bench.enter(Kind::PageAlloc, 1, 128, 6, here()).enter(Kind::PageFree, 1, 128, 7, here());
    // Allocated while live: two of four frames have implied frees, the others stay.
    bench.enter(Kind::PageAlloc, 2, 256, 8, here()).enter(Kind::PageAlloc, 1, 258, 9, here());
    // A failure is not an allocation.
    bench.enter(Kind::PageAlloc, 2, u64::MAX, 10, here());
    let frames = bench.ledger.finish().0.frames;
    let mut sum = crate::ledger::totals::FrameTotals::default();
    frames.sites.iter().for_each(|t| sum += t);
    assert_eq!((sum.alloc_events, sum.alloc_failures, sum.frames_alloc), (4, 1, 8 + 2 + 4 + 2));
    assert_eq!((sum.frames_freed, sum.frames_freed_implied, sum.frames_live), (8 + 2, 2, 2 + 2));
    let counts = frames.counts;
    assert_eq!((counts.frees_matched, counts.frees_partial), (4, 2));
    assert_eq!((counts.free_only_events, counts.free_only_frames), (1, 1 + 3));
    assert_eq!((counts.raw_alloc_events, counts.raw_frames_alloc), (5, 8 + 2 + 4 + 2 + 4));
}

/// Receives the frames that hold slab objects.
struct SlabFrames;

impl Receiver for SlabFrames {}

/// A header may have pages of 1 GiB, and an event order 15: no kernel has blocks of this size, and scanning each page
/// would not end.
#[test]
fn blocks_larger_than_any_kernel_has_take_no_time() {
    let begin = std::time::Instant::now();
    let rules = Rules { page_size: 1 << 30, ..rules((0, u64::MAX)) };
    let losses = Losses::default();
    let interests = Interests::FRAMES | Interests::SLAB_FRAMES;
    let mut bench = Bench::new(Ledger::new(rules, &losses, SHORT_WAY, interests, SlabFrames, None));
    let largest = bench.interner.pages.number(&PageSite { order: 15, ..PageSite::default() });
    bench.alloc(SMALL, BASE + 64, 1).alloc(SMALL, BASE + (1 << 44), 2);
    for n in 0..100 {
        bench.enter(Kind::PageFree, 15, 0, 10 + n, here());
    }
    bench.alloc(SMALL, BASE + 64, 200);
    for n in 0..100 {
        bench.enter(Kind::PageAlloc, largest, n << 20, 300 + n, here());
    }
    let (totals, ..) = balance(bench);
    assert_eq!((totals.implied_frees, totals.live), (2, 1));
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
}
