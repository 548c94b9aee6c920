//! Reports over a window of time: what is behind it ends lives in it and names their caches, whatever the reports beside
//! them read there, and decides nothing else.

use std::fs;

use kmt_analyze::pass::{Condition, Selection};
use kmt_format::write::Loss;

use super::{OBJECT, SITE, cache_alloc, cache_alloc_at, compare_all, until, with_unnamed_cache};
use crate::fuzz_seeds::library::compare;
use crate::support::files::{Scratch, at, json, run, stdout};
use crate::support::hostile::Made;

/// A page that cannot be moved, as those of slabs are.
fn unmovable_page(made: &mut Made, pfn: u64) {
    made.event(0, 13, 7, &[pfn, 0, 0xcc0, 0].map(u64::to_le_bytes).concat());
}

#[test]
fn events_behind_a_window_were_seen_or_not_whatever_else_is_collected() {
    let mut made = Made::default();
    made.kmalloc(1, 7, SITE, OBJECT);
    // Chunk 49 is not in the sample of all chunks.
    for chunk in 0..80 {
        made.set_time(if chunk > 49 { 60_000_000 } else { 1_000_000 } + chunk * 1_000_000);
        made.kmalloc(0, 7, SITE, OBJECT + (chunk + 1) * 0x4000);
        if chunk == 49 {
            // Operations that are merged at a time end before the free with stacks, and behind it without them.
            made.set_time(55_000_000);
            for object in 1..150 {
                made.kmalloc(0, 7, SITE, OBJECT + (chunk + 1) * 0x4000 + object * 64);
                made.stack(0, 7, &[SITE]);
            }
            made.kfree(0, SITE, OBJECT);
        }
        made.writer().flush(0).unwrap();
    }
    compare_all(&made.finish(), &until("+0..+0.05"), 20);
}

/// Frees first occur behind the window, in a chunk that no sample has: what reads on for names of caches sees them.
#[test]
fn a_class_behind_a_window_was_not_seen_though_names_of_caches_are_read_there() {
    let mut made = with_unnamed_cache();
    made.writer().flush(1).unwrap();
    for chunk in 0..80 {
        made.set_time(1_000_000 + chunk * 1_000_000);
        match chunk {
            // Not in the sample of all chunks.
            49 => made.kfree(0, SITE, OBJECT + 0x4000),
            _ => made.kmalloc(0, 7, SITE, OBJECT + (chunk + 1) * 0x4000),
        }
        made.writer().flush(0).unwrap();
    }
    compare_all(&made.finish(), &until("+0..+0.02"), 20);
}

/// Votes behind the window are for another base than those in it.
#[test]
fn the_direct_map_is_elected_by_events_that_every_report_reads() {
    let mut made = with_unnamed_cache();
    let vote = |made: &mut Made, base: u64, number: u64| {
        unmovable_page(made, 5_000 + number);
        made.kmalloc(0, 7, SITE, base + ((5_000 + number) << 12));
    };
    let [first, second] = [0xffff_8880_0000_0000, 0xffff_9990_0000_0000];
    (0..40).for_each(|number| vote(&mut made, first, number));
    // Ends the object in that frame.
    made.pages_free(0, 5_000, 0);
    made.kfree(0, SITE, first + (5_001 << 12));
    made.writer().flush(0).unwrap();
    made.set_time(5_000_000_000);
    (0..100).for_each(|number| vote(&mut made, second, 200 + number));
    compare_all(&made.finish(), &until("+0..+0.5"), 20);
}

/// Page allocations behind the window are of no fallback in it, and say nothing about the type of a block.
#[test]
fn fragmentation_in_a_window_is_that_of_its_events() {
    let mut made = Made::default();
    let int = |name| ("int", name, 4);
    let numbers =
        ["alloc_order", "fallback_order", "alloc_migratetype", "fallback_migratetype", "change_ownership"];
    let fields = [&[("unsigned long", "pfn", 8)][..], &numbers.map(int)].concat();
    made.class("kmem", "mm_page_alloc_extfrag", 16, &fields, "\"pfn=0x%lx\", REC->pfn");
    let fallback = |made: &mut Made, pfn: u64| {
        let numbers = [0, 3, 0, 1, 0].map(i32::to_le_bytes).concat();
        made.event(0, 16, 7, &[&pfn.to_le_bytes()[..], &numbers].concat());
    };
    made.pages(0, 7, 1024, 0);
    fallback(&mut made, 2048);
    made.set_time(5_000_000_000);
    (0..3).for_each(|number| unmovable_page(&mut made, 1025 + number));
    made.kmalloc(0, 7, SITE, OBJECT);
    compare_all(&made.finish(), &until("+0..+0.5"), 20);
}

#[test]
fn a_stack_behind_a_window_is_of_nothing_in_it() {
    let mut made = with_unnamed_cache();
    made.kmalloc(0, 7, SITE, OBJECT + 0x1000);
    made.stack(0, 7, &[SITE]);
    made.pages(0, 7, 50, 0);
    made.stack(0, 7, &[SITE]);
    made.pages(0, 8, 51, 0);
    made.kmalloc(1, 7, SITE, OBJECT + 0x2000);
    made.set_time(5_000_000_000);
    made.stack(0, 8, &[SITE + 4]);
    made.stack(1, 7, &[SITE + 4]);
    compare_all(&made.finish(), &until("+0..+0.5"), 20);
}

