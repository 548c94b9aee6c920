//! Findings against their events, on captures and on traces made at the thresholds of their rules.
//!
//! With KMT_TRACES=DIR also on every .kmt file in that directory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::model::{BASE, Crafted};
use crate::support::files::{Scratch, at, convert, json, run, stdout};
use crate::support::findings::check;
use crate::support::model::{Event, What};

fn capture(name: &str) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = own.join("tests/data").join(name);
    if folder.exists() { folder } else { own.join("../docs/sample").join(name) }
}

/// Captures in the repository, and those in the folder of `KMT_TRACES`, as .kmt files.
fn captures(scratch: &Scratch) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for name in ["x86_64-6.1-reclaim", "x86_64-6.1", "x86_64-6.18-stacks"] {
        let file = scratch.0.join(format!("{name}.kmt"));
        std::fs::rename(scratch.convert(&capture(name)), &file).unwrap();
        files.push(file);
    }
    if let Some(folder) = std::env::var_os("KMT_TRACES") {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "kmt")));
    }
    files
}

#[test]
fn findings_are_those_of_the_events() {
    let scratch = Scratch::new();
    for file in captures(&scratch) {
        let sentences = check(&file);
        println!("{}: {sentences:#?}", file.display());
    }
}

/// A line of the kernel's text, a number of milliseconds after the start.
pub fn line(text: &mut String, ms: usize, event: &str) {
    writeln!(text, "task-77 [000] ..... {}.{:06}: {event}", 1 + ms / 1_000, ms % 1_000 * 1_000).unwrap();
}

#[test]
fn what_is_freed_by_rcu_is_no_growth() {
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    // Every how many objects one is freed by an event.
    for (site, every, is_found) in [
        ("other+0x10/0x90", 0, true),
        ("kernfs_fop_open+0x10/0x90", 0, false),
        // kfree_rcu had no page for a batch.
        ("kernfs_fop_open+0x10/0x90", 100, false),
        // Objects of the same function that are freed by kfree.
        ("kernfs_fop_open+0x10/0x90", 2, true),
    ] {
        let mut text = String::new();
        line(&mut text, 0, "kmem_cache_free: call_site=done+0x1/0x20 ptr=ffff888200000000 name=cache");
        for number in 0..640 {
            let ptr = format!("ffff8881{:08x}", number * 512);
            let alloc = format!(
                "kmalloc: call_site={site} ptr={ptr} bytes_req=256 bytes_alloc=256 gfp_flags=GFP_KERNEL node=-1 accounted=false"
            );
            line(&mut text, number * 5, &alloc);
            if number == 0 || every > 0 && number % every == 0 {
                let ptr = if every > 0 { &ptr } else { "ffff888200000000" };
                line(&mut text, number * 5 + 1, &format!("kfree: call_site=done+0x1/0x20 ptr={ptr}"));
            }
        }
        std::fs::write(&input, text).unwrap();
        convert(&input, &output, None).unwrap();
        let found = kinds(&output);
        assert_eq!(found.contains(&"slab_growth".to_owned()), is_found, "{site}: {found:?}");
    }
}

pub const MS: u64 = 1_000_000;

/// A trace of these events by the task 9, as a file.
pub fn crafted(
    scratch: &Scratch,
    mut trace: Crafted,
    events: impl IntoIterator<Item = (u64, What)>,
) -> PathBuf {
    trace.release("6.1.0");
    for (time, what) in events {
        trace.event(&Event { time, cpu: 0, pid: 9, what });
    }
    let file = scratch.0.join("crafted.kmt");
    std::fs::write(&file, trace.writer.finish().unwrap()).unwrap();
    file
}

fn alloc(number: u64, alloc: u64) -> What {
    What::Alloc { kmalloc: true, site: 77, ptr: BASE + (number << 13), req: alloc, alloc }
}

pub fn kinds(file: &Path) -> Vec<String> {
    check(file);
    let document = json(&["findings", "--json"], file);
    let findings = document["findings"].as_array().unwrap().iter();
    findings.map(|finding| finding["finding"].as_str().unwrap().to_owned()).collect()
}

/// Objects of that size at even times, beside one large object that stays.
fn leak(size: u64, ballast: u64) -> Vec<(u64, What)> {
    let stays = What::Alloc { kmalloc: false, site: 5, ptr: BASE + (1 << 40), req: ballast, alloc: ballast };
    let each = (1..=100).map(|number| (number * 32 * MS, alloc(number, size)));
    let freed = |kfree| (MS, What::Free { kfree, ptr: BASE + (1 << 41) });
    [(MS, stays), freed(true), freed(false)].into_iter().chain(each).collect()
}

