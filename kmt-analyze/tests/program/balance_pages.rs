//! `balance` of recordings with events of pages: uses by stack, and who holds pages that are in no account.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kmt_format::kernel::{ByteOrder, TraceClock, parse_kallsyms};
use kmt_format::write::{Task, Writer, WriterOptions};
use serde_json::Value;

use crate::balance::{BEFORE, after};
use crate::support::files::{Scratch, at, data, json, run, stderr, stdout};

/// Functions of the stacks, each 4 KiB long; the last ones are of a module.
const FUNCTIONS: [&str; 14] = [
    "__alloc_pages",
    "allocate_slab",
    "___slab_alloc",
    "kmem_cache_alloc",
    "__vmalloc_node_range",
    "dup_task_struct",
    "dma_alloc_attrs",
    "__rb_allocate_pages",
    "ring_buffer_resize",
    "core_user",
    "filemap_alloc_folio",
    "page_pool_alloc_pages",
    "board_poll [board]",
    "board_ring [board]",
];

/// GFP_KERNEL, and GFP_HIGHUSER_MOVABLE | __GFP_WRITE: a page of a file (6.1).
pub const KERNEL: u64 = 0xcc0;
const FILE: u64 = 0x10_1cca;

/// Pages that a task allocates and partly frees.
pub struct Load {
    pid: u32,
    /// Functions of the stack, the innermost first.
    stack: &'static [&'static str],
    gfp_flags: u64,
    order: u64,
    allocs: u64,
    frees: u64,
}

pub const fn load(
    pid: u32,
    stack: &'static [&'static str],
    gfp_flags: u64,
    [order, allocs, frees]: [u64; 3],
) -> Load {
    Load { pid, stack, gfp_flags, order, allocs, frees }
}

const LOADS: [Load; 9] = [
    load(
        800,
        &["__alloc_pages", "allocate_slab", "___slab_alloc", "kmem_cache_alloc", "core_user"],
        KERNEL,
        [1, 20, 3],
    ),
    load(800, &["__alloc_pages", "__vmalloc_node_range", "dup_task_struct"], KERNEL, [0, 8, 4]),
    load(801, &["__alloc_pages", "__vmalloc_node_range", "core_user"], KERNEL, [0, 6, 0]),
    load(801, &["__alloc_pages", "dma_alloc_attrs", "board_ring"], KERNEL, [3, 30, 1]),
    load(802, &["__alloc_pages", "dma_alloc_attrs", "board_ring"], KERNEL, [3, 2, 0]),
    load(800, &["__alloc_pages", "__rb_allocate_pages", "ring_buffer_resize"], KERNEL, [0, 100, 0]),
    load(802, &["__alloc_pages", "page_pool_alloc_pages", "board_poll"], KERNEL, [0, 40, 10]),
    load(802, &["__alloc_pages", "core_user"], KERNEL, [0, 5, 5]),
    load(803, &["__alloc_pages", "filemap_alloc_folio"], FILE, [0, 50, 25]),
];

fn address(function: &str) -> u64 {
    let index = FUNCTIONS.iter().position(|name| name.split(' ').next() == Some(function)).unwrap() as u64;
    let base =
        if FUNCTIONS[index as usize].contains('[') { 0xffff_ffff_c000_0000 } else { 0xffff_ffff_8100_0000 };
    base + (index << 12)
}

fn kallsyms() -> String {
    let line = |name: &&str| {
        let (function, module) =
            name.split_once(' ').map_or((*name, String::new()), |(f, m)| (f, format!("\t{m}")));
        format!("{:x} t {function}{module}\n", address(function))
    };
    let (core, modules) = FUNCTIONS.split_at(12);
    let core: String = core.iter().map(line).collect();
    format!(
        "ffffffff80ffffff T _text\n{core}ffffffff81100000 T _etext\n{}",
        modules.iter().map(line).collect::<String>()
    )
}

/// A recording of all loads, with the texts of `balance.rs` and those that were read meanwhile.
pub fn recording(scratch: &Scratch, has_stacks: bool, readings: &[(&str, (u64, u64), String)]) -> PathBuf {
    recording_with(scratch, has_stacks, readings, (after, None))
}

/// Makes the text of the end of a file, by its name, from that of the begin.
pub type Edited = fn(&str, &str) -> String;

/// The same with other texts of the end, and a recorder.
pub fn recording_with(
    scratch: &Scratch,
    has_stacks: bool,
    readings: &[(&str, (u64, u64), String)],
    edited: (Edited, Option<&str>),
) -> PathBuf {
    recording_of(scratch, has_stacks, readings, edited, &LOADS)
}

