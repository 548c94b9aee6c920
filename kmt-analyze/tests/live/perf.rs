//! perf's own recording of this machine, and perf's own report of it.

use std::process::Command;

use crate::support::alone::Alone;
use crate::support::files::{Scratch, convert, run, same_dump, stdout};
use crate::support::skip::{Lack, skip};

#[test]
fn perf_kmem_prints_the_same() {
    let Some(_alone) = Alone::or_skip() else { return };
    let tool = |name: &str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    let scratch = Scratch::new();
    let recording = scratch.0.join("perf.data");
    let recorded = tool("perf").then(|| {
        let mut perf = Command::new("perf");
        perf.args(["kmem", "--slab", "--page", "record", "-m", "4096", "-o"]).arg(&recording);
        perf.args(["--", "sh", "-c", "find /usr/share -type f | head -300 | xargs cat > /dev/null"]).output()
    });
    if !recorded.is_some_and(|o| o.is_ok_and(|o| o.status.success())) {
        return skip(Lack::Program, "perf is not installed, or may not record");
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
        let ours = run(&[&["summary", "--compat", "perf-kmem"], options].concat(), &file);
        same_dump(&stdout(&ours), &String::from_utf8_lossy(&perf.stdout), &format!("{options:?}"));
        compared += 1;
    }
    assert!(compared > 0, "perf read nothing of its own recording");
}
