//! perf's own recording of this machine, and perf's own report of it.

use std::process::Command;

use crate::support::alone::Alone;
use crate::support::files::{Scratch, convert, run, same_dump, stderr, stdout};
use crate::support::skip::{Lack, skip};

#[test]
fn perf_kmem_prints_the_same() {
    let Some(_alone) = Alone::or_skip() else { return };
    if Command::new("perf").arg("--version").output().is_err() {
        return skip(Lack::Program, "perf is not installed");
    }
    let scratch = Scratch::new();
    let recording = scratch.0.join("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["kmem", "--slab", "--page", "record", "-m", "4096", "-o"]).arg(&recording);
    perf.args(["--", "sh", "-c", "find /usr/share -type f | head -300 | xargs cat > /dev/null"]);
    let recorded = perf.output().unwrap();
    if !recorded.status.success() {
        return skip(Lack::Machine, &format!("perf cannot record: {}", stderr(&recorded)));
    }
    let file = scratch.0.join("perf.kmt");
    convert(&recording, &file, None).unwrap();
    let mut compared = 0;
    for options in [
        &["--slab"][..],
        &["--slab", "--caller", "--alloc"],
        &["--slab", "--caller", "-l", "7"],
        &["--page"],
        &["--page", "--caller", "--alloc"],
        &["--slab", "--page", "--caller"],
        &["--slab", "--caller", "-s", "pingpong,hit"],
        &["--slab", "--alloc", "-s", "callsite,bytes"],
        &["--page", "--caller", "-s", "order,migtype,hit"],
        &["--page", "--alloc", "-s", "gfp,page"],
    ] {
        let perf = Command::new("perf")
            .args(["kmem", "-f", "-i"])
            .arg(&recording)
            .args(options)
            .arg("stat")
            .output();
        let perf = perf.unwrap();
        // Where perf gives up there is nothing to compare with.
        if String::from_utf8_lossy(&perf.stderr).contains("error during process events") {
            continue;
        }
        let names_callers = options.contains(&"--caller") || options.contains(&"--alloc");
        let ours = run(&[&["summary", "--compat", "perf-kmem"], options].concat(), &file);
        // Other processes' frame pointers may be such that perf drops the chain of an event.
        if names_callers && options.contains(&"--page") && stderr(&ours).contains("for corrupt") {
            continue;
        }
        same_dump(&stdout(&ours), &String::from_utf8_lossy(&perf.stdout), &format!("{options:?}"));
        compared += 1;
    }
    assert!(compared > 0, "perf read nothing of its own recording");
}