#[test]
fn slab_growth_is_found_where_it_is_large() {
    let scratch = Scratch::new();
    // 28 of 32 steps have old objects.
    for (size, ballast, is_found) in [
        (256, 64 << 20, true),
        (128, 64 << 20, false),
        (64, 64, true),
        (32, 64, false),
        (64, 600 << 10, false),
    ] {
        let file = crafted(&scratch, Crafted::new(), leak(size, ballast));
        let found = kinds(&file);
        assert_eq!(found.contains(&"slab_growth".to_owned()), is_found, "{size} {ballast}: {found:?}");
    }
}

/// The fields of growth are those of the rows of `leaks`.
#[test]
fn growth_has_fields_of_the_rows_of_leaks() {
    let scratch = Scratch::new();
    let file = crafted(&scratch, Crafted::new(), leak(256, 64));
    let (found, leaks) = (json(&["findings", "--json"], &file), json(&["leaks", "--json"], &file));
    let found = found["findings"].as_array().unwrap().iter().find(|found| found["finding"] == "slab_growth");
    let (found, family) = (found.unwrap(), at(&leaks, "/leaks/families/0"));
    let callers = at(&leaks, "/leaks/callers").as_array().unwrap();
    let leader = callers.iter().find(|row| row["symbol"] == family["leader"]).unwrap();
    let growing = &found["growing"];
    for key in ["verdict", "symbol", "call_site", "cache"] {
        assert!(growing[key].is_string() && growing[key] == leader[key], "{key}: {growing} {leader}");
    }
    assert_eq!(
        (&found["bytes"], &found["bytes_per_second"]),
        (&family["old_bytes"], &family["old_bytes_per_second"])
    );
    assert_eq!((&growing["call_sites"], &growing["family"]), (&family["call_sites"], &leader["family"]));
    assert_eq!(at(growing, "/tasks/0/task"), at(leader, "/holders/0/task"));
    assert_eq!(at(growing, "/tasks/0/percent"), 100.0);
    let function = growing["function"].as_str().unwrap();
    assert!(found["sentence"].as_str().unwrap().contains(&format!("at {function}")), "{found}");
    let csv = stdout(&run(&["findings", "--csv"], &file));
    for column in ["growing.verdict", "growing.function", "growing.cache", "growing.page_kind"] {
        assert!(csv.lines().next().unwrap().contains(column), "{csv}");
    }
}

#[test]
fn page_growth_is_found_where_it_cannot_be_reclaimed() {
    let scratch = Scratch::new();
    for (movable, count, is_found) in [(false, 100, true), (true, 100, false), (false, 15, false)] {
        let page = |number: u64| What::PageAlloc { pfn: 1_000 + number, order: 0, movable };
        let pages = (0..count).map(|number| (MS + number * 3_200 / count * MS, page(number)));
        let last = (3_300 * MS, What::PageFree { pfn: 7, order: 0 });
        let found = kinds(&crafted(&scratch, Crafted::new(), pages.chain([last])));
        assert_eq!(found.contains(&"page_growth".to_owned()), is_found, "{movable} {count}: {found:?}");
    }
}

/// Flags of 6.1 (include/linux/gfp_types.h).
const HIGHUSER: u64 = 0x10_0cc2;
const MOVABLE: u64 = 0x8;
const COMP: u64 = 0x4_0000;
const NOWARN: u64 = 0x2000;
const NORETRY: u64 = 0x1_0000;
const RETRY_MAYFAIL: u64 = 0x4000;
const NOMEMALLOC: u64 = 0x8_0000;

/// A page each 32 ms.
fn pages_of(scratch: &Scratch, mut trace: Crafted, gfp: u64, order: u64, movable: bool) -> PathBuf {
    trace.gfp = gfp;
    let page = |number: u64| What::PageAlloc { pfn: (1 + number) << order, order, movable };
    let pages = (0..100).map(|number| (MS + number * 32 * MS, page(number)));
    let last = (3_300 * MS, What::PageFree { pfn: 0, order: 0 });
    crafted(scratch, trace, pages.chain([last]))
}

