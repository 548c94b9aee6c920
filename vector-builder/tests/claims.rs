//! Figures in the documents for users stand in the record that they come from.

use std::fs;
use std::path::{Path, PathBuf};

/// Documents whose figures of speed must be in the table below.
const DOCUMENTS: [&str; 6] = [
    "CHANGELOG.md",
    "README.md",
    "kmt-capture/README.md",
    "kmt-analyze/README.md",
    "kmt-format/README.md",
    "docs/releases/0.9.0.md",
];

const RECORDING: &str = "kmt-capture/benches/record/2026-11-30-x86_64.md";
const ANALYSIS: &str = "kmt-analyze/benches/record/2026-11-30-x86_64.md";

/// A text of a document, and the text of a record that it rests on.
const CLAIMS: [(&str, &str, &str, &str); 10] = [
    (
        "README.md",
        "| 19 ns | 343 ns | 242 ns |",
        ANALYSIS,
        "trace-cmd mem 242, perf kmem 343, kmt summary 19",
    ),
    ("README.md", "perf kmem on a like recording", ANALYSIS, "perf kmem 18 times on a like recording."),
    (
        "README.md",
        "a twelfth of the CPU time of trace-cmd mem",
        ANALYSIS,
        "takes 12.8 times as much as summary",
    ),
    ("README.md", "3.2 times the CPU time", RECORDING, "takes 3.2 times of splice"),
    ("README.md", "16 bytes an event", RECORDING, "| 119.3 | 16.21 | 0 |"),
    ("README.md", "It needs 8 MiB", RECORDING, "| 119.3 | 16.21 | 0 | 8,004 |"),
    ("kmt-capture/README.md", "3.2 times the CPU time", RECORDING, "takes 3.2 times of splice"),
    ("CHANGELOG.md", "3.2 times the CPU time", RECORDING, "takes 3.2 times of splice"),
    ("CHANGELOG.md", "8 MiB beside", RECORDING, "| 119.3 | 16.21 | 0 | 8,004 |"),
    ("docs/board.md", "within 1.9 s of the cut", "CHANGELOG.md", "after 1.9 s at most"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    let text = fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn figures_are_those_of_their_records() {
    for (document, claim, record, figure) in CLAIMS {
        assert!(read(document).contains(claim), "{document} does not have {claim:?}");
        assert!(
            read(record).contains(figure),
            "{record} does not have {figure:?}, for {claim:?} in {document}"
        );
    }
}

/// `N ns` and `N times` in a document are in the table.
#[test]
fn no_figure_is_without_a_record() {
    for document in DOCUMENTS.iter().filter(|path| root().join(path).exists()) {
        let text = read(document);
        let known: Vec<&str> =
            CLAIMS.iter().filter(|claim| claim.0 == *document).map(|claim| claim.1).collect();
        let words: Vec<&str> = text.split(' ').collect();
        for pair in words.windows(2) {
            let [number, unit] = pair else { continue };
            let is_number = number.starts_with(|c: char| c.is_ascii_digit());
            let unit = unit.trim_end_matches(|c: char| !c.is_alphanumeric());
            let figure = format!("{number} {unit}");
            if is_number && matches!(unit, "ns" | "times") {
                assert!(
                    known.iter().any(|claim| claim.contains(&figure)),
                    "{document}: {figure} has no record"
                );
            }
        }
    }
}

#[test]
fn the_number_of_vectors_is_that_of_the_files() {
    let files = fs::read_dir(root().join("format-spec/vectors")).unwrap();
    let count =
        files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|e| e == "kmt")).count();
    let stated = format!("{},{:03} conformance vectors", count / 1_000, count % 1_000);
    assert!(read("README.md").contains(&stated), "there are {stated}");
}