/// A free that was logged late, or that of the new object: the next free would tell, but is behind the window.
#[test]
fn a_free_behind_a_window_decides_nothing_in_it() {
    let mut made = with_unnamed_cache();
    cache_alloc(&mut made, 0, OBJECT + 0x1000);
    cache_alloc(&mut made, 0, OBJECT + 0x1000);
    made.cache_free(0, SITE, OBJECT + 0x1000, b"dentry");
    made.set_time(5_000_000_000);
    made.cache_free(0, SITE, OBJECT + 0x1000, b"dentry");
    compare_all(&made.finish(), &until("+0..+0.5"), 20);
}

/// The lifetime of an object in the window is known from its free behind it.
#[test]
fn lifetimes_of_objects_in_a_window_are_whole() {
    let mut made = with_unnamed_cache();
    made.kmalloc(0, 7, SITE, OBJECT + 0x1000);
    made.set_time(2_000_000_000);
    made.kfree(0, SITE, OBJECT + 0x1000);
    let terms = ["lifetime<3s"].map(|term| Condition::parse(term).unwrap()).to_vec();
    let selection = Selection { terms, ..until("+0..+0.5") };
    assert!(compare(&made.finish(), &selection, 20, |_| true) > 0, "no report accepts it");
}

/// Pages that hold slab objects, freed behind the window.
#[test]
fn slab_pages_of_a_window_are_such_pages_though_freed_behind_it() {
    let mut made = Made::default();
    for number in 0..40 {
        unmovable_page(&mut made, 5_000 + number);
        made.kmalloc(0, 7, SITE, 0xffff_8880_0000_0000 + ((5_000 + number) << 12));
        made.set_time((number + 1) * 100_000_000);
    }
    made.kfree(0, SITE, 0xffff_8880_0000_0000 + (5_000 << 12));
    made.pages_free(0, 5_000, 0);
    made.set_time(9_000_000_000);
    (1..40).for_each(|number| made.pages_free(0, 5_000 + number, 0));
    compare_all(&made.finish(), &until("+0..+8"), 20);
}

/// Objects and pages that end after the window and before a loss, which a pass of few reports does not read.
#[test]
fn a_loss_after_the_window_makes_nothing_in_it_uncertain() {
    let mut made = with_unnamed_cache();
    made.kmalloc(0, 7, SITE, OBJECT + 0x1000);
    made.kmalloc(0, 7, SITE, OBJECT + 0x3000);
    made.pages(0, 7, 50, 0);
    made.writer().flush(0).unwrap();
    made.set_time(5_000_000_000);
    made.kfree(0, SITE, OBJECT + 0x1000);
    made.pages_free(0, 50, 0);
    // Events are missing from here on.
    made.set_time(6_000_000_000);
    made.kfree(0, SITE, OBJECT + 0x4000);
    made.writer().flush(0).unwrap();
    made.set_time(9_000_000_000);
    made.writer().add_loss(0, Loss::counted(3)).unwrap();
    made.kfree(0, SITE, OBJECT + 0x4000);
    let file = made.finish();
    compare_all(&file, &until("+0..+0.01"), 20);
    let scratch = Scratch::new();
    let path = scratch.0.join("lossy.kmt");
    fs::write(&path, &file).unwrap();
    let uncertain = |window: &[&str]| {
        let summary = json(&[&["summary", "--json"], window].concat(), &path);
        ["/slab/kmalloc/uncertain", "/pages/pages_uncertain"].map(|key| at(&summary, key).as_u64().unwrap())
    };
    // The kmalloc object without a free crosses it, unless the window ends before it.
    assert_eq!(uncertain(&["--time", "+0..+0.01"]), [0, 0]);
    assert_eq!(uncertain(&[]), [1, 0]);
}

/// Frees behind the window name the caches of objects that live at its end: those of a cache whose frees have events.
#[test]
fn a_cache_that_is_named_behind_a_window_bounds_live_objects_in_it() {
    let mut made = with_unnamed_cache();
    cache_alloc(&mut made, 0, OBJECT + 0x1000);
    made.cache_free(0, SITE, OBJECT + 0x1000, b"dentry");
    cache_alloc_at(&mut made, 0, SITE + 0x80, OBJECT + 0x2000);
    made.set_time(5_000_000_000);
    made.cache_free(0, SITE, OBJECT + 0x2000, b"dentry");
    let file = made.finish();
    compare_all(&file, &until("+0..+0.01"), 20);
    let scratch = Scratch::new();
    let path = scratch.0.join("named.kmt");
    fs::write(&path, &file).unwrap();
    let window = ["export", "csv", "--of", "call-sites", "--time", "+0..+0.01"];
    let call_sites = stdout(&run(&window, &path));
    assert_eq!(call_sites.matches(",dentry,").count(), 2, "{call_sites}");
}

/// Thinnings take places of the window at random, from one CPU after the other.
#[test]
fn events_behind_a_window_change_no_range() {
    let mut made = with_unnamed_cache();
    for number in 0..200 {
        let (object, cpu) = (OBJECT + 0x1000 + number * 64, [0, 0, 1, 2, 1][number as usize % 5]);
        made.kmalloc(cpu, 7, SITE, object);
        if number % 3 > 0 {
            made.kfree(2 - cpu, SITE, object);
        }
        if number % 20 == 0 {
            made.writer().add_loss(cpu, Loss::counted(2)).unwrap();
        }
    }
    made.set_time(5_000_000_000);
    for number in 0..200 {
        made.kfree([3, 0][number as usize % 2], SITE, OBJECT + 0x1000 + number * 64);
    }
    compare_all(&made.finish(), &until("+0..+0.5"), 20);
}