#[test]
fn pages_of_memory_that_nothing_reclaims_grow() {
    let scratch = Scratch::new();
    let noio = 0xc00 | 0x2;
    // Sizes by which shared and anonymous memory grew, in KiB.
    for (what, gfp, order, movable, (shmem, anonymous), swap, is_found) in [
        ("tmpfs", HIGHUSER | MOVABLE | COMP, 0, true, (400, 0), 0, true),
        ("tmpfs with swap", HIGHUSER | MOVABLE | COMP, 0, true, (400, 0), 1_000_000, false),
        ("files", HIGHUSER | MOVABLE | COMP, 0, true, (0, 0), 0, false),
        ("written files", HIGHUSER | MOVABLE | COMP | 0x1000, 0, true, (400, 0), 0, false),
        ("memory of a process", HIGHUSER | MOVABLE | 0x100, 0, true, (400, 0), 0, false),
        ("memory of a process that grows", HIGHUSER | MOVABLE | 0x100, 0, true, (0, 400), 0, true),
        ("the same with swap", HIGHUSER | MOVABLE | 0x100, 0, true, (0, 400), 1_000_000, false),
        (
            "the same, in huge pages",
            HIGHUSER | MOVABLE | COMP | NOWARN | NOMEMALLOC,
            9,
            true,
            (0, 400_000),
            0,
            true,
        ),
        ("ramfs", HIGHUSER | COMP, 0, false, (0, 0), 0, true),
        ("zram", noio | MOVABLE, 0, true, (0, 0), 0, true),
        ("zram, without waiting", 0x800 | NOWARN | 0x2 | MOVABLE, 0, true, (0, 0), 0, true),
        ("hugetlb", HIGHUSER | MOVABLE | COMP | NOWARN | RETRY_MAYFAIL, 9, true, (0, 0), 0, true),
        (
            "transparent huge pages",
            HIGHUSER | MOVABLE | COMP | NOWARN | NOMEMALLOC,
            9,
            true,
            (0, 0),
            0,
            false,
        ),
        ("read ahead of a device", 0x10_0cc0 | COMP | NOWARN | NORETRY, 0, false, (0, 0), 0, false),
        ("a device's blocks", 0x10_0c40 | 0x8000 | COMP, 0, false, (0, 0), 0, false),
    ] {
        let meminfo = |shmem: u64, anonymous: u64| {
            format!(
                "MemTotal: 4000000 kB\nSwapTotal: {swap} kB\nShmem: {shmem} kB\nAnonPages: {anonymous} kB\n"
            )
        };
        let mut trace = Crafted::new();
        trace.writer.add_file("meminfo.before", meminfo(64, 64).as_bytes()).unwrap();
        trace.writer.add_file("meminfo.after", meminfo(64 + shmem, 64 + anonymous).as_bytes()).unwrap();
        let found = kinds(&pages_of(&scratch, trace, gfp, order, movable));
        assert_eq!(found.contains(&"page_growth".to_owned()), is_found, "{what}: {found:?}");
    }
}

#[test]
fn growth_of_anonymous_memory_is_judged_by_the_size_of_the_machine() {
    let scratch = Scratch::new();
    for (total_kb, is_found) in [(65_536, true), (4_000_000, true), (8_000_000, false)] {
        let mut trace = Crafted::new();
        for (when, anonymous) in [("before", 64), ("after", 464)] {
            let meminfo =
                format!("MemTotal: {total_kb} kB\nSwapTotal: 0 kB\nShmem: 4 kB\nAnonPages: {anonymous} kB\n");
            trace.writer.add_file(&format!("meminfo.{when}"), meminfo.as_bytes()).unwrap();
        }
        // 88 of 100 pages are old: 352 KiB.
        let found = kinds(&pages_of(&scratch, trace, HIGHUSER | MOVABLE | 0x100, 0, true));
        assert_eq!(found.contains(&"page_growth".to_owned()), is_found, "{total_kb}: {found:?}");
    }
}

/// Of anonymous memory the kernel counts the sum: what ends meanwhile hides what grows. The frees of older pages tell by task.
#[test]
fn a_process_that_ends_does_not_hide_one_that_grows() {
    let scratch = Scratch::new();
    for (freed_by, is_found) in [(Some(11), true), (Some(9), false), (None, false)] {
        let mut trace = Crafted::new();
        for when in ["before", "after"] {
            let meminfo = "MemTotal: 4000000 kB\nSwapTotal: 0 kB\nShmem: 4 kB\nAnonPages: 6400 kB\n";
            trace.writer.add_file(&format!("meminfo.{when}"), meminfo.as_bytes()).unwrap();
        }
        for number in 0..if freed_by.is_some() { 100 } else { 0 } {
            let what = What::PageFree { pfn: 10_000 + number, order: 0 };
            trace.event(&Event { time: MS, cpu: 0, pid: freed_by.unwrap_or(0), what });
        }
        let file = pages_of(&scratch, trace, HIGHUSER | MOVABLE | 0x100, 0, true);
        let found = kinds(&file);
        assert_eq!(found.contains(&"page_growth".to_owned()), is_found, "{freed_by:?}: {found:?}");
        let leaks = json(&["leaks", "--json"], &file);
        let verdict = if is_found { "grows" } else { "user_memory" };
        assert_eq!(leaks["leaks"]["pages"][0]["verdict"], verdict, "{leaks:#}");
    }
}

