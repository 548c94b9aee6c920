//! `timeline --by account` and `chart balance`: accounts at each reading, against the texts of the readings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::balance::BEFORE;
use crate::balance_pages::recording;
use crate::support::files::{Scratch, at, copy, json, run, stderr, stdout};

/// Begin and end of each reading meanwhile, and kB of MemFree, Cached and Percpu in it.
const READINGS: [((u64, u64), [u64; 3]); 3] = [
    ((1_100_000, 1_150_000), [1_800_000, 300_000, 3_100]),
    ((1_020_000, 1_025_000), [1_990_000, 301_000, 2_900]),
    ((1_200_000, 1_210_000), [1_700_000, 310_000, 3_100]),
];

fn text(name: &str) -> &'static str {
    BEFORE.iter().find(|(of, _)| *of == name).unwrap().1
}

fn meminfo([free, cached, percpu]: [u64; 3]) -> String {
    text("meminfo")
        .replace("MemFree: 2000000", &format!("MemFree: {free}"))
        .replace("Cached: 300000", &format!("Cached: {cached}"))
        .replace("Percpu: 3000", &format!("Percpu: {percpu}"))
}

fn file(scratch: &Scratch) -> PathBuf {
    let mut readings = Vec::new();
    for (times, numbers) in READINGS {
        readings.push(("meminfo", times, meminfo(numbers)));
        readings.push(("zoneinfo", times, text("zoneinfo").to_owned()));
        readings.push(("vmstat", times, text("vmstat").to_owned()));
    }
    recording(scratch, true, &readings)
}

/// Rows of one account: time, bytes at least and at most.
fn line(report: &Value, account: &str) -> Vec<(u64, i64, i64)> {
    let rows = at(report, "/accounts/amounts").as_array().unwrap().iter();
    let number = |row: &Value, key: &str| at(row, key).as_i64().unwrap();
    rows.filter(|row| row["account"] == account)
        .map(|row| (at(row, "/time").as_u64().unwrap(), number(row, "/bytes_min"), number(row, "/bytes")))
        .collect()
}

#[test]
fn accounts_at_all_readings_are_those_of_the_texts() {
    let scratch = Scratch::new();
    let file = file(&scratch);
    let report = json(&["timeline", "--by", "account", "--json"], &file);
    assert_eq!(
        (at(&report, "/accounts/readings"), at(&report, "/accounts/unknown")),
        (&5.into(), &serde_json::json!([]))
    );
    assert_eq!(*at(&report, "/timeline/lines"), serde_json::json!([]));
    let free: Vec<i64> = line(&report, "free").iter().map(|row| row.2 >> 10).collect();
    assert_eq!(free, [2_000_000, 1_990_000, 1_800_000, 1_700_000, 1_900_000]);
    let times: Vec<u64> = line(&report, "free").iter().map(|row| row.0).collect();
    assert_eq!(times[1..4], [1_025_000, 1_150_000, 1_210_000]);
    assert_eq!((times[0], times.is_sorted()), (1_001_000, true));
    let cached: Vec<i64> = line(&report, "page_cache").iter().map(|row| row.2 >> 10).collect();
    assert_eq!(cached, [250_000, 251_000, 250_000, 260_000, 270_000]);
    // The first chunk of the percpu allocator has at most the smallest amount, 2,900 kB.
    let percpu: Vec<(i64, i64)> =
        line(&report, "percpu").iter().map(|row| (row.1 >> 10, row.2 >> 10)).collect();
    assert_eq!(percpu, [(100, 3_000), (0, 2_900), (200, 3_100), (200, 3_100), (300, 3_200)]);
    // All accounts at each time are MemTotal.
    let mut sums: BTreeMap<u64, i64> = BTreeMap::new();
    for row in at(&report, "/accounts/amounts").as_array().unwrap() {
        let key = if row["account"] == "in_no_account" { "/bytes" } else { "/bytes_min" };
        *sums.entry(at(row, "/time").as_u64().unwrap()).or_default() += at(row, key).as_i64().unwrap();
        assert_eq!(*at(row, "/total"), 4_000_000u64 << 10);
    }
    assert_eq!(sums.into_values().collect::<Vec<_>>(), [4_000_000 << 10; 5]);
    // The ends are those of `balance`, but for percpu.
    let balance = json(&["balance", "--json"], &file);
    for row in at(&balance, "/accounts").as_array().unwrap() {
        let account = row["account"].as_str().unwrap();
        if ["percpu", "in_no_account"].contains(&account) {
            continue;
        }
        let all = line(&report, account);
        let ends = [all[0], all[4]].map(|(_, least, most)| [least, most]);
        let expected = [["bytes_min_before", "bytes_before"], ["bytes_min", "bytes"]];
        assert_eq!(ends, expected.map(|keys| keys.map(|key| row[key].as_i64().unwrap())), "{account}");
    }
    // A part of the time has its readings.
    let part = json(&["timeline", "--by", "account", "--json", "--time", "+0.00001..+0.00016"], &file);
    assert_eq!(line(&part, "free").iter().map(|row| row.0).collect::<Vec<_>>(), [1_025_000, 1_150_000]);
}

