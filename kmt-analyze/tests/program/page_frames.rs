//! `who pfn=N` and `--where pfn=A..B`: against a plain loop over the events of `dump`, frame by frame.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json as object};

use crate::support::files::{Scratch, at, data, json, run, stderr, stdout};

/// A page event.
#[derive(Debug, Clone, Copy)]
struct PageEvent {
    is_free: bool,
    time: u64,
    pfn: u64,
    order: u64,
    pid: i64,
    cpu: u64,
}

impl PageEvent {
    fn frames(&self) -> std::ops::Range<u64> {
        self.pfn..self.pfn + (1 << self.order)
    }
}

/// Page events of a file, without failed allocations.
fn events(file: &Path) -> Vec<PageEvent> {
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        let is_free = match event["event"].as_str().unwrap() {
            "kmem:mm_page_alloc" => false,
            "kmem:mm_page_free" => true,
            _ => return None,
        };
        let number = |pointer: &str| at(&event, pointer).as_u64().unwrap();
        Some(PageEvent {
            is_free,
            time: number("/ts"),
            pfn: number("/fields/pfn"),
            order: number("/fields/order"),
            pid: at(&event, "/pid").as_i64().unwrap(),
            cpu: number("/cpu"),
        })
    };
    let text = stdout(&run(&["dump", "--format", "jsonl"], file));
    text.lines().filter_map(event).filter(|event| event.pfn != u64::MAX).collect()
}

/// Allocations of a frame as rows of `who`, and its other frees.
fn history(events: &[PageEvent], pfn: u64) -> (Vec<Value>, u64) {
    let (mut rows, mut others) = (Vec::<Value>::new(), 0);
    for event in events.iter().filter(|event| event.frames().contains(&pfn)) {
        let open = rows.last_mut().filter(|row| row["end"] == "live");
        let is_open = open.is_some();
        if let Some(row) = open {
            row["end"] = if event.is_free { "freed" } else { "freed_unseen" }.into();
            row["ended"] = event.time.into();
            if event.is_free {
                row["freed_by_pid"] = event.pid.into();
                row["freed_on_cpu"] = event.cpu.into();
            }
        }
        if event.is_free {
            others += u64::from(!is_open);
            continue;
        }
        rows.push(object!({
            "first_pfn": event.pfn, "order": event.order, "born": event.time, "pid": event.pid, "cpu": event.cpu,
            "end": "live", "ended": null, "freed_by_pid": null, "freed_on_cpu": null,
        }));
    }
    (rows, others)
}

/// Rows of the report, with the keys of the model.
fn reported(frame: &Value) -> Vec<Value> {
    const KEYS: [&str; 9] =
        ["first_pfn", "order", "born", "pid", "cpu", "end", "ended", "freed_by_pid", "freed_on_cpu"];
    let row = |row: &Value| -> Value {
        KEYS.iter().map(|key| (key.to_string(), at(row, &format!("/{key}")).clone())).collect()
    };
    at(frame, "/allocations").as_array().unwrap().iter().map(row).collect()
}

fn captures() -> [PathBuf; 3] {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    [own.join("x86_64-6.1-reclaim"), own.join("x86_64-6.18-stacks"), data("x86_64-6.12")]
}

/// Frames of all kinds: in large blocks, with the most allocations, freed only.
fn chosen_frames(events: &[PageEvent]) -> BTreeSet<u64> {
    let mut times: BTreeMap<u64, usize> = BTreeMap::new();
    events.iter().for_each(|event| *times.entry(event.pfn).or_default() += 1);
    let mut most: Vec<(usize, u64)> = times.into_iter().map(|(pfn, times)| (times, pfn)).collect();
    most.sort_unstable_by(|a, b| b.cmp(a));
    let mut frames: BTreeSet<u64> = most.iter().take(6).map(|row| row.1).collect();
    frames.extend(events.iter().step_by(events.len() / 6 + 1).map(|event| event.pfn));
    let blocks = events.iter().filter(|event| event.order > 0);
    frames.extend(blocks.take(6).map(|event| event.frames().end - 1));
    frames
}

