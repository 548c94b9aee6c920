//! Findings of failed allocations: how many are found, and which are expected by their flags.

use crate::findings::{MS, crafted, kinds, line};
use crate::model::{BASE, Crafted};
use crate::support::files::{Scratch, convert, json};
use crate::support::model::What;

#[test]
fn failures_are_found_where_they_are_many_or_unexpected() {
    let scratch = Scratch::new();
    for (failed, all, is_found) in [(10, 10_000, true), (9, 100, false), (10, 10_001, false)] {
        let event = |number| {
            let ptr = if number < failed { 0 } else { BASE + (number << 13) };
            (MS + number, What::Alloc { kmalloc: true, site: 77, ptr, req: 64, alloc: 64 })
        };
        let found = kinds(&crafted(&scratch, Crafted::new(), (0..all).map(event)));
        assert_eq!(found.contains(&"slab_failures".to_owned()), is_found, "{failed} of {all}: {found:?}");
    }
    const NOWARN: u64 = 0x2000;
    for (gfp, failed, all, is_found) in
        [(0, 1, 1_000, true), (NOWARN, 1, 1_000, false), (NOWARN, 10, 1_000, true), (0, 0, 1_000, false)]
    {
        let mut trace = Crafted::new();
        trace.gfp |= gfp;
        let page = |number| {
            let pfn = if number < failed { u64::MAX } else { number };
            (MS + number, What::PageAlloc { pfn, order: 0, movable: true })
        };
        let found = kinds(&crafted(&scratch, trace, (0..all).map(page)));
        assert_eq!(found.contains(&"page_failures".to_owned()), is_found, "{gfp:#x} {failed}: {found:?}");
    }
}

#[test]
fn failures_are_expected_by_the_bits_of_the_kernel_s_flags() {
    let scratch = Scratch::new();
    for (capture, gfp, is_found) in [
        // GFP_NOWAIT has __GFP_NOWARN from 6.8 on, and its text replaces both flags.
        ("tests/data/x86_64-6.18-stacks", 0x44_28c0, false),
        ("tests/data/x86_64-6.18-stacks", 0x44_08c0, true),
        ("../docs/sample/x86_64-6.1", 0x44_28c0, false),
        ("../docs/sample/x86_64-6.1", 0x44_08c0, true),
    ] {
        let mut trace = Crafted::with_formats(capture);
        trace.gfp = gfp;
        let page = |number: u64| {
            let pfn = if number == 0 { u64::MAX } else { 8 * number };
            (MS + number, What::PageAlloc { pfn, order: 3, movable: false })
        };
        let found = kinds(&crafted(&scratch, trace, (0..1_000).map(page)));
        assert_eq!(found.contains(&"page_failures".to_owned()), is_found, "{capture} {gfp:#x}: {found:?}");
    }
}

/// Text has no bits, and its GFP_NOWAIT may stand for __GFP_NOWARN: from 6.8 on it does.
#[test]
fn failures_in_text_are_expected_where_their_flags_may_say_so() {
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    for (gfp, is_found) in [("GFP_NOWAIT|__GFP_COMP", false), ("GFP_ATOMIC", true), ("GFP_KERNEL", true)] {
        let mut text = String::new();
        for number in 0..1_000 {
            let page = if number == 0 {
                "page=(null) pfn=0x0".to_owned()
            } else {
                format!("page=ffffea0000000040 pfn={number:#x}")
            };
            line(&mut text, number, &format!("mm_page_alloc: {page} order=0 migratetype=0 gfp_flags={gfp}"));
        }
        std::fs::write(&input, text).unwrap();
        convert(&input, &output, None).unwrap();
        let document = json(&["findings", "--json"], &output);
        let found = document["findings"].as_array().unwrap();
        assert_eq!(
            found.iter().any(|found| found["finding"] == "page_failures"),
            is_found,
            "{gfp}: {found:#?}"
        );
    }
}

#[test]
fn failures_of_the_recorder_are_left_out() {
    let scratch = Scratch::new();
    for (recorder, events) in [("9", None), ("11", Some(5))] {
        let mut trace = Crafted::new();
        trace.writer.add_metadata(&[("recorder.pid", recorder.as_bytes())]).unwrap();
        let page = |number| {
            let pfn = if number < 5 { u64::MAX } else { number };
            (MS + number, What::PageAlloc { pfn, order: 0, movable: true })
        };
        let file = crafted(&scratch, trace, (0..1_000).map(page));
        kinds(&file);
        let document = json(&["findings", "--json"], &file);
        let mut found = document["findings"].as_array().unwrap().iter();
        let found = found.find(|found| found["finding"] == "page_failures");
        assert_eq!(found.map(|found| found["events"].as_u64().unwrap()), events, "{document:#}");
    }
}
