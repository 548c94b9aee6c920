//! Objects of a boot that were allocated before the trace clock ran: their events have the time 0, and their age is unknown.
//!
//! The file has what `kmt-capture` writes of such a boot: the number of its events of time 0. Without it, time 0 is a time like
//! any other.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::files::{Scratch, at, json, run, stderr, stdout};
use crate::support::hostile::Made;

const MS: u64 = 1_000_000;
const SITE: u64 = 0xffff_ffff_8100_1000;
const OTHER: u64 = 0xffff_ffff_8100_2000;
/// Objects of time 0: freed ones at 900 ms, on another CPU; ones that another allocation replaces; live ones.
const FREED: u64 = 30;
const REPLACED: u64 = 2;
const LIVE: u64 = 3;
/// Objects with an age of 1 ms each.
const DATED: u64 = 50;

fn ptr(number: u64) -> u64 {
    0xffff_8880_0010_0000 + number * 64
}

/// A boot, or the same events of a clock that begins at 0.
fn made(scratch: &Scratch, is_boot: bool) -> PathBuf {
    let mut made = Made::default();
    if is_boot {
        made.writer().add_metadata(&[("events_at_zero", b"35")]).unwrap();
    }
    let at = |made: &mut Made, time: u64| made.set_time(time.wrapping_sub(100));
    for number in 0..FREED + REPLACED + LIVE {
        at(&mut made, 0);
        made.kmalloc(0, 1, SITE, ptr(number));
    }
    for number in 0..DATED {
        at(&mut made, (2 + 4 * number) * MS);
        made.kmalloc(0, 1, OTHER, ptr(100 + number));
        at(&mut made, (3 + 4 * number) * MS);
        made.kfree(0, OTHER, ptr(100 + number));
    }
    for number in 0..FREED {
        at(&mut made, 900 * MS);
        made.kfree(1, OTHER, ptr(number));
    }
    for number in FREED..FREED + REPLACED {
        at(&mut made, 2_000 * MS);
        made.kmalloc(1, 1, OTHER, ptr(number));
    }
    let file = scratch.0.join(if is_boot { "boot.kmt" } else { "usual.kmt" });
    fs::write(&file, made.finish()).unwrap();
    file
}

fn number(value: &Value, pointer: &str) -> u64 {
    at(value, pointer).as_u64().unwrap_or_else(|| panic!("{pointer} in {value:#}"))
}

#[test]
fn lives_of_time_0_have_no_length() {
    let scratch = Scratch::new();
    let (boot, usual) = (made(&scratch, true), made(&scratch, false));
    let objects = FREED + REPLACED + LIVE;
    let note = format!("{objects} objects allocated before the clock ran: their age is unknown.");
    let rows = json(&["lifetimes", "--json"], &boot);
    assert_eq!((number(&rows, "/all/n"), number(&rows, "/unknown_age")), (DATED, objects));
    assert_eq!((number(&rows, "/all/max"), number(&rows, "/all/p50")), (MS, MS));
    // They may have lived for any time: the bytes that outlive one are a range, but for those that are live at the end.
    let survival = at(&rows, "/survival");
    assert_eq!(number(survival, "/outlive_1ms/bytes_at_most"), (objects + REPLACED) * 64);
    // The last ones were allocated at the end.
    assert_eq!(number(survival, "/outlive_1ms/bytes_at_least"), 0);
    assert_eq!(number(survival, "/outlive_trace/bytes_at_least"), (LIVE + REPLACED) * 64);
    assert_eq!(number(survival, "/median_estimate/left_out"), objects);
    let site = at(&rows, "/lifetimes").as_array().unwrap().iter().find(|row| number(row, "/unknown_age") > 0);
    let site = site.expect("the call site of those without an age");
    let counts = ["lifetime/n", "censored", "freed_unseen", "uncertain", "unknown_age"];
    assert_eq!(counts.map(|key| number(site, &format!("/{key}"))), [0, 0, 0, 0, objects]);
    let screen = stdout(&run(&["lifetimes"], &boot));
    assert!(screen.contains(&note), "{screen}");
    let groups = json(&["lifetimes", "--by", "size", "--json"], &boot);
    assert_eq!(number(&groups, "/groups/0/unknown_age"), objects);
    assert_eq!(number(&groups, "/groups/0/lifetime/n"), DATED);

    // The same events of a clock that begins at 0.
    let rows = json(&["lifetimes", "--json"], &usual);
    assert_eq!((number(&rows, "/all/n"), number(&rows, "/unknown_age")), (DATED + FREED, 0));
    assert_eq!(number(&rows, "/all/max"), 900 * MS);
    assert!(!stdout(&run(&["lifetimes"], &usual)).contains("before the clock ran"));
}

