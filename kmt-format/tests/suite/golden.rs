//! Golden files: whatever this library becomes, it reads them as it did when their version was frozen.
//!
//! Once a version is tagged they are never made anew; those of a release candidate still may be. A failure here is a break of the promise in spec.md, section Versions.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::found;
use kmt_format::read::Trace;
use serde_json::Value;

fn versions() -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/golden");
    let mut versions: Vec<PathBuf> = fs::read_dir(golden).unwrap().map(|e| e.unwrap().path()).collect();
    versions.retain(|p| p.is_dir());
    versions.sort();
    assert!(!versions.is_empty());
    versions
}

fn files(version: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(version).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "kmt"));
    files.sort();
    files
}

#[test]
fn golden_files_tell_what_they_told() {
    for version in versions() {
        let files = files(&version);
        assert!(files.len() >= 40, "{}: {} files", version.display(), files.len());
        for path in files {
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.contains("zstd") && !cfg!(feature = "zstd") {
                continue;
            }
            let file = fs::read(&path).unwrap();
            let trace = Trace::open(&file).unwrap();
            assert_eq!(trace.damages(), [], "{name}");
            let json: Value =
                serde_json::from_str(&fs::read_to_string(path.with_extension("json")).unwrap()).unwrap();
            found::compare(name, &found::of_trace(&trace), &json);
        }
    }
}
