//! `vmalloc` and `percpu`, against a loop over all events for each area.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kmt_capture::survivors::SurvivorArgs;
use kmt_format::kernel::{ByteOrder, parse_kallsyms};
use kmt_format::write::{Writer, WriterOptions};
use serde_json::{Value, json};

use crate::balance::BEFORE;
use crate::model::next;
use crate::support::files::{Scratch, at, json as document, run, stderr, stdout};
use crate::survivor_pairs::{MS, folded};

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/// System, event, and its fields of 8 bytes each: those of include/trace/events/{vmalloc,percpu}.h that reports use.
const EVENTS: [(&str, &str, &[&str]); 5] = [
    ("vmalloc", "alloc_vmap_area", &["addr", "size", "failed"]),
    ("vmalloc", "free_vmap_area_noflush", &["va_start", "nr_lazy"]),
    ("percpu", "percpu_alloc_percpu", &["call_site", "size", "ptr", "bytes_alloc"]),
    ("percpu", "percpu_alloc_percpu_fail", &["size", "align"]),
    ("percpu", "percpu_free_percpu", &["base_addr", "ptr"]),
];

const KALLSYMS: &[u8] = b"ffffffff81000000 T _text\nffffffff81001000 T alloc_vmap_area\n\
    ffffffff81002000 T vmalloc_noprof\nffffffff81003000 T __alloc_percpu\nffffffff81010000 T user_a\n\
    ffffffff81011000 T user_b\nffffffff81012000 T user_c\nffffffff81013000 T others\nffffffff81020000 T outer\nffffffff81021000 T _etext\n";

/// Address in `user_a` and the others.
fn user(number: u64) -> u64 {
    0xffff_ffff_8101_0010 + (number << 12)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Alloc { address: u64, bytes: u64, user: u64, has_stack: bool },
    Fail,
    Free { address: u64 },
}

/// An event of vmalloc, or of the percpu allocator.
#[derive(Debug, Clone, Copy)]
struct Event {
    time: u64,
    cpu: u32,
    pid: u64,
    is_percpu: bool,
    what: What,
}

/// Random events on few addresses.
fn random(mut seed: u64) -> Vec<Event> {
    let mut below = |limit: u64| next(&mut seed) % limit;
    let event = |number: u64| {
        let address = 0xffff_c900_0000_0000 + (below(12) << 16);
        let what = match below(9) {
            0 => What::Fail,
            1..=4 => What::Free { address },
            _ => {
                What::Alloc { address, bytes: 4096 * (1 + below(7)), user: below(3), has_stack: below(4) > 0 }
            }
        };
        Event {
            time: 1_000_000 + 1_000 * number,
            cpu: below(3) as u32,
            pid: 50 + below(4),
            is_percpu: below(2) == 0,
            what,
        }
    };
    (0..600).map(event).collect()
}

struct Formats {
    writer: Writer,
    ids: [u16; 5],
    stack: u16,
}

impl Formats {
    fn new() -> Self {
        let mut writer =
            Writer::new(WriterOptions::new(ByteOrder::Little, 8).page_size(4096).trace_uuid([7; 16]))
                .unwrap();
        let mut id = 600;
        let ids = EVENTS.map(|(system, name, fields)| {
            id += 1;
            let fields = fields.iter().enumerate().map(|(number, field)| {
                format!("\tfield:unsigned long {field};\toffset:{};\tsize:8;\tsigned:0;\n", 8 + 8 * number)
            });
            let fields: String = fields.collect();
            let text = format!("name: {name}\nID: {id}\nformat:\n{COMMON}{fields}\nprint fmt: \"\"\n");
            writer.add_format(system, &text).unwrap()
        });
        let stack = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/x86_64-6.18-stacks/tracefs/events/ftrace/kernel_stack/format");
        let stack = writer.add_format("ftrace", &fs::read_to_string(stack).unwrap()).unwrap();
        writer.add_symbols(&parse_kallsyms(KALLSYMS, &[], 4096), &[]).unwrap();
        Self { writer, ids, stack }
    }