#[test]
fn no_report_or_export_gives_them_an_age() {
    let scratch = Scratch::new();
    let (boot, usual) = (made(&scratch, true), made(&scratch, false));
    let temporary = |file: &PathBuf| json(&["temporary", "--within", "1s", "--json"], file);
    let [of_boot, of_usual] = [&boot, &usual].map(temporary);
    assert_eq!((number(&of_boot, "/temporary_total"), number(&of_boot, "/unknown_age")), (1, 35));
    assert_eq!(
        (number(&of_boot, "/temporary/0/temporary"), number(&of_usual, "/temporary_total")),
        (DATED, 2)
    );

    // A free on another CPU counts, its delay does not.
    let [of_boot, of_usual] = [&boot, &usual].map(|file| json(&["crosscpu", "--json"], file));
    for rows in [&of_boot, &of_usual] {
        assert_eq!(number(rows, "/crosscpu/cross_cpu_frees"), FREED);
        assert_eq!(number(rows, "/crosscpu/callers/0/cross_cpu_frees"), FREED);
    }
    assert_eq!(number(&of_boot, "/crosscpu/unknown_age"), FREED);
    assert!(at(&of_boot, "/crosscpu/callers/0/lifetime_p50").is_null());
    assert_eq!(number(&of_usual, "/crosscpu/callers/0/lifetime_max"), 900 * MS);

    // Growth has no lifetime of theirs to compare with, and says how many are live.
    let [of_boot, of_usual] = [&boot, &usual].map(|file| json(&["leaks", "--json"], file));
    assert_eq!((number(&of_boot, "/leaks/unknown_age"), number(&of_usual, "/leaks/unknown_age")), (LIVE, 0));
    let p99 = |rows: &Value| {
        let callers = at(rows, "/leaks/callers").as_array().unwrap();
        let lives: Vec<Option<u64>> = callers.iter().map(|row| at(row, "/lifetime_p99").as_u64()).collect();
        lives.into_iter().flatten().max()
    };
    assert!(p99(&of_boot).is_none_or(|p99| p99 <= 2 * MS) && p99(&of_usual) > Some(800 * MS));

    // One object: freed, of unknown age.
    let address = format!("{:#x}", ptr(0));
    let who = json(&["who", &address, "--json"], &boot);
    assert!(at(&who, "/lives/0/lifetime").is_null());
    assert_eq!(number(&who, "/lives/0/ended"), 900 * MS);
    let screen = stdout(&run(&["who", &address], &boot));
    assert!(screen.contains("and freed by ") && screen.contains("its age is unknown"), "{screen}");
    assert_eq!(number(&json(&["who", &address, "--json"], &usual), "/lives/0/lifetime"), 900 * MS);

    // No condition on a lifetime selects them.
    for condition in ["lifetime>1ms", "lifetime<=1ms"] {
        let rows = json(&["callers", "--where", condition, "--json"], &boot);
        let expected = if condition.contains('>') { 0 } else { DATED };
        let sum = at(&rows, "/callers").as_array().unwrap().iter().map(|row| number(row, "/alloc_events"));
        assert_eq!(sum.sum::<u64>(), expected, "{condition}");
    }

    // Exports leave the lifetime out.
    let lines = run(&["export", "ndjson", "--of", "objects", "-o", "-"], &boot);
    let text = stdout(&lines);
    assert!(lines.status.success(), "{}", stderr(&lines));
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (zero, dated): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(|row| number(row, "/born") == 0);
    assert_eq!(zero.len() as u64, FREED + REPLACED + LIVE);
    assert!(zero.iter().all(|row| row.get("lifetime").is_none()));
    let lifetimes = dated.iter().filter(|row| row.get("lifetime").and_then(Value::as_u64) == Some(MS));
    assert_eq!(lifetimes.count() as u64, DATED);
    let dhat = run(&["export", "dhat", "-o", "-"], &boot);
    assert!(stderr(&dhat).contains("35 objects allocated before the clock ran"), "{}", stderr(&dhat));
}

#[test]
fn an_anonymized_boot_is_a_boot() {
    let scratch = Scratch::new();
    let boot = made(&scratch, true);
    let shared = scratch.0.join("shared.kmt");
    let made = run(&["anonymize", "-o", shared.to_str().unwrap()], &boot);
    assert!(made.status.success(), "{}", stderr(&made));
    assert_eq!(number(&json(&["lifetimes", "--json"], &shared), "/unknown_age"), 35);
}
