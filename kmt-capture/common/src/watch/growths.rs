//! 40 growths of 12 kinds at 1 to 100 KiB/s beside noise: which are seen, and after how long. Beside most of them the daily cycle is
//! weak: growth of a sum that falls with the load of the evening is seen when it is above its earlier level.

use super::courses::{HOUR, MINUTE, Machine, of};
use super::sample::Kind;
use super::watcher::Watcher;

/// A kind of growth.
struct Grows {
    name: &'static str,
    /// Series that grow, each by the same part.
    series: &'static [(Kind, &'static str)],
    /// Seconds from boot to its begin.
    begin: u64,
    /// Seconds between steps of it.
    every: u64,
    /// Size of the daily cycle beside it.
    cycle: f64,
}

const fn grows(name: &'static str, series: &'static [(Kind, &'static str)]) -> Grows {
    Grows { name, series, begin: 90 * MINUTE, every: 10, cycle: 0.25 }
}

const KINDS: [Grows; 12] = [
    grows("a cache", &[(Kind::Cache, "filp")]),
    grows("a size class", &[(Kind::Cache, "kmalloc-64")]),
    grows("three caches", &[(Kind::Cache, "kmalloc-64"), (Kind::Cache, "TCP"), (Kind::Cache, "filp")]),
    grows("slab without a cache", &[(Kind::SlabUnreclaimable, "")]),
    grows("page tables", &[(Kind::PageTables, "")]),
    grows("percpu", &[(Kind::Percpu, "")]),
    grows("vmalloc", &[(Kind::Vmalloc, "")]),
    grows("kernel stacks", &[(Kind::KernelStacks, "")]),
    grows("in no account", &[(Kind::NoAccount, "")]),
    Grows { every: MINUTE, ..grows("bursts each minute", &[(Kind::Cache, "kmalloc-1k")]) },
    Grows { begin: 8 * HOUR, cycle: 1.0, ..grows("beside a daily cycle", &[(Kind::Cache, "kmalloc-512")]) },
    // At noon of the second day: beside the load of a morning it is seen later (`judge`).
    Grows { begin: 36 * HOUR, ..grows("begins late", &[(Kind::Cache, "kernfs_node_cache")]) },
];

/// Seconds from the begin of a growth to its report; `None`: not within 5 hours. Other reports fail the test.
fn seen_after(kind: &Grows, kib_per_second: f64, seed: u64) -> Option<u64> {
    let (mut machine, mut watcher) = (Machine::new(seed, 10, kind.cycle), Watcher::default());
    let part = kib_per_second / kind.series.len() as f64;
    for _ in 0..(kind.begin + 5 * HOUR) / 10 {
        let sample = machine.next(&mut |time, more| {
            let grown = time.saturating_sub(kind.begin) / kind.every * kind.every;
            kind.series.iter().for_each(|(kind, name)| more[of(*kind, name)] += part * grown as f64);
        });
        let found = watcher.take(&sample, |_| true);
        if let Some(finding) = found.first() {
            // Of several caches in small parts, the sum may be seen first.
            let is_sum = kind.series.len() > 1 && finding.kind == Kind::SlabUnreclaimable;
            let is_it = kind.series.iter().any(|(of, name)| *of == finding.kind && *name == finding.name);
            let seconds = sample.time.checked_sub(kind.begin).filter(|_| is_it || is_sum);
            let seconds = seconds.unwrap_or_else(|| panic!("{}: {finding:?} at {}", kind.name, sample.time));
            let rate = finding.growth.bytes_per_second / 1024.0;
            let expected = if is_sum { kib_per_second } else { part };
            assert!(rate > expected * 0.4 && rate < expected * 2.0, "{}: {rate} of {expected}", kind.name);
            return Some(seconds);
        }
    }
    None
}

#[test]
fn growths_are_seen_in_time() {
    let mut table = String::from("KiB/s   1      4     25    100     minutes until seen\n");
    let mut missed = Vec::new();
    for (at, kind) in KINDS.iter().enumerate() {
        let mut row = String::new();
        // Four kinds have the fastest, too: 40 growths.
        for (number, rate) in
            [1.0, 4.0, 25.0, 100.0].into_iter().enumerate().take(if at % 3 == 0 { 4 } else { 3 })
        {
            let seen = seen_after(kind, rate, (at * 4 + number) as u64 + 1);
            let limit = if rate < 4.0 { 240 } else { 30 };
            if seen.is_none_or(|seconds| seconds > limit * MINUTE) {
                missed.push(format!("{} at {rate} KiB/s: {seen:?}", kind.name));
            }
            row += &seen.map_or("   -   ".to_owned(), |seconds| format!("{:6.1} ", seconds as f64 / 60.0));
        }
        table += &format!("{row:<29} {}\n", kind.name);
    }
    eprintln!("{table}");
    assert!(missed.is_empty(), "{missed:#?}");
}
