//! Files made of files: slices, recovered ones, anonymous ones.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files::{Scratch, at, data, json, reports, run, stderr, stdout};
use kmt_format::Limits;
use kmt_format::edit::{Rewrite, RewriteOptions};
use kmt_format::raw::ChunkKind;
use kmt_format::read::Trace;
use serde_json::Value;

const CAPTURES: [&str; 4] = ["x86_64-6.1", "x86_64-6.12", "s390x-6.1", "armhf-6.1"];

fn make(command: &[&str], file: &Path) -> PathBuf {
    let output = file.with_file_name(format!("{}.kmt", command[0]));
    let made = run(&[command, &["--force", "-o", output.to_str().unwrap()]].concat(), file);
    assert!(matches!(made.status.code(), Some(0 | 3)), "{command:?}: {}", stderr(&made));
    output
}

fn events(file: &Path) -> Vec<Value> {
    let lines = stdout(&run(&["dump", "--format", "jsonl"], file));
    lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn a_slice_of_everything_is_the_same_trace() {
    for name in CAPTURES {
        let scratch = Scratch::new();
        let file = scratch.convert(&data(name));
        let slice = make(&["slice"], &file);
        assert_eq!(stdout(&run(&["dump"], &slice)), stdout(&run(&["dump"], &file)), "{name}");
        for report in ["summary", "callers", "pages", "lifetimes"] {
            let (mut a, mut b) = (json(&[report, "--json"], &file), json(&[report, "--json"], &slice));
            (a["trust"], b["trust"]) = (Value::Null, Value::Null);
            assert_eq!(a, b, "{name} {report}");
        }
    }
}

#[test]
fn slices_hold_what_was_asked_for() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let all = events(&file);
    let told = |slice: &Path, keeps: &dyn Fn(&Value) -> bool| {
        let expected: Vec<&Value> = all.iter().filter(|e| keeps(e)).collect();
        let found = events(slice);
        assert!(!found.is_empty() && found.len() < all.len());
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().zip(expected).all(|(found, expected)| found == expected));
    };
    told(&make(&["slice", "--cpu", "1"], &file), &|e| e["cpu"] == 1);
    let pid = all[0]["pid"].clone();
    told(&make(&["slice", "--pid", &pid.to_string()], &file), &|e| e["pid"] == pid);
    told(&make(&["slice", "--event", "kmem:kmal*"], &file), &|e| e["event"] == "kmem:kmalloc");
    let (first, last) = (all[0]["ts"].as_u64().unwrap(), all[all.len() - 1]["ts"].as_u64().unwrap());
    let end = first + (last - first) / 2;
    let window = format!(
        "{}.{:09}..{}.{:09}",
        first / 1_000_000_000,
        first % 1_000_000_000,
        end / 1_000_000_000,
        end % 1_000_000_000
    );
    told(&make(&["slice", "--time", &window], &file), &|e| e["ts"].as_u64().unwrap() <= end);
    let none = run(&["slice", "--event", "sched:*", "-o", "/dev/null"], &file);
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("has no event sched:*"), "{}", stderr(&none));
}

#[test]
fn damaged_files_are_told_and_recovered() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("s390x-6.1"));
    let sound = json(&["verify", "--json"], &file);
    assert_eq!(sound["verify"]["sound"], true);
    let summary = json(&["summary", "--json"], &file);
    assert_eq!(at(&sound, "/verify/events"), at(&summary, "/trace/events"));
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() * 2 / 3;
    bytes[middle] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let broken = run(&["verify"], &file);
    assert_eq!(broken.status.code(), Some(3));
    assert!(
        stdout(&broken).contains("damage ") && stdout(&broken).contains("recover"),
        "{}",
        stdout(&broken)
    );
    let whole = make(&["recover"], &file);
    assert_eq!(json(&["verify", "--json"], &whole)["verify"]["sound"], true);
    let held = json(&["verify", "--json"], &whole)["verify"]["events"].as_u64();
    assert_eq!(held, json(&["verify", "--json"], &file)["verify"]["events"].as_u64());
}

