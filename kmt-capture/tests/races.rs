//! Others who write to the same place at the same time: an attacker, and a second recorder.
#![cfg(feature = "convert")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::alone::Alone;
use support::swap::Swapper;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kmt-races-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_link_in_the_place_of_a_pipe_is_not_followed() {
    const TRIES: usize = 300;
    let scratch = Scratch::new("swap");
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/vectors/appended-be32.kmt");
    let swapper = Swapper::start(&scratch.0);
    let mut written = 0;
    for number in 0..TRIES {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
        command.arg("convert").arg(&input).arg("-o").arg(swapper.path()).arg("-q");
        command.args((number % 2 == 1).then_some("--force"));
        let output = command.output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{output:?}");
        written += usize::from(output.status.success());
        swapper.assert_harmless();
    }
    // Both sides met the other one often enough.
    assert!(written > 20 && swapper.swaps() > 1000, "{written} written, {} swaps", swapper.swaps());
    println!("{TRIES} tries, {written} of them written, {} swaps", swapper.swaps());
}

#[test]
fn of_two_recorders_with_one_output_the_second_is_refused() {
    let Some(_alone) = Alone::or_skip() else { return };
    let scratch = Scratch::new("two");
    let (out, part) = (scratch.0.join("out.kmt"), scratch.0.join("out.kmt.part"));
    let record = |seconds: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
        command
            .args(["record", "-e", "kmem:kmalloc", "-b", "256K", "-d", seconds, "-o"])
            .arg(&out)
            .args(more);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let first = record("4s", &[]);
    let start = Instant::now();
    while !fs::metadata(&part).is_ok_and(|m| m.len() > 0) {
        assert!(start.elapsed() < Duration::from_secs(60), "the recording does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    for more in [&[][..], &["--force"]] {
        let second = record("1s", more).wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&second.stderr).into_owned();
        assert_eq!(second.status.code(), Some(1), "{said}");
        assert!(said.contains("is being written by another process"), "{said}");
    }
    let first = first.wait_with_output().unwrap();
    assert!(matches!(first.status.code(), Some(0 | 3)), "{first:?}");
    let file = fs::read(&out).unwrap();
    let trace = kmt_format::read::Trace::open(&file).unwrap();
    assert!(trace.is_finished() && !part.exists());
}
