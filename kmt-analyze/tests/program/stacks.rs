//! A stack belongs to its event, in every report and export, whatever the events come from.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files::{Scratch, at, convert, json, run, stderr, stdout};
use serde_json::Value;

fn capture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/x86_64-6.18-stacks")
}

/// Sums by path of symbols; the order of equal weights follows addresses, which a text does not have.
fn paths(node: &Value, path: &str, out: &mut BTreeMap<String, (u64, u64)>) {
    let number = |key: &str| node[key].as_u64().unwrap();
    out.insert(path.to_owned(), (number("alloc_events"), number("bytes_alloc")));
    for child in node["children"].as_array().unwrap() {
        paths(child, &format!("{path};{}", child["symbol"].as_str().unwrap()), out);
    }
}

fn callgraph(file: &Path) -> (BTreeMap<String, (u64, u64)>, u64) {
    let graph = json(&["callgraph", "--json", "--min", "0"], file);
    let mut out = BTreeMap::new();
    paths(&graph["callgraph"]["root"], "", &mut out);
    (out, graph["callgraph"]["without_stack"]["alloc_events"].as_u64().unwrap())
}

fn of_text(scratch: &Scratch, text: &str) -> PathBuf {
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    fs::write(&input, text).unwrap();
    convert(&input, &output, None).unwrap();
    output
}

#[test]
fn a_text_has_the_stacks_of_its_raw_buffers() {
    let scratch = Scratch::new();
    let raw = callgraph(&scratch.convert(&capture()));
    assert_eq!(raw.1, 0, "every allocation has a stack");
    assert!(raw.0.len() > 100, "{} places", raw.0.len());
    let text = of_text(&scratch, &fs::read_to_string(capture().join("trace.txt")).unwrap());
    assert_eq!(callgraph(&text), raw);
}

/// A text: an allocation, what comes between, a stack.
fn text(between: &str) -> String {
    let head = "            sh-121     [000] .....     1.00000";
    format!(
        "{head}1: kmalloc: call_site=one+0x1/0x20 ptr=ffff888100001000 bytes_req=60 bytes_alloc=64 gfp_flags=GFP_KERNEL node=-1 accounted=false\n\
         {head}2: mm_page_alloc: page=ffffea0000000040 pfn=0x1 order=0 migratetype=0 gfp_flags=GFP_KERNEL\n\
         {head}2: <stack trace>\n => pages_of+0x1/0x20\n\
         {head}3: kmalloc: call_site=two+0x1/0x20 ptr=ffff888100002000 bytes_req=60 bytes_alloc=64 gfp_flags=GFP_KERNEL node=-1 accounted=false\n\
         {between}\
         {head}5: <stack trace>\n => trace_event_raw_event_kmalloc+0x1/0x20\n => kmalloc_trace+0x1/0x20\n => inner+0x1/0x20\n => outer+0x1/0x20\n"
    )
}

#[test]
fn a_stack_goes_to_the_last_event_and_to_no_other() {
    let head = "            sh-121     [000] .....     1.000004: ";
    let interrupt = "            sh-121     [000] d.h..     1.000004: ";
    let other = "kfree: call_site=three+0x1/0x20 ptr=ffff888100001000";
    let elsewhere = "            sh-121     [001] .....     1.000004: ";
    for (between, is_joined) in [
        (String::new(), true),
        (format!("{interrupt}{other}\n"), true),
        (format!("{elsewhere}{other}\n"), true),
        (format!("{interrupt}{other}\n{interrupt}<stack trace>\n => deep+0x1/0x20\n"), true),
        (format!("{head}{other}\n"), false),
        (format!("{head}rss_stat: mm_id=1 curr=1 type=MM_FILEPAGES size=4096B\n"), false),
        (format!("{head}some_driver_event: hello\n"), false),
        ("CPU:0 [LOST 3 EVENTS]\n".to_owned(), false),
        (format!("{head}schedule <-do_idle\n"), false),
        (
            format!(
                "{head}mm_page_alloc: page=ffffea0000000080 pfn=0x2 order=0 migratetype=0 gfp_flags=GFP_KERNEL\n"
            ),
            false,
        ),
    ] {
        let scratch = Scratch::new();
        let file = of_text(&scratch, &text(&between));
        let folded = stdout(&run(&["export", "folded", "--by", "count"], &file));
        let graph = json(&["callgraph", "--json", "--min", "0"], &file);
        let objects = stdout(&run(&["export", "ndjson", "--of", "objects"], &file));
        let stacks: Vec<bool> = objects
            .lines()
            .map(|line| !serde_json::from_str::<Value>(line).unwrap()["stack"].is_null())
            .collect();
        if is_joined {
            assert!(folded.contains("outer;inner;["), "{between}: {folded}");
            assert_eq!(graph["callgraph"]["without_stack"]["alloc_events"], 1, "{between}");
            assert_eq!(stacks.iter().filter(|s| **s).count(), 1, "{between}: {objects}");
        } else {
            assert!(!folded.contains("inner") && folded.contains("two;["), "{between}: {folded}");
            assert!(at(&graph, "/callgraph").is_null(), "{between}: {graph}");
            assert!(stacks.iter().all(|s| !s), "{between}: {objects}");
        }
        // The page allocation has its own, whatever comes later.
        let pages = json(&["pages", "--json"], &file);
        let callers = at(&pages, "/pages/callers").to_string();
        assert!(callers.contains("pages_of"), "{between}: {pages}");
    }
}

