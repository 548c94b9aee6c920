//! `allocinfo` on copies made by hand, against a plain loop over their lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::files::{Scratch, at, stderr, stdout};

const BEFORE: &str = "allocinfo - version: 1.0\n#     <size>  <calls> <tag info>
        4096        1 mm/slub.c:10 func:new_slab\n        1000        2 ./fs/ext4/super.c:5 [ext4] func:fill
           0        0 fs/ext4/inode.c:7 [ext4] func:iget\n          64        1 fs/inode.c:9 func:alloc_inode
         128        2 fs/inode.c:9 func:alloc_inode\n";

const AFTER: &str = "allocinfo - version: 2.0\n#     <size>  <calls> <tag info>
        8192        2 mm/slub.c:10 func:new_slab accurate:no\n         400        1 ./fs/ext4/super.c:5 [ext4] func:fill
           0        0 fs/ext4/inode.c:7 [ext4] func:iget\n         192        3 fs/inode.c:9 func:alloc_inode
          10        1 net/socket.c:3 func:sock_alloc\n";

fn allocinfo(args: &[&str], files: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).arg("allocinfo").args(args).args(files).output().unwrap()
}

fn rows(args: &[&str], files: &[&Path]) -> Value {
    let output = allocinfo(&[&["--json"], args].concat(), files);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Bytes and calls by a key, by a plain loop.
fn by_loop(text: &str, by: &str) -> BTreeMap<String, (i64, i64)> {
    let mut sums: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for line in text.lines().skip(2) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let place = words[2].trim_start_matches("./");
        let file = place.split(':').next().unwrap();
        let name = match by {
            "call-site" => place,
            "function" => words.iter().find_map(|word| word.strip_prefix("func:")).unwrap(),
            "file" => file,
            "dir" => &file[..file.rfind('/').unwrap()],
            _ => {
                if words[3].starts_with('[') {
                    words[3]
                } else {
                    "[kernel]"
                }
            }
        };
        let sum = sums.entry(name.to_owned()).or_default();
        *sum = (sum.0 + words[0].parse::<i64>().unwrap(), sum.1 + words[1].parse::<i64>().unwrap());
    }
    sums
}

#[test]
fn allocinfo_has_the_changes_of_a_plain_loop() {
    let scratch = Scratch::new();
    let [a, b] = [scratch.0.join("a"), scratch.0.join("b")];
    fs::write(&a, BEFORE).unwrap();
    fs::write(&b, AFTER).unwrap();
    for by in ["call-site", "function", "file", "dir", "module"] {
        let (before, after) = (by_loop(BEFORE, by), by_loop(AFTER, by));
        let of =
            |sums: &BTreeMap<String, (i64, i64)>, name: &str| sums.get(name).copied().unwrap_or_default();
        let found = rows(&["--by", by], &[&a, &b]);
        let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
        names.sort();
        names.dedup();
        names.retain(|name| of(&before, name) != of(&after, name));
        let table = at(&found, "/rows").as_array().unwrap();
        assert_eq!(table.len(), names.len(), "{by}");
        for row in table {
            let name = row["name"].as_str().unwrap();
            let (before, after) = (of(&before, name), of(&after, name));
            assert_eq!((at(row, "/bytes_before"), at(row, "/bytes")), (&before.0.into(), &after.0.into()));
            assert_eq!((at(row, "/calls_before"), at(row, "/calls")), (&before.1.into(), &after.1.into()));
            assert_eq!(*at(row, "/bytes_change"), after.0 - before.0, "{by} {row}");
            assert_eq!(*at(row, "/calls_change"), after.1 - before.1, "{by} {row}");
        }
        let changes: Vec<i64> = table.iter().map(|row| row["bytes_change"].as_i64().unwrap().abs()).collect();
        assert!(changes.is_sorted_by(|one, next| one >= next), "{changes:?}");
        let one = rows(&["--by", by], &[&a]);
        assert_eq!(at(&one, "/rows").as_array().unwrap().len(), before.len(), "{by}");
        assert!(at(&one, "/total/bytes_before").is_null() && *at(&one, "/total/bytes") == 5288);
    }
    let found = rows(&["-l", "1", "--sort", "growth"], &[&a, &b]);
    assert_eq!((at(&found, "/rows/0/name"), at(&found, "/rows_total")), (&"mm/slub.c:10".into(), &3.into()));
    assert_eq!((at(&found, "/total/inaccurate"), at(&found, "/unchanged")), (&1.into(), &2.into()));
    let text = stdout(&allocinfo(&[], &[&a, &b]));
    assert!(text.starts_with("Memory in use grew by 3.42 KiB, from 5.16 KiB to 8.59 KiB"), "{text}");
    let csv = stdout(&allocinfo(&["--csv"], &[&a, &b]));
    assert_eq!(csv.lines().count(), 4, "{csv}");
}

#[test]
fn a_wrong_line_of_allocinfo_is_refused_with_its_place() {
    let scratch = Scratch::new();
    let file = scratch.0.join("a");
    fs::write(&file, format!("{BEFORE}12 x mm/slub.c:1 func:f\n")).unwrap();
    let output = allocinfo(&[], &[&file]);
    assert!(!output.status.success());
    assert!(stderr(&output).contains("line 8: expected a number of calls"), "{}", stderr(&output));
    let large = "4611686018427387903 1 mm/slub.c:1 func:f\n";
    fs::write(&file, large.repeat(3)).unwrap();
    let output = allocinfo(&[], &[&file]);
    assert!(stderr(&output).contains("larger than 2^62"), "{}", stderr(&output));
}

#[test]
fn a_table_without_rows_has_its_heading() {
    let scratch = Scratch::new();
    let file = scratch.0.join("one");
    fs::write(&file, BEFORE).unwrap();
    for (args, heading) in [
        (
            &["--csv"][..],
            "name,function,module,bytes_before,calls_before,bytes,calls,bytes_change,calls_change,inaccurate\n",
        ),
        (
            &["--csv", "--by", "dir"],
            "name,bytes_before,calls_before,bytes,calls,bytes_change,calls_change,inaccurate\n",
        ),
    ] {
        let output = allocinfo(args, &[&file, &file]);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
        assert_eq!(stdout(&output).replace("\r\n", "\n"), heading);
    }
}