#[test]
fn who_has_the_allocations_of_a_frame() {
    let scratch = Scratch::new();
    let (mut rows, mut ended, mut unmatched) = (0, 0, 0);
    for folder in captures() {
        let file = scratch.convert(&folder);
        let events = events(&file);
        for pfn in chosen_frames(&events) {
            let (model, frees) = history(&events, pfn);
            // Both ways to write the number.
            let place = if pfn % 2 == 0 { format!("pfn={pfn:#x}") } else { format!("pfn={pfn}") };
            let who = json(&["who", "--json", &place], &file);
            assert!(at(&who, "/address").is_null(), "{who}");
            let frame = at(&who, "/frame");
            assert_eq!(reported(frame), model, "{} {place}", folder.display());
            assert_eq!(at(frame, "/allocations_total"), model.len());
            assert_eq!(at(frame, "/frees_unmatched"), frees, "{} {place}", folder.display());
            rows += model.len();
            ended += model.iter().filter(|row| row["end"] != "live").count();
            unmatched += frees;
        }
    }
    assert!(rows > 20 && ended > 5 && unmatched > 5, "{rows} {ended} {unmatched}");
}

#[test]
fn who_has_the_owner_at_an_instant() {
    let scratch = Scratch::new();
    let file = scratch.convert(&captures()[2]);
    let all = json(&["info", "--json"], &file);
    let start = at(&all, "/trace/first").as_u64().unwrap();
    let events = events(&file);
    let mut held = 0;
    for pfn in chosen_frames(&events).into_iter().take(6) {
        let (model, _) = history(&events, pfn);
        let Some(row) = model.iter().find(|row| row["end"] != "live") else { continue };
        let [born, ended] = ["born", "ended"].map(|key| row[key].as_u64().unwrap() - start);
        for time in [born.saturating_sub(1), born, born.midpoint(ended), ended] {
            let instant = format!("+{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
            let place = format!("pfn={pfn}");
            let frame = json(&["who", "--json", &place, "--at", &instant], &file)["frame"].take();
            let holds = |row: &&Value| {
                let ended = row["ended"].as_u64();
                row["born"].as_u64() <= Some(start + time) && ended.is_none_or(|ended| ended > start + time)
            };
            let expected: Vec<Value> = model.iter().filter(holds).cloned().collect();
            assert!(expected.len() <= 1);
            if !expected.is_empty() || !frame.is_null() {
                assert_eq!(reported(&frame), expected, "{place} {instant}");
            }
            held += expected.len();
        }
    }
    assert!(held > 3, "{held}");
}

/// Sums of the allocations that hold a frame of a range: every allocation has its own count of live frames.
fn sums(events: &[PageEvent], range: &std::ops::RangeInclusive<u64>) -> BTreeMap<&'static str, u64> {
    let mut owners: BTreeMap<u64, bool> = BTreeMap::new();
    let names = ["alloc_events", "pages_alloc", "pages_freed", "pages_freed_unseen", "pages_live"];
    let mut sums: BTreeMap<&str, u64> = names.into_iter().map(|name| (name, 0)).collect();
    for event in events {
        let is_chosen = event.frames().any(|frame| range.contains(&frame));
        for frame in event.frames() {
            if owners.remove(&frame) == Some(true) {
                let name = if event.is_free { "pages_freed" } else { "pages_freed_unseen" };
                *sums.get_mut(name).unwrap() += 1;
            }
            if !event.is_free {
                owners.insert(frame, is_chosen);
            }
        }
        if !event.is_free && is_chosen {
            *sums.get_mut("alloc_events").unwrap() += 1;
            *sums.get_mut("pages_alloc").unwrap() += 1 << event.order;
        }
    }
    *sums.get_mut("pages_live").unwrap() = owners.values().filter(|is_chosen| **is_chosen).count() as u64;
    sums
}