/// Every conformance vector, sound or damaged, that recovery accepts.
#[test]
fn recovered_vectors_are_sound() {
    let scratch = Scratch::new();
    let new = scratch.0.join("recovered.kmt");
    let vectors = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/vectors")).unwrap();
    let mut recovered = 0;
    for vector in vectors.map(|entry| entry.unwrap().path()) {
        if vector.extension().is_none_or(|extension| extension != "kmt") {
            continue;
        }
        let bytes = fs::read(&vector).unwrap();
        let Ok(mut rewrite) = Rewrite::new(&bytes, Limits::default(), RewriteOptions::new()) else {
            continue;
        };
        let mut whole = Vec::new();
        while let Some(bytes) = rewrite.next_bytes().unwrap() {
            whole.extend(bytes);
        }
        fs::write(&new, whole).unwrap();
        let verified = run(&["verify"], &new);
        assert!(verified.status.success(), "{}: {}", vector.display(), stdout(&verified));
        recovered += 1;
    }
    assert!(recovered > 1_000, "{recovered}");
}

#[test]
fn a_file_whose_writer_was_interrupted_is_unfinished_and_not_damaged() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("s390x-6.1"));
    let bytes = fs::read(&file).unwrap();
    let trace = Trace::open(&bytes).unwrap();
    let index = trace.chunks().find(|c| c.kind == ChunkKind::INDEX).unwrap().offset as usize;
    fs::write(&file, &bytes[..index]).unwrap();
    let said = run(&["verify"], &file);
    assert_eq!(said.status.code(), Some(3), "it may lack events");
    assert!(
        stdout(&said).contains(" is unfinished: ") && !stdout(&said).contains("damage"),
        "{}",
        stdout(&said)
    );
    let verify = &json(&["verify", "--json"], &file)["verify"];
    assert_eq!((&verify["sound"], &verify["finished"]), (&true.into(), &false.into()));
    assert_eq!((at(verify, "/damages_total"), at(verify, "/index")), (&0.into(), &Value::Null));
}

#[test]
fn the_index_is_not_blamed_for_other_chunks() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("s390x-6.1"));
    let sound = fs::read(&file).unwrap();
    let trace = Trace::open(&sound).unwrap();
    for kind in [ChunkKind::META, ChunkKind::EVENTS, ChunkKind::SYMBOLS] {
        let chunk = trace.chunks().find(|c| c.kind == kind).unwrap();
        let mut bytes = sound.clone();
        bytes[(chunk.body_offset() + chunk.body_len - 1) as usize] ^= 1;
        fs::write(&file, &bytes).unwrap();
        let verify = &json(&["verify", "--json"], &file)["verify"];
        assert_eq!((&verify["sound"], &verify["damages_total"]), (&false.into(), &1.into()), "{kind}");
        assert_eq!(verify["index"], "not compared: chunks are damaged", "{kind}");
        let said = stdout(&run(&["verify"], &file));
        assert!(
            said.lines().any(|line| line.starts_with("index ") && line.contains(" not compared: ")),
            "{said}"
        );
    }
}

/// All numbers of addresses in a document: values that are hexadecimal texts.
fn addresses(value: &Value, out: &mut BTreeSet<u64>) {
    match value {
        Value::String(text) => {
            out.extend(text.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok()));
        }
        Value::Array(items) => items.iter().for_each(|item| addresses(item, out)),
        Value::Object(map) => map.values().for_each(|item| addresses(item, out)),
        _ => {}
    }
}

