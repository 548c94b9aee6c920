//! Growth against the kernel's own count of the objects of each cache, where the file has it.

use super::Case;
use super::growth::Judged;
use kmt_format::read::Trace;

/// The objects of a growth finding exist: the kernel counts at least as many objects in the cache at the end.
pub fn check(case: &Case<'_>, family: &[&Judged<'_>]) {
    let bytes = std::fs::read(case.file).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let Some(text) = trace.metadata().attachment("slabinfo.after") else { return };
    let text = String::from_utf8_lossy(text);
    for judged in family {
        let cache = judged.row["cache"].as_str().unwrap();
        // Caches that share their slabs with others have the name of one of them.
        if let Some(active) = active(&text, cache) {
            assert!(judged.evidence.survivors <= active, "{}: {active} active: {}", case.name, judged.row);
        }
    }
}

/// Objects in use of a cache, or of all caches of a kmalloc size.
fn active(text: &str, cache: &str) -> Option<u64> {
    let is_same = |name: &str| {
        let size = |name: &str| Some(name.strip_prefix("kmalloc-")?.rsplit('-').next()?.to_owned());
        name == cache || size(name).is_some_and(|of| Some(of) == size(cache))
    };
    let lines = text.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<&str>>());
    let same = lines.filter(|words| words.first().is_some_and(|name| is_same(name)));
    same.map(|words| words[1].parse::<u64>().unwrap()).reduce(|sum, more| sum + more)
}