    fn record(&mut self, event: &Event, id: u16, words: &[u64]) {
        let mut record = Vec::new();
        record.extend(id.to_le_bytes());
        record.extend([0, 0]);
        record.extend((event.pid as u32).to_le_bytes());
        words.iter().for_each(|word| record.extend(word.to_le_bytes()));
        self.writer.add_event(event.cpu, event.time, &record).unwrap();
    }

    fn add(&mut self, event: &Event) {
        let [alloc, free, percpu_alloc, percpu_fail, percpu_free] = self.ids;
        match (event.what, event.is_percpu) {
            (What::Fail, false) => self.record(event, alloc, &[0xffff_e900_0000_0000, 4096, 1]),
            (What::Fail, true) => self.record(event, percpu_fail, &[8, 8]),
            (What::Free { address }, false) => self.record(event, free, &[address, 3]),
            (What::Free { address }, true) => self.record(event, percpu_free, &[1, address]),
            (What::Alloc { address, bytes, .. }, false) => self.record(event, alloc, &[address, bytes, 0]),
            (What::Alloc { address, bytes, user: number, has_stack }, true) => {
                // Before 6.10 the event's call site is in a function of the allocator.
                let call_site = if has_stack { 0xffff_ffff_8100_3010 } else { user(number) };
                self.record(event, percpu_alloc, &[call_site, bytes, address, 4 * bytes]);
            }
        }
        if let What::Alloc { user: number, has_stack: true, .. } = event.what {
            let inner = if event.is_percpu { 0xffff_ffff_8100_3010 } else { 0xffff_ffff_8100_1010 };
            let stack = [3, inner, 0xffff_ffff_8100_2010, user(number), 0xffff_ffff_8102_0010, 0, 0, 0, 0];
            self.record(event, self.stack, &stack);
        }
    }

    fn write(self, scratch: &Scratch, name: &str) -> PathBuf {
        let path = scratch.0.join(name);
        fs::write(&path, self.writer.finish().unwrap()).unwrap();
        path
    }
}

/// Sums in the order of [`KEYS`].
type Sums = [u64; 8];
const KEYS: [&str; 8] = [
    "alloc_events",
    "alloc_failures",
    "bytes_req",
    "bytes_alloc",
    "frees_matched",
    "freed_unseen",
    "live",
    "bytes_live",
];

#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// By call site and task.
    groups: BTreeMap<(SiteName, u64), Sums>,
    frees_unmatched: u64,
}

/// Text of a call site; `None`: unknown.
type SiteName = Option<String>;

/// For each allocation all later events are looked through.
fn plainly(events: &[Event], is_percpu: bool, window: (u64, u64), pids: &[u64]) -> Found {
    let events: Vec<&Event> = events.iter().filter(|event| event.is_percpu == is_percpu).collect();
    let is_in = |time: u64| (window.0..=window.1).contains(&time);
    let is_selected = |event: &Event| pids.is_empty() || pids.contains(&event.pid);
    let mut found = Found::default();
    let mut used = BTreeSet::new();
    for (number, event) in events.iter().enumerate() {
        let What::Alloc { address, bytes, user, has_stack } = event.what else { continue };
        let end = events.iter().enumerate().skip(number + 1).find(|(_, later)| match later.what {
            What::Alloc { address: other, .. } | What::Free { address: other } => other == address,
            What::Fail => false,
        });
        let is_by_free = end.is_some_and(|(_, event)| matches!(event.what, What::Free { .. }));
        if let Some((at, _)) = end.filter(|_| is_by_free) {
            used.insert(at);
        }
        if !is_selected(event) {
            continue;
        }
        let name = ["user_a", "user_b", "user_c"][user as usize];
        let site = (has_stack || is_percpu).then(|| format!("{name}+0x10/0x1000"));
        let bytes_alloc = if is_percpu { 4 * bytes } else { bytes };
        let is_born = is_in(event.time);
        let ends = end.is_some_and(|(_, end)| is_in(end.time));
        let is_live = event.time <= window.1 && end.is_none_or(|(_, end)| end.time > window.1);
        let if_so = |is: bool, number: u64| if is { number } else { 0 };
        let sums = [
            if_so(is_born, 1),
            0,
            if_so(is_born, bytes),
            if_so(is_born, bytes_alloc),
            if_so(ends && is_by_free, 1),
            if_so(ends && !is_by_free, 1),
            if_so(is_live, 1),
            if_so(is_live, bytes_alloc),
        ];
        let row = found.groups.entry((site, event.pid)).or_default();
        row.iter_mut().zip(sums).for_each(|(sum, number)| *sum += number);
    }
    for (number, event) in events.iter().enumerate() {
        let counts = is_selected(event) && is_in(event.time);
        match event.what {
            What::Fail if counts => found.groups.entry((None, event.pid)).or_default()[1] += 1,
            What::Free { .. } if counts && !used.contains(&number) => found.frees_unmatched += 1,
            _ => {}
        }
    }
    found.groups.retain(|_, sums| *sums != Sums::default());
    found
}

