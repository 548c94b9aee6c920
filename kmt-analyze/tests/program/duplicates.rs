//! Second events of large kmallocs: the library finds those that the ledger counts once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kmt_format::read::{DuplicateKmallocs, Trace};
use kmt_format::schema::Role;

use crate::support::files::{Scratch, at, data, json};

/// Hits of the library and those of the ledger; and bytes by call site, with each second event taken back, against `callers`.
fn check(file: &Path) -> u64 {
    let bytes = fs::read(file).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let mut duplicates = DuplicateKmallocs::new(&trace);
    let mut by_site: BTreeMap<u64, u64> = BTreeMap::new();
    let mut hits = 0;
    for event in trace.events().unwrap() {
        let first = duplicates.see(&event, event.uint_with(Role::CALL_SITE)).flatten();
        hits += u64::from(first.is_some());
        if event.meaning().is_slab_alloc() && event.uint_with(Role::PTR) != Some(0) {
            let size = event.uint_with(Role::BYTES_ALLOC).unwrap();
            first.into_iter().for_each(|first| *by_site.get_mut(&first).unwrap() -= size);
            *by_site.entry(event.uint_with(Role::CALL_SITE).unwrap()).or_default() += size;
        }
    }
    let summary = json(&["summary", "--json"], file);
    assert_eq!(at(&summary, "/slab/double_reports").as_u64(), Some(hits), "{}", file.display());
    let mut reported: BTreeMap<u64, u64> = BTreeMap::new();
    for row in at(&json(&["callers", "--json", "-l", "1000000"], file), "/callers").as_array().unwrap() {
        let site = at(row, "/call_site").as_str().unwrap().trim_start_matches("0x");
        *reported.entry(u64::from_str_radix(site, 16).unwrap()).or_default() +=
            at(row, "/bytes_alloc").as_u64().unwrap();
    }
    let allocated =
        |sums: BTreeMap<u64, u64>| sums.into_iter().filter(|(_, sum)| *sum > 0).collect::<Vec<_>>();
    assert_eq!(allocated(by_site), allocated(reported), "{}", file.display());
    hits
}

#[test]
fn the_librarys_duplicates_are_those_of_the_ledger() {
    let scratch = Scratch::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let captures = ["x86_64-6.1", "x86_64-6.12", "s390x-6.1", "armhf-6.1"].map(data);
    for capture in
        captures.into_iter().chain(["x86_64-6.18-stacks", "x86_64-6.1-reclaim"].map(|c| own.join(c)))
    {
        check(&scratch.convert(&capture));
    }
    assert_eq!(check(&scratch.convert(&data("duplicate-kmallocs.txt"))), 9);
    let Some(more) = std::env::var_os("KMT_CAPTURES") else { return };
    for capture in fs::read_dir(more).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
    {
        check(&scratch.convert(&capture));
    }
}
