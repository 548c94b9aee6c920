//! Exports that need no other program to be looked at; those that do are checked by `.ci/consumers`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::files::{Scratch, at, data, json, reports, run, stderr, stdout};
use serde_json::Value;

fn export(options: &[&str], file: &Path) -> String {
    let output = run(&[&["export"], options].concat(), file);
    assert_eq!(output.status.code(), Some(0), "{options:?}: {}", stderr(&output));
    stdout(&output)
}

#[test]
fn rows_add_up_to_the_summary() {
    for name in ["x86_64-6.1", "s390x-6.1", "armhf-6.1"] {
        let scratch = Scratch::new();
        let file = scratch.convert(&data(name));
        let slab = &json(&["summary", "--json"], &file)["slab"];
        let objects: Vec<Value> = export(&["ndjson", "--of", "objects"], &file)
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        let sum = |key: &str, keeps: &dyn Fn(&Value) -> bool| -> u64 {
            objects.iter().filter(|o| keeps(o)).filter_map(|o| o[key].as_u64()).sum()
        };
        assert_eq!(sum("bytes_alloc", &|_| true), slab["bytes_alloc"].as_u64().unwrap());
        assert_eq!(sum("bytes_alloc", &|o| o["fate"] == "live"), slab["bytes_live"].as_u64().unwrap());
        assert_eq!(sum("bytes_alloc", &|o| o["fate"] == "freed"), slab["bytes_freed"].as_u64().unwrap());
        for (by, key) in [
            ("alloc", "bytes_alloc"),
            ("live", "bytes_live"),
            ("waste", "bytes_wasted"),
            ("count", "alloc_events"),
        ] {
            let folded = export(&["folded", "--by", by], &file);
            let total: u64 =
                folded.lines().map(|l| l.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
            assert_eq!(total, slab[key].as_u64().unwrap(), "{name} {by}");
        }
        let csv = export(&["csv", "--of", "call-sites"], &file);
        let heading: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
        let column = heading.iter().position(|c| *c == "bytes_alloc").unwrap();
        let total: u64 =
            csv.lines().skip(1).map(|l| l.split(',').nth(column).unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(total, slab["bytes_alloc"].as_u64().unwrap(), "{name}");
    }
}

#[test]
fn every_report_can_be_rows() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let own = |name: &str| {
        let scratch = Scratch::new();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
        (scratch.convert(&path), scratch)
    };
    // Stalls and stacks are in none of the other captures.
    let (stalls, stacks) = (own("x86_64-6.1-reclaim"), own("x86_64-6.18-stacks"));
    // `temporary` is a table of `lifetimes`, `all` has no tables of its own, and no capture has what the others need;
    // all are too short for `leaks`.
    let none = ["temporary", "all", "slabinfo", "vmalloc", "percpu", "baseline", "leaks"];
    for report in reports().into_iter().filter(|r| !none.contains(r)) {
        let report = if report == "events" { "event-counts" } else { report };
        let file = match report {
            "latency" | "findings" => &stalls.0,
            "callgraph" => &stacks.0,
            _ => &file,
        };
        let csv = export(&["csv", "--of", report], file);
        assert!(csv.lines().count() >= 2, "{report}: {csv}");
        // The same table in both forms, in which each row has its name.
        let rows: Vec<Value> = export(&["ndjson", "--of", report], file)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(rows.len() + 1, csv.lines().count(), "{report}");
        assert!(rows.iter().all(|row| at(row, "/table") == at(&rows[0], "/table")), "{report}: {rows:?}");
    }
    let unknown = run(&["export", "csv", "--of", "nothing"], &file);
    assert!(stderr(&unknown).contains("no report has the name \"nothing\""), "{}", stderr(&unknown));
}

#[test]
fn files_are_complete_private_and_never_overwritten_unasked() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new();
    let file = scratch.convert(&data("s390x-6.1"));
    let formats: &[&str] = if cfg!(all(feature = "sqlite", feature = "parquet")) {
        &["perfetto", "pprof", "dhat", "folded", "csv", "ndjson", "sqlite", "parquet"]
    } else {
        &["perfetto", "pprof", "dhat", "folded", "csv", "ndjson"]
    };
    for format in formats {
        let target = scratch.0.join(format!("out.{format}"));
        let once = run(&["export", format, "-o", target.to_str().unwrap()], &file);
        assert_eq!(once.status.code(), Some(0), "{format}: {}", stderr(&once));
        if *format != "parquet" {
            assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600, "{format}");
        }
        let again = run(&["export", format, "-o", target.to_str().unwrap()], &file);
        assert_eq!(again.status.code(), Some(1), "{format}");
        assert!(stderr(&again).contains("--force"), "{format}: {}", stderr(&again));
        let forced = run(&["export", format, "--force", "-o", target.to_str().unwrap()], &file);
        assert_eq!(forced.status.code(), Some(0), "{format}: {}", stderr(&forced));
    }
    let left: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|n| !n.to_string_lossy().ends_with(".part")), "{left:?}");
}

