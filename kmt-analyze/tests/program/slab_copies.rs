//! `slabinfo BEFORE AFTER` on copies made by hand, against a plain loop over their lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::files::{Scratch, at, stderr, stdout};

const HEAD: &str = "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n";

/// Cache, active objects, all objects, object size, objects and pages of a slab, slabs.
type Line = (&'static str, [u64; 6]);

const BEFORE: [Line; 5] = [
    ("dentry", [4_000, 4_200, 192, 21, 1, 200]),
    ("inode_cache", [500, 520, 600, 26, 4, 20]),
    ("same", [5, 21, 192, 21, 1, 1]),
    ("gone", [64, 64, 64, 64, 1, 1]),
    ("filp", [100, 160, 256, 16, 1, 10]),
];

const AFTER: [Line; 5] = [
    ("dentry", [63_000, 63_000, 192, 21, 1, 3_000]),
    ("inode_cache", [100, 260, 600, 26, 4, 10]),
    ("same", [5, 21, 192, 21, 1, 1]),
    ("new", [32, 32, 1024, 32, 8, 1]),
    ("filp", [140, 160, 256, 16, 1, 10]),
];

fn text(lines: &[Line], page_size: u64) -> String {
    let line = |(name, [active, all, size, of_slab, pages, slabs]): &Line| {
        // Larger pages have room for more objects.
        let of_slab = of_slab * page_size / 4096;
        format!(
            "{name:<17} {active} {all} {size} {of_slab} {pages} : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n"
        )
    };
    HEAD.to_owned() + &lines.iter().map(line).collect::<String>()
}

fn copies(scratch: &Scratch, page_size: u64) -> [PathBuf; 2] {
    [("before", BEFORE), ("after", AFTER)].map(|(name, lines)| {
        let path = scratch.0.join(format!("{name}.txt"));
        fs::write(&path, text(&lines, page_size)).unwrap();
        path
    })
}

fn slabinfo(args: &[&str], files: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).arg("slabinfo").args(args).args(files).output().unwrap()
}

/// Active objects and bytes of each cache, before and after.
fn by_loop(page_size: u64) -> BTreeMap<&'static str, [[u64; 2]; 2]> {
    let mut sums: BTreeMap<&str, [[u64; 2]; 2]> = BTreeMap::new();
    for (side, lines) in [BEFORE, AFTER].iter().enumerate() {
        for (name, [active, _, _, _, pages, slabs]) in lines {
            sums.entry(name).or_default()[side] = [*active, pages * slabs * page_size];
        }
    }
    sums
}

#[test]
fn caches_of_two_copies_have_the_changes_of_a_plain_loop() {
    for page_size in [4_096, 16_384, 65_536] {
        let scratch = Scratch::new();
        let [before, after] = copies(&scratch, page_size);
        let output = slabinfo(&["--json"], &[&before, &after]);
        assert!(output.status.success(), "{}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(*at(&report, "/schema/report"), "slabinfo-copies");
        assert_eq!(*at(&report, "/page_size"), page_size);
        let sums = by_loop(page_size);
        let all = |side: usize| sums.values().map(|sums| sums[side][1]).sum::<u64>();
        let number = |key: &str| at(&report, key).as_i64().unwrap();
        assert_eq!([number("/bytes_before"), number("/bytes_after")], [all(0) as i64, all(1) as i64]);
        assert_eq!(number("/bytes_change"), all(1) as i64 - all(0) as i64);
        assert_eq!([number("/grown"), number("/shrunk"), number("/caches_total")], [2, 2, 5 - 1 + 1]);
        let rows = at(&report, "/caches").as_array().unwrap();
        for row in rows {
            let [before, after] = sums[row["cache"].as_str().unwrap()];
            let keys = ["active_before", "bytes_before", "active_after", "bytes_after"];
            let found = keys.map(|key| row[key].as_u64().unwrap());
            assert_eq!(found, [before[0], before[1], after[0], after[1]], "{row}");
            assert_eq!(row["bytes_change"].as_i64().unwrap(), after[1] as i64 - before[1] as i64, "{row}");
            assert_eq!(row["active_change"].as_i64().unwrap(), after[0] as i64 - before[0] as i64, "{row}");
        }
        let names: Vec<&str> = rows.iter().map(|row| row["cache"].as_str().unwrap()).collect();
        assert_eq!(names, ["dentry", "inode_cache", "new", "gone", "filp"]);
    }
}

#[test]
fn a_screen_has_the_change_first_and_a_table_has_all() {
    let scratch = Scratch::new();
    let [before, after] = copies(&scratch, 4096);
    let screen = stdout(&slabinfo(&[], &[&before, &after]));
    let words = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = "Slabs grew by 10.8 MiB to 11.9 MiB; 2 caches grew and 2 shrank. The largest change is that of dentry (+10.9 MiB, +59,000 objects).";
    assert!(words.starts_with(first), "{screen}");
    assert!(screen.contains("kmt-capture record -p slab --stack"), "{screen}");
    let csv = stdout(&slabinfo(&["--csv"], &[&before, &after]));
    let head = "cache,active_before,active_after,active_change,active_estimated,bytes_before,bytes_after,bytes_change";
    assert_eq!(csv.lines().next(), Some(head));
    assert_eq!(csv.lines().count(), 1 + 5, "{csv}");
    let one = stdout(&slabinfo(&["--csv", "-l", "1"], &[&before, &after]));
    assert_eq!(one.lines().nth(1), Some("dentry,4000,63000,59000,false,819200,12288000,11468800"));
    assert_eq!(one.lines().count(), 2, "{one}");
    let same = stdout(&slabinfo(&[], &[&after, &after]));
    assert!(same.starts_with("Slabs did not change: 11.9 MiB. No cache changed."), "{same}");
    let turned =
        Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).arg(&before).arg("slabinfo").arg(&after).output();
    assert_eq!(stdout(&turned.unwrap()), screen);
}

#[test]
fn what_is_no_pair_of_copies_is_refused_with_the_remedy() {
    let scratch = Scratch::new();
    let [before, after] = copies(&scratch, 4096);
    let other = scratch.0.join("other.txt");
    fs::write(&other, "MemTotal: 5 kB\n").unwrap();
    let none = scratch.0.join("none.txt");
    for (args, files, code, words) in [
        (&[][..], &[before.as_path()][..], 1, "slabinfo BEFORE AFTER"),
        (&[], &[&before, &other], 1, "other.txt: no caches of slabinfo version 2.1"),
        (&[], &[&before, &none], 1, "none.txt"),
        (&["--time", "+1..+2"], &[&before, &after], 2, "no events to select"),
        (&["--sort", "change"], &[&before, &after], 2, "--lines, --json and --csv"),
    ] {
        let output = slabinfo(args, files);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains(words), "{words}: {}", stderr(&output));
    }
}
