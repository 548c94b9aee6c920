//! Whether ranges hold the truth, in three patterns of loss: a study, run by hand.
//!
//! `KMT_RAW_CAPTURES=DIR KMT_RANGE_TRIALS=100 cargo test --release -p kmt-analyze --test program -- --ignored --nocapture
//! ranges_in_three_patterns`; `KMT_RANGE_CAPTURES` names some of the captures, blanks between;
//! `KMT_RANGE_MISSES=1` prints each trial in which the truth was outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::drop::{Pattern, sub_buffers_in};
use crate::support::files::{Scratch, copy, json};
use kmt_format::kernel::ByteOrder;
use serde_json::Value;

/// Section, name: trials in which the truth was inside, trials with a range, widths in parts of the truth.
type Held = BTreeMap<(String, String), (u32, u32, Vec<f64>)>;

fn trial(whole: &Value, part: &Value, held: &mut Held) {
    for section in ["slab", "slab.kmalloc", "slab.cache", "slab.raw", "pages"] {
        let (mut part, mut truth) = (part, whole);
        section.split('.').for_each(|key| (part, truth) = (&part[key], &truth[key]));
        let Some(ranges) = part["ranges"].as_object() else { continue };
        for (name, range) in ranges {
            let row = held.entry((section.to_owned(), name.clone())).or_default();
            let (Some(low), Some(high)) = (range[0].as_f64(), range[1].as_f64()) else { continue };
            let truth = truth[name].as_f64().unwrap();
            if !(low..=high).contains(&truth) && std::env::var_os("KMT_RANGE_MISSES").is_some() {
                println!("{section}.{name}: {truth} is not in {low}..{high}");
            }
            row.0 += u32::from((low..=high).contains(&truth));
            row.1 += 1;
            row.2.push((high - low) / truth.max(1.0));
        }
    }
}

#[test]
#[ignore = "a study: KMT_RAW_CAPTURES names a folder of captures"]
fn ranges_in_three_patterns() {
    let folder =
        PathBuf::from(std::env::var_os("KMT_RAW_CAPTURES").expect("KMT_RAW_CAPTURES names a folder"));
    let trials: u64 = std::env::var("KMT_RANGE_TRIALS").map_or(20, |t| t.parse().unwrap());
    let names = std::env::var("KMT_RANGE_CAPTURES");
    let names = names.unwrap_or_else(|_| "s390x-6.1 x86_64-6.1-reclaim x86_64-6.1-graph".to_owned());
    for name in names.split_whitespace() {
        let order = if name.starts_with("s390x") { ByteOrder::Big } else { ByteOrder::Little };
        study(name, &folder.join(name), order, trials);
    }
}

fn study(name: &str, capture: &Path, order: ByteOrder, trials: u64) {
    let scratch = Scratch::new();
    let whole = json(&["summary", "--json"], &scratch.convert(capture));
    for pattern in [Pattern::Random, Pattern::Bursts(20), Pattern::SlowReader(16)] {
        for share in [0.1, 0.3] {
            let (mut held, mut lost) = (Held::new(), 0.0);
            for number in 0..trials {
                let input = scratch.0.join("trial");
                let _ = fs::remove_dir_all(&input);
                copy(capture, &input);
                sub_buffers_in(&input.join("tracefs"), number, pattern, share, order);
                let part = json(&["summary", "--json"], &scratch.convert(&input));
                let of = |key: &str| part["trace"][key].as_f64().unwrap();
                lost += of("lost_events") / (of("lost_events") + of("events")) / trials as f64;
                trial(&whole, &part, &mut held);
            }
            tell(&format!("{} {pattern:?} {:.1} %", name, 100.0 * lost), &held);
        }
    }
}

fn tell(what: &str, held: &Held) {
    let mut widths: Vec<f64> = held.values().flat_map(|(.., widths)| widths).copied().collect();
    widths.sort_by(f64::total_cmp);
    let median = widths.get(widths.len() / 2).copied().unwrap_or(0.0);
    let good = held.values().filter(|(inside, all, _)| inside * 100 >= all * 95).count();
    let mut bad: Vec<String> = held
        .iter()
        .filter(|(_, (inside, all, _))| inside * 100 < all * 95)
        .map(|((section, name), (inside, all, _))| format!("{section}.{name} {inside}/{all}"))
        .collect();
    bad.sort();
    println!("{what}: {good} of {} totals held, median width {median:.3}: {}", held.len(), bad.join(", "));
}