#[test]
fn accounts_add_up() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let account = &json(&["account", "--json"], &file)["account"];
    let sum = |key: &str| -> u64 {
        account["rows"].as_array().unwrap().iter().map(|r| r[key].as_u64().unwrap()).sum()
    };
    assert_eq!(account["current_bytes_allocated"], sum("net"));
    assert_eq!(
        (account["allocs"].as_u64(), account["frees"].as_u64()),
        (Some(sum("alloc")), Some(sum("free")))
    );
    let text = stdout(&run(&["account", "--malloc", "-o", "waste"], &file));
    let rows: Vec<u64> =
        text.lines().skip(9).map(|l| l.split_whitespace().nth(1).unwrap().parse().unwrap()).collect();
    assert!(rows.len() > 3 && rows.is_sorted_by(|a, b| a >= b), "{text}");
    let kmalloc = json(&["account", "--json", "--malloc"], &file)["account"]["allocs"].as_u64().unwrap();
    let caches = json(&["account", "--json", "--cache"], &file)["account"]["allocs"].as_u64().unwrap();
    assert_eq!(kmalloc + caches, account["allocs"].as_u64().unwrap());
    // Directories are inferred from names of functions.
    let of = |branch: &str| {
        json(&["account", "--json", "-b", branch], &file)["account"]["allocs"].as_u64().unwrap()
    };
    assert!(of("fs") > 0 && of("fs") < account["allocs"].as_u64().unwrap() && of("fs/ext9") == 0);
}

#[test]
fn accounts_of_selections_equal_the_ledger_where_no_free_is_missing() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let selections: &[&[&str]] = &[
        &[],
        &["--time", "+0.005..+0.012"],
        &["--at", "+0.01"],
        &["--cpu", "1"],
        &["--where", "size>=200", "--time", "+0.006.."],
        &["--where", "call_site~alloc"],
        &["--where", "cache~."],
        &["--where", "comm!=cat"],
        &["--where", "lifetime>1ms"],
        &["-b", "fs", "--without-recorder"],
    ];
    let keys = [
        ("total", "bytes_alloc"),
        ("net", "bytes_live"),
        ("waste", "bytes_wasted_live"),
        ("alloc", "alloc_events"),
        ("free", "frees_matched"),
    ];
    for selection in selections {
        let account = json(&[&["account", "--json"], *selection].concat(), &file);
        let exact = json(&[&["callers", "--json"], *selection].concat(), &file);
        // A caller of both interfaces has two rows in the ledger's report.
        let sum = |row: &Value, key: &str| -> u64 {
            let callers = exact["callers"].as_array().unwrap().iter();
            callers.filter(|c| c["call_site"] == row["address"]).map(|c| c[key].as_u64().unwrap()).sum()
        };
        let rows = account["account"]["rows"].as_array().unwrap();
        assert!(!rows.is_empty(), "{selection:?}");
        for row in rows {
            for (key, of_ledger) in keys {
                assert_eq!(row[key], sum(row, of_ledger), "{selection:?}: {key} of {row}");
            }
        }
        for (key, of_ledger) in keys {
            let all = exact["callers"].as_array().unwrap().iter().map(|c| c[of_ledger].as_u64().unwrap());
            let rows = rows.iter().map(|row| row[key].as_u64().unwrap());
            assert_eq!(rows.sum::<u64>(), all.sum::<u64>(), "{selection:?}: {key}");
        }
    }
    let refused = run(&["account", "--where", "order=1"], &file);
    assert!(stderr(&refused).contains("account cannot select by `order=1`"), "{}", stderr(&refused));
}

