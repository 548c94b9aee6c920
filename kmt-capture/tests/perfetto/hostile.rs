//! Traces that would take all memory, or whose work would be a product of two counts.

#[path = "../support/bounded.rs"]
mod bounded;

use std::fs;

use bounded::{bounded, bounded_by};

use super::encoder::{all, bundle, event, kmalloc, msg, num, packet};
use super::{Converted, Folder, read};

const PTR: u64 = 0xffff_8880_0400_0040;

/// Converts a trace within the bounds on time and memory.
fn converted(trace: &[u8], options: &[&str]) -> Converted {
    let folder = Folder::new();
    let (input, output) = (folder.0.join("trace"), folder.0.join("out.kmt"));
    fs::write(&input, trace).unwrap();
    let ran = bounded(&input, &output, options);
    read(ran.status.code(), String::from_utf8(ran.stderr).unwrap(), fs::read(&output).ok())
}

#[test]
fn damages_and_drops_with_many_cpus_and_sequences() {
    const CPUS: u64 = 8000;
    let mut trace = all((0..CPUS).map(|cpu| packet(cpu % 200, [bundle(cpu, [kmalloc(10 + cpu, PTR)])])));
    for _ in 0..50_000 {
        // An error, and a drop.
        trace.extend(b"\x0a\x03\x92\x03\x00");
        trace.extend(b"\x0a\x05\x50\x05\xd0\x02\x01");
    }
    let converted = converted(&trace, &[]);
    assert_eq!((converted.code, converted.lines.len()), (Some(3), CPUS as usize), "{}", converted.stderr);
    assert!(converted.losses.len() >= CPUS as usize);
}

#[test]
fn one_time_of_two_sources() {
    let bundles = |sequence| packet(sequence, [bundle(0, (0..100).map(|_| kmalloc(7, PTR)))]);
    let trace = all((0..1000).map(|at| bundles(2 + at % 2)));
    let converted = converted(&trace, &[]);
    assert_eq!(converted.lines.len(), 50_000, "{}", converted.stderr);
    assert!(
        converted.stderr.contains("50,000 events recorded by several data sources"),
        "{}",
        converted.stderr
    );
}

#[test]
fn a_source_that_ends_last_does_not_hold_all_events() {
    // The second source has its only other event at the end.
    let of =
        |sequence, times: std::ops::Range<u64>| packet(sequence, [bundle(0, times.map(|t| kmalloc(t, PTR)))]);
    let mut trace = of(3, 0..1);
    trace.extend(all((0..1000).map(|at| of(2, at * 100..at * 100 + 100))));
    trace.extend(of(3, 900_000..900_001));
    let converted = converted(&trace, &["--limit", "waiting=1M"]);
    assert_eq!(converted.lines.len(), 100_001, "{}", converted.stderr);
    assert!(converted.stderr.contains("--limit waiting=SIZE sorts more"), "{}", converted.stderr);
}

#[test]
fn descriptors_that_change_in_each_bundle() {
    let field = |name: &str| msg(2, all([msg(1, name), num(3, 1), num(5, 4)]));
    let descriptor = |at: u64| {
        let many = all((0..500).map(|number| field(&format!("f{number}"))));
        msg(11, all([num(1, 65_536), msg(2, all([msg(1, format!("event{at}")), many])), msg(3, "x")]))
    };
    let trace =
        all((0..2000).map(|at| packet(2, [bundle(0, [event(at, 1, 65_536, num(1, 5)), descriptor(at)])])));
    let converted = converted(&trace, &["--limit", "layouts=1000"]);
    assert_eq!((converted.code, converted.lines.len()), (Some(3), 1000), "{}", converted.stderr);
    assert!(
        converted.stderr.contains("1000 events have a layout beyond the first 1000"),
        "{}",
        converted.stderr
    );
}

#[test]
fn a_compressed_packet_with_many_tasks() {
    use std::io::Write as _;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    let task = |pid: u64| msg(2, msg(1, all([num(1, pid), num(2, 1), msg(3, "/bin/x")])));
    for at in 0..27_000 {
        let pids = at * 10..at * 10 + 10;
        encoder.write_all(&packet(1, pids.map(task))).unwrap();
    }
    let bomb = msg(1, msg(50, encoder.finish().unwrap()));
    let trace = [packet(2, [bundle(0, [kmalloc(1, PTR)])]), bomb].concat();
    let folder = Folder::new();
    let (input, output) = (folder.0.join("trace"), folder.0.join("out.kmt"));
    fs::write(&input, &trace).unwrap();
    let ran = bounded_by(512 << 10, &input, &output, &[]);
    let converted = read(ran.status.code(), String::from_utf8(ran.stderr).unwrap(), fs::read(&output).ok());
    assert_eq!(converted.lines.len(), 1, "{}", converted.stderr);
    assert!(converted.stderr.contains("--limit "), "{}", converted.stderr);
}
