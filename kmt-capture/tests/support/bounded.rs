//! Conversions that may take neither all memory nor all time.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Converts a file, with a bound on time and memory.
pub fn bounded(input: &Path, output: &Path, options: &[&str]) -> Output {
    // 2 GiB of addresses: what takes all memory fails long before.
    bounded_by(2 << 20, input, output, options)
}

/// Runs a conversion with that many KiB of addresses.
pub fn bounded_by(kib: u64, input: &Path, output: &Path, options: &[&str]) -> Output {
    const SECONDS: Duration = Duration::from_secs(60);
    let mut command = Command::new("sh");
    command.args([
        "-c",
        &format!("ulimit -v {kib}; exec \"$@\""),
        "sh",
        env!("CARGO_BIN_EXE_kmt-capture"),
        "convert",
    ]);
    command.arg(input).arg("-o").arg(output).args(options);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if start.elapsed() > SECONDS => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("still converting after {SECONDS:?}");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut stderr = Vec::new();
    child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    Output { status, stdout: Vec::new(), stderr }
}
