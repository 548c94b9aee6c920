//! Captures, converted into directories that go away, and the program run on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use kmt_analyze::reports::REPORTS;
use serde_json::Value;

pub use super::folder::copy;

/// Every report that needs only a file, and `all` of them.
pub fn reports() -> Vec<&'static str> {
    let alone = REPORTS.iter().filter(|entry| (entry.with_defaults)().is_some());
    alone.map(|entry| entry.name).chain(["all"]).collect()
}

/// A capture of kmt-format's tests.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kmt-format/tests/data").join(name)
}

/// A directory that goes away with the test.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("kmt-analyze-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn convert(&self, input: &Path) -> PathBuf {
        let output = self.0.join("trace.kmt");
        let options = kmt_capture::convert::Options {
            input: input.to_owned(),
            output: output.clone(),
            force: true,
            compression: kmt_format::Compression::None,
            symbols: kmt_capture::record::Symbols::Used,
            verbatim: false,
            quiet: true,
            instance: None,
            boot: None,
            survivors: None,
            limits: kmt_capture::convert::Limits::default(),
        };
        kmt_capture::convert::convert(&options).unwrap();
        output
    }

    /// A capture of which a test changes something before it is converted.
    pub fn changed(&self, name: &str, change: impl FnOnce(&Path)) -> PathBuf {
        let to = self.0.join(name);
        copy(&data(name), &to);
        change(&to);
        self.convert(&to)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn run(args: &[&str], file: &Path) -> Output {
    program(args).arg(file).output().unwrap()
}

/// The program in the folder of its file: screens do not depend on the length of its path.
pub fn run_beside(args: &[&str], file: &Path) -> Output {
    program(args).arg(file.file_name().unwrap()).current_dir(file.parent().unwrap()).output().unwrap()
}

fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"));
    // Nor on the width of the terminal that runs the tests.
    command.args(args).env("COLUMNS", "80");
    command
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a report says as JSON.
pub fn json(args: &[&str], file: &Path) -> Value {
    let output = run(args, file);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", stderr(&output)))
}

/// The value at a JSON pointer, which must be there: `value["key"]` is null without that key, as it is where a number is
/// unknown, so that checks for null and comparisons of two documents could not fail.
pub fn at<'v>(value: &'v Value, pointer: &str) -> &'v Value {
    value.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {value:#}"))
}

/// Converts any file that `kmt-capture convert` reads.
pub fn convert(input: &Path, output: &Path, instance: Option<&str>) -> Result<(), String> {
    let options = kmt_capture::convert::Options {
        input: input.to_owned(),
        output: output.to_owned(),
        force: true,
        compression: kmt_format::Compression::None,
        symbols: kmt_capture::record::Symbols::Used,
        verbatim: false,
        quiet: true,
        instance: instance.map(str::to_owned),
        boot: None,
        survivors: None,
        limits: kmt_capture::convert::Limits::default(),
    };
    kmt_capture::convert::convert(&options).map(|_| ()).map_err(|e| e.to_string())
}

/// The events of a file as text.
pub fn dump(file: &Path) -> String {
    let output = run(&["dump"], file);
    assert!(output.status.success() || output.status.code() == Some(3), "{}", stderr(&output));
    stdout(&output)
}

/// Compares two texts line by line.
pub fn same_dump(ours: &str, theirs: &str, what: &str) {
    for (number, (a, b)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(a, b, "{what}, line {}", number + 1);
    }
    assert_eq!(ours.lines().count(), theirs.lines().count(), "{what}");
}