/// The same of other loads.
pub fn recording_of(
    scratch: &Scratch,
    has_stacks: bool,
    readings: &[(&str, (u64, u64), String)],
    (after, recorder): (Edited, Option<&str>),
    loads: &[Load],
) -> PathBuf {
    let options = WriterOptions::new(ByteOrder::Little, 8).page_size(4096).trace_uuid([5; 16]);
    let mut writer = Writer::new(options).unwrap();
    let format = |path: PathBuf| fs::read_to_string(path.join("format")).unwrap();
    let kmem = data("x86_64-6.1").join("tracefs/events/kmem");
    let alloc = writer.add_format("kmem", &format(kmem.join("mm_page_alloc"))).unwrap();
    let free = writer.add_format("kmem", &format(kmem.join("mm_page_free"))).unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.18-stacks");
    let stack = writer.add_format("ftrace", &format(own.join("tracefs/events/ftrace/kernel_stack"))).unwrap();
    writer.add_clock(&TraceClock::named("mono")).unwrap();
    let pairs = [("kernel.release", &b"6.1.0"[..]), ("record.buffers_kb", b"32768")];
    writer.add_metadata(&pairs).unwrap();
    recorder.iter().for_each(|pid| writer.add_metadata(&[("recorder.pid", pid.as_bytes())]).unwrap());
    writer.add_tasks(&[800, 801, 802, 803].map(|pid| Task::new(pid, format!("task-{pid}")))).unwrap();
    writer.add_symbols(&parse_kallsyms(kallsyms().as_bytes(), &[], 4096), &[]).unwrap();
    writer.add_file("config", b"CONFIG_VMAP_STACK=y\n").unwrap();
    for (name, text) in BEFORE {
        writer.add_file(&format!("{name}.before"), text.as_bytes()).unwrap();
        writer.add_file(&format!("{name}.after"), after(name, text).as_bytes()).unwrap();
    }
    for (name, times, text) in readings {
        writer.add_file_at(name, text.as_bytes(), *times).unwrap();
    }
    let (mut time, mut pfn) = (1_000_000, 0x1000);
    let mut event = |writer: &mut Writer, id: u16, pid: u32, words: &[u64]| {
        time += 1_000;
        let mut record = [&id.to_le_bytes()[..], &[0, 0], &pid.to_le_bytes()].concat();
        words.iter().for_each(|word| record.extend(word.to_le_bytes()));
        writer.add_event(pid & 1, time, &record).unwrap();
    };
    for load in loads {
        // More frees than allocations are of older pages.
        for number in 0..load.allocs.max(load.frees) {
            if number < load.allocs {
                event(&mut writer, alloc, load.pid, &[pfn, load.order, load.gfp_flags, 0]);
            }
            if has_stacks && number < load.allocs {
                let addresses = load.stack.iter().map(|function| address(function) + 0x10);
                let words: Vec<u64> = [load.stack.len() as u64].into_iter().chain(addresses).collect();
                event(&mut writer, stack, load.pid, &words);
            }
            if number < load.frees {
                event(&mut writer, free, load.pid, &[pfn, load.order]);
            }
            pfn += 1 << load.order;
        }
    }
    let path = scratch.0.join("pages.kmt");
    fs::write(&path, writer.finish().unwrap()).unwrap();
    path
}

/// Bytes allocated, and still allocated, of loads with a common key.
fn sums<K: Ord>(key: impl Fn(&Load) -> Option<K>) -> BTreeMap<K, [u64; 2]> {
    let mut sums: BTreeMap<K, [u64; 2]> = BTreeMap::new();
    for load in &LOADS {
        let Some(key) = key(load) else { continue };
        let sum = sums.entry(key).or_default();
        sum[0] += (4096 * load.allocs) << load.order;
        sum[1] += (4096 * (load.allocs - load.frees)) << load.order;
    }
    sums
}

fn found(rows: &Value, key: impl Fn(&Value) -> String) -> Vec<(String, [u64; 2])> {
    let number = |row: &Value, key: &str| at(row, key).as_u64().unwrap();
    let row = |row: &Value| (key(row), [number(row, "/bytes_alloc"), number(row, "/bytes_live")]);
    rows.as_array().unwrap().iter().map(row).collect()
}

pub fn text(row: &Value, key: &str) -> String {
    at(row, key).as_str().unwrap().to_owned()
}

/// Use of a load, as its stack shows.
fn use_of(load: &Load) -> &'static str {
    match load.stack[1..] {
        ["allocate_slab", ..] => "slab",
        [_, "dup_task_struct"] => "kernel stacks",
        ["__vmalloc_node_range", _] => "vmalloc",
        ["dma_alloc_attrs", _] => "drivers and other modules",
        ["__rb_allocate_pages", _] => "ring buffers of tracing",
        ["page_pool_alloc_pages", _] => "network buffers",
        ["filemap_alloc_folio"] => "page cache",
        _ => "other kernel memory",
    }
}

