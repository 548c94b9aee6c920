//! Recordings made inside other kernels by `.ci/lab`, against those kernels' own text.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::agreement::{Mask, agree};
use crate::support::files::{json, run, stdout};
use crate::support::findings::check;

#[test]
#[ignore = "KMT_LAB names a folder that .ci/lab left"]
fn what_was_recorded_in_other_kernels_is_what_they_print() {
    let folder = std::env::var_os("KMT_LAB").expect("KMT_LAB names a folder that .ci/lab left");
    let mut compared = 0;
    for case in fs::read_dir(&folder).unwrap().flatten().map(|e| e.path()) {
        let file = case.join("live.kmt");
        if !file.exists() {
            continue;
        }
        let dump = dump(&file);
        let file = fs::read(&file).unwrap();
        for (text, mask) in [("text.txt", Mask::Pointers), ("text.ptr.txt", Mask::Texts)] {
            let text = String::from_utf8_lossy(&fs::read(case.join(text)).unwrap()).into_owned();
            let found = agree(&file, &dump, &text, mask);
            let found = found.unwrap_or_else(|e| panic!("{} {mask:?}: {e}", case.display()));
            println!("{} {mask:?}: {found:?}", case.display());
            assert!(found.lines > 5_000 && found.left <= 16, "{found:?}");
            assert!(found.moved * 50 < found.lines && found.renamed == 0, "{found:?}");
            compared += 1;
        }
    }
    assert!(compared > 0, "nothing to compare");
}

/// What a probe saw being handed over ends lives, and no more of them end unseen than without.
#[test]
#[ignore = "KMT_LAB names a folder that .ci/lab left"]
fn what_is_handed_to_kfree_rcu_ends() {
    let folder = std::env::var_os("KMT_LAB").expect("KMT_LAB names a folder that .ci/lab left");
    let file = Path::new(&folder).join("kfree_rcu.kmt");
    if !file.exists() {
        println!("this kernel has no kprobe_events");
        return;
    }
    let lines: Vec<String> = dump(&file).lines().map(str::to_owned).collect();
    let handed: Vec<&String> = lines.iter().filter(|line| line.contains(" kvfree_call_rcu: ")).collect();
    assert!(!handed.is_empty(), "no object was handed over");
    let summary = json(&["summary", "--json"], &file);
    let number = |key: &str| summary["slab"][key].as_u64().unwrap();
    println!(
        "{} handed over, {} ended unseen, {} freed",
        handed.len(),
        number("freed_unseen"),
        number("frees_matched")
    );
    assert!(number("freed_unseen") * 100 < number("frees_matched"), "{summary:#}");
    let range = &summary["slab"]["live_range"];
    assert!(range[1].as_u64().unwrap() >= number("live"), "{range}");
    assert!(lines.iter().any(|l| l.contains("kvfree_call_rcu") && l.contains("object=0x")), "{}", handed[0]);
}

/// On a system that does nothing only the recording is reported.
#[test]
#[ignore = "KMT_LAB names a folder that .ci/lab left"]
fn an_idle_guest_has_no_finding() {
    let folder = std::env::var_os("KMT_LAB").expect("KMT_LAB names a folder that .ci/lab left");
    let file = Path::new(&folder).join("idle.kmt");
    check(&file);
    let document = json(&["findings", "--json"], &file);
    let sentence = document["recording"]["sentence"].as_str().unwrap();
    println!("idle: {sentence}");
    assert!(document["recording"]["length"].as_u64().unwrap() > 10_000_000_000, "{sentence}");
    assert_eq!(document["findings"].as_array().unwrap().len(), 0, "{document:#}");
    let screen = stdout(&run(&["--wide"], &file));
    assert_eq!(screen.lines().next(), Some(sentence), "{screen}");
    assert_eq!(screen.lines().nth(1), Some(""), "{screen}");
}

fn dump(path: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kmt-analyze")).arg("dump").arg(path).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}
