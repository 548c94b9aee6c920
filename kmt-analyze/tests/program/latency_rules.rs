//! Tracepoints that `latency --threshold` prints, against a reading of the kernel's text that holds the tracepoints of a
//! task until their function ends, as allocation_postprocess.py did (2016).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files::{Scratch, at, convert, json, run, stdout};

/// Tracepoints of a rule, and the function that prints them. `None`: the time between them does.
const RULES: [(&[&str], Option<&str>); 5] = [
    (&["mm_vmscan_direct_reclaim_begin", "mm_vmscan_direct_reclaim_end"], Some("try_to_free_pages")),
    (&["mm_compaction_begin", "mm_compaction_end"], Some("compact_zone")),
    (&["mm_compaction_try_to_compact_pages"], Some("try_to_compact_pages")),
    (&["mm_shrink_slab_start", "mm_shrink_slab_end"], None),
    (&["mm_vmscan_lru_shrink_inactive"], Some("shrink_inactive_list")),
];

/// A held tracepoint of a task: its time, its name, and the text that pairs a start with its end.
struct Held<'t> {
    time: f64,
    name: &'t str,
    pair: &'t str,
}

fn rule(name: &str) -> Option<usize> {
    RULES.iter().position(|(names, _)| names.contains(&name))
}

/// Number of printed tracepoints by name. Of a begin and an end over the threshold both are printed, even where the
/// function around them is not recorded.
fn plainly(text: &str, threshold: f64) -> BTreeMap<String, u64> {
    let mut held: BTreeMap<&str, Vec<Held>> = BTreeMap::new();
    let mut printed = BTreeMap::new();
    let mut print = |name: &str| *printed.entry(name.to_owned()).or_insert(0) += 1;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.splitn(4, '|');
        let (Some(time), Some(task)) = (columns.next(), columns.next()) else { continue };
        let (Some(duration), Some(code)) = (columns.next(), columns.next()) else { continue };
        let time = time.trim().parse::<f64>().unwrap() * 1e6;
        let events = held.entry(task.trim().rsplit('-').next().unwrap()).or_default();
        if let Some(function) = code.trim().strip_prefix("} /* ").and_then(|c| c.split(' ').next()) {
            let digits = duration.trim().trim_start_matches(|c: char| !c.is_ascii_digit());
            let duration: f64 = digits.strip_suffix(" us").unwrap().parse().unwrap();
            let Some(at) = RULES.iter().position(|(_, owner)| *owner == Some(function)) else { continue };
            let is_its = |h: &Held| rule(h.name) == Some(at) && h.time >= time - duration - 2.0;
            events.iter().filter(|h| duration >= threshold && is_its(h)).for_each(|h| print(h.name));
            events.retain(|h| rule(h.name) != Some(at));
        } else if let Some((name, values)) = code.trim().strip_prefix("/* ").and_then(|c| c.split_once(": "))
        {
            let Some(at) = rule(name) else { continue };
            let pair = if RULES[at].1.is_none() { values.split(": ").next().unwrap() } else { "" };
            let (names, _) = RULES[at];
            if name == names[0] {
                events.retain(|h| h.name != name || h.pair != pair);
                events.push(Held { time, name, pair });
                continue;
            }
            let begin = events.iter().position(|h| h.name == names[0] && h.pair == pair);
            match begin.map(|begin| (begin, time - events[begin].time)) {
                Some((begin, length)) if length >= threshold => {
                    print(events.remove(begin).name);
                    print(name);
                }
                _ => events.push(Held { time, name, pair }),
            }
        }
    }
    printed
}

/// Tracepoints of the five rules in a text of the program, in their order; `left_out` counts others of their class.
fn printed(text: &str) -> (Vec<String>, BTreeMap<String, u64>) {
    let (mut names, mut left_out) = (Vec::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some((number, class)) = line.trim().strip_prefix("... ").and_then(|l| l.split_once(" more ")) {
            let name = class.rsplit(':').next().unwrap().to_owned();
            *left_out.entry(name).or_default() += number.replace(',', "").parse::<u64>().unwrap();
        } else if let Some(name) = line.split([' ', ':']).find(|word| rule(word).is_some()) {
            names.push(name.to_owned());
        }
    }
    (names, left_out)
}

/// Number of tracepoints by name, those that are counted only included.
fn counts(text: &str) -> BTreeMap<String, u64> {
    let (names, left_out) = printed(text);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    names.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
    for (name, number) in left_out.into_iter().filter(|(name, _)| rule(name).is_some()) {
        *counts.entry(name).or_default() += number;
    }
    counts
}

