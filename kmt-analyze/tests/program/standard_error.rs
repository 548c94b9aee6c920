//! Standard error that cannot be written: the message is dropped, and the exit code is that of the work.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::files::{Scratch, data};

/// Command lines that need more than a file, with FILE and OUT in place of paths.
const LINES: &[(&str, &str)] = &[
    ("diff", "FILE FILE"),
    ("who", "ffff888100000000 FILE"),
    ("export", "csv FILE -o OUT"),
    ("slice", "--cpu 0 FILE -o OUT"),
    ("recover", "FILE -o OUT"),
    ("anonymize", "FILE -o OUT"),
    ("account", "FILE"),
    ("completions", "bash"),
    ("man", ""),
];

fn code(words: &[String], folder: &Path, stderr: impl Into<Stdio>) -> Option<i32> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-analyze"));
    command.args(words).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let code = command.status().unwrap().code();
    let _ = std::fs::remove_file(folder.join("out"));
    code
}

/// All commands, from the message about one that does not exist.
fn commands() -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).args(["man", "none"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let names = text.split("commands are ").nth(1).unwrap().lines().next().unwrap();
    names.split(", ").map(str::to_owned).collect()
}

fn check(words: &[String], folder: &Path) {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let expected = code(words, folder, Stdio::null());
    assert!(matches!(expected, Some(0..=3)), "{words:?}: {expected:?}");
    assert_eq!(code(words, folder, full()), expected, "{words:?}");
}

#[test]
fn every_command_ends_with_the_code_of_its_work() {
    let scratch = Scratch::new();
    let file = scratch.convert(&data("x86_64-6.1"));
    let folder = file.parent().unwrap();
    let vector = data("../../../format-spec/vectors/gaps-le64.kmt");
    std::fs::copy(vector, folder.join("lossy.kmt")).unwrap();
    let commands = commands();
    assert!(commands.len() > 30, "{commands:?}");
    for name in &commands {
        let line = LINES.iter().find(|line| line.0 == name).map_or("FILE", |line| line.1);
        // With a sound file, one with losses, and one that does not exist.
        for file in ["trace.kmt", "lossy.kmt", "missing.kmt"] {
            let rest = line.replace("FILE", file).replace("OUT", "out");
            let words = std::iter::once(name.as_str()).chain(rest.split_ascii_whitespace());
            check(&words.map(str::to_owned).collect::<Vec<_>>(), folder);
        }
    }
    for line in ["missing.kmt", "trace.kmt", "nonsense --option", "callers --where lifetime=x trace.kmt"] {
        check(&line.split(' ').map(str::to_owned).collect::<Vec<_>>(), folder);
    }
}