fn sums(row: &Value) -> Sums {
    KEYS.map(|key| at(row, &format!("/{key}")).as_u64().unwrap_or_else(|| panic!("no {key}: {row}")))
}

fn reported(report: &Value) -> Found {
    let rows = at(report, "/groups").as_array().unwrap().iter();
    let row = |row: &Value| {
        let task = at(row, "/task").as_str().unwrap().rsplit('-').next().unwrap().parse().unwrap();
        ((row["call_site"].as_str().map(str::to_owned), task), sums(row))
    };
    let groups: BTreeMap<_, _> = rows.map(row).collect();
    let mut total = Sums::default();
    groups.values().for_each(|row| total.iter_mut().zip(row).for_each(|(sum, number)| *sum += number));
    assert_eq!(sums(at(report, "/total")), total);
    Found { groups, frees_unmatched: at(report, "/frees_unmatched").as_u64().unwrap() }
}

#[test]
fn areas_are_those_of_a_loop_over_all_events() {
    let scratch = Scratch::new();
    for seed in 0..6 {
        let events = random(seed);
        let mut formats = Formats::new();
        events.iter().for_each(|event| formats.add(event));
        let file = formats.write(&scratch, &format!("{seed}.kmt"));
        let last = events.last().unwrap().time;
        let windows = [(0, u64::MAX), (1_150_000, 1_400_000)];
        for (window, pids) in
            windows.into_iter().flat_map(|window| [(window, vec![]), (window, vec![51, 53])])
        {
            let time = format!("{}ns..{}ns", window.0, window.1.min(last));
            let mut args = vec!["--json", "--by", "call_site,task", "-l", "10000"];
            if window.0 > 0 {
                args.extend(["--time", &time]);
            }
            if !pids.is_empty() {
                args.extend(["--pid", "51", "--pid", "53"]);
            }
            for (name, is_percpu) in [("vmalloc", false), ("percpu", true)] {
                let report = document(&[&[name], args.as_slice()].concat(), &file)["areas"].take();
                let expected = plainly(&events, is_percpu, window, &pids);
                assert!(expected.groups.len() > 6 && expected.frees_unmatched > 5, "{expected:?}");
                assert_eq!(reported(&report), expected, "seed {seed}: {name} {args:?}");
            }
        }
        // Areas are events in a file of survivors, too.
        let survivors = folded(&file, &SurvivorArgs { threshold: MS, interval: 5 * MS, memory: 8 << 20 });
        for name in ["vmalloc", "percpu"] {
            let areas = |file: &Path| document(&[name, "--json", "-l", "0"], file)["areas"].take();
            assert!(at(&areas(&survivors), "/total/alloc_events").as_u64() > Some(6), "seed {seed}: {name}");
            assert_eq!(areas(&file), areas(&survivors), "seed {seed}: {name}");
        }
    }
}

