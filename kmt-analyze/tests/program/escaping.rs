//! Text from a file reaches terminals, tables and other programs harmless, wherever in the file it stands.

use std::fs;
use std::io::Read;
use std::path::Path;

use kmt_common::text::is_hostile;
use serde_json::Value;

use crate::support::files::{Scratch, data, reports, run, stderr};
use crate::support::poisoned::{HOSTILE, poison};
use crate::support::skip::{Lack, skip};

/// Reports beside those of [`reports`].
const MORE: [&[&str]; 15] = [
    &["info"],
    &["account"],
    &["reconcile"],
    &["verify"],
    &["who", "0xffff888003c00000"],
    &["who", "pfn=0x1c49a6"],
    &["pages", "--verbose"],
    &["summary", "--compat", "trace-cmd-mem"],
    &["summary", "--compat", "perf-kmem", "--slab", "--caller"],
    &["summary", "--compat", "perf-kmem", "--page", "--caller"],
    &["callers", "--comm", "nobody"],
    &["caches", "--where", "cache~nothing"],
    &["pages", "--where", "event=nothing"],
    &["timeline", "--by", "cache"],
    &["timeline", "--by", "call-site"],
];

fn assert_tame(text: &[u8], what: &dyn std::fmt::Debug) {
    let text = std::str::from_utf8(text).unwrap_or_else(|e| panic!("{what:?}: {e}"));
    for line in text.split('\n') {
        // trace-cmd's own layout has tabs.
        let found = line.chars().find(|&c| c != '\t' && is_hostile(c));
        assert!(found.is_none(), "{what:?}: {found:?} in {line:?}");
        assert!(!line.starts_with("INJECTED"), "{what:?}: a line break got through");
    }
}

fn poisoned(scratch: &Scratch, capture: &Path) -> std::path::PathBuf {
    poison(&scratch.convert(capture), &scratch.0.join("poisoned.kmt"))
}

fn captures() -> [std::path::PathBuf; 3] {
    let own = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    [data("x86_64-6.1"), own("x86_64-6.1-reclaim"), own("x86_64-6.18-stacks")]
}

#[test]
fn reports_do_not_pass_on_what_steers_a_terminal() {
    for capture in captures() {
        let scratch = Scratch::new();
        let file = poisoned(&scratch, &capture);
        for args in
            reports().into_iter().map(|report| vec![report]).chain(MORE.iter().map(|args| args.to_vec()))
        {
            let output = run(&args, &file);
            assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{args:?}: {output:?}");
            assert_tame(&output.stdout, &args);
            assert_tame(&output.stderr, &args);
        }
        for json in [&[][..], &["--json"]] {
            let diff = run(
                &[&["diff", "--all", "--time", "+0..+0.0005", "--against", "+0.0005..+1"], json].concat(),
                &file,
            );
            assert!(matches!(diff.status.code(), Some(0 | 3)), "{diff:?}");
            assert_tame(&diff.stdout, &"diff");
            assert_tame(&diff.stderr, &"diff");
        }
    }
}

#[test]
fn json_is_valid_and_tame() {
    for capture in captures() {
        let scratch = Scratch::new();
        let file = poisoned(&scratch, &capture);
        for args in
            reports().into_iter().map(|report| vec![report]).chain(MORE.iter().map(|args| args.to_vec()))
        {
            let mut args = args;
            args.push("--json");
            let output = run(&args, &file);
            if !matches!(output.status.code(), Some(0 | 3)) {
                continue;
            }
            assert_tame(&output.stdout, &args);
            let document: Value =
                serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}"));
            let clock = document.pointer("/clock/name").map(|name| name.as_str().unwrap_or_default());
            assert!(clock.is_none_or(|clock| clock == HOSTILE), "{args:?}: {clock:?}");
        }
        let output = run(&["dump", "--format", "jsonl"], &file);
        assert_tame(&output.stdout, &"jsonl");
        for line in output.stdout.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
            serde_json::from_slice::<Value>(line).unwrap();
        }
    }
}

/// Rows of RFC 4180.
fn rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => cell.extend(chars.next()),
            ('"', _) => quoted = !quoted,
            (',', false) => row.push(std::mem::take(&mut cell)),
            ('\r', false) => {}
            ('\n', false) => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            (c, _) => cell.push(c),
        }
    }
    assert!(!quoted && row.is_empty() && cell.is_empty());
    rows
}