/// Pages of slabs, where nothing tells where their memory is. Without events of objects the pages alone show growth.
#[test]
fn pages_with_the_flags_of_slabs_are_no_cache() {
    let scratch = Scratch::new();
    for (has_objects, verdict) in [(true, "with_slabs"), (false, "grows")] {
        let mut trace = Crafted::new();
        if has_objects {
            trace.event(&Event { time: MS, cpu: 0, pid: 9, what: alloc(7, 64) });
            trace.event(&Event { time: MS, cpu: 0, pid: 9, what: What::Free { kfree: true, ptr: BASE } });
        }
        let file = pages_of(&scratch, trace, 0xcc0 | NOWARN | NORETRY | COMP, 0, false);
        let leaks = json(&["leaks", "--json"], &file);
        assert_eq!(leaks["leaks"]["pages"][0]["verdict"], verdict, "{leaks:#}");
    }
}

/// A queue of network buffers has pages of several orders: they are of one growth. Those of another task are of another.
/// A process that fills its heap does not hide what the kernel leaks, however much more it is.
#[test]
fn memory_of_processes_makes_no_leak_of_the_kernel_small() {
    let scratch = Scratch::new();
    let mut trace = Crafted::new();
    for (when, anonymous) in [("before", 64), ("after", 400_000_064)] {
        let meminfo =
            format!("MemTotal: 500000000 kB\nSwapTotal: 0 kB\nShmem: 4 kB\nAnonPages: {anonymous} kB\n");
        trace.writer.add_file(&format!("meminfo.{when}"), meminfo.as_bytes()).unwrap();
    }
    trace.gfp = HIGHUSER | MOVABLE | 0x100;
    for number in 0..400u64 {
        let at = MS + number * 8 * MS;
        for page in 0..40 {
            let what = What::PageAlloc { pfn: (1 + number * 40 + page) << 4, order: 4, movable: true };
            trace.event(&Event { time: at + page, cpu: 0, pid: 9, what });
        }
        let address = BASE + number * 4096;
        let kmalloc = What::Alloc { kmalloc: true, site: BASE, ptr: address, req: 100, alloc: 128 };
        trace.event(&Event { time: at + 100, cpu: 0, pid: 11, what: kmalloc });
    }
    for what in [What::Free { kfree: true, ptr: BASE - 4096 }, What::PageFree { pfn: 0, order: 0 }] {
        trace.event(&Event { time: 3_300 * MS, cpu: 0, pid: 9, what });
    }
    let file = scratch.0.join("heap.kmt");
    std::fs::write(&file, trace.writer.finish().unwrap()).unwrap();
    let document = json(&["findings", "--json"], &file);
    let of = |kind: &str| {
        let mut found = document["findings"].as_array().unwrap().iter();
        found.find(|found| found["finding"] == kind).unwrap_or_else(|| panic!("no {kind} in {document}"))
    };
    let (heap, leak) = (of("page_growth"), of("slab_growth"));
    assert_eq!((&heap["of_user_memory"], &leak["of_user_memory"]), (&true.into(), &false.into()));
    let rate = |found: &serde_json::Value| found["bytes_per_second"].as_u64().unwrap();
    assert!(rate(leak) > 0 && rate(leak) * 1000 < rate(heap), "{leak} {heap}");
    let screen = stdout(&run(&[], &file)).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains("Pages grew by"), "{screen}");
    assert!(screen.contains("Also: slab memory grew by"), "{screen}");
    assert!(!screen.contains("smaller findings"), "{screen}");
}

