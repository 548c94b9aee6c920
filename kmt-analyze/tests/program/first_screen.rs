//! The first screen names who allocates, who holds memory and what pages grew, of any file, and the commands that fit it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::model::{BASE, Crafted};
use crate::support::files::{Scratch, at, data, json, run, run_beside, stderr, stdout};
use crate::support::model::{Event, What};

fn capture(scratch: &Scratch, name: &str) -> PathBuf {
    scratch.convert(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name))
}

#[test]
fn the_first_screen_names_allocator_holder_and_growth() {
    let scratch = Scratch::new();
    let file = capture(&scratch, "x86_64-6.18-stacks");
    let screen = stdout(&run_beside(&["--wide"], &file));
    let row = |screen: &str, name: &str| -> Vec<String> {
        let line =
            screen.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {screen}"));
        line[name.len()..].split_whitespace().map(str::to_owned).collect()
    };
    let heading = "allocated share still allocated share of it";
    assert_eq!(row(&screen, "slab memory ").join(" "), heading);
    assert_eq!(row(&screen, "all "), ["55.2", "KiB", "23.0", "KiB"]);
    assert_eq!(row(&screen, "most by task ").join(" "), "bash-23385 100 % bash-23385 100 %");
    for row in ["most by function getname_flags.part.0 ", "most by cache "] {
        assert!(
            screen.lines().any(|line| line
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .starts_with(row.trim_end())),
            "{row}: {screen}"
        );
    }
    for words in [
        "92.0 KiB of pages are still allocated: ",
        "Growth cannot be judged: the window of ",
        "  kmt-analyze leaks trace.kmt ",
        "  kmt-analyze callgraph trace.kmt ",
        "  kmt-analyze callers --sort live trace.kmt ",
    ] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    assert!(!screen.contains("latency"), "{screen}");
    let (found, totals) = (json(&["findings", "--json"], &file), json(&["summary", "--json"], &file));
    assert_eq!(at(&found, "/allocated/bytes"), at(&totals, "/slab/bytes_alloc"));
    assert_eq!(at(&found, "/still_allocated/bytes"), at(&totals, "/slab/bytes_live"));
    // Pages have the same table.
    let (allocated, live) = (at(&found, "/allocated_pages"), at(&found, "/still_allocated_pages"));
    assert_eq!(at(allocated, "/bytes"), at(&totals, "/pages/bytes_alloc"));
    assert_eq!(at(live, "/bytes"), at(&totals, "/pages/bytes_live"));
    assert_eq!(row(&screen, "pages  ").join(" "), heading);
    let tasks = json(&["tasks", "--json", "--sort", "live_pages"], &file);
    let first = at(&tasks, "/tasks/0");
    assert_eq!(at(live, "/task/bytes"), at(first, "/pages/bytes_live"));
    let stacks = json(&["pages", "--json", "--by", "function", "--sort", "pages"], &file);
    let first =
        at(&stacks, "/pages/groups").as_array().unwrap().iter().find(|row| row["function"] != "(no stack)");
    assert_eq!(at(allocated, "/function/name"), at(first.unwrap(), "/function"));
    assert_eq!(at(allocated, "/function/bytes"), at(first.unwrap(), "/bytes_alloc"));
    let of_use = at(live, "/use/name").as_str().unwrap();
    assert!(row(&screen, "most by use ").join(" ").contains(of_use), "{screen}");
    assert!(screen.contains("  kmt-analyze tasks --sort live_pages trace.kmt "), "{screen}");
    let uses = at(&found, "/page_growth/uses").as_array().unwrap();
    let sum: u64 = uses.iter().map(|row| row["bytes"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), at(&totals, "/pages/bytes_live").as_u64());
}

