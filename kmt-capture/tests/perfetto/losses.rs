//! Gaps, counters and several data sources.

use kmt_format::Loss;

use super::converted;
use super::encoder::{all, bundle, event, kfree, kmalloc, msg, num, packet};

const PTR: u64 = 0xffff_8880_0400_0040;

/// A gap of which the recorder knows: part of its data is missing.
fn missing() -> Loss {
    Loss::uncounted().and(Loss::damaged_input())
}

#[test]
fn lost_events_are_a_gap_before_the_bundle() {
    let bundles =
        [bundle(1, [kmalloc(10, PTR)]), bundle(1, [num(3, 1), kfree(20, PTR)]), bundle(2, [num(3, 1)])];
    let converted = converted(&all(bundles.map(|b| packet(2, [b]))));
    assert_eq!(converted.code, Some(3));
    assert_eq!(converted.losses, [(1, Some(10), Loss::uncounted()), (2, None, Loss::uncounted())]);
}

#[test]
fn a_bundle_that_is_missing_is_a_gap() {
    let of = |end, parts: Vec<Vec<u8>>| packet(2, [bundle(0, [num(10, end), all(parts)])]);
    let print = event(15, 1, 3, msg(2, "text"));
    // The end of a bundle is its last event, also one that is left out.
    let whole = [of(0, vec![kmalloc(10, PTR), print]), of(15, vec![kfree(20, PTR)]), of(20, vec![])];
    let whole = converted(&whole.concat());
    assert_eq!((whole.code, whole.losses.as_slice()), (Some(0), &[][..]), "{}", whole.stderr);
    let compact = msg(4, msg(1, [10, 7]));
    let whole = converted(&[of(0, vec![kmalloc(10, PTR), compact]), of(17, vec![kfree(20, PTR)])].concat());
    assert_eq!(whole.losses, [], "{}", whole.stderr);
    let torn = converted(&[of(0, vec![kmalloc(10, PTR)]), of(15, vec![kfree(20, PTR)])].concat());
    assert_eq!((torn.code, torn.losses.as_slice()), (Some(3), &[(0, Some(10), missing())][..]));
    // A trace that keeps the newest events begins later than its recording: that is not a gap in it.
    let late = converted(&of(5, vec![kmalloc(10, PTR)]));
    assert_eq!(late.code, Some(0), "{}", late.stderr);
    assert!(late.losses.iter().all(|(_, _, loss)| loss.overwritten && !loss.uncounted), "{:?}", late.losses);
}

#[test]
fn packets_that_were_dropped_are_gaps_on_all_cpus_of_their_sequence() {
    // The first packet of a sequence is marked as well.
    let of = |cpu, time, dropped| packet(2, [bundle(cpu, [kmalloc(time, PTR)]), num(42, dropped)]);
    let trace = [of(0, 10, 1), of(1, 11, 0), of(0, 20, 1), of(1, 21, 0), of(0, 30, 0)];
    let converted = converted(&trace.concat());
    assert_eq!(converted.losses, [(0, Some(10), missing()), (1, Some(11), missing())]);
    // Another sequence has lost nothing, and the ends of bundles tell it of each CPU.
    let precise = |cpu, time, end, dropped| {
        packet(2, [bundle(cpu, [num(10, end), kmalloc(time, PTR)]), num(42, dropped)])
    };
    let trace = [precise(0, 10, 0, 1), precise(1, 11, 0, 0), precise(0, 20, 10, 1), precise(1, 21, 15, 0)];
    assert_eq!(super::converted(&trace.concat()).losses, [(1, Some(11), missing())]);
    let other = [of(0, 10, 1), packet(3, [num(42, 1)]), packet(3, [num(42, 1)]), of(0, 20, 0)];
    assert_eq!(super::converted(&other.concat()).losses, []);
}

#[test]
fn errors_of_the_recorder_are_damage() {
    let error = msg(8, all([num(1, 12), num(2, 5)]));
    let converted = converted(&all(
        [bundle(0, [kmalloc(10, PTR)]), bundle(0, [error, kfree(20, PTR)])].map(|b| packet(2, [b]))
    ));
    assert_eq!(
        (converted.code, converted.losses.as_slice()),
        (Some(3), &[(0, Some(10), Loss::damaged_input())][..])
    );
}

#[test]
fn counters_are_differences_and_shared_by_sources() {
    let cpu = |cpu, overrun, dropped| msg(2, all([num(1, cpu), num(3, overrun), num(4, 0), num(8, dropped)]));
    let stats =
        |sequence, phase, rows: Vec<Vec<u8>>| packet(sequence, [msg(34, all([num(1, phase), all(rows)]))]);
    let trace = [
        stats(2, 1, vec![cpu(0, 100, 1), cpu(1, 7, 0)]),
        stats(3, 1, vec![cpu(0, 120, 1), cpu(1, 7, 0)]),
        packet(2, [bundle(0, [kmalloc(10, PTR)])]),
        stats(3, 2, vec![cpu(0, 130, 3), cpu(1, 7, 0)]),
        stats(2, 2, vec![cpu(0, 130, 3), cpu(1, 7, 0)]),
    ];
    let converted = converted(&trace.concat());
    assert_eq!(
        (converted.code, converted.counters.as_slice()),
        (Some(3), &[(0, Some(32)), (1, Some(0))][..])
    );
    assert!(converted.stderr.contains("32 counted in the kernel's stats"), "{}", converted.stderr);
}

#[test]
fn copies_of_other_data_sources_are_left_out() {
    let of = |sequence, parts: Vec<Vec<u8>>| packet(sequence, [bundle(0, [all(parts)])]);
    let trace = [
        of(2, vec![kmalloc(10, PTR), kfree(20, PTR)]),
        of(3, vec![kmalloc(10, PTR), kmalloc(15, PTR + 64), kfree(20, PTR)]),
        of(2, vec![kfree(30, PTR), kfree(30, PTR)]),
    ];
    let converted = converted(&trace.concat());
    let times: Vec<&str> = converted.lines.iter().map(|line| line.split(' ').nth(2).unwrap()).collect();
    assert_eq!(
        (converted.code, times),
        (Some(0), vec!["10:", "15:", "20:", "30:", "30:"]),
        "{}",
        converted.stderr
    );
    assert!(converted.stderr.contains("2 events recorded by several data sources"), "{}", converted.stderr);
}

#[test]
fn events_of_other_machines_are_left_out() {
    let trace =
        [packet(2, [bundle(0, [kmalloc(10, PTR)])]), packet(2, [bundle(0, [kmalloc(5, PTR)]), num(98, 7)])];
    let converted = converted(&trace.concat());
    assert_eq!(converted.lines.len(), 1);
    assert!(converted.stderr.contains("1 part with events of another machine"), "{}", converted.stderr);
}