#[test]
fn anonymous_traces_tell_nobody_and_nothing_and_still_everything_about_layout() {
    for name in CAPTURES {
        let scratch = Scratch::new();
        let secret = "secrethost";
        let file = scratch.changed(name, |capture| {
            let uname = fs::read_to_string(capture.join("uname")).unwrap();
            let host = uname.split_whitespace().nth(1).unwrap().to_owned();
            fs::write(capture.join("uname"), uname.replacen(&host, secret, 1)).unwrap();
            fs::write(capture.join("cmdline"), "root=/dev/secretdisk quiet\n").unwrap();
        });
        let before = events(&file);
        let anonymous = make(&["anonymize"], &file);
        let after = events(&anonymous);
        assert_eq!(before.len(), after.len());
        // Nothing that was: addresses, as numbers anywhere in any event.
        let collect = |events: &[Value]| {
            let mut out = BTreeSet::new();
            events.iter().for_each(|e| addresses(&e["fields"], &mut out));
            out.retain(|&a| a > 4096);
            out
        };
        let (old, new) = (collect(&before), collect(&after));
        assert!(!old.is_empty() && old.len() == new.len(), "{name}");
        assert_eq!(old.intersection(&new).count(), 0, "{name}");
        // Nor in the bytes of the file, which is not compressed: neither addresses nor names.
        let bytes = fs::read(&anonymous).unwrap();
        let order = json(&["info", "--json"], &file)["format"]["byte_order"].as_str().map(str::to_owned);
        let is_big = order.as_deref().is_some_and(|o| o.starts_with("big"));
        let word = if name.starts_with("armhf") { 4 } else { 8 };
        let held: BTreeSet<&[u8]> =
            (0..bytes.len() / 4).filter_map(|i| bytes.get(i * 4..i * 4 + word)).collect();
        for &address in &old {
            let encoded = if is_big { address.to_be_bytes() } else { address.to_le_bytes() };
            let encoded = match (is_big, word) {
                (true, 4) => &encoded[4..],
                (false, 4) => &encoded[..4],
                _ => &encoded[..],
            };
            // Small numbers of 32-bit machines stand for much else.
            assert!(
                word == 4 || address < 1 << 40 || !held.contains(encoded),
                "{name}: {address:#x} is still there"
            );
        }
        let names: BTreeSet<String> = before
            .iter()
            .map(|e| e["comm"].as_str().unwrap().to_owned())
            .filter(|c| !c.starts_with('<'))
            .collect();
        let text = stdout(&run(&["dump", "--format", "jsonl"], &anonymous))
            + &stdout(&run(&["info", "--json"], &anonymous));
        for comm in &names {
            assert!(!text.contains(&format!("\"{comm}\"")), "{name}: {comm}");
        }
        for hidden in [secret, "secretdisk"] {
            let found = bytes.windows(hidden.len()).any(|w| w == hidden.as_bytes());
            assert!(!found, "{name}: {hidden}");
        }
        // And the analysis is the same, addresses and names apart.
        for report in reports().into_iter().filter(|r| *r != "all") {
            let (mut a, mut b) = (json(&[report, "--json"], &file), json(&[report, "--json"], &anonymous));
            for document in [&mut a, &mut b] {
                blank(document);
            }
            assert_eq!(a, b, "{name} {report}");
        }
    }
}

/// Removes what anonymous traces are to differ in.
fn blank(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("0x") => *text = "0x".to_owned(),
        Value::Array(items) => {
            items.iter_mut().for_each(blank);
            // What is equal stands in the order of addresses.
            items.sort_by_key(Value::to_string);
        }
        Value::Object(map) => {
            // Sentences name the kernel's release and tasks.
            let of_names_and_times = [
                "trust",
                "pid",
                "task",
                "comm",
                "time",
                "start",
                "end",
                "first",
                "last",
                "time_of_day",
                "sentence",
                "kernel_release",
            ];
            of_names_and_times.iter().for_each(|key| {
                map.remove(*key);
            });
            map.values_mut().for_each(blank);
        }
        _ => {}
    }
}

#[test]
fn one_seed_moves_addresses_alike() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let once = stdout(&run(&["dump"], &make(&["anonymize", "--seed", "7"], &file)));
    let twice = stdout(&run(&["dump"], &make(&["anonymize", "--seed", "7"], &file)));
    let other = stdout(&run(&["dump"], &make(&["anonymize", "--seed", "8"], &file)));
    assert_eq!(once, twice);
    assert_ne!(once, other);
    let hidden = make(&["anonymize", "--hide-symbols", "--hide-caches"], &file);
    let text = stdout(&run(&["dump"], &hidden));
    assert!(text.contains("call_site=function-") && !text.contains("getname_flags"), "{}", &text[..400]);
}
