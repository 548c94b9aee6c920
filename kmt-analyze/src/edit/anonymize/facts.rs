//! Allow-list of metadata keys, with the form that each value must have.
//!
//! Each key of the allow-list has a form: a number, a word of a list, or words of the kernel. A value with any other
//! text is removed and counted for the manifest, because metadata may have host names, paths and command lines. Times,
//! addresses and task ids in values are replaced by `Masks`.

use std::fmt::Write as _;

use kmt_common::survivors::{LEARNED_KEY, NO_MAP};
use kmt_format::kernel::{KernelVersion, TraceClock};
use kmt_format::read::{EarlyEnd, Metadata};

use super::allowed;
use super::record::Masks;

/// Machines that Linux runs on, by their names in uname.
const MACHINES: [&str; 24] = [
    "x86_64",
    "i386",
    "i486",
    "i586",
    "i686",
    "aarch64",
    "aarch64_be",
    "armv5tel",
    "armv6l",
    "armv7l",
    "armv7b",
    "armv8l",
    "s390x",
    "ppc",
    "ppc64",
    "ppc64le",
    "riscv32",
    "riscv64",
    "mips",
    "mips64",
    "loongarch64",
    "sparc64",
    "alpha",
    "parisc64",
];
/// The kernel's clocks (kernel/trace/trace.c and asm/trace_clock.h, 4.4 to 6.12).
const CLOCKS: [&str; 11] =
    ["local", "global", "counter", "uptime", "perf", "mono", "mono_raw", "boot", "tai", "x86-tsc", "ppc-tb"];
/// Tracer options that affect the format and contents of lines.
const OPTIONS: [&str; 12] = [
    "print-parent",
    "sym-offset",
    "sym-addr",
    "context-info",
    "irq-info",
    "record-cmd",
    "record-tgid",
    "overwrite",
    "latency-format",
    "stacktrace",
    "function-trace",
    "hash-ptr",
];

/// The pairs that stay, and the number of removed ones.
pub fn pairs(metadata: &Metadata<'_>, masks: &Masks) -> (Vec<(String, String)>, usize) {
    let mut out = vec![
        ("writer".to_owned(), format!("kmt-analyze {}", env!("CARGO_PKG_VERSION"))),
        ("anonymized".to_owned(), "yes".to_owned()),
    ];
    let mut dropped = 0;
    for (key, value) in &metadata.pairs {
        let text = std::str::from_utf8(value).ok();
        match text.and_then(|text| pair(key, text, masks)).filter(|value| !value.is_empty()) {
            Some(value) => out.push((key.clone().into_owned(), value)),
            None if key == "writer" || key == EarlyEnd::KEY => {}
            None => dropped += 1,
        }
    }
    if !out.iter().any(|(key, _)| key == "kernel.release") {
        let release = metadata.text("uname").and_then(|text| text.split_ascii_whitespace().nth(2));
        out.extend(release.and_then(release_of).map(|release| ("kernel.release".to_owned(), release)));
    }
    (out, dropped)
}

/// Value of [`LEARNED_KEY`] with the new base of the direct map, and the votes for the old one.
pub fn direct_map(metadata: &Metadata<'_>, base: Option<u64>) -> String {
    let Some(base) = base else { return NO_MAP.to_owned() };
    let learned = metadata.text(LEARNED_KEY).filter(|_| metadata.text("kernel.direct_map").is_none());
    let votes = learned.and_then(|text| text.split_once(' ')).map(|(_, votes)| votes);
    let votes = votes.filter(|votes| votes.split(' ').all(is_number) && votes.split(' ').count() == 2);
    format!("{base:#x} {}", votes.unwrap_or("0 0"))
}

/// The clock, if it is one of the kernel's.
pub fn clock(clock: &TraceClock) -> TraceClock {
    let is_allowed = CLOCKS.contains(&clock.name.as_str()) || clock.name == "s390-tod";
    let mut clock = clock.clone();
    if !is_allowed {
        clock.name.clear();
    }
    clock
}

