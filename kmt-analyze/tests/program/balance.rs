//! `balance` on folders of /proc texts made by hand and on those of a real capture, against sums that are made here in another
//! way.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::files::{Scratch, at, json, stderr, stdout};

/// A kernel with every line that overlaps another one. Sizes are in kB.
pub const BEFORE: [(&str, &str); 4] = [
    (
        "meminfo",
        "MemTotal: 4000000 kB\nMemFree: 2000000 kB\nMemAvailable: 2500000 kB\nBuffers: 1000 kB\nCached: 300000 kB\n\
         SwapCached: 400 kB\nActive(anon): 5 kB\nAnonPages: 250000 kB\nShmem: 50000 kB\nKReclaimable: 41000 kB\n\
         Slab: 70000 kB\nSReclaimable: 40000 kB\nSUnreclaim: 30000 kB\nKernelStack: 8000 kB\nPageTables: 6000 kB\n\
         SecPageTables: 700 kB\nBounce: 0 kB\nWritebackTmp: 0 kB\nVmallocUsed: 48000 kB\nPercpu: 3000 kB\n\
         HardwareCorrupted: 0 kB\nCmaTotal: 65536 kB\nCmaFree: 60000 kB\nUnaccepted: 900 kB\nBalloon: 0 kB\n\
         HugePages_Total: 2\nHugepagesize: 2048 kB\nHugetlb: 4096 kB\n",
    ),
    (
        "zoneinfo",
        "Node 0, zone Normal\n  pages free 500000\n        managed  1000000\n  pagesets\n    cpu: 0\n              \
         count: 1000\n    cpu: 1\n              count: 500\n",
    ),
    ("vmstat", "nr_free_pages 500000\nnr_zspages 100\nnr_memmap_pages 10\nballoon_inflate 0\n"),
    (
        "slabinfo",
        "slabinfo - version: 2.1\ndentry 100 210 192 21 1 : tunables 0 0 0 : slabdata 10 10 0\n\
         same 5 21 192 21 1 : tunables 0 0 0 : slabdata 1 1 0\n",
    ),
];

/// Later: 100,000 kB less free, of which 20,000 are page cache, 5,000 slab, and the rest is in no account.
pub fn after(name: &str, text: &str) -> String {
    let changed = match name {
        "meminfo" => text
            .replace("MemFree: 2000000", "MemFree: 1900000")
            .replace("Cached: 300000", "Cached: 325000")
            .replace("Shmem: 50000", "Shmem: 55000")
            .replace("KReclaimable: 41000", "KReclaimable: 46000")
            .replace("SReclaimable: 40000", "SReclaimable: 45000")
            .replace("Percpu: 3000", "Percpu: 3200")
            .replace("KernelStack: 8000", "KernelStack: 8160")
            .replace("VmallocUsed: 48000", "VmallocUsed: 48160"),
        "zoneinfo" => text.replace("count: 500", "count: 400"),
        "slabinfo" => text
            .replace("dentry 100 210", "dentry 26250 26250")
            .replace("slabdata 10 10", "slabdata 1250 1250"),
        _ => text.to_owned(),
    };
    assert!(name == "vmstat" || changed != text, "{name}");
    changed
}

/// Two folders with these texts, and more in both.
pub fn folders(scratch: &Scratch, more: &[(&str, &str)]) -> [PathBuf; 2] {
    let [a, b] = [scratch.0.join("a"), scratch.0.join("b")];
    for folder in [&a, &b] {
        fs::create_dir(folder).unwrap();
        more.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    }
    for (name, text) in BEFORE {
        fs::write(a.join(name), text).unwrap();
        fs::write(b.join(name), after(name, text)).unwrap();
    }
    [a, b]
}

pub fn balance(args: &[&str], files: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).arg("balance").args(args).args(files).output().unwrap()
}

pub fn rows(files: &[&Path]) -> Value {
    let output = balance(&["--json"], files);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn account<'v>(report: &'v Value, key: &str) -> &'v Value {
    let rows = at(report, "/accounts").as_array().unwrap();
    rows.iter().find(|row| row["account"] == key).unwrap_or_else(|| panic!("{key}: {report}"))
}

