//! Recordings made inside other kernels by `.ci/lab`, against those kernels' own text.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::agreement::{Mask, agree};

#[test]
#[ignore = "KMT_LAB names a folder that .ci/lab left"]
fn what_was_recorded_in_other_kernels_is_what_they_print() {
    let folder = std::env::var_os("KMT_LAB").expect("KMT_LAB names a folder that .ci/lab left");
    let mut compared = 0;
    for case in fs::read_dir(&folder).unwrap().flatten().map(|e| e.path()) {
        let file = case.join("live.kmt");
        if !file.exists() {
            continue;
        }
        let dump = dump(&file);
        let file = fs::read(&file).unwrap();
        for (text, mask) in [("text.txt", Mask::Pointers), ("text.ptr.txt", Mask::Texts)] {
            let text = String::from_utf8_lossy(&fs::read(case.join(text)).unwrap()).into_owned();
            let found = agree(&file, &dump, &text, mask);
            let found = found.unwrap_or_else(|e| panic!("{} {mask:?}: {e}", case.display()));
            println!("{} {mask:?}: {found:?}", case.display());
            assert!(found.lines > 5_000 && found.left <= 16, "{found:?}");
            assert!(found.moved * 50 < found.lines && found.renamed == 0, "{found:?}");
            compared += 1;
        }
    }
    assert!(compared > 0, "nothing to compare");
}

fn dump(path: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).arg("dump").arg(path).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