#[test]
fn vmallocinfo_is_beside_the_trace() {
    let scratch = Scratch::new();
    let mut formats = Formats::new();
    let alloc = |time, number: u64, bytes, has_stack| Event {
        time,
        cpu: 0,
        pid: 7,
        is_percpu: false,
        what: What::Alloc {
            address: 0xffff_c900_0000_0000 + (number << 16),
            bytes,
            user: number % 3,
            has_stack,
        },
    };
    let free = |time, number: u64| Event {
        what: What::Free { address: 0xffff_c900_0000_0000 + (number << 16) },
        ..alloc(time, 0, 0, false)
    };
    // One of each user is freed again, and one from before the trace.
    for number in 0..9 {
        formats.add(&alloc(100 + number, number, 8192, number != 8));
    }
    (0..3).for_each(|number| formats.add(&free(200 + number, number)));
    formats.add(&free(300, 77));
    let caller = |name: &str| format!("{name}+0x10/0x1000");
    let mut before = "0x00000000aaaa0000-0x00000000bbbb0000   20480 outer+0x10/0x1000 pages=4 vmalloc N0=4\n\
        0x00000000aaaa0001-0x00000000bbbb0001   12288 gone+0x5/0x10 [module] phys=0x00000000000a0000 ioremap\n\
        0x00000000aaaa0002-0x00000000bbbb0002   12288 unpurged vm_area\n"
        .to_owned();
    formats.writer.add_file("vmallocinfo.before", before.as_bytes()).unwrap();
    before = before.lines().take(1).map(|line| format!("{line}\n")).collect();
    for number in 3..9u64 {
        let caller = if number == 8 {
            "outer+0x10/0x1000".to_owned()
        } else {
            caller(["user_a", "user_b", "user_c"][number as usize % 3])
        };
        before += &format!(
            "0x00000000{number:08x}-0x000000001{number:07x}    8192 {caller} pages=1 vmalloc N0=1\n"
        );
    }
    formats.writer.add_file("vmallocinfo.after", before.as_bytes()).unwrap();
    let file = formats.write(&scratch, "info.kmt");
    let report = document(&["vmalloc", "--json"], &file)["areas"].take();
    let info = at(&report, "/vmallocinfo");
    let of = |name: &str, before: [u64; 2], after: [u64; 2], live: u64| {
        let name = if name.is_empty() { Value::Null } else { json!(name) };
        json!({"caller": name, "areas_before": before[0], "areas_after": after[0], "bytes_before": before[1],
            "bytes_after": after[1], "live": live, "bytes_live": 8192 * live})
    };
    let mut callers: Vec<Value> = at(info, "/callers").as_array().unwrap().clone();
    callers.sort_by_key(|row| row["caller"].to_string());
    let expected = [
        of("gone+0x5", [1, 12_288], [0, 0], 0),
        of("outer+0x10", [1, 20_480], [2, 28_672], 0),
        of("user_a+0x10", [0, 0], [2, 16_384], 2),
        of("user_b+0x10", [0, 0], [2, 16_384], 2),
        of("user_c+0x10", [0, 0], [1, 8192], 1),
        of("", [0, 0], [0, 0], 1),
    ];
    assert_eq!(callers, expected);
    let number = |key: &str| at(info, key).as_i64().unwrap();
    let keys = ["/areas_before", "/areas_after", "/bytes_before", "/bytes_after", "/areas_unexplained"];
    // Live: 6, of which one is of a caller that the kernel names otherwise; freed of older ones: 1; changed: 5.
    assert_eq!(keys.map(number), [2, 7, 32_768, 69_632, 0]);
    assert_eq!(at(&report, "/frees_unmatched"), 1);
    let screen = stdout(&run(&["vmalloc"], &file));
    assert!(
        screen.contains("The kernel allocated 9 vmalloc areas (72.0 KiB) and freed 3 of them"),
        "{screen}"
    );
    assert!(screen.contains("change of /proc/vmallocinfo"), "{screen}");
    assert!(screen.contains("The trace explains the change of /proc/vmallocinfo"), "{screen}");
    let selected = document(&["vmalloc", "--json", "--pid", "7"], &file)["areas"].take();
    assert!(at(&selected, "/total/live") == 6 && selected.get("vmallocinfo").is_none(), "{selected}");
}

