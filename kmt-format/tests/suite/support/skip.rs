//! Tests that cannot run on a machine: never in silence.

use std::fs::OpenOptions;
use std::io::Write;

/// Missing requirement of a skipped test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// Rights or a kernel feature of this machine.
    Machine,
    /// A program that has to be installed.
    Program,
}

/// Reports that the running test does not test anything here. It is counted in the file that `KMT_SKIPS` names.
///
/// # Panics
///
/// Panics with `KMT_STRICT=1`, and with `KMT_STRICT=machine` where no program has to be installed.
#[track_caller]
pub fn skip(lack: Lack, reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test").to_owned();
    match std::env::var("KMT_STRICT").as_deref() {
        Ok("1") => panic!("skipped, and KMT_STRICT=1 makes that a failure: {reason}"),
        Ok("machine") if lack == Lack::Machine => panic!("skipped, and KMT_STRICT=machine: {reason}"),
        _ => eprintln!("SKIPPED {test}: {reason}"),
    }
    if let Some(path) = std::env::var_os("KMT_SKIPS") {
        let file = OpenOptions::new().create(true).append(true).open(path);
        // One write a line: tests run at the same time.
        file.and_then(|mut file| file.write_all(format!("test {test}: {reason}\n").as_bytes())).unwrap();
    }
}
