//! `info --show` and `info --diff`: files of the target as they were saved, and what differs between them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kmt_format::kernel::{ByteOrder, TraceClock};
use kmt_format::write::{Writer, WriterOptions};

use crate::support::files::{Scratch, at, json, run, stderr, stdout};

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1")
}

#[test]
fn stored_files_are_shown_byte_for_byte() {
    let scratch = Scratch::new();
    let file = scratch.convert(&sample());
    for name in ["meminfo.before", "slabinfo.after", "pagetypeinfo.after", "modules"] {
        let shown = run(&["info", "--show", name], &file);
        assert_eq!(shown.stdout, fs::read(sample().join(name)).unwrap(), "{name}");
        assert!(shown.status.success() && shown.stderr.is_empty(), "{}", stderr(&shown));
    }
    let missing = run(&["info", "--show", "meminfo"], &file);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("it has") && stderr(&missing).contains("meminfo.before"));
}

#[test]
fn of_several_the_last_one_until_an_instant_is_shown() {
    let scratch = Scratch::new();
    let file = scratch.0.join("times.kmt");
    let second = 1_000_000_000;
    let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8).align_u64(8)).unwrap();
    let format = "name: kfree\nID: 1\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:const void * ptr;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n";
    writer.add_format("kmem", format).unwrap();
    writer.add_clock(&TraceClock::named("local")).unwrap();
    for at in [2, 1, 3u64] {
        let times = (at * second, at * second + 5);
        writer.add_file_at("slabinfo", format!("read at {at}\n").as_bytes(), times).unwrap();
    }
    let record = [&1u32.to_le_bytes()[..], &7i32.to_le_bytes(), &0x1000u64.to_le_bytes()].concat();
    writer.add_event(0, second / 2, &record).unwrap();
    writer.add_event(0, 4 * second, &record).unwrap();
    fs::write(&file, writer.finish().unwrap()).unwrap();
    let show = |at: &[&str]| run(&[&["info", "--show", "slabinfo"], at].concat(), &file);
    // Times with + count from the first event, at 0.5 s.
    for (at, expected) in [(&[][..], 3), (&["--at", "+0.6"], 1), (&["--at", "+2"], 2), (&["--at", "3.1"], 3)]
    {
        assert_eq!(stdout(&show(at)), format!("read at {expected}\n"), "{at:?}");
    }
    assert!(stderr(&show(&[])).contains("the last of 3 named slabinfo, read at +2.500"));
    let early = show(&["--at", "+0.1"]);
    assert!(early.status.code() == Some(1) && stderr(&early).contains("was read until then"));
}

/// Numbers by name of a saved file whose lines begin with both.
fn numbers(name: &str) -> BTreeMap<String, i64> {
    let text = fs::read_to_string(sample().join(name)).unwrap();
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.trim_end_matches(':').to_owned(), words.next()?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn changes_are_differences_of_the_saved_files() {
    let scratch = Scratch::new();
    let file = scratch.convert(&sample());
    let rows = json(&["info", "--diff", "--json"], &file);
    for (table, change, factor) in [("meminfo", "bytes_change", 1024), ("vmstat", "change", 1)] {
        let (before, after) = (numbers(&format!("{table}.before")), numbers(&format!("{table}.after")));
        let expected: BTreeMap<String, i64> = after
            .iter()
            .filter(|(name, _)| !name.starts_with("HugePages_"))
            .map(|(name, number)| (name.clone(), (number - before[name]) * factor))
            .filter(|(_, change)| *change != 0)
            .collect();
        let rows = rows[table].as_array().unwrap();
        assert!(rows.is_sorted_by_key(|row| std::cmp::Reverse(row[change].as_i64().unwrap().abs())));
        let found: BTreeMap<String, i64> = rows
            .iter()
            .map(|row| (row["name"].as_str().unwrap().to_owned(), row[change].as_i64().unwrap()))
            .collect();
        assert!(expected.len() > 5, "{table}");
        assert_eq!(found, expected, "{table}");
    }
    let (before, after) = (numbers("slabinfo.before"), numbers("slabinfo.after"));
    let caches = rows["slabinfo"].as_array().unwrap();
    assert!(caches.len() > 10);
    for cache in caches {
        let name = cache["cache"].as_str().unwrap();
        let active = |file: &BTreeMap<String, i64>| file.get(name).copied().unwrap_or(0);
        assert_eq!(cache["active_change"], active(&after) - active(&before), "{name}");
    }
    let screen = stdout(&run(&["info", "--diff"], &file));
    let first = caches[0]["cache"].as_str().unwrap();
    assert!(screen.contains(&format!("most those of {first}: ")), "{screen}");
}

/// Free pages, low and high watermark of the zones of a saved zoneinfo, from its lines one after the other.
fn zoneinfo(name: &str) -> BTreeMap<String, [i64; 3]> {
    let text = fs::read_to_string(sample().join(name)).unwrap();
    let (mut zones, mut zone) = (BTreeMap::<String, [i64; 3]>::new(), String::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Node", node, "zone", name] => zone = format!("{}{name}", node.trim_end_matches(',')),
            ["pages", "free", number] => zones.entry(zone.clone()).or_default()[0] = number.parse().unwrap(),
            ["low", number] => zones.entry(zone.clone()).or_default()[1] = number.parse().unwrap(),
            ["high", number] => zones.entry(zone.clone()).or_default()[2] = number.parse().unwrap(),
            _ => {}
        }
    }
    zones
}

#[test]
fn zones_that_changed_are_those_of_the_saved_files() {
    let scratch = Scratch::new();
    let file = scratch.convert(&sample());
    let (before, after) = (zoneinfo("zoneinfo.before"), zoneinfo("zoneinfo.after"));
    let rows = json(&["info", "--diff", "--json"], &file)["zoneinfo"].take();
    let mut found = BTreeMap::new();
    for row in rows.as_array().unwrap() {
        let number = |key: &str| at(row, &format!("/pages_{key}")).as_i64().unwrap();
        let numbers = |when: &str| ["free", "low", "high"].map(|what| number(&format!("{what}_{when}")));
        assert_eq!(number("free_change"), number("free_after") - number("free_before"));
        let zone = format!("{}{}", at(row, "/node"), at(row, "/zone").as_str().unwrap());
        found.insert(zone, (numbers("before"), numbers("after")));
    }
    let changed = before.iter().filter(|(zone, numbers)| after[*zone] != **numbers);
    let expected: BTreeMap<String, _> =
        changed.map(|(zone, numbers)| (zone.clone(), (*numbers, after[zone]))).collect();
    assert!(!expected.is_empty() && expected.len() < before.len());
    assert_eq!(found, expected);
    let screen = stdout(&run(&["info", "--diff"], &file));
    assert!(screen.contains("zoneinfo") && screen.contains("watermarks"), "{screen}");
}

#[test]
fn a_file_without_counts_says_so() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/vectors");
    let screen = stdout(&run(&["info", "--diff"], &vectors.join("empty-le64.kmt")));
    assert!(screen.starts_with("The file does not have the kernel's counts"), "{screen}");
    let counts = json(&["info", "--diff", "--json"], &vectors.join("empty-le64.kmt"));
    assert!(at(&counts, "/meminfo").is_null());
}
