//! Outputs are the same in every run and on any number of cores, byte for byte: the page, exports, charts, and reports with
//! groups. Maps over contents of a file are keyed in each run, so that their order differs in each.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files::{Scratch, data, run, stderr};

/// Captures with call stacks, with reclaim, and of another byte order.
fn captures() -> [PathBuf; 3] {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    [own.join("x86_64-6.18-stacks"), own.join("x86_64-6.1-reclaim"), data("s390x-6.1")]
}

/// The bytes that a command writes, on one core and on several.
fn same(scratch: &Scratch, args: &[&str], file: &Path) {
    let outputs = ["1", "3", "8"].map(|threads| {
        let target = scratch.0.join("output");
        let target = target.to_str().unwrap();
        let output = run(&[args, &["--threads", threads, "--force", "-o", target]].concat(), file);
        // A trace can lack what an output needs: then it says the same in every run.
        match output.status.code() {
            Some(0 | 3) => fs::read(target).unwrap(),
            code => {
                assert_eq!(code, Some(1), "{args:?}: {}", stderr(&output));
                output.stderr
            }
        }
    });
    for other in &outputs[1..] {
        let at = outputs[0].iter().zip(other).position(|(a, b)| a != b);
        let is_same = at.is_none() && outputs[0].len() == other.len();
        assert!(is_same, "{args:?}: two runs differ at byte {at:?} of {}", outputs[0].len());
    }
}

#[test]
fn pages_are_the_same_in_every_run() {
    for capture in captures() {
        let scratch = Scratch::new();
        let file = scratch.convert(&capture);
        same(&scratch, &["report"], &file);
    }
}

#[test]
fn exports_are_the_same_in_every_run() {
    for capture in captures() {
        let scratch = Scratch::new();
        let file = scratch.convert(&capture);
        for format in ["perfetto", "pprof", "dhat", "folded", "sqlite"] {
            same(&scratch, &["export", format], &file);
        }
        for of in ["objects", "call-sites", "callers", "leaks"] {
            same(&scratch, &["export", "csv", "--of", of], &file);
        }
    }
}

#[test]
fn charts_are_the_same_in_every_run() {
    let scratch = Scratch::new();
    let file = scratch.convert(&captures()[0]);
    for kind in
        ["timeline", "flame", "icicle", "waste", "lifetimes", "filling", "pageblocks", "ring", "treemap"]
    {
        same(&scratch, &["chart", kind], &file);
    }
}

#[test]
fn reports_are_the_same_in_every_run() {
    for capture in captures() {
        let scratch = Scratch::new();
        let file = scratch.convert(&capture);
        for args in [
            &["all", "--json"][..],
            &["all", "--wide"],
            &["callers", "--by", "function,cache", "--json"],
            &["lifetimes", "--by", "module,size", "--json"],
            &["timeline", "--by", "task", "--json"],
            &["latency", "--threshold", "1us", "--json"],
        ] {
            let outputs = ["1", "3", "8"].map(|threads| {
                let output = run(&[args, &["--threads", threads]].concat(), &file);
                (String::from_utf8(output.stdout).unwrap(), output.status.code())
            });
            assert!(matches!(outputs[0].1, Some(0 | 1 | 3)), "{args:?}");
            outputs[1..].iter().for_each(|other| assert_eq!(outputs[0], *other, "{args:?}"));
        }
    }
}