#[test]
fn exports_begin_with_the_first_function_that_is_none_of_the_allocator() {
    let scratch = Scratch::new();
    let file = scratch.convert(&capture());
    let folded = stdout(&run(&["export", "folded"], &file));
    assert!(folded.lines().count() > 20);
    for line in folded.lines() {
        assert!(!line.contains("trace_event_raw_event_") && !line.contains("kmem_cache_alloc"), "{line}");
    }
    let dhat = stdout(&run(&["export", "dhat"], &file));
    assert!(!dhat.contains("trace_event_raw_event_"), "{dhat}");
}

#[test]
fn chains_of_perf_script_are_stacks() {
    let scratch = Scratch::new();
    let text = "\
sh   121 [000]     1.000001: kmem:kmalloc: call_site=ffffffff81000011 ptr=0xffff888100001000 bytes_req=60 bytes_alloc=64 gfp_flags=GFP_KERNEL
\tffffffff81000121 __kmalloc+0x21 ([kernel.kallsyms])
\tffffffff81000211 inner+0x11 ([kernel.kallsyms])
\tffffffff81000311 outer+0x11 ([kernel.kallsyms])
\t    7f22d0da3b0b __write+0x1b (/usr/lib/libc.so.6)

sh   121 [000]     1.000002: kmem:kfree: call_site=ffffffff81000011 ptr=0xffff888100001000
\tffffffff81000411 elsewhere+0x11 ([kernel.kallsyms])
";
    let file = of_text(&scratch, text);
    let folded = stdout(&run(&["export", "folded", "--by", "count"], &file));
    assert_eq!(folded, "outer;inner;[kmalloc-64] 1\n");
}

#[test]
fn perfs_rule_finds_callers_in_stacks_of_ftrace() {
    let scratch = Scratch::new();
    let file = scratch.convert(&capture());
    let text = stdout(&run(&["summary", "--compat", "perf-kmem", "--page", "--caller"], &file));
    let callers: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.contains("| Callsite"))
        .skip(2)
        .take_while(|line| !line.starts_with('-'))
        .filter_map(|line| line.rsplit('|').next())
        .map(str::trim)
        .collect();
    // perf skips allocators by `^_?_?(alloc|get_free|get_zeroed)_pages?` (tools/perf/builtin-kmem.c, 6.1): not this one.
    assert!(
        callers.len() == 4 && callers.iter().all(|name| *name == "__alloc_frozen_pages_noprof"),
        "{callers:?}"
    );
}

#[test]
fn a_call_graph_without_stacks_is_refused_as_a_table() {
    let scratch = Scratch::new();
    let file = of_text(&scratch, &text("").replace("5: <stack trace>", "4: other: x\n#"));
    for (args, remedy, head) in [
        (
            &["callgraph", "--csv"][..],
            "record with --stack 'kmem:kmalloc' --stack 'kmem:kmem_cache_alloc'",
            "function,file,line\r\n",
        ),
        (&["export", "ndjson", "--of", "callgraph"], "--stack 'kmem:kmalloc'", ""),
    ] {
        let output = run(args, &file);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(remedy), "{args:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), head, "{args:?}");
    }
    assert_eq!(run(&["callgraph", "--pages", "--csv"], &file).status.code(), Some(0));
}