fn pair(key: &str, text: &str, masks: &Masks) -> Option<String> {
    let text = text.trim_end();
    let when = |good: bool| good.then(|| text.to_owned());
    match key {
        "source" => when(is_source(text)),
        "kernel.release" => release_of(text),
        "kernel.machine" => when(MACHINES.contains(&text)),
        "page_size.source" => when(text == "sysconf"),
        "pointers" => when(matches!(text, "real" | "hashed")),
        "slice" => Some("yes".to_owned()),
        "constants" => Some(words(text, is_constant)),
        "recorder.pid" => Some(masks.pid(text.parse().ok()?).to_string()),
        "sub_buffer_size"
        | "input.overwritten"
        | "record.buffers_kb"
        | "recorder.cpu_ns"
        | "events_at_zero"
        | "recorder.events"
        | "recorder.filtered_events"
        | "recorder.length_ns"
        | "recorder.rss_peak_kib"
        | "recorder.buffer_needed"
        | "recorder.snapshots_ns"
        | "recorder.probe_missed"
        | "tracefs/tracing_thresh"
        | "perf/corrupt_chains" => when(is_number(text)),
        "cpus.possible" | "cpus.present" | "cpus.online" => when(is_list(text)),
        "tracefs/current_tracer" => when(matches!(text, "nop" | "function" | "function_graph")),
        "tracefs/timestamp_mode" => Some(words(text, |word| matches!(word, "delta" | "absolute"))),
        "tracefs/trace_clock" => Some(words(text, |word| CLOCKS.contains(&word) || word == "s390-tod")),
        "tracefs/trace_options" => Some(words(text, is_option)),
        "record.survivors" => Some(words(text, is_survivor_option)),
        "perf/sampled" => Some(lines(text, |line| sampled(line, None))),
        "perf/sampled_sites" => Some(lines(text, |line| sampled(line, Some(masks)))),
        _ => {
            let node = key.strip_prefix("node").and_then(|k| k.strip_suffix(".cpus"));
            when(node.is_some_and(is_number) && is_list(text))
        }
    }
}

/// `threshold_ns=`, `interval_ns=` or `memory=` with a number.
fn is_survivor_option(word: &str) -> bool {
    let names = ["threshold_ns", "interval_ns", "memory"];
    word.split_once('=').is_some_and(|(name, value)| names.contains(&name) && is_number(value))
}

/// `X.Y.Z` of a release.
fn release_of(text: &str) -> Option<String> {
    KernelVersion::parse(text)?;
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let numbers: Vec<&str> = text.get(..end)?.split('.').filter(|n| !n.is_empty()).take(3).collect();
    Some(numbers.join("."))
}

fn is_source(text: &str) -> bool {
    let version = text.strip_prefix("trace.dat version ");
    matches!(text, "live" | "tracefs directory" | "perf.data" | "ftrace text")
        || version.is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 20 && text.bytes().all(|b| b.is_ascii_digit())
}

/// True for a list of CPUs.
fn is_list(text: &str) -> bool {
    text.len() <= 4096 && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b',' | b'-'))
}

fn is_option(word: &str) -> bool {
    let on = word.strip_prefix("no").unwrap_or(word);
    OPTIONS.contains(&word) || OPTIONS.contains(&on)
}

/// Words of a text for which `is_allowed` is true, with brackets.
fn words(text: &str, is_allowed: impl Fn(&str) -> bool) -> String {
    let allowed = text.split_ascii_whitespace().filter(|w| is_allowed(w.trim_matches(['[', ']'])));
    allowed.collect::<Vec<_>>().join(" ")
}

/// True for a name of the kernel with its number.
fn is_constant(pair: &str) -> bool {
    pair.split_once('=')
        .is_some_and(|(name, value)| allowed::has_format_word(name) && value.parse::<i64>().is_ok())
}

fn lines(text: &str, change: impl Fn(&str) -> Option<String>) -> String {
    text.lines().filter_map(change).collect::<Vec<_>>().join("\n")
}

/// A line on the samples of perf: an event, then a call site if `masks` are given, then numbers.
fn sampled(line: &str, masks: Option<&Masks>) -> Option<String> {
    let mut words = line.split(' ');
    let event = words.next()?;
    let (system, name) = event.split_once(':')?;
    let mut out = allowed::has_event(system, name).then(|| event.to_owned())?;
    if let Some(masks) = masks {
        let site = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        write!(out, " {:#x}", masks.site(site)).ok()?;
    }
    for word in words {
        if !word.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            return None;
        }
        out.push(' ');
        out.push_str(word);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_cut() {
        for (text, cut) in [
            ("6.1.0-50-amd64", "6.1.0"),
            ("6.12.107+deb13-amd64", "6.12.107"),
            ("5.10-acme", "5.10"),
            ("6.6.1.2.3", "6.6.1"),
        ] {
            assert_eq!(release_of(text).as_deref(), Some(cut));
        }
        assert_eq!(release_of("acme"), None);
    }

    #[test]
    fn only_known_words_stay() {
        assert_eq!(words("[local] global acme", |w| CLOCKS.contains(&w)), "[local] global");
        assert_eq!(words("noirq-info acme record-tgid", is_option), "noirq-info record-tgid");
        assert!(is_source("trace.dat version 7") && !is_source("trace.dat of acme"));
    }
}
