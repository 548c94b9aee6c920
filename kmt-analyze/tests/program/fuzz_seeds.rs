//! What the fuzz targets of this program check, over their seeds and over conformance vectors.

use std::fs;
use std::path::Path;

use crate::support::files::{run, stdout};
use crate::support::seeds::{folder, seeds};

#[path = "../../../fuzz/src/analyze.rs"]
mod analyze;
#[path = "../../../fuzz/src/counted.rs"]
mod counted;
#[path = "../../../fuzz/src/library.rs"]
pub mod library;
#[path = "../../../fuzz/src/lists.rs"]
mod lists;
#[path = "../../../fuzz/src/made.rs"]
mod made;
#[path = "../../../fuzz/src/made_classes.rs"]
mod made_classes;
#[path = "../../../fuzz/src/made_numbers.rs"]
mod made_numbers;
#[path = "../../../fuzz/src/made_tables.rs"]
mod made_tables;
#[path = "../../../fuzz/src/made_texts.rs"]
mod made_texts;
#[path = "../../../fuzz/src/repair.rs"]
mod repair;

/// Every eighth vector: each command takes as long as the whole of opening one.
fn vectors(run: fn(&[u8])) {
    let all = folder("format-spec/vectors");
    for file in all.iter().filter(|f| f.extension().is_some_and(|e| e == "kmt")).step_by(8) {
        run(&fs::read(file).unwrap());
    }
}

#[test]
fn made_files_hold_what_reports_are_about() {
    let bytes: Vec<u8> = (0..6_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let file = made::file(&bytes);
    let ran = kmt_analyze::in_process::run(&["summary", "--json", "f"], &[("f", &file)]);
    let summary: serde_json::Value = serde_json::from_slice(&ran.written).unwrap();
    for (part, key) in [("slab", "live"), ("slab", "frees_matched"), ("pages", "alloc_events")] {
        assert!(summary[part][key].as_u64().unwrap() > 0, "{part}.{key}");
    }
    for report in ["vmalloc", "percpu"] {
        let ran = kmt_analyze::in_process::run(&[report, "--json", "f"], &[("f", &file)]);
        let areas: serde_json::Value = serde_json::from_slice(&ran.written).unwrap();
        for key in ["alloc_events", "frees_matched"] {
            assert!(areas["areas"]["total"][key].as_u64().unwrap() > 0, "{report}: {key}");
        }
    }
    let ran = kmt_analyze::in_process::run(&["verify", "f"], &[("f", &file)]);
    assert!(ran.ended.is_ok());
}

#[test]
fn every_command_of_the_targets_is_one() {
    let seed = fs::read(&folder("fuzz/seeds/made")[0]).unwrap();
    for (run, count) in [
        (analyze::reports as fn(&[u8]), analyze::commands().len()),
        (analyze::exports, lists::OUTPUTS.len()),
        (analyze::edits, lists::EDITS.len()),
    ] {
        for which in 0..u8::try_from(count).unwrap() {
            run(&[&[which, 0], &seed[2..]].concat());
            run(&[&[which, 1], &seed[2..]].concat());
        }
    }
}

#[test]
fn every_chart_and_export_is_in_the_targets() {
    // Files and folders, not streams.
    let others = ["sqlite", "parquet"];
    for command in ["chart", "export"] {
        let help = stdout(&run(&[command], Path::new("--help")));
        let kinds = help.split("Possible values:").nth(1).unwrap().split("\n\n").next().unwrap();
        let kinds: Vec<&str> =
            kinds.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split(':').next()).collect();
        assert!(kinds.len() > 5, "{kinds:?}");
        for kind in kinds.iter().filter(|kind| !others.contains(kind)) {
            assert!(lists::OUTPUTS.iter().any(|args| args.starts_with(&[command, kind])), "{command} {kind}");
        }
    }
}

#[test]
fn seeds_of_where_terms() {
    for file in folder("fuzz/seeds/where_terms") {
        let text = fs::read(file).unwrap();
        assert!(kmt_analyze::in_process::is_condition(std::str::from_utf8(&text).unwrap()));
        analyze::where_terms(&text);
    }
}

#[test]
fn seeds_of_snapshots() {
    seeds("snapshots", analyze::snapshots);
}

#[test]
fn made_files_and_vectors_through_commands() {
    for run in [analyze::reports, analyze::exports, analyze::edits, library::run] {
        seeds("made", run);
        vectors(run);
    }
}
