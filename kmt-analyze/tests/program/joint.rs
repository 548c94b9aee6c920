//! Reports over one pass with others: the same answers as in a pass of their own, of captures and of files where that was
//! not so.

mod windows;

use std::fs;

use kmt_analyze::pass::{Selection, TimeRange};
use kmt_analyze::reports::REPORTS;
use kmt_format::write::Loss;

use crate::fuzz_seeds::library::compare;
use crate::support::files::{Scratch, data, run, stderr, stdout};
use crate::support::hostile::Made;

const SITE: u64 = 0xffff_ffff_8100_0004;
const OBJECT: u64 = 0xffff_8880_0001_0000;

/// Compares all reports, each with itself in a pass of its own.
fn compare_all(file: &[u8], selection: &Selection, limit: usize) {
    let count = compare(file, selection, limit, |_| true);
    assert_eq!(
        count,
        REPORTS.iter().filter_map(|entry| (entry.with_defaults)()).count(),
        "reports that accept it"
    );
}

/// A file with an allocation that does not name its cache, so that reports that name caches read on after the window.
fn with_unnamed_cache() -> Made {
    let mut made = Made::default();
    let fields = [("unsigned long", "call_site", 8), ("const void *", "ptr", 8), ("size_t", "bytes_req", 8)];
    made.class("kmem", "kmem_cache_alloc", 16, &fields, "\"ptr=%p\", REC->ptr");
    cache_alloc(&mut made, 1, OBJECT);
    made
}

fn cache_alloc(made: &mut Made, cpu: u32, ptr: u64) {
    cache_alloc_at(made, cpu, SITE, ptr);
}

fn cache_alloc_at(made: &mut Made, cpu: u32, call_site: u64, ptr: u64) {
    let rest: Vec<u8> = [call_site, ptr, 60].iter().flat_map(|n| n.to_le_bytes()).collect();
    made.event(cpu, 16, 7, &rest);
}

fn until(time: &str) -> Selection {
    Selection { time: TimeRange::parse(time).ok(), ..Selection::default() }
}

#[test]
fn captures_give_the_same_in_one_pass_and_in_several() {
    let windows = [
        ("x86_64-6.12", "+0..+0.05"),
        ("s390x-6.1", "+0.001.."),
        ("armhf-6.1", "..+0.1"),
        ("../../../kmt-analyze/tests/data/x86_64-6.18-stacks", "+0..+0.05"),
    ];
    for (name, window) in windows {
        let scratch = Scratch::new();
        let file = fs::read(scratch.convert(&data(name))).unwrap();
        compare_all(&file, &Selection::default(), 20);
        compare_all(&file, &until(window), usize::MAX);
    }
}

#[test]
fn a_window_ends_at_the_same_event_where_a_clock_steps_back() {
    let mut made = Made::default();
    made.kmalloc(1, 7, SITE, OBJECT);
    made.pages_free(0, 40, 0);
    made.pages(0, 7, 16, 0);
    made.set_time(5_000_000_000);
    made.pages(0, 7, 17, 0);
    made.set_time(2_000_000);
    made.pages(0, 7, 18, 0);
    // Only reports about stacks have this event: it lies behind the window, and the one before it does not.
    made.set_time(9_000_000_000);
    made.stack(0, 7, &[SITE]);
    compare_all(&made.finish(), &until("+0..+0.01"), 20);
}

#[test]
fn a_chunk_before_the_end_of_a_window_has_its_place_after_one_behind_it() {
    let mut made = with_unnamed_cache();
    made.kmalloc(0, 7, SITE, OBJECT + 0x1000);
    made.writer().flush(0).unwrap();
    made.set_time(5_000_000_000);
    made.kmalloc(0, 7, SITE, OBJECT + 0x2000);
    // Merged after the allocation before it, and so after the free of the other CPU.
    made.set_time(2_000_000);
    made.kmalloc(0, 7, SITE, OBJECT + 0x3000);
    made.set_time(3_000_000);
    made.kfree(1, SITE, OBJECT + 0x3000);
    compare_all(&made.finish(), &until("+0..+0.01"), 20);
}

