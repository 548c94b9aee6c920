//! Findings of wasted memory: of functions, of the recorder, of live memory and of all allocations.

use std::fmt::Write as _;

use crate::findings::{MS, kinds};
use crate::model::{BASE, Crafted};
use crate::support::files::{Scratch, convert, json};
use crate::support::findings::check;
use crate::support::model::{Event, What};

#[test]
fn waste_of_a_function_is_that_of_all_its_call_sites() {
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    let mut text = String::new();
    for number in 0..600 {
        let (site, req) =
            [("split+0x10/0x90", 200), ("split+0x20/0x90", 200), ("single+0x4/0x20", 160)][number % 3];
        writeln!(
            text,
            "task-77 [000] ..... 1.{number:06}: kmalloc: call_site={site} ptr=ffff8881{:08x} bytes_req={req} bytes_alloc=512 gfp_flags=GFP_KERNEL node=-1 accounted=false",
            number * 512
        )
        .unwrap();
    }
    std::fs::write(&input, text).unwrap();
    convert(&input, &output, None).unwrap();
    let sentences = check(&output);
    assert!(sentences[0].ends_with(", 64 % of that by split."), "{sentences:?}");
}

#[test]
fn what_the_recorder_wastes_is_no_finding() {
    let scratch = Scratch::new();
    // Task 9 wastes 212,000 bytes, task 11 wastes 21,200 or 106,000.
    for (recorder, others, bytes) in [("9", 100, None), ("11", 100, Some(212_000)), ("9", 500, Some(106_000))]
    {
        let mut trace = Crafted::new();
        trace.release("6.1.0");
        trace.writer.add_metadata(&[("recorder.pid", recorder.as_bytes())]).unwrap();
        for number in 1..=1_000 + others {
            let ptr = BASE + (number << 13);
            let what = What::Alloc { kmalloc: true, site: 77, ptr, req: 300, alloc: 512 };
            let pid = if number <= 1_000 { 9 } else { 11 };
            trace.event(&Event { time: MS + number, cpu: 0, pid, what });
        }
        let file = scratch.0.join("recorder.kmt");
        std::fs::write(&file, trace.writer.finish().unwrap()).unwrap();
        let found = kinds(&file);
        assert_eq!(found.contains(&"waste".to_owned()), bytes.is_some(), "{recorder}: {found:?}");
        let document = json(&["findings", "--json"], &file);
        let of = |bytes: u64| document["findings"][0]["bytes"] == bytes;
        assert!(bytes.is_none_or(of), "{recorder}: {bytes:?}: {document:#}");
        // The command shows the bytes of the sentence.
        if let Some(bytes) = bytes {
            let command = document["findings"][0]["command"].as_str().unwrap().to_owned();
            let args: Vec<&str> = command.split(' ').chain(["--json"]).collect();
            let callers = json(&args, &file)["callers"].as_array().unwrap().clone();
            let sum: u64 = callers.iter().map(|row| row["bytes_wasted"].as_u64().unwrap()).sum();
            assert_eq!(sum, bytes, "{command}");
        }
    }
}

/// What is wasted now comes first: what is freed wastes nothing any more. Waste of the recorder is named beside that of all others.
#[test]
fn waste_of_now_comes_before_that_of_all_allocations() {
    let scratch = Scratch::new();
    let mut trace = Crafted::new();
    trace.release("6.1.0");
    trace.writer.add_metadata(&[("recorder.pid", b"7")]).unwrap();
    for number in 0..1_000 {
        let ptr = BASE + (number << 13);
        let time = MS + number * 1_000;
        let what = What::Alloc { kmalloc: true, site: 77, ptr, req: 412, alloc: 512 };
        trace.event(&Event { time, cpu: 0, pid: if number < 100 { 7 } else { 9 }, what });
        if number % 10 > 0 {
            trace.event(&Event { time: time + 1, cpu: 0, pid: 9, what: What::Free { kfree: true, ptr } });
        }
    }
    let file = scratch.0.join("waste.kmt");
    std::fs::write(&file, trace.writer.finish().unwrap()).unwrap();
    let found = json(&["findings", "--json"], &file);
    let sentence = found["findings"][0]["sentence"].as_str().unwrap();
    let begin = "kmalloc wastes 9.77 KiB of the 50.0 KiB still allocated; over all allocations 87.9 KiB of 450 KiB (20 %) without 9.77 KiB of the recorder, ";
    assert!(sentence.starts_with(begin), "{sentence}");
}

/// The recorder's waste is left out, though another interface has the address of its call site.
#[test]
fn waste_of_the_recorder_is_left_out_where_its_call_site_has_two_interfaces() {
    let scratch = Scratch::new();
    let file = scratch.0.join("two.kmt");
    let mut crafted = Crafted::new();
    crafted.writer.add_metadata(&[("recorder.pid", b"7")]).unwrap();
    let mut time = 1_000_000;
    let mut alloc = |kmalloc, site, ptr, bytes: (u64, u64)| {
        time += 1_000;
        let (req, alloc) = bytes;
        let what = What::Alloc { kmalloc, site, ptr, req, alloc };
        crafted.event(&Event { time, cpu: 0, pid: 7, what });
    };
    for number in 0..100 {
        alloc(true, 5, BASE + (number << 12), (100, 4_096));
    }
    alloc(false, 5, BASE + (200 << 12), (64, 64));
    alloc(true, 6, BASE + (201 << 12), (64, 64));
    std::fs::write(&file, crafted.writer.finish().unwrap()).unwrap();
    let found = json(&["findings", "--json"], &file);
    assert!(found["findings"].as_array().unwrap().iter().all(|f| f["finding"] != "waste"), "{found:#}");
    let callers = json(&["callers", "--json"], &file);
    assert_eq!(callers["callers"].as_array().unwrap().len(), 3, "both interfaces, and another call site");
}