/// Names of the kernel's texts.
#[test]
fn wide_accounts_have_the_lines_that_they_are_made_of() {
    let scratch = Scratch::new();
    let file = recording(&scratch, true, &[]);
    let screen = stdout(&run(&["balance", "--wide"], &file));
    for name in ["AnonPages", "Cached - Shmem", "Buffers"] {
        assert!(screen.contains(name), "{name}: {screen}");
    }
    assert!(!stdout(&run(&["balance"], &file)).contains("AnonPages"));
}

/// A ring has the texts of its end alone: there are accounts, and no changes.
#[test]
fn a_recording_with_its_end_alone_has_accounts_without_changes() {
    let scratch = Scratch::new();
    let file = scratch.changed("x86_64-6.1", |folder| {
        fs::write(folder.join("meminfo.after"), BEFORE[0].1).unwrap();
    });
    let report = json(&["balance", "--json"], &file);
    assert_eq!(*at(&report, "/is_compared"), false);
    assert!(at(&report, "/total_before").is_null() && at(&report, "/largest_holder").is_null());
    for row in at(&report, "/pages/uses").as_array().unwrap() {
        assert!(at(row, "/bytes_change").is_null(), "{row}");
    }
    let screen = stdout(&run(&["balance"], &file)).replace('\n', " ");
    assert!(screen.contains("has /proc/meminfo of its end alone"), "{screen}");
}

#[test]
fn stacks_tell_uses_and_holders_apart() {
    let scratch = Scratch::new();
    let file = recording(&scratch, true, &[]);
    let report = json(&["balance", "--json"], &file);
    assert_eq!(*at(&report, "/pages/has_stacks"), true);
    let uses = found(at(&report, "/pages/uses"), |row| text(row, "/use"));
    let expected: BTreeMap<String, [u64; 2]> = sums(|load| Some(use_of(load).to_owned()));
    assert_eq!(uses.iter().cloned().collect::<BTreeMap<_, _>>(), expected);
    assert!(uses.is_sorted_by_key(|(_, [alloc, live])| std::cmp::Reverse((*live, *alloc))), "{uses:?}");
    // Uses are all pages.
    let pages = json(&["pages", "--json"], &file);
    let live: u64 = uses.iter().map(|(_, [_, live])| live).sum();
    assert_eq!(live, at(&pages, "/pages/bytes_live").as_u64().unwrap());
    let changes = |name: &str| {
        let rows = at(&report, "/pages/uses").as_array().unwrap();
        let row = rows.iter().find(|row| row["use"] == name).unwrap();
        (at(row, "/bytes_change").clone(), at(row, "/accounts").clone())
    };
    let both = serde_json::json!(["slab_reclaimable", "slab_unreclaimable"]);
    assert_eq!(changes("slab"), ((5_000 << 10).into(), both));
    assert_eq!(changes("network buffers"), (Value::Null, serde_json::json!(["in_no_account"])));
    // Holders: functions outside of the allocator and of DMA; those of which all pages were freed are none.
    let rows = at(&report, "/pages/holders");
    let holders = found(rows, |row| text(row, "/symbol"));
    let holder = |load: &Load| {
        let name = match use_of(load) {
            "drivers and other modules" => "board_ring+0x10",
            "ring buffers of tracing" => "__rb_allocate_pages+0x10",
            "network buffers" => "board_poll+0x10",
            _ => return None,
        };
        Some(name.to_owned())
    };
    let short =
        |(name, bytes): &(String, [u64; 2])| (name.split(['/', ' ']).next().unwrap().to_owned(), *bytes);
    assert_eq!(holders.iter().map(short).collect::<BTreeMap<_, _>>(), sums(holder));
    assert_eq!(holders.len(), 3, "{holders:?}");
    assert_eq!(*at(&report, "/pages/holders_total"), 3);
    let first = at(rows, "/0");
    assert_eq!(text(first, "/use"), "drivers and other modules");
    assert_eq!(
        (text(first, "/module"), text(first, "/task")),
        ("[board]".to_owned(), "task-801-801".to_owned())
    );
    assert_eq!((at(first, "/tasks_total"), at(rows, "/1/module")), (&2.into(), &"[kernel]".into()));
    let limited = json(&["balance", "--json", "-l", "1"], &file);
    assert_eq!(at(&limited, "/pages/holders").as_array().unwrap().len(), 1);
    assert_eq!(*at(&limited, "/pages/holders_total"), 3);
}

