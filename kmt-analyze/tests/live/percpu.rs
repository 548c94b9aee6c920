//! Percpu memory of network namespaces that the running kernel makes, against the line Percpu of /proc/meminfo. Needs root
//! and tracefs.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use kmt_capture::record::{Options, Preset};

use serde_json::Value;

use super::memory::{options, record_as};
use crate::support::alone::Alone;
use crate::support::files::{Scratch, json};

/// Processes in a network namespace of their own each.
struct Namespaces(Vec<Child>);

impl Namespaces {
    fn new(count: usize) -> Self {
        let start = |_| {
            let mut command = Command::new("unshare");
            command.args(["--net", "sleep", "180"]).stdin(Stdio::null()).stdout(Stdio::null());
            command.spawn().unwrap()
        };
        Self((0..count).map(start).collect())
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The line Percpu of /proc/meminfo, in bytes.
fn percpu() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Percpu:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Namespaces that use the room that earlier ones left: the allocator keeps pages of areas that were freed.
fn fillers() -> Vec<Namespaces> {
    let (before, mut all) = (percpu(), Vec::new());
    while percpu() < before + (512 << 10) && all.len() < 20 {
        all.push(Namespaces::new(100));
        thread::sleep(Duration::from_secs(3));
    }
    all
}

/// The allocator takes pages in steps, and has some that are not used: of 4 MiB and more that is less than 5 %.
#[test]
#[ignore = "what else the machine does decides, too: .ci/nightly runs it, up to three times"]
fn bytes_are_those_of_meminfo() {
    let Some(_alone) = Alone::or_skip() else { return };
    let scratch = Scratch::new();
    let path = scratch.0.join("percpu.kmt");
    let length = Duration::from_secs(40);
    let options = Options { preset: Some(Preset::All), duration: Some(length), ..options(&path) };
    let _fillers = fillers();
    record_as(options, || {
        let namespaces = Namespaces::new(1_000);
        thread::sleep(Duration::from_secs(25));
        namespaces
    });
    let areas = json(&["percpu", "--json"], &path)["areas"].take();
    let number =
        |at: &str| areas.pointer(at).and_then(Value::as_u64).unwrap_or_else(|| panic!("{at}: {areas:#}"));
    let (live, freed_older) = (number("/total/bytes_live"), number("/frees_unmatched"));
    let grew = number("/percpu/bytes_after") - number("/percpu/bytes_before");
    println!("{live} bytes live, {freed_older} older ones freed, Percpu grew by {grew}");
    assert!(live >= 4 << 20, "{live} bytes are too few to compare");
    assert!(live.abs_diff(grew) * 20 <= grew, "{live} live, Percpu grew by {grew}");
}