/// Bytes at least and at most of an account, at the begin and the end, and of its change.
fn figures(report: &Value, key: &str) -> [Option<i64>; 6] {
    let row = account(report, key);
    ["bytes_min_before", "bytes_before", "bytes_min", "bytes", "bytes_change_min", "bytes_change"]
        .map(|key| row[key].as_i64())
}

/// Sizes of a meminfo in kB.
fn sizes(text: &str) -> BTreeMap<String, i64> {
    let line = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        Some((name.to_owned(), rest.trim().strip_suffix(" kB")?.trim().parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// The rest in kB at most: MemTotal less the least of each account, added up line by line. Pages have 4 KiB.
fn rest(folder: &Path, suffix: &str, [percpu_outside, stacks_in_vmalloc]: [i64; 2]) -> i64 {
    let text = |name: &str| fs::read_to_string(folder.join(format!("{name}{suffix}"))).unwrap();
    let meminfo = sizes(&text("meminfo"));
    let line = |name: &str| meminfo.get(name).copied().unwrap_or(0);
    let exact = [
        "MemFree",
        "Cached",
        "Buffers",
        "AnonPages",
        "KReclaimable",
        "SUnreclaim",
        "KernelStack",
        "PageTables",
        "SecPageTables",
        "Hugetlb",
        "VmallocUsed",
        "Percpu",
        "Bounce",
        "WritebackTmp",
    ];
    let lists: i64 = text("zoneinfo")
        .lines()
        .filter_map(|line| line.trim().strip_prefix("count:")?.trim().parse::<i64>().ok())
        .sum();
    let pages = |name: &str| -> i64 {
        let all = text("vmstat");
        let line = all.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.map_or(0, |number| number.parse().unwrap())
    };
    let sum: i64 = exact.iter().map(|name| line(name)).sum();
    let counted = sum + 4 * (lists + pages("nr_zspages") + pages("nr_memmap_pages"));
    line("MemTotal") - counted + percpu_outside + stacks_in_vmalloc
}

/// Accounts do not overlap: with the rest they are MemTotal, at both ends of each range and at both times.
pub fn check_sums(report: &Value) {
    let accounts = at(report, "/accounts").as_array().unwrap();
    let (last, others) = accounts.split_last().unwrap();
    assert_eq!(last["account"], "in_no_account");
    let sum = |key: &str| others.iter().map(|row| row[key].as_i64().unwrap()).sum::<i64>();
    let is_known = at(report, "/unknown").as_array().unwrap().is_empty();
    let times = [("bytes_min", "bytes", "/total"), ("bytes_min_before", "bytes_before", "/total_before")];
    for (least, most, total) in times {
        let Some(total) = at(report, total).as_i64() else { continue };
        assert_eq!(sum(least) + last[most].as_i64().unwrap(), total, "{report}");
        match is_known {
            true => assert_eq!(sum(most) + last[least].as_i64().unwrap(), total, "{report}"),
            false => assert!(last[least].is_null(), "{report}"),
        }
    }
    for row in accounts.iter().filter(|row| row["bytes_min"].is_i64()) {
        assert!(row["bytes_min"].as_i64() <= row["bytes"].as_i64(), "{row}");
        assert!(row["bytes_change_min"].as_i64() <= row["bytes_change"].as_i64(), "{row}");
    }
}

#[test]
fn accounts_of_two_folders_are_exact() {
    let scratch = Scratch::new();
    let [a, b] = folders(&scratch, &[("config", "CONFIG_VMAP_STACK=y\n")]);
    let report = rows(&[&a, &b]);
    check_sums(&report);
    let kb = |numbers: [i64; 6]| numbers.map(|kb| Some(kb * 1024));
    for (key, expected) in [
        ("free", [2_000_000, 2_000_000, 1_900_000, 1_900_000, -100_000, -100_000]),
        ("cpu_lists", [6_000, 6_000, 5_600, 5_600, -400, -400]),
        ("page_cache", [250_000, 250_000, 270_000, 270_000, 20_000, 20_000]),
        ("shmem", [50_000, 50_000, 55_000, 55_000, 5_000, 5_000]),
        ("swap_cache", [0, 400, 0, 400, -400, 400]),
        ("slab_reclaimable", [40_000, 40_000, 45_000, 45_000, 5_000, 5_000]),
        ("misc_reclaimable", [1_000, 1_000, 1_000, 1_000, 0, 0]),
        ("kernel_stacks", [8_000, 8_000, 8_160, 8_160, 160, 160]),
        // Stacks are areas of vmalloc, and grew alike.
        ("vmalloc", [40_000, 40_000, 40_000, 40_000, 0, 0]),
        // The first chunk has at most what all chunks had.
        ("percpu", [0, 3_000, 200, 3_200, 200, 200]),
        ("hugetlb", [4_096, 4_096, 4_096, 4_096, 0, 0]),
        ("cma", [0, 5_536, 0, 5_536, -5_536, 5_536]),
        ("zsmalloc", [400, 400, 400, 400, 0, 0]),
        ("memmap", [40, 40, 40, 40, 0, 0]),
        ("balloon", [0, 0, 0, 0, 0, 0]),
    ] {
        assert_eq!(figures(&report, key), kb(expected), "{key}");
    }
    let found = figures(&report, "in_no_account");
    let (first, last) = (rest(&a, "", [3_000, 8_000]), rest(&b, "", [3_000, 8_160]));
    // Cached has a part of SwapCached and CMA for sure at neither time.
    assert_eq!((found[1], found[3]), (Some(first * 1024), Some(last * 1024)));
    // -100,000 - 400 + 20,000 + 5,000 + 5,000 + 160 + 200, and ranges of the swap cache and CMA.
    let change = 100_000 + 400 - 20_000 - 5_000 - 5_000 - 160 - 200;
    assert_eq!((found[4], found[5]), (Some((change - 5_936) * 1024), Some((change + 5_936) * 1024)));
    assert_eq!(*at(&report, "/unknown"), serde_json::json!([]));
    assert_eq!((at(&report, "/caches_total"), at(&report, "/caches/0/cache")), (&1.into(), &"dentry".into()));
    assert_eq!(*at(&report, "/caches/0/bytes_change"), 1_240 * 4096);
    assert_eq!(*at(&report, "/record"), "kmt-capture record -p pages -d 60s -o who.kmt");
}

#[test]
fn where_stacks_are_decides_vmalloc() {
    for (more, expected) in [
        (&[("config", "# CONFIG_VMAP_STACK is not set\n")][..], [48_000, 48_000, 48_160, 48_160, 160, 160]),
        (
            &[("vmallocinfo", "0xa-0xb 20480 dup_task_struct+0x1/0x2 pages=4 vmalloc\n")],
            [40_000, 40_000, 40_000, 40_000, 0, 0],
        ),
        // Unknown: with the stacks or without them, at both times alike.
        (&[], [40_000, 48_000, 40_000, 48_160, 0, 160]),
    ] {
        let scratch = Scratch::new();
        let [a, b] = folders(&scratch, more);
        let report = rows(&[&a, &b]);
        check_sums(&report);
        assert_eq!(figures(&report, "vmalloc"), expected.map(|kb| Some(kb * 1024)), "{more:?}");
    }
}

#[test]
fn what_is_not_reported_is_unknown() {
    let scratch = Scratch::new();
    let [a, b] = folders(&scratch, &[]);
    let [a, b] = [a.join("meminfo"), b.join("meminfo")];
    let report = rows(&[&a, &b]);
    check_sums(&report);
    assert_eq!(*at(&report, "/unknown"), serde_json::json!(["cpu_lists", "zsmalloc", "memmap"]));
    // The change of unknown accounts may be in either direction: no end of the change of the rest is known.
    let rest = account(&report, "in_no_account");
    assert!(rest["bytes_change_min"].is_null() && rest["bytes_change"].is_null(), "{rest}");
    let screen = stdout(&balance(&[], &[&a, &b]));
    let text = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Free memory without pages on per-CPU lists fell by 97.7 MiB",
        "memory in no account or not in these texts (free pages on per-CPU lists, compressed memory of zswap and \
         zram and 1 more) took at least 62.1 MiB",
        "free pages on per-CPU lists (zoneinfo: count)",
        "The change of in no account without them is unknown.",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let row = screen.lines().find(|line| line.starts_with("in no account ")).unwrap();
    assert!(row.contains("unknown") && !row.contains('~'), "{screen}");
    // A kernel of 4.14: no KReclaimable, Percpu, SecPageTables; VmallocUsed is 0.
    let old = "MemTotal: 1000 kB\nMemFree: 500 kB\nBuffers: 1 kB\nCached: 2 kB\nSwapCached: 0 kB\nAnonPages: 3 kB\n\
        Shmem: 1 kB\nSlab: 10 kB\nSReclaimable: 4 kB\nSUnreclaim: 6 kB\nKernelStack: 5 kB\nPageTables: 7 kB\n\
        VmallocUsed: 0 kB\n";
    fs::write(&a, old).unwrap();
    let report = rows(&[&a]);
    check_sums(&report);
    let unknown = [
        "cpu_lists",
        "misc_reclaimable",
        "sec_page_tables",
        "vmalloc",
        "percpu",
        "zsmalloc",
        "balloon",
        "memmap",
    ];
    assert_eq!(*at(&report, "/unknown"), serde_json::json!(unknown));
    assert_eq!(account(&report, "in_no_account")["bytes"], (1000 - 500 - 1 - 2 - 3 - 10 - 5 - 7) * 1024);
}

#[test]
fn errors_name_the_file_the_line_and_the_remedy() {
    let scratch = Scratch::new();
    let [a, b] = folders(&scratch, &[]);
    let refused = |files: &[&Path]| {
        let output = balance(&[], files);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        stderr(&output)
    };
    for (name, text, expected) in [
        ("meminfo", "MemTotal: 5 kB\nMemFree: x kB\n", "/b/meminfo: line 2: expected NAME: NUMBER kB"),
        ("meminfo", "MemFree: 5 kB\n", "/b/meminfo: no line MemTotal"),
        ("vmstat", "nr_free_pages 5\nnr_x\n", "/b/vmstat: line 2: expected NAME NUMBER"),
        ("zoneinfo", "nr_free_pages 5\n", "/b/zoneinfo: line 1: expected Node N, zone NAME"),
        ("slabinfo", "nr_free_pages 5\n", "/b/slabinfo: line 1: expected slabinfo of version 2.1"),
        ("pagesize", "5\n", "/b/pagesize: line 1: expected a page size in bytes"),
    ] {
        let before = fs::read(b.join(name)).unwrap_or_default();
        fs::write(b.join(name), text).unwrap();
        let message = refused(&[&a, &b]);
        assert!(message.contains(expected) && message.contains("hint: "), "{message}");
        fs::write(b.join(name), before).unwrap();
    }
    // A text that could not be read as another user is empty, and is as if it were not there.
    fs::write(b.join("slabinfo"), "").unwrap();
    assert!(at(&rows(&[&a, &b]), "/caches").is_null());
    fs::remove_file(b.join("meminfo")).unwrap();
    assert!(refused(&[&a, &b]).contains("/b: no meminfo"));
    assert!(refused(&[&a, &scratch.0.join("none")]).contains("none"));
}

/// The texts of a real kernel, and the recording made of the same folder.
#[test]
fn a_recording_has_the_balance_of_its_texts() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1");
    let saved = rows(&[&sample]);
    check_sums(&saved);
    let line = |when: &str, name: &str| {
        sizes(&fs::read_to_string(sample.join(format!("meminfo.{when}"))).unwrap())[name]
    };
    let percpu = line("before", "Percpu").min(line("after", "Percpu"));
    for (when, key) in [("before", "bytes_before"), ("after", "bytes")] {
        let expected = rest(&sample, &format!(".{when}"), [percpu, line(when, "KernelStack")]);
        assert_eq!(account(&saved, "in_no_account")[key], expected * 1024, "{when}");
    }
    let scratch = Scratch::new();
    let file = scratch.convert(&sample);
    let recorded = json(&["balance", "--json"], &file);
    assert_eq!(at(&recorded, "/accounts"), at(&saved, "/accounts"));
    assert_eq!(at(&recorded, "/caches"), at(&saved, "/caches"));
    let uses = at(&recorded, "/pages/uses").as_array().unwrap();
    let live: u64 = uses.iter().map(|row| row["bytes_live"].as_u64().unwrap()).sum();
    let summary = json(&["summary", "--json"], &file);
    assert_eq!(live, at(&summary, "/pages/bytes_live").as_u64().unwrap());
}

#[test]
fn every_account_is_in_the_published_table() {
    let table = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/balance.md")).unwrap();
    let scratch = Scratch::new();
    let report = rows(&[&folders(&scratch, &[])[0]]);
    let rows = at(&report, "/accounts").as_array().unwrap();
    assert_eq!(rows.len(), 26);
    for row in rows {
        let head =
            format!("| `{}` | {} |", row["account"].as_str().unwrap(), row["fields"].as_str().unwrap());
        assert!(table.contains(&head), "{head}");
    }
}

/// Pages larger than stacks: these are objects of a cache, in no area of vmalloc.
#[test]
fn stacks_that_are_slabs_are_in_no_area() {
    const STACKS: &str = "thread_stack 100 128 8192 4 8 : tunables 0 0 0 : slabdata 32 32 0\n";
    let scratch = Scratch::new();
    let [a, b] = folders(&scratch, &[]);
    for folders in [&[&a][..], &[&a, &b]] {
        // One text of both times is enough.
        for folder in folders {
            let text = fs::read_to_string(folder.join("slabinfo")).unwrap();
            fs::write(folder.join("slabinfo"), text.replace("same ", &format!("{STACKS}same "))).unwrap();
        }
        let report = rows(&[&a, &b]);
        check_sums(&report);
        let kb = |numbers: [i64; 6]| numbers.map(|kb| Some(kb * 1024));
        let vmalloc = figures(&report, "vmalloc");
        assert_eq!(vmalloc, kb([48_000, 48_000, 48_160, 48_160, 160, 160]), "{folders:?}");
        assert_eq!(figures(&report, "kernel_stacks"), kb([0; 6]), "{folders:?}");
    }
}

/// What does not change is known of both times if the texts of one have it; a proof counts more than its absence.
#[test]
fn texts_of_one_time_complete_those_of_the_other() {
    let areas = ("vmallocinfo", "0xa-0xb 20480 dup_task_struct+0x1/0x2 pages=4 vmalloc\n");
    let yes = ("config", "CONFIG_VMAP_STACK=y\n");
    let no = ("config", "# CONFIG_VMAP_STACK is not set\n");
    for (begin, end, stacks) in [
        (Some(areas), None, 8_000),
        (None, Some(areas), 8_000),
        (Some(yes), None, 8_000),
        (None, Some(yes), 8_000),
        (Some(yes), Some(no), 8_000),
        (Some(no), Some(areas), 8_000),
        (Some(no), None, 0),
        (None, Some(no), 0),
    ] {
        let scratch = Scratch::new();
        let [a, b] = folders(&scratch, &[]);
        for (folder, more) in [(&a, begin), (&b, end)] {
            more.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
        }
        let report = rows(&[&a, &b]);
        check_sums(&report);
        let change = if stacks == 0 { 160 } else { 0 };
        let first = 48_000 - stacks;
        let expected = [first, first, first + change, first + change, change, change];
        assert_eq!(figures(&report, "vmalloc"), expected.map(|kb| Some(kb * 1024)), "{begin:?} {end:?}");
    }
}
