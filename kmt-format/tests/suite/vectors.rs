//! The conformance vectors: every reader finds what the JSON says, every writer makes the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::support::naive_scan::ScanLimits;
use crate::support::{found, lookups, naive, naive_recovery, recovered, stride, written};
use kmt_format::Limits;
use kmt_format::read::{Arrived, Incremental, Trace};
use serde_json::{Value as Json, json};
use vector_builder::Vector;

/// The vectors of the builder, made once for all tests.
fn built() -> &'static [Vector] {
    static VECTORS: LazyLock<Vec<Vector>> = LazyLock::new(vector_builder::vectors);
    &VECTORS
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/vectors")
}

/// Name, file and JSON of every vector without a defect.
fn sound() -> Vec<(String, Vec<u8>, Json)> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_some_and(|e| e == "kmt") && !name.starts_with("invalid-") {
            let json = fs::read_to_string(path.with_extension("json")).unwrap();
            out.push((name, fs::read(&path).unwrap(), serde_json::from_str(&json).unwrap()));
        }
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(out.len() > 150, "{} vectors", out.len());
    out
}

/// True if this build of the library can read it.
fn is_readable(name: &str) -> bool {
    !name.contains("zstd") || cfg!(feature = "zstd")
}

#[test]
fn files_are_what_the_builder_makes() {
    for vector in built() {
        let file = folder().join(format!("{}.kmt", vector.name));
        assert!(fs::read(&file).unwrap() == vector.bytes, "{}: run vector-builder", file.display());
        let json = file.with_extension("json");
        assert_eq!(fs::read_to_string(&json).unwrap(), vector.json, "{}", json.display());
    }
}

#[test]
fn slice_reader() {
    for (name, file, json) in sound().iter().filter(|(name, ..)| is_readable(name)) {
        let trace = Trace::open(file).unwrap();
        assert_eq!(trace.damages(), [], "{name}");
        found::compare(name, &lookups::of_trace(&trace, found::of_trace(&trace), json), json);
    }
}

#[test]
fn slice_reader_by_the_index() {
    for (name, file, json) in sound().iter().filter(|(name, ..)| is_readable(name)) {
        let trace = Trace::open_indexed(file, Limits::default()).unwrap();
        let kinds = json["chunks"].as_array().unwrap();
        let has_index = kinds.ends_with(&["INDX".into(), "TRLR".into()]);
        assert_eq!(trace.is_some(), has_index, "{name}");
        if let Some(trace) = trace {
            found::compare(name, &lookups::of_trace(&trace, found::of_trace(&trace), json), json);
        }
    }
}

#[test]
fn incremental_reader_for_every_way_of_cutting() {
    for (name, file, json) in sound().iter().filter(|(name, ..)| is_readable(name)) {
        for step in [1, 63, 64, 1_000, file.len()] {
            let mut reader = Incremental::new();
            let mut events = Vec::new();
            let (mut chunks, mut folds) = (Vec::new(), Vec::new());
            let mut take = |reader: &mut Incremental| {
                while let Some(arrived) = reader.next().unwrap() {
                    match arrived {
                        Arrived::Events(chunk, found) => {
                            chunks.push(chunk);
                            events.push((chunk, found));
                        }
                        Arrived::Folded(chunk, found) => {
                            chunks.push(chunk);
                            folds.push(found);
                        }
                        Arrived::Chunk(chunk) => chunks.push(chunk),
                        Arrived::Damage(damage) => panic!("{name}: {damage:?}"),
                        _ => {}
                    }
                }
            };
            for piece in file.chunks(step) {
                reader.push(piece);
                take(&mut reader);
            }
            reader.end();
            take(&mut reader);
            let mut found = found::of_incremental(&reader, &chunks, &events, &folds);
            if let Some(questions) = json.get("lookups") {
                found["lookups"] = lookups::of_incremental(&reader, &events, questions);
            }
            found::compare(name, &found, json);
        }
    }
}

/// Name, file and JSON of every vector with a defect.
fn invalid() -> Vec<(String, Vec<u8>, Json)> {
    let all = built().iter().filter(|v| v.name.starts_with("invalid-") && is_readable(&v.name));
    let all = all.map(|v| (v.name.clone(), v.bytes.clone(), serde_json::from_str(&v.json).unwrap()));
    all.collect()
}

/// The limits that a vector states, and the defaults of all others.
fn limits_of(expected: &Json) -> Limits {
    let mut limits = Limits::default();
    for (name, value) in expected.get("limits").and_then(Json::as_object).into_iter().flatten() {
        assert!(limits.set(name, value.as_u64().unwrap()), "{name}");
    }
    limits
}

fn brief(error: &kmt_format::Error) -> Json {
    json!({"code": error.code(), "offset": error.offset()})
}

/// The errors of event chunks in a file that is opened by its index.
fn unreadable_by_index(file: &[u8]) -> Json {
    let trace = Trace::builder().by_index(true).open(file).unwrap();
    assert_eq!(trace.damages(), []);
    let chunks = trace.streams().values().flat_map(|s| &s.chunks);
    chunks.filter_map(|(c, _)| trace.read(c).err()).map(|e| brief(&e)).collect()
}