#[test]
fn exports_are_what_they_are_called() {
    for capture in captures() {
        let scratch = Scratch::new();
        let file = poisoned(&scratch, &capture);
        let export = |args: &[&str]| {
            let out = scratch.0.join("out");
            let mut all = vec!["export"];
            all.extend(args);
            all.extend(["--force", "-o", out.to_str().unwrap()]);
            let output = run(&all, &file);
            assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{args:?}: {}", stderr(&output));
            assert_tame(&output.stderr, &args);
            let is_done = output.status.code() != Some(1);
            is_done.then(|| fs::read(&out).unwrap())
        };
        for of in ["events", "objects", "call-sites", "callers", "caches", "leaks", "tasks", "fragmentation"]
        {
            if let Some(csv) = export(&["csv", "--of", of]) {
                let csv = String::from_utf8(csv).unwrap().replace("\r\n", "\n");
                assert_tame(csv.as_bytes(), &of);
                let rows = rows(&csv);
                assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{of}");
            }
            for line in export(&["ndjson", "--of", of]).iter().flat_map(|t| t.split(|&b| b == b'\n')) {
                assert_tame(line, &of);
                assert!(line.is_empty() || serde_json::from_slice::<Value>(line).is_ok(), "{of}: {line:?}");
            }
        }
        if let Some(dhat) = export(&["dhat"]) {
            assert_tame(&dhat, &"dhat");
            serde_json::from_slice::<Value>(&dhat).unwrap();
        }
        if let Some(folded) = export(&["folded"]) {
            assert_tame(&folded, &"folded");
            let text = String::from_utf8(folded).unwrap();
            assert!(text.lines().all(|l| l.rsplit_once(' ').is_some_and(|(_, n)| n.parse::<u64>().is_ok())));
        }
        if let Some(pprof) = export(&["pprof"]) {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(pprof.as_slice()).read_to_end(&mut plain).unwrap();
            assert!(!holds(&plain, b"\x1b[31m"), "pprof");
        }
        for form in ["perfetto", "sqlite"] {
            let made = export(&[form, "--events"]);
            assert!(made.is_none_or(|made| !holds(&made, b"\x1b[31m")), "{form}");
        }
    }
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn files_made_of_a_file_tell_nothing_raw() {
    let scratch = Scratch::new();
    let file = poisoned(&scratch, &data("x86_64-6.1"));
    let out = scratch.0.join("out");
    for command in ["slice", "recover", "anonymize"] {
        let output = run(&[command, "--force", "-o", out.to_str().unwrap()], &file);
        assert_tame(&output.stderr, &command);
    }
    let output = run(&["slice", "--event", "none:none", "--force", "-o", out.to_str().unwrap()], &file);
    assert_eq!(output.status.code(), Some(1));
    assert_tame(&output.stderr, &"slice of no event");
}

#[test]
fn a_dump_on_a_terminal_is_tame_too() {
    if std::process::Command::new("script").arg("--version").output().is_err() {
        return skip(Lack::Program, "script (util-linux) is not installed");
    }
    for capture in captures() {
        let scratch = Scratch::new();
        let file = poisoned(&scratch, &capture);
        let command = format!("{} dump {}", env!("CARGO_BIN_EXE_kmt-analyze"), file.display());
        let output = std::process::Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n");
        assert!(text.lines().count() > 100, "{text}");
        assert_tame(text.as_bytes(), &"dump on a terminal");
    }
}

/// All characters that reorder text, and an escape.
const REORDERS: &str = "a\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}\u{1b}[31mb";

#[test]
fn words_of_the_command_line_are_harmless() {
    let option = format!("--{REORDERS}");
    for args in [
        &["callers", "--sort", REORDERS, "x.kmt"][..],
        &["callers", "--time", REORDERS, "x.kmt"],
        &["callers", "--where", REORDERS, "x.kmt"],
        &["callers", "--by", REORDERS, "x.kmt"],
        &["callers", "--limit", REORDERS, "x.kmt"],
        &["callers", "-l", REORDERS, "x.kmt"],
        &["leaks", &option, "x.kmt"],
        &["leaks", "x.kmt", REORDERS],
        &["completions", REORDERS],
        &[REORDERS],
        &[REORDERS, "--json", "--nonsense"],
    ] {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).args(args).output().unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{args:?}: {output:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
        assert_tame(&output.stderr, &args);
        assert_tame(&output.stdout, &args);
    }
}

/// A name selects the same in all outputs, as the kernel has it and as it is printed.
#[test]
fn names_of_tasks_select_events_and_objects_alike() {
    let scratch = Scratch::new();
    let file = poisoned(&scratch, &data("x86_64-6.1"));
    let rows = |args: &[&str]| {
        let output = run(&[&["export", "ndjson"], args].concat(), &file);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
        output.stdout.iter().filter(|&&byte| byte == b'\n').count()
    };
    // The kernel has 16 bytes for a name.
    let name = &HOSTILE[..16];
    let named = run(&["dump", "--json", "--where", &format!("comm={name}")], &file);
    let named = named.stdout.iter().filter(|&&byte| byte == b'\n').count();
    for of in ["events", "objects"] {
        let (all, selected) = (rows(&["--of", of]), rows(&["--of", of, "--comm", name]));
        assert!(selected > 0 && selected <= all, "{of}: {selected} of {all}");
        assert!(of == "objects" || selected == named, "{of}: {selected}, dump has {named}");
        let shown = kmt_common::text::escaped(name.as_bytes());
        assert_ne!(shown, name);
        assert_eq!(rows(&["--of", of, "--comm", &shown]), selected, "{of}: by the name that is shown");
    }
    let allocations = |name: &str| {
        let output = run(&["callers", "--json", "--where", &format!("comm={name}")], &file);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
        output.stdout
    };
    let same = [name.to_owned(), kmt_common::text::escaped(name.as_bytes())].map(|name| {
        let mut rows: serde_json::Value = serde_json::from_slice(&allocations(&name)).unwrap();
        rows.as_object_mut().unwrap().remove("selection");
        rows
    });
    assert!(same[0] == same[1] && same[0]["callers"].as_array().is_some_and(|rows| !rows.is_empty()));
}