/// Events of 5.19 and later have the bytes of all CPUs, and of pointers to cgroups that are elsewhere; older ones have neither.
#[test]
fn bytes_of_percpu_are_those_of_the_possible_cpus() {
    let scratch = Scratch::new();
    // The events have four times the size.
    let lists = [(Some("0-1"), 2), (Some("0,2-3\n"), 3), (Some("0-3"), 4), (Some("0-63"), 4)];
    for (possible, times) in lists.into_iter().chain([(Some("x"), 4), (None, 4)]) {
        let mut formats = Formats::new();
        if let Some(list) = possible {
            formats.writer.add_metadata(&[("cpus.possible", list.as_bytes())]).unwrap();
        }
        let event = |time, what| Event { time, cpu: 0, pid: 7, is_percpu: true, what };
        for number in 1..4u64 {
            let what = What::Alloc { address: 4096 * number, bytes: 40, user: 0, has_stack: false };
            formats.add(&event(100 + number, what));
        }
        formats.add(&event(200, What::Free { address: 4096 }));
        let file = formats.write(&scratch, "cpus.kmt");
        let total = document(&["percpu", "--json"], &file)["areas"]["total"].take();
        let bytes =
            ["bytes_req", "bytes_alloc", "bytes_freed", "bytes_live"].map(|key| total[key].as_u64().unwrap());
        assert_eq!(bytes, [120, 120 * times, 40 * times, 80 * times], "{possible:?}");
        let memory = document(&["memory", "--json", "--by", "task"], &file);
        assert_eq!(memory["groups"][0]["percpu"]["bytes_live"], 80 * times, "{memory:#}");
        let screen = stdout(&run(&["percpu", "--wide"], &file));
        let is_unsure = matches!(possible, None | Some("x"));
        assert_eq!(screen.contains("The number of CPUs is not in the file"), is_unsure, "{screen}");
    }
}

#[test]
fn they_are_refused_without_their_events() {
    let scratch = Scratch::new();
    let mut formats = Formats::new();
    formats.add(&Event { time: 5, cpu: 0, pid: 1, is_percpu: true, what: What::Free { address: 16 } });
    let file = formats.write(&scratch, "frees.kmt");
    for (name, event) in [("vmalloc", "vmalloc:alloc_vmap_area"), ("percpu", "percpu:percpu_alloc_percpu")] {
        let error = stderr(&run(&[name], &file));
        assert!(error.contains(&format!("it needs {event}, which was not recorded")), "{error}");
    }
    let mut formats = Formats::new();
    let what = What::Alloc { address: 16, bytes: 8, user: 1, has_stack: false };
    formats.add(&Event { time: 5, cpu: 0, pid: 1, is_percpu: true, what });
    let file = formats.write(&scratch, "allocations.kmt");
    let report = document(&["percpu", "--json"], &file)["areas"].take();
    assert!(at(&report, "/total/live").is_null() && at(&report, "/total/bytes_alloc") == 32, "{report}");
    let error = stderr(&run(&["percpu", "--by", "cache"], &file));
    assert!(error.contains("of slab objects and pages only"), "{error}");
}

