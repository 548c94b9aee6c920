//! What a user who is not root is answered.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs the program as a user without rights, in a folder with this mode that has a folder `closed`. That user may not reach the folder of the build.
fn as_user(args: &[&str], mode: u32) -> Output {
    /// Tests run at the same time.
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("kmt-capture-user-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let closed = folder.join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o0)).unwrap();
    let program = folder.join("kmt-capture");
    fs::copy(env!("CARGO_BIN_EXE_kmt-capture"), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let mut command = Command::new(if is_root { Path::new("setpriv") } else { &program });
    if is_root {
        command.args(["--reuid", "65534", "--clear-groups"]).arg(&program);
    }
    let output = command.args(args).current_dir(&folder).output().unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    output
}

#[test]
fn recording_needs_root_and_the_line_for_root_is_given() {
    let output = as_user(&["record", "-d", "1s", "-o", "a b.kmt"], 0o777);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("recording needs root") && !said.contains("mount"), "{said}");
    assert!(said.trim_end().ends_with("record -d 1s -o 'a b.kmt'"), "{said}");
}

/// Where the user may not write, root may: the output is not the reason.
#[test]
fn root_is_asked_for_before_the_output() {
    let folder_is_given = ["record", "-d", "1s", "--tracefs", "closed/tracing"];
    let repeated = ["record", "--repeat", "2", "-o", "x.kmt", "--", "true"];
    for args in [
        &["record", "-d", "1s"][..],
        &["record", "-o", "x.kmt"],
        &["record", "--raw"],
        &repeated,
        &folder_is_given,
    ] {
        let output = as_user(args, 0o555);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("recording needs root") && !said.contains("denied"), "{said}");
        assert!(said.trim_end().ends_with(&args.join(" ")), "{said}");
    }
}

#[test]
fn check_does_not_take_for_missing_what_only_root_may_read() {
    let output = as_user(&["check"], 0o777);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["no /proc/slabinfo", "not mounted"] {
        assert!(!said.contains(part), "{part}: {said}");
    }
    // The program is not root: where the file is, it is the reason.
    let exists = Path::new("/proc/slabinfo").exists();
    assert!(!exists || said.contains("only root may read /proc/slabinfo"), "{said}");
}