#[test]
fn a_screen_has_accounts_and_readings_and_a_table_has_all() {
    let scratch = Scratch::new();
    let file = file(&scratch);
    let screen = stdout(&run(&["timeline", "--by", "account"], &file));
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "Free memory fell by 98.0 MiB between the first and the last of 5 readings.",
        "In no account: at most",
        "page cache of files",
        "chart balance -o balance.svg",
    ] {
        assert!(words.contains(expected), "{expected}: {screen}");
    }
    let short = stdout(&run(&["timeline", "--by", "account", "--steps", "2"], &file));
    assert!(short.lines().count() < screen.lines().count(), "{short}");
    let csv = stdout(&run(&["timeline", "--by", "account", "--csv"], &file));
    assert_eq!(csv.lines().next(), Some("account,name,time,bytes,bytes_min,total"));
    assert_eq!(csv.lines().count(), 1 + 5 * 26, "{csv}");
    // Nothing is selected that accounts could not be of.
    let refused = run(&["timeline", "--by", "account", "--pid", "800"], &file);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("omit --pid"), "{}", stderr(&refused));
    let by_kind = json(&["timeline", "--json"], &file);
    assert!(by_kind.get("accounts").is_none(), "{by_kind}");
}

/// Numbers of each band of a picture, by its name.
fn bands(svg: &str) -> BTreeMap<String, Vec<u64>> {
    let value = |band: &str, key: &str| {
        let rest = band.split_once(&format!("{key}=\"")).unwrap().1;
        rest.split('"').next().unwrap().to_owned()
    };
    let band = |band: &str| {
        let numbers = value(band, "data-values");
        (value(band, "data-name"), numbers.split(' ').map(|number| number.parse().unwrap()).collect())
    };
    svg.lines().filter(|line| line.contains("data-values")).map(band).collect()
}

#[test]
fn bands_of_the_picture_add_up_to_all_memory() {
    let scratch = Scratch::new();
    let file = file(&scratch);
    let svg = stdout(&run(&["chart", "balance"], &file));
    let bands = bands(&svg);
    // 15 accounts have memory: 7 bands and the sum of the others, free memory, and the rest.
    assert!(bands.len() == 10 && bands.contains_key("8 other accounts"), "{:?}", bands.keys());
    for step in 0..5 {
        assert_eq!(bands.values().map(|bytes| bytes[step]).sum::<u64>(), 4_000_000 << 10, "{bands:?}");
    }
    let report = json(&["timeline", "--by", "account", "--json"], &file);
    let rest: Vec<u64> = line(&report, "in_no_account").iter().map(|row| row.2 as u64).collect();
    assert_eq!(bands["in no account"], rest);
    // The last band is drawn on top.
    let last = svg.lines().rfind(|line| line.contains("data-values")).unwrap();
    assert!(last.contains("in no account"), "{last}");
    assert_eq!(stdout(&run(&["chart", "timeline", "--by", "account"], &file)), svg);
}

/// Free memory of both reports includes pages on per-CPU lists.
#[test]
fn free_memory_of_timeline_is_that_of_balance() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1");
    let scratch = Scratch::new();
    let file = scratch.convert(&sample);
    let words = |args: &[&str]| {
        let screen = stdout(&run(args, &file)).split_whitespace().collect::<Vec<_>>().join(" ");
        let moved = screen.split([',', ':']).next().unwrap().to_owned();
        let of = if moved.contains(" between ") { " between " } else { " to " };
        let alone = screen.split_once("(MemFree alone ").unwrap().1.split_once(')').unwrap().0;
        (moved.split_once(of).unwrap().0.to_owned(), alone.to_owned())
    };
    let of_balance = words(&["balance"]);
    assert_eq!(words(&["timeline", "--by", "account"]), of_balance);
}

