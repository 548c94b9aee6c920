//! Parts of changes of accounts in the sentence on free memory: the recording's own file, tasks that allocated or freed anonymous
//! memory, and the thread of the recorder in the tables. Recordings are those of `balance_pages`, with other texts of the end.

use std::fs;
use std::path::Path;

use kmt_format::write::Task;

use crate::balance_pages::{Edited, Load, load, recording_of, recording_with};
use crate::model::{BASE, Crafted};
use crate::support::files::{Scratch, json, run, stdout};
use crate::support::model::{Event, What};

/// GFP_HIGHUSER_MOVABLE.
const MOVABLE: u64 = 0x10_0cca;

fn words(file: &Path) -> String {
    stdout(&run(&[], file)).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The recorder wrote 100 KiB of its file. Other files gave back the rest, or took it.
#[test]
fn the_own_file_is_whole_where_other_files_gave_back_memory() {
    let more: Edited = |name, text| match name {
        "meminfo" => text
            .replace("Cached: 300000 kB", "Cached: 300300 kB")
            .replace("MemFree: 2000000", "MemFree: 1999700"),
        _ => text.to_owned(),
    };
    let little_more: Edited = |name, text| match name {
        "meminfo" => text
            .replace("Cached: 300000 kB", "Cached: 300050 kB")
            .replace("MemFree: 2000000", "MemFree: 1999950"),
        _ => text.to_owned(),
    };
    let about_the_same: Edited = |name, text| match name {
        "meminfo" => text
            .replace("Cached: 300000 kB", "Cached: 300096 kB")
            .replace("MemFree: 2000000", "MemFree: 1999904"),
        _ => text.to_owned(),
    };
    let less: Edited = |name, text| match name {
        "meminfo" => text
            .replace("Cached: 300000 kB", "Cached: 299960 kB")
            .replace("MemFree: 2000000", "MemFree: 2000040"),
        _ => text.to_owned(),
    };
    for (edited, expected) in [
        (more, "page cache of files took 300 KiB (100 KiB of it this recording's own file)"),
        (
            little_more,
            "page cache of files took 50.0 KiB (this recording's own file 100 KiB, others gave back 50.0 KiB)",
        ),
        // Not all pages of the recorder are of its file.
        (about_the_same, "page cache of files took 96.0 KiB (96.0 KiB of it this recording's own file)"),
        (
            less,
            "page cache of files gave back 40.0 KiB (this recording's own file took 100 KiB, others gave back 140 KiB)",
        ),
    ] {
        let scratch = Scratch::new();
        // The file is longer than the pages.
        let readings = [("padding", (1, 2), "x".repeat(200_000))];
        let file = recording_with(&scratch, true, &readings, (edited, Some("803")));
        let text = words(&file);
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

const fn process(pid: u32, allocs: u64, frees: u64) -> Load {
    load(pid, &["__alloc_pages"], MOVABLE, [0, allocs, frees])
}

#[test]
fn the_task_that_allocated_or_freed_most_anonymous_memory_is_named() {
    let took: Edited = |name, text| match name {
        "meminfo" => text
            .replace("AnonPages: 250000", "AnonPages: 252000")
            .replace("MemFree: 2000000", "MemFree: 1998000"),
        _ => text.to_owned(),
    };
    // Page cache grew more.
    let took_less: Edited = |name, text| match name {
        "meminfo" => text
            .replace("AnonPages: 250000", "AnonPages: 252000")
            .replace("Cached: 300000 kB", "Cached: 303000 kB")
            .replace("MemFree: 2000000", "MemFree: 1995000"),
        _ => text.to_owned(),
    };
    let gave: Edited = |name, text| match name {
        "meminfo" => text
            .replace("AnonPages: 250000", "AnonPages: 248800")
            .replace("MemFree: 2000000", "MemFree: 2001200"),
        _ => text.to_owned(),
    };
    // The frees may be of page cache.
    let both_gave: Edited = |name, text| match name {
        "meminfo" => text
            .replace("AnonPages: 250000", "AnonPages: 248800")
            .replace("Cached: 300000 kB", "Cached: 299800 kB")
            .replace("MemFree: 2000000", "MemFree: 2001400"),
        _ => text.to_owned(),
    };
    let holder = "anonymous memory took 1.95 MiB (1.56 MiB by task-800-800)";
    let in_list = "anonymous memory 1.95 MiB (1.56 MiB by task-800-800)";
    let freer = "anonymous memory gave back 1.17 MiB (400 KiB freed by task-802-802)";
    let unnamed = "anonymous memory gave back 1.17 MiB";
    for (edited, loads, expected, is_named) in [
        (took, &[process(800, 401, 1)][..], holder, true),
        (took_less, &[process(800, 401, 1)], in_list, true),
        (gave, &[process(801, 1, 1), process(802, 0, 100)], freer, true),
        (gave, &[process(802, 0, 60)], unnamed, false),
        (both_gave, &[process(802, 0, 100)], unnamed, false),
        // Less was given back than the task freed: it is of another account.
        (gave, &[process(802, 0, 400)], unnamed, false),
    ] {
        let scratch = Scratch::new();
        let file = recording_of(&scratch, false, &[], (edited, None), loads);
        let text = words(&file);
        assert!(text.contains(expected), "{expected}: {text}");
        assert_eq!(text.contains(" by task-"), is_named || text.contains("unknown use by"), "{text}");
        assert_eq!(text.contains("freed by"), expected == freer, "{text}");
    }
}

/// Of the threads of the recorder, that with most memory is named: others may have allocated none.
#[test]
fn the_thread_of_the_recorder_with_most_memory_is_named() {
    let scratch = Scratch::new();
    let mut crafted = Crafted::new();
    crafted.writer.add_metadata(&[("recorder.pid", b"900")]).unwrap();
    let task = |pid, name: &str| Task::new(pid, name).tgid(900);
    let tasks = [task(400, "kmt-symbols"), task(900, "kmt-capture"), task(950, "kmt-capture")];
    crafted.writer.add_tasks(&tasks).unwrap();
    let mut time = 1_000_000;
    for (pid, number) in [(900, 2), (950, 8), (7, 3)] {
        for _ in 0..number {
            time += 1_000;
            let ptr = BASE + (time << 4);
            let what = What::Alloc { kmalloc: false, site: 5, ptr, req: 64, alloc: 64 };
            crafted.event(&Event { time, cpu: 0, pid, what });
            let pfn = 4_096 + time;
            crafted.event(&Event {
                time: time + 10,
                cpu: 0,
                pid,
                what: What::PageAlloc { pfn, order: 0, movable: true },
            });
        }
    }
    crafted.event(&Event { time: time + 100, cpu: 0, pid: 7, what: What::Free { kfree: false, ptr: BASE } });
    let file = scratch.0.join("recorder.kmt");
    fs::write(&file, crafted.writer.finish().unwrap()).unwrap();
    let screen = stdout(&run(&[], &file));
    let rows: Vec<&str> = screen.lines().filter(|line| line.starts_with("by the recorder")).collect();
    assert!(!rows.is_empty(), "{screen}");
    for row in rows {
        assert!(row.contains("kmt-capture-950") && !row.contains("kmt-symbols"), "{screen}");
    }
    let found = json(&["findings", "--json"], &file);
    assert_eq!(found["allocated_pages"]["bytes_by_recorder"], 10 * 4096, "{found:#}");
}