#[test]
fn pages_and_dump_select_by_frames() {
    let scratch = Scratch::new();
    let mut blocks = 0;
    for folder in captures() {
        let file = scratch.convert(&folder);
        let events = events(&file);
        let mut frames: Vec<u64> = events.iter().map(|event| event.pfn).collect();
        frames.sort_unstable();
        let (low, middle) = (frames[0], frames[frames.len() / 2]);
        // Inside a large block, where the capture has one.
        let block = events.iter().find(|event| event.order > 0 && !event.is_free);
        let inside = block.map_or(middle, |block| block.pfn + 1);
        blocks += usize::from(block.is_some());
        for range in [low..=middle, middle + 1..=u64::MAX >> 1, inside..=inside, middle..=middle + 40] {
            let condition = format!("pfn={}..{:#x}", range.start(), range.end());
            let pages = json(&["pages", "--json", "--where", &condition], &file)["pages"].take();
            for (key, expected) in sums(&events, &range) {
                assert_eq!(
                    at(&pages, &format!("/{key}")),
                    expected,
                    "{} {condition} {key}",
                    folder.display()
                );
            }
            let event = "event=mm_page_alloc,mm_page_free";
            let lines =
                stdout(&run(&["dump", "--format", "jsonl", "--where", &condition, "--where", event], &file));
            let found = lines.lines().filter(|line| !line.contains("kernel_stack")).count();
            let expected = events.iter().filter(|event| event.frames().any(|f| range.contains(&f))).count();
            assert_eq!(found, expected, "{} {condition}", folder.display());
        }
        let refused = run(&["callers", "--where", "pfn=1"], &file);
        assert!(stderr(&refused).contains("cannot select by `pfn=1`"), "{}", stderr(&refused));
    }
    assert!(blocks > 0);
}

#[test]
fn the_screen_of_a_frame_names_its_task() {
    let scratch = Scratch::new();
    let file = scratch.convert(&captures()[1]);
    let event = events(&file).into_iter().find(|event| !event.is_free).unwrap();
    let screen = stdout(&run(&["who", &format!("pfn={}", event.pfn)], &file));
    assert!(screen.contains(&format!("held page frame {:#x}", event.pfn)), "{screen}");
    assert!(screen.contains(&format!("-{}", event.pid)), "{screen}");
    let none = stdout(&run(&["who", "pfn=0x7fffffff"], &file));
    assert!(none.starts_with("No allocation in the trace held page frame 0x7fffffff"), "{none}");
    let wrong = run(&["who", "pfn=x1"], &file);
    assert!(stderr(&wrong).contains("is not a page frame"), "{}", stderr(&wrong));
}

#[test]
fn an_object_that_is_allocated_at_an_instant_has_its_later_end() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let objects = stdout(&run(&["export", "ndjson", "--of", "objects"], &file));
    let objects = objects.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let length = |row: &Value| row["end"].as_u64().unwrap() - row["born"].as_u64().unwrap();
    let long = objects.filter(|row| row["fate"] == "freed").filter(|row| length(row) > 100_000);
    let rows: Vec<Value> = long.step_by(9).take(12).collect();
    assert!(rows.len() > 5, "{}", rows.len());
    for row in rows {
        let (born, end) = (row["born"].as_u64().unwrap(), row["end"].as_u64().unwrap());
        let instant = format!("{}.{:09}", born / 1_000_000_000, born % 1_000_000_000);
        let who = json(&["who", "--json", row["address"].as_str().unwrap(), "--at", &instant], &file);
        let lives = who["lives"].as_array().unwrap();
        let life = lives.iter().find(|life| life["born"] == born).unwrap_or_else(|| panic!("{row}"));
        assert_eq!((life["ended"].as_u64(), &life["end"]), (Some(end), &object!("freed")), "{row}");
    }
}