#[test]
fn pages_of_several_orders_by_one_task_are_one_finding() {
    let scratch = Scratch::new();
    let mut trace = Crafted::new();
    trace.release("6.1.0");
    let mut page = |gfp, time, pid, pfn, order| {
        trace.gfp = gfp;
        let what = What::PageAlloc { pfn, order, movable: false };
        trace.event(&Event { time: MS + time * MS, cpu: 0, pid, what });
    };
    for number in 0..100 {
        page(0x44_28c0, number * 32, 9, 8 * (1 + number), 3);
        page(0x40_0cc0, number * 32 + 1, 9, 10_000 + number, 0);
        page(0xcc0, number * 32 + 2, 11, 20_000 + number, 0);
    }
    let free = What::PageFree { pfn: 7, order: 0 };
    trace.event(&Event { time: 3_300 * MS, cpu: 0, pid: 9, what: free });
    let file = scratch.0.join("orders.kmt");
    std::fs::write(&file, trace.writer.finish().unwrap()).unwrap();
    let proposed = "kmt-capture record --stack kmem:mm_page_alloc";
    assert!(stdout(&run(&["leaks"], &file)).contains(proposed), "call sites of the pages");
    let document = json(&["findings", "--json"], &file);
    let found = document["findings"].as_array().unwrap().iter();
    let found: Vec<_> = found.filter(|found| found["finding"] == "page_growth").collect();
    for found in &found {
        let (growing, sentence) = (&found["growing"], found["sentence"].as_str().unwrap());
        let kind = growing["page_kind"].as_str().unwrap();
        assert!(sentence.contains(&format!("as {kind}")), "{found}");
        assert!(growing["cache"].is_null() && growing["function"].is_null(), "{found}");
        assert!(sentence.contains(at(growing, "/tasks/0/task").as_str().unwrap()), "{found}");
    }
    let found = found.into_iter();
    let found: Vec<(u64, &str)> =
        found.map(|f| (f["bytes"].as_u64().unwrap(), f["sentence"].as_str().unwrap())).collect();
    assert_eq!(found.len(), 2, "{document:#}");
    // 28 of 32 steps are old.
    assert!((9 * 4096 * 85..9 * 4096 * 92).contains(&found[0].0), "{found:?}");
    assert!((4096 * 85..4096 * 92).contains(&found[1].0), "{found:?}");
    assert!(found[0].1.ends_with("(Unmovable) and 1 other kind."), "{found:?}");
}

#[test]
fn findings_come_by_kind_each_with_its_rule() {
    let scratch = Scratch::new();
    let file = scratch.convert(&capture("x86_64-6.1-reclaim"));
    let document = json(&["findings", "--json"], &file);
    let findings = document["findings"].as_array().unwrap();
    assert!(!findings.is_empty() && findings.len() <= 10);
    let order = ["slab_growth", "page_growth", "wait", "page_failures", "slab_failures", "waste"];
    let place =
        |finding: &serde_json::Value| order.iter().position(|kind| finding["finding"] == *kind).unwrap();
    assert!(findings.is_sorted_by_key(place), "{findings:#?}");
    let screen = stdout(&run(&["--wide"], &file));
    for finding in findings {
        let [sentence, command, threshold, share_of] =
            ["sentence", "command", "threshold", "share_of"].map(|key| finding[key].as_str().unwrap());
        assert!(threshold.len() > 20 && share_of.len() > 5, "{finding}");
        assert!(screen.contains(sentence), "{sentence}: {screen}");
        assert!(screen.contains(&format!("kmt-analyze {command} ")), "{command}: {screen}");
        let args: Vec<&str> = command.split(' ').collect();
        assert_eq!(run(&args, &file).status.code(), Some(0), "{command}");
    }
}

/// Growth, of any share, comes before waste of any share.
#[test]
fn growth_comes_before_waste() {
    let scratch = Scratch::new();
    // Half of all that kmalloc hands out is wasted.
    let wasted = (0..4_000u64).flat_map(|number| {
        let ptr = BASE + (1 << 42) + (number << 13);
        let what = What::Alloc { kmalloc: true, site: 78, ptr, req: 2_100, alloc: 4_096 };
        let time = MS + number * 800_000;
        [(time, what), (time + 1_000, What::Free { kfree: true, ptr })]
    });
    let mut events: Vec<(u64, What)> = leak(256, 64 << 20).into_iter().chain(wasted).collect();
    events.sort_by_key(|(time, _)| *time);
    let file = crafted(&scratch, Crafted::new(), events);
    assert_eq!(kinds(&file), ["slab_growth", "waste"]);
}

#[test]
fn nothing_is_found_where_nothing_happened() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/vectors");
    let document = json(&["findings", "--json"], &vectors.join("empty-le64.kmt"));
    assert_eq!(document["findings"].as_array().unwrap().len(), 0);
    let screen = stdout(&run(&[], &vectors.join("empty-le64.kmt")));
    assert!(screen.contains("0 events"), "{screen}");
}