fn follows_the_rules(name: &str, file: &Path, text: &str) -> usize {
    let mut kinds = 0;
    for threshold in [1u64, 3, 10, 50] {
        let expected = plainly(text, threshold as f64 * 1e3);
        let option = format!("{threshold}ms");
        let report = stdout(&run(&["latency", "--threshold", &option, "--wide", "-l", "0"], file));
        assert_eq!(counts(&report), expected, "{name} over {threshold} ms");
        assert!(!report.contains("funcgraph_"), "functions have lines of their own");
        kinds = kinds.max(expected.len());
    }
    kinds
}

#[test]
fn tracepoints_of_a_capture_follow_their_functions() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.1-reclaim");
    let scratch = Scratch::new();
    let text = fs::read_to_string(data.join("stalls.txt")).unwrap();
    let file = scratch.convert(&data);
    assert!(follows_the_rules("slice", &file, &text) >= 2);
    // Live ones too. Larger captures have batches without counters between them, of which the order is not known live.
    for threshold in [1u64, 3, 10, 50] {
        let live = stdout(&run(&["latency", "--follow", "--threshold", &format!("{threshold}ms")], &file));
        assert_eq!(counts(&live), plainly(&text, threshold as f64 * 1e3), "over {threshold} ms, live");
    }
    let more = std::env::var_os("KMT_RAW_CAPTURES").map(PathBuf::from);
    for capture in more.iter().flat_map(|d| fs::read_dir(d).unwrap()).map(|e| e.unwrap().path()) {
        let Ok(text) = fs::read_to_string(capture.join("trace.txt")) else { continue };
        let threshold = fs::read_to_string(capture.join("tracefs/tracing_thresh")).unwrap_or_default();
        // Without a threshold of the tracer many ends have no name in the text.
        if text.starts_with("# tracer: function_graph") && threshold.trim() != "0" {
            follows_the_rules(&capture.display().to_string(), &scratch.convert(&capture), &text);
        }
    }
}

/// A direct reclaim of 3 ms with a short and a long shrink_inactive_list and a short shrinker, then a compaction whose
/// zone takes 0.5 ms of 1.2 ms: times in microseconds, durations of functions, texts.
const MADE: [(u64, Option<f64>, &str); 14] = [
    (1_000_000, None, "/* mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL */"),
    (
        1_000_100,
        None,
        "/* mm_shrink_slab_start: a+0x0/0x10 ffff888100000000: nid: 0 objects to shrink 1 gfp_flags \
         GFP_KERNEL cache items 1 delta 0 total_scan 1 priority 12 */",
    ),
    (
        1_000_150,
        None,
        "/* mm_shrink_slab_end: a+0x0/0x10 ffff888100000000: nid: 0 unused scan count 0 new scan count \
         0 total_scan 1 last shrinker return val 0 */",
    ),
    (1_000_300, None, "/* mm_vmscan_lru_shrink_inactive: nid=0 nr_scanned=1 nr_reclaimed=1 priority=12 */"),
    (1_000_400, Some(200.0), "} /* shrink_inactive_list */"),
    (1_001_000, None, "/* mm_vmscan_lru_shrink_inactive: nid=0 nr_scanned=2 nr_reclaimed=2 priority=11 */"),
    (1_002_500, Some(2_000.0), "} /* shrink_inactive_list */"),
    (1_003_000, None, "/* mm_vmscan_direct_reclaim_end: nr_reclaimed=3 */"),
    (1_003_050, Some(3_100.0), "} /* try_to_free_pages */"),
    (1_010_000, None, "/* mm_compaction_try_to_compact_pages: order=3 gfp_mask=GFP_KERNEL priority=0 */"),
    (
        1_010_010,
        None,
        "/* mm_compaction_begin: zone_start=0x1 migrate_pfn=0x1 free_pfn=0x9 zone_end=0x9, mode=async */",
    ),
    (
        1_010_510,
        None,
        "/* mm_compaction_end: zone_start=0x1 migrate_pfn=0x1 free_pfn=0x9 zone_end=0x9, mode=async \
         status=success */",
    ),
    (1_010_515, Some(520.0), "} /* compact_zone */"),
    (1_011_100, Some(1_200.0), "} /* try_to_compact_pages */"),
];

