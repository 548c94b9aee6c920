//! The watch over restarts, gaps and repeated growth, on series without noise.

use super::history::{SERIES_MAX, SUMS};
use super::judge::Verdict;
use super::sample::{Kind, Sample, Value};
use super::watcher::{Finding, Watcher};

const BEGIN: u64 = 3600;

/// A sample of one cache.
fn sample(time: u64, kib: i64) -> Sample<'static> {
    let value = Value { kind: Kind::Cache, name: "made", kib, object_size: 128 };
    Sample { time, memory_kib: 8 << 20, values: vec![value] }
}

/// Takes samples of a cache that grows by 8 KiB/s, from `times`.
fn grow(watcher: &mut Watcher, times: std::ops::Range<u64>) -> Vec<(u64, Finding)> {
    let mut found = Vec::new();
    for time in times.step_by(10) {
        let kib = 10_000 + 8 * (time - BEGIN) as i64;
        found.extend(watcher.take(&sample(time, kib), |_| true).into_iter().map(|finding| (time, finding)));
    }
    found
}

#[test]
fn growth_is_reported_again_when_it_has_doubled() {
    let found = grow(&mut Watcher::default(), BEGIN..BEGIN + 4 * 3600);
    let rows: Vec<_> = found.iter().map(|(time, f)| ((time - BEGIN) / 60, f.grown_kib, f.is_again)).collect();
    assert!(
        matches!(rows[..], [(30..=31, _, false), (50..=70, _, true), (100..=130, _, true), ..]),
        "{rows:?}"
    );
    let first = &found[0].1;
    assert!((first.growth.bytes_per_second / 1024.0 - 8.0).abs() < 0.1, "{first:?}");
    assert_eq!((first.name.as_str(), first.object_size, first.growth.window.minutes), ("made", 128, 30));
}

#[test]
fn reports_and_levels_survive_a_restart() {
    let mut watcher = Watcher::default();
    assert_eq!(grow(&mut watcher, BEGIN..BEGIN + 2400).len(), 1);
    let state = watcher.state("boot-a", 1000);
    let again = |boot: &str| {
        let mut watcher = Watcher::default();
        assert_eq!(watcher.restore(&state, boot, 1060), 0, "{state}");
        grow(&mut watcher, BEGIN + 2460..BEGIN + 2460 + 2000)
    };
    // Twice the growth is seen at its time, and first growth of another boot at once.
    assert!(again("boot-a").iter().all(|(_, finding)| finding.is_again), "{state}");
    assert!(
        again("boot-b").iter().take(1).all(|(_, finding)| !finding.is_again) && !again("boot-b").is_empty()
    );
}

#[test]
fn levels_of_a_state_file_are_not_growth() {
    let state = "kmt-watch 1\nboot a\ntime 1000\nlevel cache 90000,- made\n";
    let mut watcher = Watcher::default();
    assert_eq!(watcher.restore(state, "b", 2000), 0);
    assert_eq!(grow(&mut watcher, BEGIN..BEGIN + 3600), []);
}

#[test]
fn a_damaged_state_is_counted() {
    let damaged = "kmt-watch 1\nlevel cache 1,x made\nlevel none 1 made\nreported cache 1\ntime x\nwhat\nlevel cache 1 made\n";
    assert_eq!(Watcher::default().restore(damaged, "a", 0), 5);
    for not_one in ["", "kmt-watch 2\n", "\u{0}"] {
        assert_eq!(Watcher::default().restore(not_one, "a", 0), 1);
    }
}

#[test]
fn a_gap_begins_again() {
    let mut watcher = Watcher::default();
    assert_eq!(grow(&mut watcher, BEGIN..BEGIN + 1500), []);
    let found = grow(&mut watcher, BEGIN + 1800..BEGIN + 1800 + 2000);
    assert!(matches!(found[..], [(time, _)] if time >= BEGIN + 1800 + 1800), "{found:?}");
}

#[test]
fn the_first_minutes_after_boot_are_not_judged() {
    let mut watcher = Watcher::default();
    for time in (0..2400).step_by(10) {
        assert_eq!(watcher.take(&sample(time, 10_000 + 8 * time as i64), |_| true), []);
        let judged = watcher.judged().next().unwrap();
        assert_eq!((judged.verdicts[1].1, judged.name), (Verdict::TooShort, "made"));
    }
}