#[test]
fn an_event_behind_the_end_of_a_window_changes_what_follows_it() {
    let mut made = with_unnamed_cache();
    made.kmalloc(0, 7, SITE, OBJECT + 0x1000);
    made.set_time(5_000_000_000);
    cache_alloc(&mut made, 0, OBJECT + 0x2000);
    made.set_time(2_000_000);
    made.kfree(0, SITE, OBJECT + 0x2000);
    made.kmalloc(0, 7, SITE, OBJECT + 0x2000);
    compare_all(&made.finish(), &until("+0..+0.01"), 20);
}

#[test]
fn cpus_are_merged_alike_where_a_clock_steps_back() {
    let mut made = Made::default();
    made.kmalloc(0, 7, SITE, OBJECT);
    // Without stacks nothing but the free is left of what follows on this CPU, and it would go before the allocation.
    made.set_time(10_000_000);
    made.stack(0, 7, &[SITE]);
    made.set_time(3_000_000);
    made.kfree(0, SITE, OBJECT);
    made.set_time(5_000_000);
    made.kmalloc(1, 8, SITE, OBJECT);
    compare_all(&made.finish(), &Selection::default(), 20);
}

#[test]
fn a_life_that_ends_before_a_loss_is_certain_though_the_clock_steps_back_behind_it() {
    let mut made = Made::default();
    made.kmalloc(0, 7, SITE, OBJECT);
    made.set_time(5_000_000);
    made.kmalloc(0, 7, SITE, OBJECT + 64);
    made.writer().add_loss(0, Loss::counted(3)).unwrap();
    made.set_time(6_000_000);
    made.kfree(0, SITE, OBJECT + 64);
    made.set_time(2_000_000);
    made.kfree(0, SITE, OBJECT);
    compare_all(&made.finish(), &Selection::default(), 20);
}

/// Notes about call sites are of the memory that they name, not of stacks that others have.
#[test]
fn stacks_of_objects_are_no_call_sites_of_pages_and_areas() {
    let mut made = Made::default();
    let fields = [("unsigned long", "addr", 8), ("unsigned long", "size", 8), ("int", "failed", 4)];
    made.class("vmalloc", "alloc_vmap_area", 16, &fields, "\"va_start: %lx\", REC->addr");
    made.kmalloc(0, 7, SITE, OBJECT);
    made.stack(0, 7, &[SITE]);
    made.pages(0, 7, 50, 0);
    let area = [0xffff_c900_0000_0000_u64, 8192].map(u64::to_le_bytes).concat();
    made.event(0, 16, 7, &[&area[..], &[0; 4]].concat());
    let file = made.finish();
    compare_all(&file, &Selection::default(), 20);
    let scratch = Scratch::new();
    let path = scratch.0.join("no_stacks.kmt");
    fs::write(&path, &file).unwrap();
    let reports: [(&[&str], &str); 4] = [
        (&["vmalloc"], "vmalloc:alloc_vmap_area"),
        (&["memory"], "kmem:mm_page_alloc"),
        (&["pages"], "kmem:mm_page_alloc"),
        (&["pages", "--by", "function"], "kmem:mm_page_alloc"),
    ];
    for (report, event) in reports {
        let text = stdout(&run(report, &path));
        assert!(text.contains(&format!("kmt-capture record --stack {event}")), "{report:?}: {text}");
    }
    let folded = run(&["export", "folded", "--pages"], &path);
    assert!(stderr(&folded).contains("pages have no stacks"), "{}", stderr(&folded));
}

#[test]
fn a_free_of_zero_size_is_none_of_an_object_with_the_collectors_of_others_and_without() {
    let mut made = Made::default();
    made.kmalloc(0, 7, SITE, 16);
    made.kfree(0, SITE, 16);
    compare_all(&made.finish(), &Selection::default(), 20);
}
