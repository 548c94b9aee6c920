//! Who holds the pages of the account that grew most, as `balance` and the first screen name it. Recordings are those of
//! `balance_pages`, with other texts of the end.

use crate::balance_pages::{Edited, Load, load, recording_of, recording_with, text};
use crate::support::files::{Scratch, at, json, run, stdout};

/// Of 300 KiB more page cache, 100 KiB are pages that task-803 allocated and that are still there.
#[test]
fn the_task_with_most_of_the_largest_growth_is_named() {
    let grown = |name: &str, text: &str| match name {
        "meminfo" => text
            .replace("Cached: 300000 kB", "Cached: 300300 kB")
            .replace("MemFree: 2000000", "MemFree: 1999700"),
        _ => text.to_owned(),
    };
    for (recorder, words) in [
        (
            None,
            "Of page cache of files (+300 KiB), pages of 100 KiB that are still allocated are from task-803-803.",
        ),
        (Some("803"), "from task-803-803, the recorder: the file of this recording."),
    ] {
        let scratch = Scratch::new();
        let file = recording_with(&scratch, true, &[], (grown, recorder));
        let report = json(&["balance", "--json"], &file);
        assert_eq!(*at(&report, "/largest_holder/account"), "page_cache");
        assert_eq!(*at(&report, "/largest_holder/bytes_live"), 100 << 10);
        assert_eq!(*at(&report, "/largest_holder/is_recorder"), recorder.is_some());
        let screen = stdout(&run(&["balance"], &file)).replace('\n', " ");
        assert!(screen.contains(words), "{words}: {screen}");
        assert!(screen.contains("tasks --sort live_pages") && !screen.contains("-o who.kmt"), "{screen}");
    }
}

/// Of 300 KiB more page cache and 250 KiB less of older page cache, 100 KiB are not a part of 50 KiB.
#[test]
fn a_part_that_is_larger_than_its_account_has_no_amount() {
    let grown = |name: &str, text: &str| match name {
        "meminfo" => text
            .replace("Cached: 300000 kB", "Cached: 300050 kB")
            .replace("MemFree: 2000000", "MemFree: 1999950"),
        _ => text.to_owned(),
    };
    let scratch = Scratch::new();
    let file = recording_with(&scratch, true, &[], (grown, None));
    let screen = stdout(&run(&["balance"], &file)).replace('\n', " ");
    let words =
        "Of page cache of files (+50.0 KiB), most pages that are still allocated are from task-803-803.";
    assert!(screen.contains(words), "{screen}");
}

/// The first screen names the holder that `balance` names first, where memory in no account took free memory.
#[test]
fn the_first_screen_names_the_holder_of_memory_in_no_account() {
    // 5,936 kB of the swap cache and of CMA may be in other accounts.
    let less_free = |name: &str, text: &str| match name {
        "meminfo" => text.replace("MemFree: 2000000", "MemFree: 1992000"),
        _ => text.to_owned(),
    };
    // At least 564 KiB in no account: less than the holder has.
    let little_less = |name: &str, text: &str| match name {
        "meminfo" => text.replace("MemFree: 2000000", "MemFree: 1993500"),
        _ => text.to_owned(),
    };
    for (has_stacks, less_free, is_part) in [
        (true, less_free as Edited, true),
        (false, less_free as Edited, true),
        (true, little_less as Edited, false),
        (false, little_less as Edited, false),
    ] {
        let scratch = Scratch::new();
        let file = recording_with(&scratch, has_stacks, &[], (less_free, None));
        let report = json(&["balance", "--json"], &file);
        let first = at(&report, "/pages/holders/0");
        let whose = match has_stacks {
            true => format!("at {}", text(first, "/symbol").split('+').next().unwrap()),
            false => format!("of unknown use by {}", text(first, "/task")),
        };
        let screen = stdout(&run(&["--bytes"], &file)).split_whitespace().collect::<Vec<_>>().join(" ");
        let begin = "memory in no account (drivers, ring buffers, network) took at least ";
        let words = format!("{} {whose}", if is_part { " of pages" } else { " (most pages" });
        assert!(screen.contains(begin) && screen.contains(&words), "{words}: {screen}");
    }
}

/// Without stacks, pages of anonymous memory and of tmpfs look alike: the growth of one is not the other's pages.
#[test]
fn pages_that_may_be_of_another_account_have_no_holder() {
    // GFP_HIGHUSER_MOVABLE.
    const MOVABLE: u64 = 0x10_0cca;
    let process = || load(800, &["__alloc_pages"], MOVABLE, [0, 401, 1]);
    let writer = || load(801, &["__alloc_pages"], MOVABLE, [0, 301, 1]);
    let made = |edited: Edited, loads: &[Load]| {
        let scratch = Scratch::new();
        let file = recording_of(&scratch, false, &[], (edited, None), loads);
        json(&["balance", "--json"], &file)["largest_holder"].take()
    };
    let alone: Edited = |name, text| match name {
        "meminfo" => text
            .replace("Shmem: 50000 kB", "Shmem: 51200 kB")
            .replace("Cached: 300000 kB", "Cached: 301200 kB")
            .replace("MemFree: 2000000", "MemFree: 1998800"),
        _ => text.to_owned(),
    };
    let both: Edited = |name, text| match name {
        "meminfo" => text
            .replace("Shmem: 50000 kB", "Shmem: 51200 kB")
            .replace("Cached: 300000 kB", "Cached: 301200 kB")
            .replace("AnonPages: 250000", "AnonPages: 250800")
            .replace("MemFree: 2000000", "MemFree: 1998000"),
        _ => text.to_owned(),
    };
    let anonymous: Edited = |name, text| match name {
        "meminfo" => text
            .replace("AnonPages: 250000", "AnonPages: 251200")
            .replace("MemFree: 2000000", "MemFree: 1998800"),
        _ => text.to_owned(),
    };
    // tmpfs alone grew, by 1,200 KiB, which task 801 wrote.
    let found = made(alone, &[writer()]);
    assert!(found["account"] == "shmem" && found["task"] == "task-801-801", "{found}");
    // 1,600 KiB of a process are more than that: they took the place of older anonymous memory.
    assert!(made(alone, &[process(), writer()]).is_null());
    assert!(made(both, &[writer()]).is_null());
    let found = made(anonymous, &[process(), writer()]);
    assert!(found["account"] == "anonymous" && found["task"] == "task-800-800", "{found}");
}