#[test]
fn the_number_of_series_is_bounded() {
    let names: Vec<String> = (0..SERIES_MAX + 9).map(|number| format!("cache-{number}")).collect();
    let values = names.iter().map(|name| Value { kind: Kind::Cache, name, kib: 1, object_size: 8 }).collect();
    let mut watcher = Watcher::default();
    let sample = Sample { time: 5, memory_kib: 1 << 20, values };
    assert_eq!(watcher.take(&sample, |value| value.name != "cache-0"), []);
    assert_eq!(watcher.counts(), ((SERIES_MAX - SUMS) as u64, 8 + SUMS as u64));
    // A sum, and a load that others are compared with.
    let more = [Kind::Percpu, Kind::Anonymous].map(|kind| Value { kind, name: "", kib: 5, object_size: 0 });
    let values = more.into_iter().chain(sample.values.iter().copied()).collect();
    watcher.take(&Sample { time: 15, values, ..sample }, |_| true);
    assert!(watcher.judged().any(|judged| judged.kind == Kind::Percpu));
    assert!(watcher.history.of_kind(Kind::Anonymous).is_some());
}

/// Levels that a leak reached before a reboot are none to which memory returns.
#[test]
fn a_reboot_ends_a_leak_and_its_levels() {
    let text = "kmt-watch 1\nboot a\ntime 100\nlevel cache 100,6000000,- filp\nlevel cache 70,80 x\nreported cache 120 5000000 filp\n";
    let mut watcher = Watcher::default();
    assert_eq!(watcher.restore(text, "b", 200), 0);
    let state = watcher.state("b", 200);
    assert!(state.contains("level cache 100,120,- filp\nlevel cache 70,80 x\n"), "{state}");
    assert!(!state.contains("reported"), "{state}");
    let mut same = Watcher::default();
    assert_eq!(same.restore(text, "a", 200), 0);
    assert_eq!(same.state("a", 100), text.replace("time 100\n", "time 100\nopen 100\n"));
}

/// Samples of a cache at one level, from `times`.
fn stay(watcher: &mut Watcher, times: std::ops::Range<u64>, kib: i64) {
    for time in times.step_by(10) {
        assert_eq!(watcher.take(&sample(time, kib), |_| true), []);
    }
}

/// The levels of the cache in a state.
fn levels(watcher: &Watcher) -> String {
    let state = watcher.state("a", 0);
    let line = state.lines().find_map(|line| line.strip_prefix("level cache "));
    line.unwrap_or_default().to_owned()
}

/// A level of the 6 hours that are open is one that memory returns to, also where the watch was restarted in them.
#[test]
fn a_level_of_the_open_hours_survives_a_restart() {
    let mut before = Watcher::default();
    stay(&mut before, BEGIN..BEGIN + 2400, 90_000);
    let state = before.state("a", 1000);
    let mut watcher = Watcher::default();
    assert_eq!(watcher.restore(&state, "a", 1060), 0, "{state}");
    assert_eq!(grow(&mut watcher, BEGIN + 2460..BEGIN + 2460 + 2 * 3600), []);
}

/// Parts of the same 6 hours are one level, and 6 hours end at their time.
#[test]
fn open_hours_continue_over_restarts_and_gaps() {
    const HOUR: u64 = 3600;
    let mut watcher = Watcher::default();
    let mut time = BEGIN;
    for part in 1..=4 {
        stay(&mut watcher, time..time + HOUR, 1000 * part);
        let state = watcher.state("a", time + HOUR);
        time += HOUR + 600;
        watcher = Watcher::default();
        assert_eq!(watcher.restore(&state, "a", time), 0, "{state}");
    }
    assert_eq!(levels(&watcher), "4000 made");
    // 4 h 40 min are over. After 1 h 30 min the 6 hours have ended, and their level counts for each window.
    stay(&mut watcher, time..time + 5400, 500);
    assert_eq!(levels(&watcher), "4000,500 made");
    let series = &watcher.history.series()[0];
    for minutes in [5, 30, 240] {
        assert_eq!(watcher.history.level_before(series, minutes), Some(4000), "{minutes}");
    }
    // A gap of 13 hours: the hours that were open, and others without a sample.
    stay(&mut watcher, time + 5400 + 13 * HOUR..time + 5400 + 14 * HOUR, 700);
    assert_eq!(levels(&watcher), "4000,500,-,700 made");
}

/// Memory in no account that is negative grows as any other does.
#[test]
fn growth_below_zero_is_seen() {
    let mut watcher = Watcher::default();
    let found: Vec<Finding> = (BEGIN..BEGIN + 3600)
        .step_by(10)
        .flat_map(|time| {
            let kib = -200_000 + 8 * (time - BEGIN) as i64;
            let value = Value { kind: Kind::NoAccount, name: "", kib, object_size: 0 };
            watcher.take(&Sample { time, memory_kib: 8 << 20, values: vec![value] }, |_| true)
        })
        .collect();
    let first = found.first().unwrap();
    assert!(first.growth.begin_kib < 0 && (12_000..15_000).contains(&first.grown_kib), "{first:?}");
    let state = watcher.state("a", 0);
    let mut again = Watcher::default();
    assert_eq!(again.restore(&state, "a", 0), 0, "{state}");
    assert_eq!(again.state("a", 0), state);
}