#[test]
fn groups_of_pages_add_up_to_those_of_pages() {
    let scratch = Scratch::new();
    let file = recording(&scratch, true, &[]);
    for by in ["module", "task", "call_site,task", "order"] {
        let groups = |report: Value, prefix: &str| {
            let keys: Vec<&str> = by.split(',').collect();
            let key =
                |row: &Value| keys.iter().map(|key| row[*key].to_string()).collect::<Vec<_>>().join(" ");
            let mut found = found(at(&report, &format!("{prefix}/groups")), key);
            found.sort_unstable();
            found
        };
        let of_balance = groups(json(&["balance", "--json", "--by", by], &file), "/pages");
        assert_eq!(
            of_balance,
            groups(json(&["pages", "--json", "-l", "0", "--by", by], &file), "/pages"),
            "{by}"
        );
    }
    let report = json(&["balance", "--json", "--by", "task"], &file);
    let rows = at(&report, "/pages/groups").as_array().unwrap();
    for load in &LOADS {
        let of_task = |of: &Load| (of.pid == load.pid).then_some(());
        let in_none = |of: &Load| {
            let names = [
                "drivers and other modules",
                "ring buffers of tracing",
                "network buffers",
                "other kernel memory",
            ];
            (of.pid == load.pid && names.contains(&use_of(of))).then_some(())
        };
        let row = rows.iter().find(|row| row["task"] == format!("task-{0}-{0}", load.pid)).unwrap();
        assert_eq!(row["bytes_live"], sums(of_task)[&()][1]);
        assert_eq!(row["bytes_live_in_no_account"], sums(in_none).get(&()).map_or(0, |sum| sum[1]), "{row}");
    }
    let screen = stdout(&run(&["balance", "--by", "module"], &file));
    assert!(screen.contains("in no account") && screen.contains("[board]"), "{screen}");
    let texts = scratch.0.join("texts");
    fs::create_dir(&texts).unwrap();
    BEFORE.iter().for_each(|(name, text)| fs::write(texts.join(name), text).unwrap());
    let refused = run(&["balance", "--by", "module"], &texts);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--by needs a recording"), "{}", stderr(&refused));
}

#[test]
fn a_screen_names_the_first_holder_and_no_recording_that_is_there_already() {
    let scratch = Scratch::new();
    let screen = stdout(&run(&["balance", "--wide"], &recording(&scratch, true, &[]))).replace('\n', " ");
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "Of pages in no account the trace still has most from board_ring+0x10",
        "(drivers and other modules, 992 KiB)",
        "task-801-801 and 1 more",
        "ring buffers of tracing",
        "of which ring buffers of this recording 32.0 MiB 32.0 MiB 0",
        "~ in change: a range",
        "pages --by call_site,task",
    ] {
        assert!(words.contains(expected), "{expected}: {screen}");
    }
    assert!(!words.contains("kmt-capture record -p pages"), "{screen}");
    let report = json(&["balance", "--json"], &recording(&scratch, true, &[]));
    assert_eq!(*at(&report, "/recording_buffers"), 32 << 20);
}

#[test]
fn without_stacks_tasks_are_holders_and_the_recording_with_stacks_is_named() {
    let scratch = Scratch::new();
    let file = recording(&scratch, false, &[]);
    let report = json(&["balance", "--json"], &file);
    assert_eq!(*at(&report, "/pages/has_stacks"), false);
    let uses = found(at(&report, "/pages/uses"), |row| text(row, "/use"));
    let by_flags = |load: &Load| if load.gfp_flags == FILE { "page cache" } else { "kernel" }.to_owned();
    assert_eq!(uses.into_iter().collect::<BTreeMap<_, _>>(), sums(|load| Some(by_flags(load))));
    let rows = at(&report, "/pages/holders");
    let holders = found(rows, |row| text(row, "/task"));
    let by_task = |load: &Load| (load.gfp_flags == KERNEL).then(|| format!("task-{0}-{0}", load.pid));
    assert_eq!(holders.iter().cloned().collect::<BTreeMap<_, _>>(), sums(by_task));
    assert!(at(rows, "/0/call_site").is_null() && at(rows, "/0/module").is_null(), "{rows}");
    // By flags alone, slabs are `kernel` too.
    let by_task = stdout(&run(&["balance", "--by", "task"], &file));
    assert!(by_task.contains("  in no account or unknown use\n"), "{by_task}");
    let screen = stdout(&run(&["balance"], &file)).replace('\n', " ");
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "Of pages whose use is not known the trace still has most from task-801-801",
        "Only call stacks show which.",
        "kmt-capture record -p pages -d 60s -o who.kmt",
    ] {
        assert!(words.contains(expected), "{expected}: {screen}");
    }
}
