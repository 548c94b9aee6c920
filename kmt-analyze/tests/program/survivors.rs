//! Files of survivors and sums against files with every event: the same numbers, wherever a report answers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kmt_capture::survivors::SurvivorArgs;
use kmt_format::Loss;
use kmt_format::read::Trace;
use serde_json::Value;

use crate::model::{BASE, Crafted, next, random};
use crate::support::files::{Scratch, data, json, run, stdout};
use crate::support::model::{Event, What};
use crate::survivor_pairs::{
    MS, REPORTS, compare, compare_timelines, compare_windows, counts, folded, seconds,
};
use crate::survivor_reports::MORE;

/// Bytes allocated and live of each row of a comparison of the begin of a file with its end.
fn differences(file: &Path, borders: [u64; 3]) -> BTreeMap<String, Vec<f64>> {
    let [first, middle, end] = borders;
    let (a, b) = (seconds(first) + ".." + &seconds(middle - 1), seconds(middle) + ".." + &seconds(end - 1));
    let file = file.to_str().unwrap();
    let args = ["diff", "--json", "--all", "-l", "0", "--with-recorder", "--time", &a, "--against", &b];
    let rows = json(&args, Path::new(file))["diff"]["rows"].take();
    let figures = |row: &Value| {
        let figure = |of: &str, side: &str| row[of][side].as_f64().unwrap().round();
        let all = ["bytes_alloc", "bytes_live"].map(|of| ["before", "after"].map(|side| figure(of, side)));
        all.concat()
    };
    let named = |row: &Value| (format!("{} {}", row["kind"], row["name"]), figures(row));
    rows.as_array().unwrap().iter().map(named).collect()
}

