//! Waste against the sums over all lives of kmalloc, without those of the recorder.

use std::collections::HashMap;

use super::{Case, grouped, percent};
use kmt_format::read::Trace;

pub fn check(case: &Case<'_>) {
    let name = &case.name;
    let bytes = std::fs::read(case.file).unwrap();
    let recorder =
        Trace::open(&bytes).unwrap().metadata().text("recorder.pid").and_then(|pid| pid.parse().ok());
    let mut by_function: HashMap<&str, (u64, u64)> = HashMap::new();
    for ((site, _), lives) in case.ledger.lives.iter().filter(|((_, is_kmalloc), _)| *is_kmalloc) {
        let sum = by_function.entry(&case.seen.functions[site]).or_default();
        let others = lives.iter().filter(|life| Some(life.pid) != recorder);
        *sum = others.fold(*sum, |sum, life| (sum.0 + life.bytes, sum.1 + life.bytes_req));
    }
    let (alloc, req) = by_function.values().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    let wasted = alloc - req;
    let Some(found) = case.one("waste", wasted >= 64 << 10 && wasted * 10 >= alloc) else { return };
    assert_eq!(found["bytes"], wasted, "{name}");
    case.has_share(found, wasted, alloc);
    let sentence = found["sentence"].as_str().unwrap();
    let (share, who) =
        sentence.trim_end_matches('.').rsplit_once(", ").unwrap().1.split_once(" of that by ").unwrap();
    let (alloc_of, req_of) = by_function[who];
    assert!(percent(share, alloc_of - req_of, wasted), "{name}: {alloc_of} - {req_of}: {sentence}");
    let most = by_function.values().map(|(alloc, req)| alloc - req).max().unwrap();
    assert_eq!(alloc_of - req_of, most, "{name}: {sentence}");
    let sizes = format!(" {} bytes of {} bytes (", grouped(wasted), grouped(alloc));
    assert!(case.screen.contains(&sizes), "{name}: {sizes}: {}", case.screen);
}
