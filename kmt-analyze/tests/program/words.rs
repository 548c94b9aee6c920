//! Words on screens that a reader has to understand without the source: causes, bounds and headings.

use std::path::PathBuf;

use crate::support::files::{Scratch, data, run, stdout};

/// A recording that lost as many events by the counters of the kernel.
fn lossy(scratch: &Scratch) -> PathBuf {
    scratch.changed("x86_64-6.1", |folder| {
        let stats = folder.join("tracefs/per_cpu/cpu0/stats");
        let text = std::fs::read_to_string(&stats).unwrap();
        std::fs::write(stats, text.replace("overrun: 0\ncommit", "overrun: 9999\ncommit")).unwrap();
    })
}

/// The text of a screen without its line breaks.
fn screen(args: &[&str], file: &std::path::Path) -> String {
    let words: Vec<String> = stdout(&run(args, file)).split_whitespace().map(str::to_owned).collect();
    words.join(" ")
}

#[test]
fn terms_of_reconcile_have_no_codes() {
    let scratch = Scratch::new();
    let text = screen(&["reconcile"], &scratch.convert(&data("x86_64-6.1")));
    assert!(text.contains("implied frees: address allocated again"), "{text}");
    assert!(!text.contains("(R"), "{text}");
}

#[test]
fn live_objects_without_a_bound_name_the_cause() {
    let scratch = Scratch::new();
    let file = lossy(&scratch);
    for report in ["callers", "caches"] {
        let text = screen(&[report, "--wide"], &file);
        assert!(text.contains(" no bound "), "{report}: {text}");
        assert!(text.contains("No bound: events were lost, and the file has no /proc/slabinfo"), "{text}");
        assert!(!text.contains("has no events or stacks"), "{report}: {text}");
    }
}
