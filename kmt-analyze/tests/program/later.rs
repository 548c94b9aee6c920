//! Files of a later version of the format: known fields are shown, unknown ones are never counted as 0.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files::{Scratch, json, run, stderr, stdout};

const NAMES: &str = "gfp_flags, node";

/// The vector with unknown kinds of fields, places, transforms and roles, in one byte order and word size.
fn vector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../format-spec/vectors/{name}.kmt"))
}

#[test]
fn what_cannot_be_read_is_refused_and_named() {
    for name in ["growth-le64", "growth-be64", "growth-le32", "growth-be32"] {
        let file = vector(name);
        for command in [
            &["summary"][..],
            &["all"],
            &["callers"],
            &["pages"],
            &["lifetimes"],
            &["account"],
            &["summary", "--compat", "perf-kmem"],
            &["export", "csv", "--of", "callers", "-o", "-"],
            &["slice", "--time", "0..9", "-o", "-"],
            &["anonymize", "-o", "-"],
        ] {
            let refused = run(command, &file);
            assert_eq!(refused.status.code(), Some(1), "{name} {command:?}: {}", stdout(&refused));
            assert!(refused.stdout.is_empty(), "{name} {command:?}");
            let message = stderr(&refused);
            for part in ["kmem:kmalloc", "bytes_alloc", NAMES, "hint:"] {
                assert!(message.contains(part), "{name} {command:?}: {message}");
            }
        }
    }
}

#[test]
fn what_is_known_is_shown() {
    let file = vector("growth-le64");
    let lines = stdout(&run(&["dump", "--format", "jsonl"], &file));
    let events: Vec<serde_json::Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(events.len(), 3);
    let fields = &events[0]["fields"];
    for unknown in ["bytes_alloc", "gfp_flags", "node"] {
        assert!(fields[unknown].is_null(), "{unknown}: {fields}");
    }
    assert_eq!((&fields["bytes_req"], &fields["ptr"]), (&100.into(), &"0xffff888000000040".into()));
    let verified = &json(&["verify", "--json"], &file)["verify"];
    assert_eq!((&verified["sound"], &verified["events_unreadable"]), (&true.into(), &0.into()));
    let unknown = &verified["unknown_fields"][0];
    assert_eq!(unknown["class"], "kmem:kmalloc");
    assert_eq!(unknown["fields"], serde_json::json!(["bytes_alloc", "gfp_flags", "node", "bytes_req"]));
    assert!(stdout(&run(&["info"], &file)).contains("integrity     sound"));
}

/// Only what cannot be read is refused: the same file as it was written.
#[test]
fn files_of_this_version_have_none() {
    let scratch = Scratch::new();
    let file = scratch.0.join("now.kmt");
    fs::copy(vector("many-le64"), &file).unwrap();
    assert_eq!(json(&["verify", "--json"], &file)["verify"]["unknown_fields"], serde_json::json!([]));
    assert_eq!(json(&["summary", "--json"], &file)["pages"]["alloc_events"], 13);
}
