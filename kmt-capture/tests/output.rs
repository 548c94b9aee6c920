//! What is printed to a full disk, or to nobody: a message and a code, no panic.

use std::fs::File;
use std::process::{Command, Stdio};

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kmt-capture"));
    command.args(words);
    command
}

const COMMANDS: [&[&str]; 5] = [&["check"], &["check", "--json"], &["clean"], &["snippet"], &["man"]];

#[test]
fn a_full_disk_is_told() {
    for words in COMMANDS {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = command(words).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.contains("writing to standard output: No space left"), "{words:?}: {said}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for words in COMMANDS {
        let mut child = command(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // Long before it gets to write anything.
        drop(child.stdout.take());
        let status = child.wait().unwrap();
        // `check` fails where nothing can be recorded.
        assert!(matches!(status.code(), Some(0 | 1)), "{words:?}: {status}");
    }
}