/// Headings of a table.
fn heading(args: &[&str], file: &Path) -> String {
    let output = run(args, file);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    stdout(&output).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_table_without_rows_has_the_same_headings() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let nothing = ["--comm", "absent"];
    for table in [
        &["callers", "--csv"][..],
        &["callers", "--csv", "--table", "callers"],
        &["callers", "--csv", "--by", "comm,size"],
        &["caches", "--csv", "--table", "caches"],
        &["tasks", "--csv", "--table", "tasks"],
        &["lifetimes", "--csv", "--table", "lifetimes"],
        &["pages", "--csv", "--by", "order"],
        &["peak", "--csv", "--table", "peak.callers"],
        &["export", "csv", "--of", "callers", "--table", "callers"],
        &["export", "csv", "--of", "callers", "--table", "totals"],
    ] {
        let empty = [table, &nothing].concat();
        assert_eq!(heading(&empty, &file), heading(table, &file), "{table:?}");
        if !table.contains(&"totals") {
            assert_eq!(stdout(&run(&empty, &file)).lines().count(), 1, "{table:?}");
            assert!(stdout(&run(table, &file)).lines().count() > 1, "{table:?}");
        }
    }
    let empty = export(&["ndjson", "--of", "callers", "--comm", "absent"], &file);
    assert_eq!(empty, "");
}

#[test]
fn exports_have_at_most_that_many_rows() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    for of in ["events", "objects", "call-sites", "callers"] {
        let rows = |format: &str, lines: &[&str]| {
            export(&[&[format, "--of", of], lines].concat(), &file).lines().count()
        };
        let all = rows("ndjson", &[]);
        assert!(all > 7, "{of}: {all}");
        assert_eq!(rows("ndjson", &["-l", "0"]), all, "{of}");
        assert_eq!(rows("ndjson", &["-l", "7"]), 7, "{of}");
        assert_eq!((rows("csv", &[]), rows("csv", &["-l", "7"])), (all + 1, 8), "{of}");
    }
    // The rows are the first ones.
    let all = export(&["csv"], &file);
    let first = all.split_inclusive('\n').take(4).collect::<String>();
    assert_eq!(export(&["csv", "-l", "3"], &file), first);
    for format in ["folded", "pprof", "dhat"] {
        let refused = run(&["export", format, "-l", "3", "-o", "-"], &file);
        assert_eq!(refused.status.code(), Some(1), "{format}");
        assert!(stderr(&refused).contains("-l is for tables"), "{}", stderr(&refused));
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn tables_of_a_database_have_at_most_that_many_rows() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let path = scratch.0.join("rows.db");
    export(&["sqlite", "--events", "-l", "5", "-o", path.to_str().unwrap()], &file);
    let database = rusqlite::Connection::open(&path).unwrap();
    for table in ["objects", "call_sites", "events"] {
        let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let rows = database.query_row(&format!("SELECT count(*) FROM {table}"), [], count).unwrap();
        assert_eq!(rows, 5, "{table}");
    }
}

/// Sums of events by call site, each allocation once, as docs/export.md does it: bytes allocated and bytes wasted.
fn sums_of_events(file: &Path, options: &[&str]) -> (BTreeMap<String, (u64, u64)>, u64) {
    let (mut sums, mut duplicates) = (BTreeMap::<String, (u64, u64)>::new(), 0);
    for line in export(&[&["ndjson"], options].concat(), file).lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        if row["bytes_alloc"].is_null() || at(&row, "/ptr") == "0x0" {
            assert_eq!(at(&row, "/is_duplicate"), false, "{line}");
            continue;
        }
        if at(&row, "/is_duplicate") == true {
            duplicates += 1;
            continue;
        }
        let bytes = at(&row, "/bytes_alloc").as_u64().unwrap();
        let sum = sums.entry(at(&row, "/call_site").as_str().unwrap().to_owned()).or_default();
        sum.0 += bytes;
        sum.1 += bytes - at(&row, "/bytes_req").as_u64().unwrap();
    }
    (sums, duplicates)
}