#[test]
fn defects_give_their_errors_at_their_offsets() {
    let all = invalid();
    assert!(all.len() > 120, "{}", all.len());
    let mut wrong = Vec::new();
    for (name, file, expected) in all.iter().step_by(stride()) {
        let limits = limits_of(expected);
        let got = match Trace::builder().limits(limits).open(file) {
            Err(error) => json!({"error": brief(&error)}),
            Ok(trace) => {
                let damages: Vec<Json> = trace.damages().iter().map(|d| brief(&d.error)).collect();
                let chunks = trace.streams().values().flat_map(|s| &s.chunks);
                let folds = trace.folds().iter().filter_map(|(c, _)| trace.read_fold(c).err());
                let unreadable: Vec<Json> =
                    chunks.filter_map(|(c, _)| trace.read(c).err()).chain(folds).map(|e| brief(&e)).collect();
                let mut got = json!({"damages": damages});
                if expected.get("unreadable").is_some() {
                    got["unreadable"] = unreadable.into();
                }
                if expected.get("unreadable_by_index").is_some() {
                    got["unreadable_by_index"] = unreadable_by_index(file);
                }
                if expected.get("index_used").is_some() {
                    let by_index = Trace::open_indexed(file, limits).unwrap();
                    got["index_used"] = by_index.is_some().into();
                }
                if expected.get("folds_missing").is_some() {
                    got["folds_missing"] = trace.folds_missing().into();
                }
                if expected.get("stacks").is_some() {
                    got["stacks"] = lookups::stacks(&trace);
                }
                if expected.get("finished").is_some() {
                    got["finished"] = trace.is_finished().into();
                }
                got
            }
        };
        let mut got = got;
        if expected.get("recovered").is_some() {
            got["recovered"] = recovered::of(file, limits);
        }
        if let Some(limits) = expected.get("limits") {
            got["limits"] = limits.clone();
        }
        if got != *expected {
            wrong.push(format!("{name}: {got} instead of {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn defects_give_the_incremental_reader_the_same_errors() {
    for (name, file, expected) in invalid().iter().step_by(stride()) {
        let mut reader = Incremental::with_limits(limits_of(expected));
        let mut found = Vec::new();
        let mut refused = None;
        let mut take = |reader: &mut Incremental| {
            while refused.is_none() {
                match reader.next() {
                    Ok(Some(Arrived::Damage(damage))) => found.push(damage.error),
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(error) => refused = Some(error),
                }
            }
        };
        for piece in file.chunks(97) {
            reader.push(piece);
            take(&mut reader);
        }
        reader.end();
        take(&mut reader);
        match &expected["error"] {
            Json::Null => {
                assert_eq!(refused, None, "{name}");
                if let Some(finished) = expected["finished"].as_bool() {
                    assert_eq!(reader.is_finished(), finished, "{name}");
                }
                let wanted =
                    [&expected["damages"], &expected["unreadable"]].into_iter().filter_map(Json::as_array);
                for wanted in wanted.flatten() {
                    assert!(
                        found.iter().any(|e| brief(e) == *wanted),
                        "{name}: {wanted} is not in {found:?}"
                    );
                }
            }
            error => assert_eq!(refused.as_ref().map(brief).as_ref(), Some(error), "{name}"),
        }
    }
}

#[test]
fn naive_reader() {
    for (name, file, json) in sound() {
        found::compare(&name, &found::of_naive(&naive::read(&file), &json), &json);
    }
}

#[test]
fn a_second_recovery_makes_the_same_files() {
    let all: Vec<_> = invalid().into_iter().filter(|v| v.2.get("recovered").is_some()).collect();
    assert!(all.len() > 50, "{}", all.len());
    for (name, file, expected) in all {
        let limit = |name, usual| expected["limits"][name].as_u64().unwrap_or(usual);
        let limits = ScanLimits {
            streams: limit("streams", 16_384),
            records: limit("records", 1 << 24),
            chunk_len: limit("chunk_len", 1 << 30),
        };
        assert_eq!(naive_recovery::recovered(&file, limits), expected["recovered"], "{name}");
    }
}

/// A writer must put a shape before the events that use it; readers do not check that, and find it anywhere.
#[test]
fn shapes_behind_their_events_are_found_by_both_readers() {
    let file =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/schema-behind-events.kmt")).unwrap();
    let trace = Trace::open(&file).unwrap();
    assert!(trace.damages().is_empty());
    let ours = found::of_trace(&trace);
    found::compare("both readers", &found::of_naive(&naive::read(&file), &ours), &ours);
}

#[test]
fn naive_reader_refuses_fields_that_must_not_be() {
    for (start, count, what) in [
        ("invalid-schema-field-end-", 4, "a field is beyond the end of any event"),
        ("invalid-schema-common-", 4, "a common field is an array"),
    ] {
        let all: Vec<_> = invalid().into_iter().filter(|v| v.0.starts_with(start)).collect();
        // The third one has too many common fields.
        let all: Vec<_> = all.into_iter().filter(|v| !v.0.contains("common-fields")).collect();
        assert_eq!(all.len(), count, "{start}");
        for (name, file, _) in all {
            let refused = std::panic::catch_unwind(|| naive::read(&file)).expect_err(&name);
            assert_eq!(refused.downcast_ref(), Some(&what), "{name}");
        }
    }
}

#[test]
fn the_writer_makes_the_same_bytes() {
    let mut count = 0;
    for vector in built() {
        let Some((layout, ops)) = &vector.script else { continue };
        let file = written::write(layout, ops);
        if let Some(at) =
            (0..file.len().max(vector.bytes.len())).find(|&i| file.get(i) != vector.bytes.get(i))
        {
            panic!("{}: {}", vector.name, found::difference(&file, &vector.bytes, at));
        }
        count += 1;
    }
    assert!(count > 30, "{count}");
}
