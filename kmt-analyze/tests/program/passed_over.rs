//! `pages --verbose`: the allocator functions below each call site, against the stacks that `dump` prints.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::files::{Scratch, at, data, json, run, stderr, stdout};

fn capture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.18-stacks")
}

/// Names of the functions of a stack with their addresses, the innermost first, and the pages of its allocation.
type Stack = (Vec<(u64, String)>, u64);

/// Stacks of page allocations: addresses from JSON lines, names from the kernel's text, both in the order of events.
fn stacks(file: &Path) -> Vec<Stack> {
    let text = stdout(&run(&["dump"], file));
    let mut names = text.split("<stack trace>\n").skip(1).map(|rest| {
        let lines = rest.lines().map_while(|line| line.strip_prefix(" => "));
        lines.map(|line| line.split('+').next().unwrap().to_owned()).collect::<Vec<String>>()
    });
    let mut orders = BTreeMap::new();
    let mut out = Vec::new();
    for line in stdout(&run(&["dump", "--format", "jsonl"], file)).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        match event["event"].as_str().unwrap() {
            "kmem:mm_page_alloc" => {
                let key = (at(&event, "/ts").as_u64(), at(&event, "/pid").as_i64());
                orders.insert(key, at(&event, "/fields/order").as_u64().unwrap());
            }
            "ftrace:kernel_stack" => {
                let names = names.next().unwrap();
                let addresses = at(&event, "/fields/caller").as_array().unwrap().iter().map(address);
                let stack: Vec<(u64, String)> = addresses.zip(names).collect();
                if event["of"]["event"] == "kmem:mm_page_alloc" {
                    let key = (at(&event, "/of/ts").as_u64(), at(&event, "/pid").as_i64());
                    out.push((stack, 1 << orders[&key]));
                }
            }
            _ => {}
        }
    }
    assert!(names.next().is_none() && out.len() > 20, "{}", out.len());
    out
}

fn address(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// The call site of a stack is its first address that is the call site of any row: no list of allocator functions is
/// needed to find it.
#[test]
fn passed_over_functions_are_those_below_the_call_site() {
    let scratch = Scratch::new();
    let file = scratch.convert(&capture());
    let pages = json(&["pages", "--json"], &file)["pages"].take();
    let callers = at(&pages, "/callers").as_array().unwrap();
    let sites: BTreeSet<u64> = callers.iter().map(|row| address(at(row, "/call_site"))).collect();
    let mut model: BTreeMap<u64, BTreeMap<String, u64>> = BTreeMap::new();
    for (stack, pages) in stacks(&file) {
        let place = stack.iter().position(|(address, _)| sites.contains(address)).unwrap();
        let below = stack[..place].iter().map(|(_, name)| name.clone());
        let below: BTreeSet<String> = below.filter(|name| !name.starts_with("trace_event_raw_")).collect();
        let sums = model.entry(stack[place].0).or_default();
        below.into_iter().for_each(|name| *sums.entry(name).or_default() += pages);
    }
    assert_eq!(model.len(), callers.len());
    let mut functions = 0;
    for row in callers {
        let passed = at(row, "/passed_over").as_array().unwrap();
        let name = |passed: &Value| at(passed, "/function").as_str().unwrap().to_owned();
        let found: BTreeMap<String, u64> =
            passed.iter().map(|p| (name(p), at(p, "/pages_alloc").as_u64().unwrap())).collect();
        assert_eq!(found.len(), passed.len(), "{row}");
        assert_eq!(found, model[&address(at(row, "/call_site"))], "{row}");
        functions += found.len();
    }
    assert!(functions > 10, "{functions}");
}

#[test]
fn verbose_shows_them_below_each_row() {
    let scratch = Scratch::new();
    let file = scratch.convert(&capture());
    let pages = json(&["pages", "--json"], &file)["pages"].take();
    let row = &pages["callers"][0];
    let function = row["passed_over"][0]["function"].as_str().unwrap();
    let symbol = row["symbol"].as_str().unwrap().split('+').next().unwrap().to_owned();
    let screen = stdout(&run(&["pages", "-v", "--wide"], &file));
    let lines: Vec<&str> = screen.lines().collect();
    let place = lines.iter().position(|line| line.starts_with(&symbol)).unwrap();
    assert!(lines[place + 1].starts_with(&format!("  > {function} ")), "{screen}");
    assert!(!stdout(&run(&["pages", "--wide"], &file)).contains("  > "));
    let few = stdout(&run(&["pages", "-v", "-l", "1"], &file));
    let others = pages["callers"].as_array().unwrap().len() - 1;
    assert!(few.contains(&format!("{others} call sites")), "{few}");
    let refused = run(&["pages", "-v", "--by", "order"], &file);
    assert!(refused.status.code() == Some(2) && stderr(&refused).contains("--by"), "{}", stderr(&refused));
    // Without stacks there is nothing to show.
    let without = scratch.convert(&data("x86_64-6.12"));
    assert_eq!(stdout(&run(&["pages", "-v"], &without)), stdout(&run(&["pages"], &without)));
}
