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
const KERNEL: u64 = 0xcc0;
const FILE: u64 = 0x10_1cca;

/// Pages that a task allocates and partly frees.
struct Load {
    pid: u32,
    /// Functions of the stack, the innermost first.
    stack: &'static [&'static str],
    gfp_flags: u64,
    order: u64,
    allocs: u64,
    frees: u64,
}

const fn load(
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
type Edited = fn(&str, &str) -> String;

/// The same with other texts of the end, and a recorder.
fn recording_with(
    scratch: &Scratch,
    has_stacks: bool,
    readings: &[(&str, (u64, u64), String)],
    edited: (Edited, Option<&str>),
) -> PathBuf {
    recording_of(scratch, has_stacks, readings, edited, &LOADS)
}

/// The same of other loads.
fn recording_of(
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
        for number in 0..load.allocs {
            event(&mut writer, alloc, load.pid, &[pfn, load.order, load.gfp_flags, 0]);
            if has_stacks {
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

fn text(row: &Value, key: &str) -> String {
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

/// Fields of page_pool_state_hold and page_pool_state_release (include/trace/events/page_pool.h, 6.18).
fn pool_format(id: u16, name: &str, count: &str) -> String {
    format!(
        "name: {name}\nID: {id}\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:const struct page_pool * pool;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:const void * netmem;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:u32 {count};\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned long pfn;\toffset:32;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n"
    )
}

#[test]
fn pools_hold_what_they_took_and_did_not_give_back() {
    let scratch = Scratch::new();
    let options = WriterOptions::new(ByteOrder::Little, 8).page_size(4096).trace_uuid([6; 16]);
    let mut writer = Writer::new(options).unwrap();
    let path = data("x86_64-6.1").join("tracefs/events/kmem/mm_page_alloc/format");
    let alloc = writer.add_format("kmem", &fs::read_to_string(path).unwrap()).unwrap();
    let hold = writer.add_format("page_pool", &pool_format(901, "page_pool_state_hold", "hold")).unwrap();
    let release =
        writer.add_format("page_pool", &pool_format(902, "page_pool_state_release", "release")).unwrap();
    writer.add_clock(&TraceClock::named("mono")).unwrap();
    writer.add_tasks(&[820, 821].map(|pid| Task::new(pid, format!("task-{pid}")))).unwrap();
    for (name, text) in BEFORE {
        writer.add_file(&format!("{name}.before"), text.as_bytes()).unwrap();
        writer.add_file(&format!("{name}.after"), after(name, text).as_bytes()).unwrap();
    }
    const FIRST: u64 = 0xffff_8880_0123_0000;
    const SECOND: u64 = 0xffff_8880_0456_0000;
    const THIRD: u64 = 0xffff_8880_0789_0000;
    let mut time = 1_000_000;
    let mut event = |id: u16, cpu: u32, pid: u32, words: &[u64]| {
        time += 1_000;
        let mut record = [&id.to_le_bytes()[..], &[0, 0], &pid.to_le_bytes()].concat();
        words.iter().for_each(|word| record.extend(word.to_le_bytes()));
        writer.add_event(cpu, time, &record).unwrap();
    };
    let pool = |address: u64, pfn: u64| [address, 0xffff_ea00_0000_0000 + pfn, 1, pfn];
    // Pages of order 2 for the second pool; the allocation of another CPU is of another page.
    for pfn in [0x100, 0x200, 0x300] {
        event(alloc, 0, 820, &[pfn, 2, KERNEL, 0]);
        event(alloc, 1, 821, &[pfn + 0x50, 5, KERNEL, 0]);
        event(hold, 0, 820, &pool(SECOND, pfn));
    }
    (0x1000..0x1010).for_each(|pfn| event(hold, 1, 821, &pool(FIRST, pfn)));
    (0x1000..0x100c).for_each(|pfn| event(release, 0, 820, &pool(FIRST, pfn)));
    // Older than the trace, and given back; then taken again, and once more without a release.
    event(release, 0, 820, &pool(FIRST, 0x2000));
    event(hold, 0, 820, &pool(FIRST, 0x2000));
    event(hold, 0, 820, &pool(FIRST, 0x2000));
    event(release, 1, 821, &pool(SECOND, 0x100));
    event(release, 1, 821, &pool(THIRD, 0x3000));
    let file = scratch.0.join("pools.kmt");
    fs::write(&file, writer.finish().unwrap()).unwrap();
    let report = json(&["balance", "--json"], &file);
    let row = |pool: u64, task: Option<&str>, pages: u64, [holds, releases, older]: [u64; 3]| {
        serde_json::json!({
            "pool": pool, "task": task, "bytes_held": 4096 * pages, "holds": holds, "releases": releases,
            "releases_older": older,
        })
    };
    let expected = [
        row(1, Some("task-820-820"), 8, [3, 1, 0]),
        row(2, Some("task-821-821"), 5, [18, 13, 1]),
        row(3, None, 0, [0, 1, 1]),
    ];
    assert_eq!(*at(&report, "/page_pools"), Value::from(expected.to_vec()));
    let screen = stdout(&run(&["balance"], &file));
    assert!(screen.contains("Pages of page pools") && screen.contains("pool 2"), "{screen}");
    let without = recording(&scratch, true, &[]);
    assert!(at(&json(&["balance", "--json"], &without), "/page_pools").is_null());
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
