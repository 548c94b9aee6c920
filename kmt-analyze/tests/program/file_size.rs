//! A limit on the size of files (`ulimit -f`): a message and a code as for a full disk, and nothing left behind.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::files::{Scratch, data, stderr};

fn limited(folder: &Path, line: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_kmt-analyze");
    let script = format!("ulimit -f 16; exec {program} {line}");
    Command::new("sh").args(["-c", &script]).current_dir(folder).output().unwrap()
}

#[test]
fn it_is_reported_and_nothing_is_left() {
    let scratch = Scratch::new();
    scratch.convert(&data("x86_64-6.1"));
    for line in [
        "slice --cpu 0 trace.kmt -o out",
        "recover trace.kmt -o out",
        "anonymize trace.kmt -o out",
        "export csv --of events trace.kmt -o out",
        "export ndjson --of events trace.kmt -o out",
        "export parquet --of events trace.kmt -o out",
        "export sqlite trace.kmt -o out",
        "export perfetto trace.kmt -o out",
    ] {
        let output = limited(&scratch.0, line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{line}: {}: {said}", output.status);
        assert!(said.contains("File too large") || said.contains("disk"), "{line}: {said}");
        let left: Vec<_> =
            fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["trace.kmt"], "{line}");
    }
    // Standard output is a file, too.
    let output = limited(&scratch.0, "dump trace.kmt > text");
    assert_eq!(output.status.code(), Some(1), "{}", output.status);
    assert!(stderr(&output).contains("File too large"), "{}", stderr(&output));
}