#[test]
fn marked_events_make_sums_those_of_reports() {
    for (name, pairs) in [("duplicate-kmallocs.txt", 9), ("x86_64-6.12", 0), ("x86_64-6.1", 0)] {
        let scratch = Scratch::new();
        let file = scratch.convert(&data(name));
        let summary = json(&["summary", "--json"], &file);
        let (sums, duplicates) = sums_of_events(&file, &[]);
        let all = |of: fn(&(u64, u64)) -> u64| sums.values().map(of).sum::<u64>();
        assert_eq!(at(&summary, "/slab/double_reports"), duplicates, "{name}");
        assert_eq!(duplicates, pairs, "{name}");
        assert_eq!(at(&summary, "/slab/bytes_alloc"), all(|sum| sum.0), "{name}");
        assert_eq!(at(&summary, "/slab/bytes_wasted"), all(|sum| sum.1), "{name}");
        let mut callers = BTreeMap::<String, (u64, u64)>::new();
        for row in at(&json(&["callers", "--json", "-l", "0"], &file), "/callers").as_array().unwrap() {
            let sum = callers.entry(at(row, "/call_site").as_str().unwrap().to_owned()).or_default();
            sum.0 += at(row, "/bytes_alloc").as_u64().unwrap();
            sum.1 += at(row, "/bytes_wasted").as_u64().unwrap();
        }
        callers.retain(|_, sum| sum.0 > 0);
        assert_eq!(sums, callers, "{name}");
    }
}

#[test]
fn marks_do_not_depend_on_the_selection() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("duplicate-kmallocs.txt"));
    let rows = |options: &[&str]| -> Vec<Value> {
        let text = export(&[&["ndjson"], options].concat(), &file);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = rows(&[]);
    let marked: Vec<usize> =
        (0..all.len()).filter(|&number| at(&all[number], "/is_duplicate") == true).collect();
    assert!(marked.len() > 5, "{}", marked.len());
    let time = |number: usize| at(&all[number], "/ts").as_u64().unwrap();
    for &number in &marked {
        // A window that ends with the first event of the pair.
        let (first, last) = (time(0), time(number));
        let window = format!("{first}ns..{last}ns");
        let selected = rows(&["--time", &window]);
        let expected: Vec<&Value> =
            all.iter().filter(|row| at(row, "/ts").as_u64().unwrap() <= last).collect();
        assert_eq!(selected.iter().collect::<Vec<_>>(), expected, "{window}");
        let cpu = at(&all[number], "/cpu");
        let selected = rows(&["--cpu", &cpu.to_string()]);
        let expected: Vec<&Value> = all.iter().filter(|row| at(row, "/cpu") == cpu).collect();
        assert_eq!(selected.iter().collect::<Vec<_>>(), expected, "CPU {cpu}");
    }
}

/// Values of `column` as a CSV file has them; names without commas.
fn column(csv: &str, column: &str) -> Vec<String> {
    let mut lines = csv.lines();
    let heading: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place = heading.iter().position(|name| *name == column).unwrap_or_else(|| panic!("{heading:?}"));
    lines.map(|line| line.split(',').nth(place).unwrap().to_owned()).collect()
}

#[test]
fn any_report_prints_its_table_as_csv() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    for (args, table, key) in [
        (&["callers", "--sort", "live"][..], "/callers", "bytes_live"),
        (&["callers", "--by", "comm,size"], "/groups", "bytes_alloc"),
        (&["pages", "--by", "order"], "/pages/groups", "pages_alloc"),
        (&["lifetimes", "--by", "cpu"], "/groups", "lifetime.n"),
        (&["pages"], "/pages/by_gfp_flags", "gfp_flags"),
    ] {
        let document = json(&[args, &["--json"]].concat(), &file);
        let rows = document.pointer(table).unwrap().as_array().unwrap();
        let expected: Vec<String> = rows
            .iter()
            .map(|row| row.pointer(&format!("/{}", key.replace('.', "/"))).unwrap().to_string())
            .collect();
        let name = table[1..].replace('/', ".");
        let csv = [args, &["--csv", "--table", &name]].concat();
        assert_eq!(column(&stdout(&run(&csv, &file)), key), expected, "{args:?}");
        if args.contains(&"--by") {
            let two = stdout(&run(&[args, &["--csv", "-l", "2"]].concat(), &file));
            assert_eq!(column(&two, key), expected[..2], "{args:?}: the table of --by");
        }
    }
    let refused = run(&["callers", "--csv", "--table", "none"], &file);
    assert!(stderr(&refused).contains("--table takes one of: callers"), "{}", stderr(&refused));
}

/// Names that a command does not have are mistakes in the command line, also where only the file shows them.
#[test]
fn unknown_names_of_rows_and_tables_end_with_2() {
    let file = &crate::screens::captures()[2].1;
    for (args, said) in [
        (&["export", "csv", "--of", "nothing"][..], "no report has the name"),
        (&["export", "csv", "--of", "callers", "--table", "nothing"], "--table takes one of"),
        (&["callers", "--csv", "--table", "nothing"], "--table takes one of"),
    ] {
        let output = run(args, file);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{args:?}: {}", stderr(&output));
    }
}
