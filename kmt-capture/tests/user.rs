//! What a user who is not root is answered.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the program as a user without rights. That user may not reach the folder of the build.
fn as_user(args: &[&str]) -> Output {
    as_user_in(0o777, args)
}

/// The same in a folder with these rights.
fn as_user_in(rights: u32, args: &[&str]) -> Output {
    let name = format!("kmt-capture-user-{}-{rights:o}-{}", std::process::id(), args[0]);
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("kmt-capture");
    fs::copy(env!("CARGO_BIN_EXE_kmt-capture"), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(rights)).unwrap();
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let mut command = Command::new(if is_root { Path::new("setpriv") } else { &program });
    if is_root {
        command.args(["--reuid", "65534", "--clear-groups"]).arg(&program);
    }
    let output = command.args(args).current_dir(&folder).output().unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    output
}

#[test]
fn recording_needs_root_and_the_line_for_root_is_given() {
    let output = as_user(&["record", "-d", "1s", "-o", "a b.kmt"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("recording needs root") && !said.contains("mount"), "{said}");
    assert!(said.trim_end().ends_with("record -d 1s -o 'a b.kmt'"), "{said}");
}

#[test]
fn a_folder_that_the_user_may_not_write_is_not_the_reason() {
    for args in [
        &["record", "-d", "1s"][..],
        &["record", "-d", "1s", "-o", "x.kmt"],
        &["record", "--raw"],
        &["record", "--repeat", "2", "--", "true"],
    ] {
        let output = as_user_in(0o555, args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with("kmt-capture: recording needs root\n"), "{said}");
    }
}

#[test]
fn check_does_not_take_for_missing_what_only_root_may_read() {
    let output = as_user(&["check"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["no /proc/slabinfo", "not mounted"] {
        assert!(!said.contains(part), "{part}: {said}");
    }
    // The program is not root: where the file is, it is the reason.
    let exists = Path::new("/proc/slabinfo").exists();
    assert!(!exists || said.contains("only root may read /proc/slabinfo"), "{said}");
}
