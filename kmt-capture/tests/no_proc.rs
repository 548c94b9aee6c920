//! Targets without /proc, on kernels that do not tell a process its auxiliary vector otherwise (before 6.4): each command
//! does what it can, and fails with a message.

mod support;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use support::alone::{Alone, is_foreign};
use support::skip::{Lack, skip};

/// Makes `prctl(PR_GET_AUXV)` fail as kernels before 6.4 do, for this process and its children.
fn refuse_auxv() -> std::io::Result<()> {
    const PR_GET_AUXV: u32 = 0x4155_5856;
    // Low half of the first argument in `struct seccomp_data`.
    const FIRST_ARGUMENT: u32 = if cfg!(target_endian = "big") { 20 } else { 16 };
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let step = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let mut steps = [
        step(LOAD, 0, 0),
        step(EQUAL, 3, libc::SYS_prctl as u32),
        step(LOAD, 0, FIRST_ARGUMENT),
        step(EQUAL, 1, PR_GET_AUXV),
        step(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32),
        step(RETURN, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: both calls read only their arguments; `program` and `steps` live until they return.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
    };
    if refused { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// Runs the program where /proc is empty.
fn without_proc(args: &[&str]) -> Output {
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs none /proc && exec \"$kmt\" \"$@\"";
    command.args(["-m", "--propagation", "private", "sh", "-c", script, "sh"]).args(args);
    command.env("kmt", std::env::var_os("KMT_PROGRAM").unwrap_or(env!("CARGO_BIN_EXE_kmt-capture").into()));
    // SAFETY: what runs between fork and exec makes two system calls and allocates nothing.
    unsafe { command.pre_exec(refuse_auxv) };
    command.output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn no_command_needs_proc() {
    if !Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success()) {
        return skip(Lack::Machine, "no mount namespace can be made: run the tests as root, with util-linux");
    }
    let folder = std::env::temp_dir().join(format!("kmt-no-proc-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let commands: &[&[&str]] = &[
        &["--help"],
        &["--version"],
        &["help", "record"],
        &["clean"],
        &["snippet"],
        #[cfg(feature = "docs")]
        &["man"],
        #[cfg(feature = "docs")]
        &["completions", "bash"],
    ];
    for args in commands {
        let output = without_proc(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", told(&output));
        assert_eq!(told(&output), "", "{args:?}");
    }
    let missing = folder.join("missing").display().to_string();
    let to = folder.join("out.kmt").display().to_string();
    for (args, message) in [
        (&["record", "--tracefs", &missing, "-o", &to][..], "is not a tracefs mount"),
        (&["check", "--tracefs", &missing], "this system cannot record"),
        #[cfg(feature = "convert")]
        (&["convert", &missing, "-o", &to], "No such file"),
    ] {
        let output = without_proc(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", told(&output));
        assert!(told(&output).contains(message) && !told(&output).contains("panicked"), "{}", told(&output));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_target_without_proc_is_recorded() {
    let Some(_alone) = Alone::or_skip() else { return };
    // Only what these commands leave counts: a killed program may have left an instance of its own before.
    let before = kmt_instances();
    let path = std::env::temp_dir().join(format!("kmt-no-proc-{}.kmt", std::process::id()));
    let to = path.display().to_string();
    let output = without_proc(&["record", "-b", "4M", "-o", &to, "--", "sleep", "0.3"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", told(&output));
    for note in ["no process watches this recorder", "no /proc/kallsyms", "sleep exited with 0"] {
        assert!(told(&output).contains(note), "{note}: {}", told(&output));
    }
    let bytes = std::fs::read(&path).unwrap();
    let trace = kmt_format::read::Trace::open(&bytes).unwrap();
    assert!(trace.is_finished() && trace.event_count() > 0);
    assert!(trace.header().page_size.is_some_and(|size| size.is_power_of_two() && size >= 4096));
    std::fs::remove_file(path).unwrap();
    let check = without_proc(&["check", "--list"]);
    assert_eq!(check.status.code(), Some(0), "{}", told(&check));
    assert!(String::from_utf8_lossy(&check.stdout).contains("/proc/meminfo cannot be read"));
    let left: Vec<_> =
        kmt_instances().difference(&before).filter(|name| !is_foreign(name)).cloned().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Names of the tracing instances that kmt's programs make.
fn kmt_instances() -> BTreeSet<String> {
    let instances = PathBuf::from(support::alone::TRACING).join("instances");
    let names = std::fs::read_dir(instances).unwrap().flatten().map(|entry| entry.file_name());
    names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.starts_with("kmt-")).collect()
}
