//! Memory that runs out is a message and exit code 1, and leaves no file behind.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::dimensions;
use crate::support::files::{Scratch, stderr};

/// Runs a command with a limit of its addresses.
fn limited(mib: u64, args: &[&str], file: &Path) -> Output {
    let limit = format!("ulimit -c 0; ulimit -v {}; exec \"$@\"", mib << 10);
    let mut command = Command::new("sh");
    command.args(["-c", &limit, "sh", env!("CARGO_BIN_EXE_kmt-analyze")]);
    command.args(args).arg(file).output().unwrap()
}

#[test]
fn memory_that_runs_out_is_an_error_and_no_signal() {
    let scratch = Scratch::new();
    let file = scratch.0.join("sites.kmt");
    fs::write(&file, dimensions::sites_and_caches(10_000)).unwrap();
    let out = scratch.0.join("out");
    let place = out.to_str().unwrap();
    // What the program itself has: its size depends on how it was built.
    let runs = |mib: &u64| limited(*mib, &["help"], Path::new("summary")).status.success();
    let least = (8..4_000).step_by(4).find(runs).unwrap();
    let mut ended = 0;
    for args in [
        &["all", "--json", "--threads", "1"][..],
        &["all", "--json", "--threads", "4"],
        &["report", "-o", place],
        &["export", "csv", "--of", "callers", "-o", place],
    ] {
        for more in [4, 8, 16, 24, 32, 40, 48, 64] {
            let mib = least + more;
            let output = limited(mib, args, &file);
            let (code, told) = (output.status.code(), stderr(&output));
            assert!(matches!(code, Some(0 | 1 | 3)), "{args:?} with {mib} MiB: {:?}: {told}", output.status);
            assert!(!told.contains("panicked"), "{args:?} with {mib} MiB: {told}");
            ended += u32::from(told.contains("out of memory: ") && told.contains("hint: "));
            if code != Some(1) {
                let _ = fs::remove_file(&out);
            }
            let left: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|e| e.unwrap().file_name()).collect();
            assert_eq!(left, ["sites.kmt"], "{args:?} with {mib} MiB: {told}");
        }
    }
    assert!(ended >= 8, "{ended} commands ran out of memory");
}