/// Frees without an event are among the freed bytes: here every second object of kmalloc has its address allocated again.
#[test]
fn allocated_less_freed_is_still_allocated() {
    let scratch = Scratch::new();
    let mut trace = Crafted::new();
    trace.release("6.1.0");
    for number in 0..64u64 {
        let ptr = BASE + ((number / 4) << 13);
        let alloc = What::Alloc { kmalloc: true, site: 77, ptr, req: 300, alloc: 512 };
        trace.event(&Event { time: number << 20, cpu: 0, pid: 9, what: alloc });
        if number % 4 == 1 {
            let free = What::Free { kfree: true, ptr };
            trace.event(&Event { time: (number << 20) + 1, cpu: 0, pid: 9, what: free });
        }
    }
    let crafted = scratch.0.join("crafted.kmt");
    std::fs::write(&crafted, trace.writer.finish().unwrap()).unwrap();
    let captures = crate::screens::captures().iter().map(|(_, file)| file.clone());
    let mut implied = 0;
    for file in captures.chain([crafted]) {
        let totals = json(&["summary", "--json"], &file);
        let screen = stdout(&run(&["--bytes"], &file));
        for (row, key) in [("kmalloc ", "kmalloc"), ("slab caches ", "cache")] {
            let Some(line) = screen.lines().find(|line| line.starts_with(row)) else { continue };
            let cells = line[row.len()..].split_whitespace().map(|cell| cell.replace(',', "").parse().ok());
            let [_, Some(allocated), Some(freed), Some(live), ..] = cells.collect::<Vec<Option<u64>>>()[..]
            else {
                continue;
            };
            assert_eq!(allocated - freed, live, "{}: {line}", file.display());
            implied += totals["slab"][key]["bytes_freed_unseen"].as_u64().unwrap();
        }
    }
    // Of each four, two have the address of an older one.
    assert_eq!(implied, 32 * 512);
}

/// The largest of each kind, as the reports by function, task and cache have them.
#[test]
fn the_largest_are_those_of_the_reports() {
    let scratch = Scratch::new();
    let other = Scratch::new();
    for file in [capture(&scratch, "x86_64-6.1-reclaim"), other.convert(&data("x86_64-6.12"))] {
        let found = json(&["findings", "--json"], &file);
        for (key, pointer) in [("bytes_alloc", "/allocated"), ("bytes_live", "/still_allocated")] {
            let most = |report: &str, list: &str, sum: fn(&Value) -> &Value| {
                let document = json(&[report, "--json"], &file);
                let rows = at(&document, &format!("/{list}")).as_array().unwrap().clone();
                rows.iter().map(|row| sum(row)[key].as_u64().unwrap_or(0)).max().unwrap()
            };
            let of = |part: &str| at(&found, &format!("{pointer}/{part}/bytes")).as_u64().unwrap();
            // Tasks of one name count as one.
            let mut names: BTreeMap<String, (u64, u64)> = BTreeMap::new();
            for row in at(&json(&["tasks", "--json"], &file), "/tasks").as_array().unwrap() {
                let bytes = row["slab"][key].as_u64().unwrap_or(0);
                let sum = names.entry(row["comm"].as_str().unwrap().to_owned()).or_default();
                *sum = (sum.0 + bytes, sum.1 + u64::from(bytes > 0));
            }
            let largest = names.values().max().unwrap();
            let tasks = at(&found, &format!("{pointer}/task/tasks")).as_u64().unwrap();
            assert_eq!((of("task"), tasks), *largest, "{key}");
            assert_eq!(of("cache"), most("caches", "caches", |row| row), "{key}");
        }
    }
}

#[test]
fn commands_of_the_first_screen_fit_the_file() {
    let scratch = Scratch::new();
    let screen = stdout(&run(&["--wide"], &capture(&scratch, "x86_64-6.1-reclaim")));
    assert!(screen.contains("  kmt-analyze latency ") && !screen.contains("callgraph"), "{screen}");
    assert!(screen.contains(" of older ones were freed."), "{screen}");
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/vectors");
    let lossy = stdout(&run(&["--wide"], &vectors.join("losses-le64.kmt")));
    // Events were lost: what was allocated is a minimum.
    assert!(lossy.contains("slab memory       allocated, at least  share\n"), "{lossy}");
    assert!(lossy.contains("\nall               40 B\n") && !lossy.contains("share of it"), "{lossy}");
    let empty = stdout(&run(&[], &vectors.join("empty-le64.kmt")));
    assert!(!empty.contains("most by ") && empty.contains("kmt-analyze all "), "{empty}");
}

#[test]
fn piped_output_is_not_cut() {
    let scratch = Scratch::new();
    let file = capture(&scratch, "x86_64-6.18-stacks");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"));
    let output = command.args(["callers", "-l", "0"]).arg(&file).env_remove("COLUMNS").output().unwrap();
    let text = stdout(&output);
    assert!(!text.contains('…') && !text.contains("(--wide)"), "{text}");
    let rows = json(&["callers", "--json"], &file)["callers"].as_array().unwrap().len();
    let table = text.split("\n\n").find(|part| part.starts_with("call site")).unwrap();
    assert_eq!(table.lines().count(), rows + 1, "{table}");
}

