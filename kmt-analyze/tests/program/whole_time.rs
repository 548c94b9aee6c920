//! The first screen where events were lost: growth is judged in the longest time in which nothing is missing.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::support::files::{Scratch, at, convert, json, run, stderr, stdout};

/// A text of 4 s: one task keeps what it allocates every 10 ms, another one frees; 200 events are lost at 0.5 s.
fn lossy(scratch: &Scratch, is_leaking: bool) -> PathBuf {
    with_losses(scratch, is_leaking, |step| if step == 50 { 200 } else { 0 })
}

/// The same, with that many events lost in each step of 10 ms.
fn with_losses(scratch: &Scratch, is_leaking: bool, lost: impl Fn(u64) -> u64) -> PathBuf {
    let mut text = String::new();
    for step in 0..400_u64 {
        let time = 1_000_000 + step * 10_000;
        let mut event = |task: &str, pid: u64, time: u64, what: &str| {
            let (seconds, rest) = (time / 1_000_000, time % 1_000_000);
            writeln!(text, "{task:>16}-{pid}     [000] .....     {seconds}.{rest:06}: {what}").unwrap();
        };
        let alloc = |site: &str, ptr: u64| {
            format!(
                "kmalloc: call_site={site}+0x10/0x40 ptr=ffff8881{ptr:08x} bytes_req=128 bytes_alloc=128 gfp_flags=GFP_KERNEL node=-1 accounted=false"
            )
        };
        if is_leaking {
            event("leaky", 200, time, &alloc("leaky_alloc", step * 128));
        }
        event("busy", 201, time + 10, &alloc("busy_alloc", 0x0100_0000));
        event("busy", 201, time + 20, "kfree: call_site=busy_free+0x10/0x40 ptr=ffff888101000000");
        if lost(step) > 0 {
            writeln!(text, "CPU:0 [LOST {} EVENTS]", lost(step)).unwrap();
        }
    }
    let (input, file) = (scratch.0.join("text"), scratch.0.join("lossy.kmt"));
    fs::write(&input, text).unwrap();
    convert(&input, &file, None).unwrap();
    file
}

#[test]
fn growth_is_judged_where_nothing_is_missing() {
    let scratch = Scratch::new();
    let file = lossy(&scratch, true);
    let findings = json(&["findings", "--json"], &file);
    assert_eq!(
        (at(&findings, "/growth"), at(&findings, "/trace/lost_events")),
        (&"not_judged".into(), &200.into())
    );
    assert_eq!(at(&findings, "/whole_time_growth/growth"), "grows");
    let time = at(&findings, "/whole_time_growth/time").as_str().unwrap();
    let sentence = at(&findings, "/whole_time_growth/findings/0/sentence").as_str().unwrap();
    // The same as the report of that time.
    let leaks = json(&["leaks", "--json", "--time", time], &file);
    let rate = at(&leaks, "/leaks/families/0/old_bytes_per_second");
    assert_eq!(at(&findings, "/whole_time_growth/findings/0/bytes_per_second"), rate);
    let output = run(&[], &file);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let screen = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    let first = format!("{time}, where nothing is missing: {sentence} kmt-analyze leaks --time {time}");
    assert!(screen.starts_with(&first) && sentence.contains("leaky_alloc"), "{first}\n{screen}");
    // A time that is asked for is not replaced by another one.
    let part = json(&["findings", "--json", "--time", ".."], &file);
    assert!(part["whole_time_growth"].is_null());
}

#[test]
fn no_growth_is_said_of_that_time() {
    let scratch = Scratch::new();
    let file = lossy(&scratch, false);
    let findings = json(&["findings", "--json"], &file);
    assert_eq!(at(&findings, "/whole_time_growth/growth"), "none");
    let screen = stdout(&run(&[], &file)).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains(", where nothing is missing: Nothing grew steadily in 3."), "{screen}");
}

/// Few events are lost, in many places: whatever lives for long crosses a loss, and no growth would be no verdict.
#[test]
fn many_small_losses_are_no_verdict() {
    let scratch = Scratch::new();
    let file = with_losses(&scratch, true, |step| if step % 5 == 0 { 1 } else { 0 });
    let findings = json(&["findings", "--json"], &file);
    assert_eq!(at(&findings, "/growth"), "not_judged");
    let words =
        |arguments: &[&str]| stdout(&run(arguments, &file)).split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "6.2 % of all events were lost; growth is not judged. Perhaps a leak: no free was seen of 400 objects (50.0 KiB) by leaky-200 at leaky_alloc, allocated at an even pace; some free events may be lost.";
    for screen in [words(&[]), words(&["leaks"])] {
        assert!(screen.starts_with(said), "{screen}");
        assert!(!screen.contains("grew steadily") && !screen.contains("or more is found"), "{screen}");
    }
    // Beside 40 other call sites it is the first one.
    let screen = stdout(&run(&["leaks", "--wide"], &file));
    let row =
        screen.lines().find(|line| line.contains("leaky_alloc+") || line.contains("busy_alloc+")).unwrap();
    assert!(row.contains("leaky_alloc+"), "{screen}");
}

/// A file without its end says that it is cut, not that nothing grew.
#[test]
fn a_cut_file_is_not_judged() {
    let scratch = Scratch::new();
    let file = with_losses(&scratch, false, |_| 0);
    let whole = fs::read(&file).unwrap();
    let cut = scratch.0.join("cut.kmt");
    fs::write(&cut, &whole[..whole.len() * 3 / 4]).unwrap();
    let screen = stdout(&run(&[], &cut));
    assert!(!screen.contains("grew steadily") && screen.contains("cut or damaged"), "{screen}");
    assert!(!screen.contains("No lost events were counted"), "{screen}");
}
