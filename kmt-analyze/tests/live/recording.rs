//! A live recording against the running kernel's own text.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::agreement::{Mask, agree};
use crate::support::alone::Alone;
use crate::support::reference::Reference;
use kmt_capture::failure::Outcome;
use kmt_capture::record::{self, Options};
use kmt_format::read::Trace;

const TASK_EVENTS: [&str; 4] =
    ["task/task_newtask", "task/task_rename", "sched/sched_process_exit", "cgroup/cgroup_attach_task"];

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("kmt-live-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn load() -> Vec<OsString> {
    // Many at once, so that small buffers overflow.
    let script =
        "find /usr/lib /etc -type f 2> /dev/null | head -300 | xargs -n 40 -P 8 cat > /dev/null 2>&1";
    ["sh", "-c", script].map(OsString::from).to_vec()
}

fn dump(path: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).arg("dump").arg(path).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Slab allocations as the summary counts them.
fn allocations(path: &Path, args: &[&str]) -> u64 {
    let program = env!("CARGO_BIN_EXE_kmt-analyze");
    let output = Command::new(program).args(["summary", "--json"]).args(args).arg(path).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    report["slab"]["alloc_events"].as_u64().unwrap()
}

#[test]
fn what_is_recorded_live_is_what_the_kernel_prints() {
    let Some(_alone) = Alone::or_skip() else { return };
    let scratch = Scratch::new();
    let ample = Options { command: load(), task_events: true, quiet: true, ..Options::default() };
    let tiny = Options { buffer_size: Some(64 << 10), ..ample.clone() };
    for (name, options) in [
        ("ample", ample.clone()),
        ("ample-raw", Options { verbatim: true, ..ample }),
        ("tiny", tiny.clone()),
        ("tiny-raw", Options { verbatim: true, ..tiny }),
    ] {
        let path = scratch.0.join(format!("{name}.kmt"));
        let reference = Reference::start(&["kmem"], &TASK_EVENTS, 32 << 10);
        let outcome = record::record(&Options { output: Some(path.clone()), ..options }).unwrap();
        let text = reference.text();
        let file = fs::read(&path).unwrap();
        let found =
            agree(&file, &dump(&path), &text, Mask::Nothing).unwrap_or_else(|e| panic!("{name}: {e}"));
        println!("{name}: {found:?}");
        assert!(found.lines > 10_000, "{name}: {found:?}");
        // An interrupt when ours was stopped may stand in front of our last line in one and behind it in the other.
        assert!(found.left <= 16, "{name}: {found:?}");
        assert!(found.moved * 100 < found.lines, "{name}: {found:?}");
        // The kernel forgets names where two tasks share a place in its table; it never has another one.
        let is_tiny = name.starts_with("tiny");
        assert!(found.renamed * 1000 < found.lines && (is_tiny || found.renamed == 0), "{name}: {found:?}");
        // What the text has and the file has not is what the kernel's counters say was lost.
        let trace = Trace::open(&file).unwrap();
        let counters = trace.metadata().counters.values().filter_map(|c| c.after?.lost_events());
        let lost: u64 = counters.sum();
        let told = found.lost + found.lost_before;
        if found.uncounted_before == 0 {
            assert_eq!(told, lost, "{name}: {found:?}");
        } else {
            // A buffer may be full before it is first read, and the kernel then marks the loss without a count: what
            // is in front of a file's first event has no neighbour to count from.
            assert!(told < lost, "{name}: {found:?}, {lost} by the kernel");
        }
        assert_eq!(lost > 0, is_tiny, "{name}: {found:?}");
        // What the recorder itself allocated can be left out.
        let (all, others) = (allocations(&path, &[]), allocations(&path, &["--without-recorder"]));
        assert!(others < all && others > all / 2, "{name}: {others} of {all}");
        assert_eq!(outcome, if is_tiny { Outcome::Incomplete } else { Outcome::Done });
    }
}
