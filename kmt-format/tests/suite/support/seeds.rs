//! Seeds of the fuzz targets, and other files of the repository that targets run over.

use std::fs;
use std::path::{Path, PathBuf};

/// Files of a folder of the repository, sorted; there is at least one.
pub fn folder(name: &str) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    let mut files: Vec<PathBuf> = fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{}", path.display());
    files
}

/// Runs a target over its seeds.
pub fn seeds(target: &str, run: fn(&[u8])) {
    for file in folder(&format!("fuzz/seeds/{target}")) {
        run(&fs::read(file).unwrap());
    }
}
