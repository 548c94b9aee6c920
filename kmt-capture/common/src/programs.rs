//! Commands of the two programs: each names the other one where a command is of that.

use std::ffi::OsString;

use crate::shell;

/// Commands of kmt-capture.
pub const OF_CAPTURE: [&str; 9] =
    ["arm", "check", "clean", "collect", "convert", "record", "remote", "snippet", "watch"];

/// Commands of kmt-analyze.
pub const OF_ANALYZE: [&str; 44] = [
    "account",
    "all",
    "allocinfo",
    "anomalies",
    "anonymize",
    "balance",
    "baseline",
    "boot",
    "caches",
    "callers",
    "callgraph",
    "chart",
    "crosscpu",
    "diff",
    "dump",
    "events",
    "export",
    "findings",
    "footprint",
    "fragmentation",
    "info",
    "latency",
    "leaks",
    "lifetimes",
    "memory",
    "pages",
    "peak",
    "percpu",
    "reconcile",
    "recover",
    "report",
    "sizes",
    "slabinfo",
    "slice",
    "summary",
    "symbolize",
    "tasks",
    "temporary",
    "timeline",
    "verify",
    "vmalloc",
    "waste",
    "what-if",
    "who",
];

/// The command line of a program, as a shell reads it.
pub fn line(program: &str, words: impl IntoIterator<Item = OsString>) -> String {
    let words = words.into_iter().map(|word| shell::word(word.as_encoded_bytes()));
    std::iter::once(program.to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