/// Allocations, bytes allocated and bytes live by the value of a key, where any is not 0.
fn amounts<'v>(
    rows: impl Iterator<Item = &'v Value>,
    key: &str,
    kind: Option<&str>,
) -> BTreeMap<String, [Option<u64>; 3]> {
    let one = |row: &'v Value| {
        let sums = kind.map_or(row, |kind| at(row, &format!("/{kind}")));
        let numbers = ["alloc_events", "bytes_alloc", "bytes_live"].map(|key| sums[key].as_u64());
        (row[key].to_string(), numbers)
    };
    rows.map(one).filter(|(_, numbers)| numbers.iter().any(|n| n.is_some_and(|n| n > 0))).collect()
}

#[test]
fn all_kinds_of_memory_are_beside_each_other() {
    let scratch = Scratch::new();
    let mut formats = Formats::new();
    random(3).iter().for_each(|event| formats.add(event));
    let made = formats.write(&scratch, "made.kmt");
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sample = scratch.convert(&own.join("../docs/sample/x86_64-6.1"));
    let of_stacks = Scratch::new();
    let stacks = of_stacks.convert(&own.join("tests/data/x86_64-6.18-stacks"));
    let kinds = [
        ("slab", "callers", ""),
        ("pages", "pages", "/pages"),
        ("vmalloc", "vmalloc", "/areas"),
        ("percpu", "percpu", "/areas"),
    ];
    // The sample has no stacks: pages have no call sites there.
    const KEYS: &[&str] = &["task", "comm", "cpu", "call_site", "function", "module"];
    for (file, recorded, keys) in [
        (made, ["vmalloc", "percpu"], KEYS),
        (sample, ["slab", "pages"], &KEYS[..3]),
        (stacks, ["slab", "pages"], KEYS),
    ] {
        for &key in keys {
            let all = document(&["memory", "--json", "--by", key, "-l", "100000"], &file);
            let all = at(&all, "/groups").as_array().unwrap();
            for (kind, report, part) in kinds {
                if !recorded.contains(&kind) {
                    assert!(all.iter().all(|row| row[kind].is_null()), "{kind}");
                    continue;
                }
                let own = document(&[report, "--json", "--by", key, "-l", "100000"], &file);
                let own = amounts(at(&own, &format!("{part}/groups")).as_array().unwrap().iter(), key, None);
                assert_eq!(amounts(all.iter(), key, Some(kind)), own, "{kind} by {key}");
                assert!(!own.is_empty(), "{kind} by {key}");
            }
        }
    }
}

/// A file with the events of the areas that grew names the report that shows them, not another recording.
#[test]
fn balance_names_the_report_of_areas_that_grew() {
    let grown: [(&str, &str, &str, Option<&str>); 4] = [
        ("VmallocUsed: 48000", "VmallocUsed: 98000", "", Some("vmalloc --sort live")),
        ("Percpu: 3000", "Percpu: 53000", "", Some("percpu --sort live")),
        ("KernelStack: 8000", "KernelStack: 38000", "VmallocUsed: 78000", Some("vmalloc --sort live")),
        ("PageTables: 6000", "PageTables: 56000", "", None),
    ];
    for (from, to, areas, report) in grown {
        let scratch = Scratch::new();
        let mut formats = Formats::new();
        random(7).iter().for_each(|event| formats.add(event));
        formats.writer.add_file("config", b"CONFIG_VMAP_STACK=y\n").unwrap();
        for (name, text) in BEFORE {
            let after = text.replace(from, to).replace("MemFree: 2000000", "MemFree: 1950000");
            let after = if areas.is_empty() { after } else { after.replace("VmallocUsed: 48000", areas) };
            formats.writer.add_file(&format!("{name}.before"), text.as_bytes()).unwrap();
            formats.writer.add_file(&format!("{name}.after"), after.as_bytes()).unwrap();
        }
        let file = formats.write(&scratch, "grown.kmt");
        let screen = stdout(&run(&["balance"], &file));
        assert_eq!(screen.contains("-o who.kmt"), report.is_none(), "{to}: {screen}");
        for named in ["vmalloc --sort live", "percpu --sort live"] {
            assert_eq!(screen.contains(named), report == Some(named), "{to} {named}: {screen}");
        }
    }
}