#[test]
fn the_begin_of_a_file_is_compared_with_its_end() {
    let scratch = Scratch::new();
    let whole = scratch.convert(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/x86_64-6.1"));
    let survivors = folded(&whole, &SurvivorArgs { threshold: 10 * MS, interval: 50 * MS, memory: 8 << 20 });
    let bytes = fs::read(&survivors).unwrap();
    let folds: Vec<u64> = Trace::open(&bytes).unwrap().folds().iter().map(|(_, info)| info.t_begin).collect();
    let borders = [folds[1], folds[4], folds[8]];
    let (expected, found) = (differences(&whole, borders), differences(&survivors, borders));
    assert!(expected.len() > 20, "{expected:#?}");
    for (name, figures) in &expected {
        assert_eq!(found.get(name), Some(figures), "{name}");
    }
    assert_eq!(found.len(), expected.len());
    let refused = ["diff", "--by", "task", survivors.to_str().unwrap()];
    let output = run(&refused, &survivors);
    assert!(String::from_utf8_lossy(&output.stderr).contains("died young"), "{output:?}");
}

#[test]
fn real_captures_have_the_same_numbers() {
    let scratch = Scratch::new();
    for name in ["x86_64-6.1", "x86_64-6.12", "s390x-6.1", "armhf-6.1"] {
        let whole = scratch.convert(&data(name));
        let bytes = fs::read(&whole).unwrap();
        let all = Trace::open(&bytes).unwrap().event_count();
        for (threshold, interval, memory) in
            [(MS, 5 * MS, 8 << 20), (100 * MS, 1_000 * MS, 8 << 20), (1_000 * MS, 10_000 * MS, 600 << 10)]
        {
            let survivors = folded(&whole, &SurvivorArgs { threshold, interval, memory });
            let (written, folded) = counts(&survivors);
            assert_eq!(written + folded, all, "{name}: every event is in the file or in a sum");
            assert!(folded > 0 || memory < 1 << 20, "{name}: {folded} of {all} are folded");
            compare(&format!("{name}, {threshold} ns"), &whole, &survivors, &REPORTS);
            compare_timelines(name, &whole, &survivors, interval);
            compare_windows(name, &whole, &survivors, interval, &REPORTS);
        }
    }
}

/// Mostly plain lives of objects and pages on two CPUs, and among them what is not plain: allocations over live ones, second
/// frees, frees of the other interface, page events under objects, splits of blocks, events without their pages.
fn lives(seed: u64) -> Vec<Event> {
    let (mut seed, mut time) = (seed, 1_000_000);
    let mut random = move || next(&mut seed);
    let mut events = Vec::new();
    let mut objects: Vec<(u64, bool)> = Vec::new();
    let mut pages: Vec<(u64, u64)> = Vec::new();
    for step in 0..6_000u64 {
        time += match random() % 16 {
            0 => 0,
            1 => 400_000,
            _ => random() % 30_000,
        };
        let (cpu, pid) = (random() % 2, 7 + (random() % 3) as i64);
        let is_odd = random() % 24 == 0;
        let pfn = 4_096 + random() % 256;
        let address = BASE + (pfn << 12) + random() % 10 * 0x180;
        let what = match random() % 10 {
            0 => {
                let (order, pfn) = (random() % 3, 8_192 + random() % 512 * 8);
                let pfn = if is_odd { pfn + random() % 8 } else { pfn };
                pages.push((pfn, order));
                What::PageAlloc { pfn, order, movable: random() % 2 == 0 }
            }
            1 if !pages.is_empty() => {
                let (pfn, order) = pages.swap_remove((random() % pages.len() as u64) as usize);
                let order = if is_odd { order.saturating_sub(1) } else { order };
                What::PageFree { pfn, order }
            }
            2 if step % 40 == 0 => What::PageAlloc { pfn, order: 0, movable: false },
            3 if step % 50 == 0 => What::PageFree { pfn, order: 0 },
            4..=6 => {
                if objects.iter().any(|(live, _)| *live == address) && !is_odd {
                    continue;
                }
                let kmalloc = random() % 2 == 0;
                objects.push((address, kmalloc));
                What::Alloc {
                    kmalloc,
                    site: 30 + random() % 9,
                    ptr: 0xff << 56 | address,
                    req: 300,
                    alloc: 384,
                }
            }
            _ if !objects.is_empty() => {
                // The youngest die first, mostly.
                let back = (random() % 8).min(objects.len() as u64 - 1) as usize;
                let at = if random() % 12 == 0 { 0 } else { objects.len() - 1 - back };
                let (ptr, kfree) = if is_odd { objects[at] } else { objects.remove(at) };
                What::Free { kfree: kfree != (is_odd && random() % 2 == 0), ptr: 0xff << 56 | ptr }
            }
            _ => continue,
        };
        events.push(Event { time, cpu, pid, what });
    }
    events
}

/// Random events on few addresses, by which every rule is met often, and random lives that are mostly plain; with losses, and
/// direct maps that are recorded, learned or unknown.
#[test]
fn random_events_have_the_same_numbers() {
    let scratch = Scratch::new();
    let mut folded_events = 0;
    for seed in 0..100 {
        let mut crafted = Crafted::new();
        match seed % 4 {
            0 => crafted.release("5.18.19"),
            1 => crafted.release("6.18.0-rc1"),
            _ => {}
        }
        if seed % 3 != 0 {
            let base = format!("{BASE:#x}");
            crafted.writer.add_metadata(&[("kernel.direct_map", base.as_bytes())]).unwrap();
        }
        let mut random_losses = seed;
        for event in if seed % 2 == 0 { random(seed) } else { lives(seed) } {
            if seed % 5 == 4 && next(&mut random_losses) % 200 == 0 {
                crafted.writer.add_loss(event.cpu as u32, Loss::counted(3)).unwrap();
            }
            crafted.event(&event);
        }
        let whole = scratch.0.join("random.kmt");
        fs::write(&whole, crafted.writer.finish().unwrap()).unwrap();
        let threshold = [MS / 2, 3 * MS, 1_000 * MS][seed as usize % 3];
        let interval = [7 * MS, 100 * MS, 10_000 * MS][seed as usize / 3 % 3];
        let survivors = folded(&whole, &SurvivorArgs { threshold, interval, memory: 1 << 20 });
        folded_events += counts(&survivors).1;
        compare(&format!("seed {seed}"), &whole, &survivors, &REPORTS);
        // Each length of a threshold and of an interval is among them, with and without losses.
        if seed < 30 {
            compare(&format!("seed {seed}"), &whole, &survivors, &MORE);
        }
        compare_timelines(&format!("seed {seed}"), &whole, &survivors, interval);
    }
    assert!(folded_events > 10_000, "{folded_events}");
}

#[test]
fn what_needs_every_event_refuses() {
    let scratch = Scratch::new();
    let whole = scratch.convert(&data("x86_64-6.1"));
    let args = SurvivorArgs { threshold: MS, interval: 100 * MS, memory: 8 << 20 };
    let survivors = folded(&whole, &args);
    for command in [
        &["tasks"][..],
        &["peak"],
        &["crosscpu"],
        &["who", "0x1000"],
        &["temporary"],
        &["fragmentation"],
        &["callers", "--by", "task"],
        &["callers", "--comm", "bash"],
        &["lifetimes", "--where", "lifetime>1ms"],
        &["timeline", "--by", "task"],
        &["chart", "timeline", "--by", "task", "-o", "x.svg"],
        &["chart", "flame", "-o", "x.svg"],
        &["report", "--comm", "bash", "-o", "x.html"],
        &["slice", "--cpu", "0", "-o", "x.kmt"],
        &["export", "folded", "-o", "x.folded"],
        &["summary", "--compat", "perf-kmem"],
    ] {
        let output = run(command, &survivors);
        let text = format!("{}{}", stdout(&output), String::from_utf8_lossy(&output.stderr));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("died young"), "{command:?}: {text}");
        // The recording that has it, or what this file can answer.
        let remedies = ["record without --survivors", "hint: kmt-analyze export", "hint: slice --time"];
        assert!(remedies.iter().any(|remedy| text.contains(remedy)), "{command:?}: {text}");
        assert!(!output.status.success(), "{command:?}");
    }
    let dumped = stdout(&run(&["dump"], &survivors));
    assert!(dumped.lines().count() as u64 >= counts(&survivors).0, "dump shows the events that are there");
}

/// A recovered file without one interval: its totals are minimums, and the answer says why.
#[test]
fn sums_that_are_missing_make_minimums() {
    let scratch = Scratch::new();
    let whole = scratch.convert(&data("x86_64-6.1"));
    let survivors = folded(&whole, &SurvivorArgs { threshold: MS, interval: MS, memory: 8 << 20 });
    let mut bytes = fs::read(&survivors).unwrap();
    let folds: Vec<_> = Trace::open(&bytes).unwrap().folds().iter().map(|(chunk, _)| *chunk).collect();
    assert!(folds.len() > 3, "{} intervals", folds.len());
    bytes[(folds[1].body_offset() + folds[1].body_len) as usize - 1] ^= 1;
    let damaged = scratch.0.join("damaged.kmt");
    fs::write(&damaged, &bytes).unwrap();
    assert_eq!(run(&["summary"], &damaged).status.code(), Some(3));
    let recovered = scratch.0.join("recovered.kmt");
    run(&["recover", "-o", recovered.to_str().unwrap()], &damaged);
    let report = json(&["summary", "--json"], &recovered);
    assert_eq!(report["trace"]["lost_events_is_minimum"], true, "{report:#}");
    let text = stdout(&run(&["summary"], &recovered));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("sums of objects that died young are missing"), "{text}");
}
