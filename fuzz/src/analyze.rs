//! The commands of kmt-analyze, in this process, on files that are made of any bytes.
//!
//! Bytes that begin as a file does are a file, whose checksums are made right. Of others the first two choose the command
//! and its options, and the rest is what a file is made of.

use kmt_analyze::failure::Outcome;
use kmt_analyze::in_process::{self, CommandResult};
use kmt_analyze::reports::REPORTS;

use super::lists::{EDITS, FILE, OTHERS, OUTPUTS, SELECTIONS, WITH_OPTIONS};
use super::{made, made_texts, repair};

/// Choices and the file.
pub fn input(data: &[u8]) -> Option<([u8; 2], Vec<u8>)> {
    if data.starts_with(b"KMT") || data.starts_with(b"\x89KMT") {
        let mut file = data.to_vec();
        repair::repair(&mut file);
        let crc = repair::crc32(data);
        return Some(([crc as u8, (crc >> 8) as u8], file));
    }
    let (choices, rest) = data.split_first_chunk::<2>()?;
    Some((*choices, made::file(rest)))
}

/// Reports, and other commands that print to standard output; exports are apart.
pub fn commands() -> Vec<&'static [&'static str]> {
    let alone = REPORTS.iter().filter(|entry| (entry.with_defaults)().is_some());
    let all = ["all"].iter().chain(alone.map(|entry| &entry.name)).map(std::slice::from_ref);
    all.chain(WITH_OPTIONS).chain(OTHERS).collect()
}

fn pick<'a>(lists: &[&'a [&'a str]], choice: u8) -> Vec<&'a str> {
    lists[usize::from(choice) % lists.len()].to_vec()
}

fn run_on(file: &[u8], args: &[&str]) -> CommandResult {
    let ran = in_process::run(args, &[(FILE, file)]);
    let is_usage = ran.ended.as_ref().is_err_and(|what| what.contains("Usage:"));
    // Regular expressions of an input may be too large for their parser, and a condition may not be for this report.
    assert!(
        !is_usage || args.contains(&"--where") || args.contains(&"--at") || args.contains(&"--time"),
        "{:?}",
        ran.ended
    );
    ran
}

/// Reports as text and as JSON.
pub fn reports(data: &[u8]) {
    let Some(([which, how], file)) = input(data) else { return };
    let list = commands();
    let mut args = pick(&list, which);
    if usize::from(which) % list.len() < list.len() - OTHERS.len() {
        args.extend(SELECTIONS[usize::from(how >> 1) % SELECTIONS.len()]);
    }
    if args[0] == "diff" && !args.contains(&"--against") {
        args.push(FILE);
    }
    if how & 1 == 1 && !args.contains(&"--follow") {
        args.push("--json");
    }
    args.push(FILE);
    let ran = run_on(&file, &args);
    let is_one = args.contains(&"--json") && !matches!(args[0], "dump");
    if is_one && ran.ended.is_ok() {
        assert!(serde_json::from_slice::<serde_json::Value>(&ran.written).is_ok(), "{args:?}: not JSON");
    }
}

/// Exports that are one stream, charts, the page. Nothing in them steers what shows them.
pub fn exports(data: &[u8]) {
    let Some(([which, how], file)) = input(data) else { return };
    let mut args = pick(&OUTPUTS, which);
    args.extend(SELECTIONS[usize::from(how) % SELECTIONS.len()]);
    args.extend([FILE, "-o", "-"]);
    let ran = run_on(&file, &args);
    let ends = match args[0] {
        _ if ran.ended.is_err() => return,
        "chart" => ("<svg ", "</svg>\n"),
        "report" => ("<!doctype html>\n", "</html>\n"),
        _ => return,
    };
    let text = std::str::from_utf8(&ran.written).expect("text");
    assert!(!text.chars().any(|c| c != '\n' && c.is_control()), "{args:?}: a control character");
    assert!(text.starts_with(ends.0) && text.ends_with(ends.1), "{args:?}");
    assert!(!text.contains("<b>"), "{args:?}: a name of the trace is markup");
}

/// Files made of files: what is made is sound.
pub fn edits(data: &[u8]) {
    let Some(([which, _], file)) = input(data) else { return };
    let mut args = pick(&EDITS, which);
    args.extend([FILE, "-o", "-"]);
    let ran = run_on(&file, &args);
    if ran.ended.is_ok() {
        let verified = run_on(&ran.written, &["verify", FILE]);
        assert!(matches!(verified.ended, Ok(Outcome::Done)), "{args:?}: {:?}", verified.ended);
    }
}

/// Any text as a condition, and what it selects of a file.
pub fn where_terms(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if !in_process::is_condition(text) {
        return;
    }
    static FILE_OF_ALL: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    let file = FILE_OF_ALL.get_or_init(|| {
        let bytes: Vec<u8> = (0..600u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8).collect();
        made::file(&bytes)
    });
    let report = ["callers", "pages", "lifetimes"][text.len() % 3];
    let _ = run_on(file, &[report, "--where", text, FILE]);
}

/// Any bytes as a snapshot of the kernel's counts, in a file beside some events.
pub fn snapshots(data: &[u8]) {
    let Some((&which, text)) = data.split_first() else { return };
    let (name, _) = made_texts::SNAPSHOTS[usize::from(which) % made_texts::SNAPSHOTS.len()];
    let file = made::with_file(name, text);
    for args in [&["all", FILE][..], &["baseline", FILE], &["info", FILE]] {
        let _ = run_on(&file, args);
    }
}