#[test]
fn readings_of_a_folder_are_converted_and_broken_ones_are_reported() {
    let scratch = Scratch::new();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1");
    let folder = scratch.0.join("sample");
    copy(&sample, &folder);
    let events = json(&["timeline", "--json"], &scratch.convert(&folder));
    let begin = at(&events, "/timeline/start").as_u64().unwrap();
    let plain = json(&["timeline", "--by", "account", "--json"], &scratch.convert(&folder));
    assert_eq!(*at(&plain, "/accounts/readings"), 2);
    let meminfo = fs::read(folder.join("meminfo.before")).unwrap();
    fs::write(folder.join(format!("meminfo.at.{}-{}", begin + 10, begin + 1_000)), &meminfo).unwrap();
    fs::write(folder.join(format!("meminfo.at.{}-{}", begin + 2_000, begin + 3_000)), "MemTotal\n").unwrap();
    let file = scratch.convert(&folder);
    let report = json(&["timeline", "--by", "account", "--json"], &file);
    assert_eq!(
        (at(&report, "/accounts/readings"), at(&report, "/accounts/readings_unread")),
        (&3.into(), &1.into())
    );
    let free = line(&report, "free");
    assert_eq!((free[1].0, free[1].2), (begin + 1_000, free[0].2));
    // That reading has neither zoneinfo nor vmstat.
    let unknown = at(&report, "/accounts/unknown").as_array().unwrap();
    assert!(unknown.contains(&"cpu_lists".into()) && !unknown.contains(&"free".into()), "{unknown:?}");
    let screen = stdout(&run(&["timeline", "--by", "account"], &file));
    assert!(screen.contains("left out") && screen.contains("line 1"), "{screen}");
    assert!(screen.starts_with("Free memory without pages on per-CPU lists "), "{screen}");
}

#[test]
fn a_recording_without_meminfo_is_refused_with_the_remedy() {
    let scratch = Scratch::new();
    let file = scratch.convert(&crate::support::files::data("x86_64-6.12"));
    for args in [&["timeline", "--by", "account"][..], &["chart", "balance"]] {
        let refused = run(args, &file);
        let text = stdout(&refused) + &stderr(&refused);
        assert_eq!(refused.status.code(), Some(1), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("no /proc/meminfo") && words.contains("--snapshot-every 5s"), "{text}");
    }
}

/// One reading has no changes.
#[test]
fn one_reading_is_an_amount_and_no_picture() {
    let scratch = Scratch::new();
    let file = file(&scratch);
    let window = ["--time", "+0.00001..+0.00003"];
    let screen = stdout(&run(&[&["timeline", "--by", "account"], &window[..]].concat(), &file));
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = "One reading of the kernel's accounts; --snapshot-every 5s of kmt-capture record makes more. 1.90 GiB are free. In no account: at most ";
    assert!(words.starts_with(first), "{screen}");
    for absent in ["between the first", "over time", "change", "chart balance", "Readings"] {
        assert!(!screen.contains(absent), "{absent}: {screen}");
    }
    let refused = run(&[&["chart", "balance"], &window[..]].concat(), &file);
    let message = stderr(&refused);
    assert_eq!(refused.status.code(), Some(1), "{message}");
    assert!(message.contains("one reading") && message.contains("--snapshot-every"), "{message}");
}

#[test]
fn the_picture_has_all_memory_unknown_accounts_and_a_negative_rest() {
    let scratch = Scratch::new();
    let svg = stdout(&run(&["chart", "balance"], &file(&scratch)));
    assert!(svg.contains(">MemTotal (3.81 GiB)<"), "{svg}");
    assert!(!svg.contains("Not in all readings") && !svg.contains("more than MemTotal"), "{svg}");
    // A reading of meminfo alone, whose anonymous memory is 4 GB.
    let large = meminfo([2_000_000, 300_000, 3_000]).replace("AnonPages: 250000", "AnonPages: 4000000");
    let file = recording(&scratch, true, &[("meminfo", (1_020_000, 1_025_000), large)]);
    let svg = stdout(&run(&["chart", "balance"], &file));
    for words in [
        "Not in all readings, and so in no account: free pages on per-CPU lists,",
        "In 1 reading the accounts are more than MemTotal, by ",
    ] {
        assert!(svg.contains(words), "{words}: {svg}");
    }
}
