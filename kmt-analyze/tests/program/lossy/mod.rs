//! Ranges of totals contain the truth, however events were lost: 1,000 generated recordings, the same in every run.

mod drops;
mod load;

use crate::model::Crafted;
use crate::support::model::Event;
use drops::{PATTERNS, Pattern};
use kmt_analyze::in_process;
use kmt_format::Loss;
use kmt_format::kernel::CpuStats;
use kmt_format::write::StatsTaken;
use load::WORKS;
use serde_json::Value;

const SECTIONS: [&str; 5] = ["slab", "slab.kmalloc", "slab.cache", "slab.raw", "pages"];
const TRIALS: u64 = 1_000;
/// Shares of the sub-buffers that are lost.
const SHARES: [f64; 4] = [0.05, 0.2, 0.45, 0.8];

/// How the losses are known.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Counted {
    /// In place.
    InPlace,
    /// In place and by the kernel's counters.
    Both,
    /// By the kernel's counters; places without a number.
    Counters,
    /// By the kernel's counters alone, as with `overwrite=0`.
    Nowhere,
}

const COUNTED: [Counted; 4] = [Counted::InPlace, Counted::Both, Counted::Counters, Counted::Nowhere];

fn summary(file: &[u8]) -> Value {
    let ran = in_process::run(&["summary", "--json", "--threads", "1", "x.kmt"], &[("x.kmt", file)]);
    assert!(ran.ended.is_ok(), "{:?}", ran.ended);
    serde_json::from_slice(&ran.written).unwrap()
}

fn section<'v>(document: &'v Value, section: &str) -> &'v Value {
    section.split('.').fold(document, |part, key| &part[key])
}

/// A file with the events of the sub-buffers that are not lost.
fn written(events: &[Event], seed: &mut u64, pattern: Pattern, share: f64, counted: Counted) -> Vec<u8> {
    let mut crafted = Crafted::new();
    crafted.release("6.1.0");
    let mut stats = Vec::new();
    for cpu in 0..2 {
        let of_cpu: Vec<&Event> = events.iter().filter(|event| event.cpu == cpu).collect();
        let sub_buffers: Vec<&[&Event]> = of_cpu.chunks(8).collect();
        let lost = drops::lost(seed, pattern, cpu, sub_buffers.len(), share);
        let (mut pending, mut all_lost) = (0, 0);
        for (events, is_lost) in sub_buffers.into_iter().zip(lost) {
            if is_lost {
                pending += events.len() as u64;
                continue;
            }
            mark(&mut crafted, cpu, &mut pending, &mut all_lost, counted);
            events.iter().for_each(|event| crafted.event(event));
            crafted.writer.flush(cpu as u32).unwrap();
        }
        mark(&mut crafted, cpu, &mut pending, &mut all_lost, counted);
        let mut of_cpu = CpuStats::default();
        (of_cpu.overrun, of_cpu.dropped, of_cpu.commit_overrun) = (Some(0), Some(0), Some(0));
        let counter = if counted == Counted::Nowhere { &mut of_cpu.dropped } else { &mut of_cpu.overrun };
        *counter = Some(all_lost);
        stats.push((cpu as u32, of_cpu));
    }
    if counted != Counted::InPlace {
        crafted.writer.add_stats(StatsTaken::After, &stats).unwrap();
    }
    crafted.writer.finish().unwrap()
}

/// The events without those that a CPU lost before the first event of the file; `None`: none was.
fn since_first(events: &[Event], found: &Value) -> Option<Vec<Event>> {
    let first = found["trace"]["first"].as_u64()?;
    let per_cpu = found["trace"]["per_cpu"].as_array()?.iter();
    let lost_first: Vec<u64> = per_cpu
        .filter(|cpu| cpu["lost_events_before_first"] != 0)
        .map(|cpu| cpu["cpu"].as_u64().unwrap())
        .collect();
    let is_recorded = |event: &&Event| event.time >= first || !lost_first.contains(&event.cpu);
    (!lost_first.is_empty()).then(|| events.iter().filter(is_recorded).cloned().collect())
}

fn mark(crafted: &mut Crafted, cpu: u64, pending: &mut u64, all: &mut u64, counted: Counted) {
    let number = std::mem::take(pending);
    *all += number;
    let loss = match counted {
        Counted::InPlace | Counted::Both => Loss::counted(number),
        Counted::Counters => Loss::uncounted(),
        Counted::Nowhere => return,
    };
    if number > 0 {
        crafted.writer.add_loss(cpu as u32, loss).unwrap();
    }
}

#[test]
fn ranges_hold_however_events_were_lost() {
    let (mut checked, mut bounded) = (0, 0);
    let mut outside = Vec::new();
    let mut whole = None;
    for trial in 0..TRIALS {
        let mut seed = trial;
        let work = WORKS[trial as usize / 32 % WORKS.len()];
        // The same events for every pattern and share.
        if trial % 32 == 0 {
            whole = None;
        }
        let (events, truth) = whole.get_or_insert_with(|| {
            let events = load::events(trial, work, 900);
            let file = written(&events, &mut 0, Pattern::Chance, 0.0, Counted::InPlace);
            let truth = summary(&file);
            (events, truth)
        });
        let pattern = PATTERNS[trial as usize % PATTERNS.len()];
        let share = SHARES[trial as usize / PATTERNS.len() % SHARES.len()];
        let counted = COUNTED[(trial / 7) as usize % COUNTED.len()];
        let found = summary(&written(events, &mut seed, pattern, share, counted));
        // What a CPU lost before the first event is not of the recorded time.
        let later = since_first(events, &found);
        let later =
            later.map(|events| summary(&written(&events, &mut 0, Pattern::Chance, 0.0, Counted::InPlace)));
        let truth = later.as_ref().unwrap_or(truth);
        for name in SECTIONS {
            let (part, truth) = (section(&found, name), section(truth, name));
            for (key, range) in part["ranges"].as_object().into_iter().flatten() {
                let value = truth[key].as_f64().unwrap();
                let (low, high) = (range[0].as_f64(), range[1].as_f64());
                checked += 1;
                bounded += u32::from(high.is_some());
                if low.is_some_and(|low| value < low) || high.is_some_and(|high| value > high) {
                    outside.push(format!(
                        "{trial} {work:?} {pattern:?} {share} {counted:?}: {name}.{key} {value}, not in {range}, seen {}",
                        part[key]
                    ));
                }
            }
        }
    }
    assert!(checked > 70_000 && bounded > 40_000, "{checked} ranges, {bounded} with a highest value");
    assert!(
        outside.is_empty(),
        "{} outside: {:#?}",
        outside.len(),
        outside.iter().take(20).collect::<Vec<_>>()
    );
}