#[test]
fn an_empty_command_line_gets_a_short_help() {
    let output = Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(output.stdout.is_empty() && said.lines().count() <= 10 && said.contains("--help"), "{said}");
}

/// Files that are written are named with their size and a use; standard output is not.
#[test]
fn what_was_written_is_reported() {
    let scratch = Scratch::new();
    let file = capture(&scratch, "x86_64-6.18-stacks");
    for (args, name, used) in [
        (&["report", "-o"][..], "a.html", "open it in a browser"),
        (&["chart", "timeline", "-o"], "a.svg", "open it in a browser"),
        (&["export", "perfetto", "-o"], "a.json", "ui.perfetto.dev"),
        (&["export", "folded", "-o"], "a.folded", "flamegraph.pl "),
        (&["export", "csv", "--of", "callers", "-o"], "a.csv", "a row a line"),
    ] {
        let path = scratch.0.join(name).display().to_string();
        let output = run(&[args, &[path.as_str()]].concat(), &file);
        let said = stderr(&output);
        let last = said.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("{path}: ")) && last.contains(used), "{args:?}: {said}");
    }
    let output = run(&["export", "csv", "-o", "-"], &file);
    assert_eq!(stderr(&output), "");
}

#[test]
fn runs_of_different_length_are_compared_by_rate() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let windows = ["--time", "+0..+0.004", "--against", "+0.004..+0.018"];
    let screen =
        |more: &[&str]| stdout(&run(&[&["diff", "--wide", "--all"][..], &windows, more].concat(), &file));
    let (auto, rates, totals) = (screen(&[]), screen(&["--per-second"]), screen(&["--totals"]));
    assert!(auto.contains("rates are compared (--totals compares totals)"), "{auto}");
    let tables = |text: &str| {
        text.split("\n\n").filter(|part| part.contains("noise  ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(tables(&auto), tables(&rates));
    assert!(auto.contains("allocated bytes, per second") && !totals.contains("per second"), "{totals}");
    assert!(!screen(&["--fail-over", "1G"]).contains("allocated bytes, per second"));
    let like = ["diff", "--all", "--time", "+0..+0.009", "--against", "+0.009..+0.018"];
    assert!(!stdout(&run(&like, &file)).contains("per second"));
}

/// Tasks of the answer and those of the table are the same, or the answer gives the difference.
#[test]
fn tasks_of_the_answer_add_up_to_those_of_the_table() {
    let mut differ = 0;
    for (name, file) in &crate::screens::captures()[..3] {
        let document = json(&["tasks", "-l", "0", "--json"], file);
        let rows = document["tasks"].as_array().unwrap();
        let users = rows.iter().filter(|row| row["slab"]["alloc_events"].as_u64().unwrap() > 0).count();
        let others = rows.len() - users;
        let answer = stdout(&run(&["tasks", "--wide"], file));
        assert!(answer.contains(&format!("Slab: {users} task")), "{name}: {answer}");
        let sentence = match others {
            1 => "1 other task only freed".to_owned(),
            _ => format!("{others} other tasks only freed"),
        };
        assert_eq!(answer.contains(&sentence), others > 0, "{name}: {answer}");
        differ += usize::from(others > 0);
    }
    assert!(differ > 0);
}

/// Losses that are not known are not 0: a text has no counters of the kernel.
#[test]
fn unknown_losses_are_not_0() {
    let scratch = crate::support::files::Scratch::new();
    let (text, file) = (scratch.0.join("log.txt"), scratch.0.join("text.kmt"));
    let line =
        "            sh-7       [001] d..1. 1.500000: kfree: call_site=f+0x1/0x2 ptr=ffff888100001000\n";
    std::fs::write(&text, line).unwrap();
    crate::support::files::convert(&text, &file, None).unwrap();
    let info = stdout(&run(&["info", "--wide"], &file));
    let row = info.lines().skip_while(|line| !line.starts_with("CPU")).nth(1).unwrap();
    assert_eq!(row.split_whitespace().nth(2), Some("unknown"), "{info}");
}
