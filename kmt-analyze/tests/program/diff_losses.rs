//! `diff` of recordings with losses: lost events can make a difference beyond noise, and the answer says so with their number.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files::{Scratch, convert, json, run, stdout};

/// A text of 800 allocations at one call site, in which every Nth is followed by lost events.
fn recording(scratch: &Scratch, name: &str, size: u64, lost_each: Option<u64>) -> PathBuf {
    let mut text = String::new();
    for step in 0..800u64 {
        let time = 1_000_000 + step * 5_000;
        writeln!(
            text,
            "        sh-77     [000] .....     {}.{:06}: kmalloc: call_site=f+0x1/0x2 ptr=ffff8881{:08x} bytes_req={size} bytes_alloc={size} gfp_flags=GFP_KERNEL node=-1 accounted=false",
            time / 1_000_000,
            time % 1_000_000,
            step * 4096
        )
        .unwrap();
        writeln!(
            text,
            "        sh-77     [000] .....     {}.{:06}: kfree: call_site=g+0x1/0x2 ptr=ffff8881{:08x}",
            time / 1_000_000,
            time % 1_000_000 + 9,
            step * 4096
        )
        .unwrap();
        if lost_each.is_some_and(|each| step % each == each - 1) {
            text.push_str("CPU:0 [LOST 3 EVENTS]\n");
        }
    }
    let (input, output) = (scratch.0.join(format!("{name}.txt")), scratch.0.join(format!("{name}.kmt")));
    fs::write(&input, text).unwrap();
    convert(&input, &output, None).unwrap();
    output
}

#[test]
fn lost_events_can_make_a_difference() {
    let scratch = Scratch::new();
    let whole = recording(&scratch, "whole", 64, None);
    let more = recording(&scratch, "more", 512, None);
    let lossy = recording(&scratch, "lossy", 512, Some(100));
    let answer = |files: [&Path; 2]| {
        let args = ["diff", "--wide", files[0].to_str().unwrap()];
        stdout(&run(&args, files[1])).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = answer([&whole, &lossy]);
    assert!(said.contains("differ beyond noise"), "{said}");
    let of_b = "Lost events are not in the noise and can make these differences: B lost 24 events (1.5 %).";
    assert!(said.contains(of_b), "{said}");
    let said = answer([&whole, &more]);
    assert!(said.contains("differ beyond noise") && !said.contains("Lost events"), "{said}");
    let said = answer([&lossy, &lossy]);
    assert!(said.contains("Nothing differs") && !said.contains("Lost events"), "{said}");
    let diff = json(&["diff", "--json", whole.to_str().unwrap()], &lossy);
    assert_eq!(diff["diff"]["after"]["runs"][0]["lost_events_counted"], 24, "{diff:#}");
}
