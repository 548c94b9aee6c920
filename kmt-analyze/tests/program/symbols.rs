//! Files with the symbols that their events need, against files with all symbols.
//!
//! With KMT_CAPTURES=DIR also of every capture in that directory.

use std::path::{Path, PathBuf};

use kmt_capture::convert::{Limits, Options, convert};
use kmt_capture::record::Symbols;
use kmt_format::Compression;

use crate::support::files::{Scratch, data, run};

/// Every report that prints names of functions.
const REPORTS: [&[&str]; 14] = [
    &["dump"],
    &["dump", "--format", "jsonl"],
    &["summary", "--json"],
    &["callers", "--json"],
    &["lifetimes", "--json"],
    &["pages", "--json"],
    &["leaks", "--json"],
    &["latency", "--json"],
    &["crosscpu", "--json"],
    &["anomalies", "--json"],
    &["callgraph", "--json"],
    &["fragmentation", "--json"],
    &["peak", "--json"],
    &["account"],
];

fn converted(input: &Path, scratch: &Scratch, symbols: Symbols, verbatim: bool) -> PathBuf {
    // One name: reports print it.
    let folder = scratch.0.join(format!("{symbols:?}-{verbatim}"));
    std::fs::create_dir_all(&folder).unwrap();
    let output = folder.join("file.kmt");
    let options = Options {
        input: input.to_owned(),
        output: output.clone(),
        force: true,
        compression: Compression::None,
        symbols,
        verbatim,
        quiet: true,
        instance: None,
        boot: None,
        survivors: None,
        limits: Limits::default(),
    };
    convert(&options).unwrap();
    output
}

fn check(input: &Path) {
    let scratch = Scratch::new();
    let name = input.display();
    let all = converted(input, &scratch, Symbols::All, false);
    let used = converted(input, &scratch, Symbols::Used, false);
    let verbatim = converted(input, &scratch, Symbols::Used, true);
    let none = converted(input, &scratch, Symbols::None, false);
    let len = |file: &Path| std::fs::metadata(file).unwrap().len();
    assert!(len(&none) < len(&used).min(len(&all)), "{name}: {} and {} bytes", len(&used), len(&all));
    let neutral = |report: &[&str], file: &Path| {
        let output = run(report, file);
        let folder = file.parent().unwrap().display().to_string();
        String::from_utf8_lossy(&output.stdout).replace(&folder, "")
    };
    let mut different = 0;
    for report in REPORTS {
        let expected = neutral(report, &all);
        assert!(neutral(report, &used) == expected, "{report:?} of {name}");
        assert!(neutral(report, &verbatim) == expected, "{report:?} of {name}, verbatim");
        different += usize::from(neutral(report, &none) != expected);
    }
    assert!(different > 4, "{name}: {different} reports print names");
}

#[test]
fn used_symbols_are_enough_for_every_report() {
    for name in ["x86_64-6.1", "armhf-6.1", "s390x-6.1"] {
        check(&data(name));
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in ["x86_64-6.1-reclaim", "x86_64-6.18-stacks"] {
        check(&own.join(name));
    }
    let Some(more) = std::env::var_os("KMT_CAPTURES") else { return };
    for entry in std::fs::read_dir(more).unwrap().map(|e| e.unwrap().path()).filter(|e| e.is_dir()) {
        check(&entry);
    }
}