fn made(has_functions: bool) -> String {
    let mut text = "# tracer: function_graph\n#\n".to_owned();
    for (time, duration, code) in MADE.iter().filter(|(_, duration, _)| has_functions || duration.is_none()) {
        let duration = duration.map_or(String::new(), |us| format!("{us:.3} us"));
        let time = format!("{:>4}.{:06}", time / 1_000_000, time % 1_000_000);
        text += &format!("{time} |   0)      sh-10     | {duration:>13} |  {code}\n");
    }
    text
}

#[test]
fn short_functions_hide_their_tracepoints() {
    let scratch = Scratch::new();
    let (input, file) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    let begin = ["mm_vmscan_direct_reclaim_begin", "mm_vmscan_lru_shrink_inactive"];
    let end = ["mm_vmscan_direct_reclaim_end", "mm_compaction_try_to_compact_pages"];
    let expected = [begin, end].concat();
    fs::write(&input, made(true)).unwrap();
    convert(&input, &file, None).unwrap();
    let report = stdout(&run(&["latency", "--threshold", "1ms", "--wide"], &file));
    assert_eq!(printed(&report).0, expected, "{report}");
    // The second call of shrink_inactive_list is the long one.
    assert!(report.contains("nr_scanned=2") && !report.contains("nr_scanned=1"), "{report}");
    let live = stdout(&run(&["latency", "--follow", "--threshold", "1ms"], &file));
    let order = ["mm_vmscan_lru_shrink_inactive", begin[0], end[0], end[1]];
    assert_eq!(printed(&live).0, order, "before the line of their owner: {live}");
    let lines: Vec<&str> = live.lines().collect();
    assert!(lines[1].contains("function shrink_inactive_list of sh-10, 2.0 ms"), "{live}");
    // Without a threshold stalls are printed alone.
    assert!(printed(&stdout(&run(&["latency", "--follow"], &file))).0.is_empty());
    // Without functions the length of shrink_inactive_list is unknown: its events are those of the stall around them.
    fs::write(&input, made(false)).unwrap();
    convert(&input, &file, None).unwrap();
    let report = stdout(&run(&["latency", "--threshold", "1ms", "--wide"], &file));
    assert_eq!(printed(&report).0, [begin[0], begin[1], begin[1], end[0]], "{report}");
    let live = stdout(&run(&["latency", "--follow", "--threshold", "1ms"], &file));
    assert_eq!(printed(&live).0, [begin[0], begin[1], begin[1], end[0]], "{live}");
}

/// Where mm_compaction_try_to_compact_pages is not in the trace, names of kernel threads tell who compacts for itself.
#[test]
fn compaction_of_a_task_is_its_wait_without_the_event_that_says_so() {
    let scratch = Scratch::new();
    let of = |comm: &str, pid: u32, micros: [u32; 2]| {
        let line = |micros, event: &str| format!(" {comm}-{pid} [000] ..... 7.{micros:06}: {event}\n");
        let zone = "zone_start=0x1 migrate_pfn=0x1 free_pfn=0xff zone_end=0x100, mode=async";
        line(micros[0], &format!("mm_compaction_begin: {zone}"))
            + &line(micros[1], &format!("mm_compaction_end: {zone} status=contended"))
    };
    let threads =
        of("app", 7, [100, 318]) + &of("kcompactd0", 40, [400, 450]) + &of("kswapd0", 41, [500, 590]);
    let announced = " app-7 [000] ..... 7.000099: mm_compaction_try_to_compact_pages: order=9 gfp_mask=GFP_KERNEL priority=5\n";
    for (text, direct, background) in [
        (threads.clone(), 218_000, 140_000),
        (format!("{announced}{threads}"), 218_000, 140_000),
        (
            format!("{threads}{}", announced.replace("app-7", "other-9").replace("000099", "000600")),
            0,
            358_000,
        ),
    ] {
        let (input, file) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
        fs::write(&input, text).unwrap();
        convert(&input, &file, None).unwrap();
        let latency = json(&["latency", "--json"], &file);
        let total = |kind: &str| {
            let kinds = at(&latency, "/latency/kinds").as_array().unwrap().clone();
            let of_kind = kinds.iter().find(|row| row["kind"] == kind).cloned();
            of_kind.map_or(0, |row| row["lengths"]["total"].as_u64().or(row["total"].as_u64()).unwrap())
        };
        assert_eq!((total("direct_compaction"), total("compaction")), (direct, background), "{latency:#}");
    }
}
