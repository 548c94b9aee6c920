//! Failed allocations against the events without an address.

use super::Case;
use kmt_format::read::Trace;

pub fn check(case: &Case<'_>) {
    pages(case);
    let failed = case.seen.slab_failures;
    let all = case.ledger.numbers.get("slab.alloc_events").copied().unwrap_or(0) + failed;
    let Some(found) = case.one("slab_failures", failed >= 10 && failed * 1_000 >= all) else { return };
    assert_eq!(found["events"], failed, "{}", case.name);
    case.has_share(found, failed, all);
}

/// Threads of the recorder, whose failures are left out.
fn recorder(case: &Case<'_>) -> Vec<i64> {
    let bytes = std::fs::read(case.file).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let pid = trace.metadata().text("recorder.pid").and_then(|pid| pid.parse::<i64>().ok());
    let tasks = trace.metadata().tasks.iter();
    let threads = tasks.filter(|task| Some(i64::from(task.tgid)) == pid).map(|task| i64::from(task.pid));
    threads.chain(pid).collect()
}

/// Failures that callers announce, by __GFP_NOWARN or __GFP_NORETRY, count where they are many.
fn pages(case: &Case<'_>) {
    // From 6.8 on, GFP_NOWAIT has __GFP_NOWARN, bit 13 of all kernels since 5.3.
    let is_announced = |(flags, bits): (&str, u64)| {
        let is_nowait = flags.contains("GFP_NOWAIT") && bits & 0x2000 != 0;
        is_nowait || flags.contains("__GFP_NOWARN") || flags.contains("__GFP_NORETRY")
    };
    let recorder = recorder(case);
    let (mut failed, mut all, mut unexpected) = (0, 0, 0);
    for ((flags, bits, pid), of) in &case.seen.pages {
        let of = if recorder.contains(pid) { (0, of.1 - of.0) } else { *of };
        (failed, all) = (failed + of.0, all + of.1);
        unexpected += if is_announced((flags, *bits)) { 0 } else { of.0 };
    }
    let is_met = failed > 0 && (unexpected > 0 || failed * 100 >= all);
    let Some(found) = case.one("page_failures", is_met) else { return };
    assert_eq!(found["events"], failed, "{}", case.name);
    case.has_share(found, failed, all);
    let sentence = found["sentence"].as_str().unwrap();
    let words = match unexpected {
        0 => "all callers expected that",
        number if number == failed => "no caller announced",
        _ => "of these callers did not expect it",
    };
    assert!(sentence.contains(words), "{}: {unexpected}: {sentence}", case.name);
}
