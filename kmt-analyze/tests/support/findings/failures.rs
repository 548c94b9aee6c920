//! Failed allocations against the events without an address.

use super::Case;

pub fn check(case: &Case<'_>) {
    pages(case);
    let failed = case.seen.slab_failures;
    let all = case.ledger.numbers.get("slab.alloc_events").copied().unwrap_or(0) + failed;
    let Some(found) = case.one("slab_failures", failed >= 10 && failed * 1_000 >= all) else { return };
    assert_eq!(found["events"], failed, "{}", case.name);
    case.has_share(found, failed, all);
}

/// Failures that callers announce, by __GFP_NOWARN or __GFP_NORETRY, count where they are many.
fn pages(case: &Case<'_>) {
    let is_announced = |flags: &str| flags.contains("__GFP_NOWARN") || flags.contains("__GFP_NORETRY");
    let (mut failed, mut all, mut unexpected) = (0, 0, 0);
    for (flags, of) in &case.seen.pages {
        (failed, all) = (failed + of.0, all + of.1);
        unexpected += if is_announced(flags) { 0 } else { of.0 };
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
