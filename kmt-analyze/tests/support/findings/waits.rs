//! Waits against the times of their begin and end events.

use super::Case;

/// Shortest time of all waits together that is a finding.
const LEAST: u64 = 10_000_000;

pub fn check(case: &Case<'_>) {
    let (name, waited) = (&case.name, &case.seen.waited);
    let total: u64 = waited.values().map(|(time, _)| time).sum();
    let Some(found) = case.one("wait", total >= LEAST) else { return };
    assert_eq!(found["time"], total, "{name}");
    let (longest, (time, _)) = waited.iter().max_by_key(|(_, (time, _))| *time).unwrap();
    let (first, last) = case.seen.span.unwrap();
    case.has_share(found, *time, last - first);
    let sentence = found["sentence"].as_str().unwrap();
    assert!(sentence.contains(&format!("-{longest} ")), "{name}: {longest}: {sentence}");
    let worst = waited.values().map(|(_, worst)| *worst).max().unwrap();
    // Of a task that waited once the total is the worst.
    if let Some((_, text)) = sentence.split_once("the worst wait was ") {
        let (number, unit) = text.trim_end_matches('.').split_once(' ').unwrap();
        let unit = if unit == "s" { 1_000_000_000 } else { 1_000_000 };
        let found = number.parse::<f64>().unwrap() * f64::from(unit);
        assert!((found / worst as f64 - 1.0).abs() < 0.006, "{name}: {worst}: {sentence}");
    }
}
