//! Columns of lines: those of other layouts, and those that are missing.

use crate::{converted, refused};

const FREE: &str = "kfree: call_site=f+0x1/0x20 ptr=ffff888100001000";

#[test]
fn lines_without_the_task() {
    let text = format!(
        "[002] ....   808.188897: {FREE}\n  [003] 808.188898: kmem:{FREE}\n[002] d..1. 808.188913: {FREE}\n"
    );
    let read = converted(&text);
    read.is_whole();
    let heads: Vec<&str> = read.lines.iter().map(|line| line.split_once(": ").unwrap().0).collect();
    assert_eq!(heads, ["?--1 [2] 808188897000", "?--1 [3] 808188898000", "?--1 [2] 808188913000"]);
    assert_eq!(read.texts(), [FREE; 3]);
    assert!(read.stderr.contains("3 events without a task"), "{}", read.stderr);
    // A task that is called so has its own columns.
    let read = converted(&format!(" [7] 9.0: kfree:-33 [002] ..... 1.700000: {FREE}\n"));
    assert_eq!(read.lines, [format!("[7] 9.0: kfree:-33 [2] 1700000000: {FREE}")], "{}", read.stderr);
}

#[test]
fn the_latency_format_with_verbose() {
    let text = format!(
        "# tracer: nop\n#\n# nop latency trace v1.1.5 on 6.1.0\n\
         \x20           bash    4043   1 0 00000000 00000000 [58127d26] 1720.415ms (+0.000ms): {FREE}\n\
         \x20      a b [c] d    4044   0 1 00000001 00000001 [58127d27] 1720.431ms (+0.016ms): {FREE}\n"
    );
    let read = converted(&text);
    read.is_whole();
    let expected =
        [format!("bash-4043 [1] 1720415000: {FREE}"), format!("a b [c] d-4044 [0] 1720431000: {FREE}")];
    assert_eq!(read.lines, expected);
    // A clock that counts.
    let read = converted(&format!(
        "            bash    4043   1 0 00000000 00000000 [0000000058127d26] 1720 (+0): {FREE}\n"
    ));
    assert_eq!(read.lines, [format!("bash-4043 [1] 1720: {FREE}")], "{}", read.stderr);
}

#[test]
fn a_refusal_names_the_columns_that_are_missing() {
    let event = "/* mm_page_alloc: page=0000000000000000 pfn=0 order=9 migratetype=1 gfp_flags=GFP_KERNEL */";
    let graph = |head: &str, task: &str| {
        format!(
            "# tracer: function_graph\n#\n# CPU  DURATION                  FUNCTION CALLS\n{head} 24){task}   0.141 us    |      __next_zones_zonelist();\n{head} 24){task}               |  {event}\n"
        )
    };
    for (text, says, not) in [
        (graph(" ", ""), &["lack the time and the task", "funcgraph-abstime", "funcgraph-proc"][..], "CPU"),
        (graph("  12.404427 | ", ""), &["the task", "funcgraph-proc"], "funcgraph-abstime"),
        (graph(" ", "    true-704    | "), &["the time", "funcgraph-abstime"], "funcgraph-proc"),
        (format!("sh-12 {FREE}\n"), &["lack the CPU and the time", "context-info"], "funcgraph"),
        (format!("sh 12 1.500000: {FREE}\n"), &["lack the CPU", "-F comm,tid,cpu,time"], "the time"),
        (format!("sh-12 [000] {FREE}\n"), &["lack the time", "context-info"], "the CPU"),
        // Names that look as a task and a CPU.
        (
            format!("sh 12 1.500000: {FREE}\n").repeat(99) + &format!("memfd:x-91 25291 1.600000: {FREE}\n"),
            &["lack the CPU"],
            "the time",
        ),
        (
            format!("sh 12 1.500000: {FREE}\n").repeat(99) + &format!("memfd:x-91 29 1.600000: {FREE}\n"),
            &["lack the CPU"],
            "the time",
        ),
    ] {
        let message = refused(&text);
        assert!(
            says.iter().all(|part| message.contains(part)) && !message.contains(not),
            "{text}: {message}"
        );
    }
}

/// perf script -F +flags: how a branch was made, of any sample.
#[test]
fn kinds_of_branches_between_time_and_event() {
    for kind in ["int", "call", "jmp   (x)", "tr strt jmp", "hw int", "return (xD)", "1 int", "int   1"] {
        let text = format!(
            "            sh    12 [001]    37.000001:                        kmem:{FREE}\n\
             \x20           sh    12 [001]    37.000002:   {kind:<18} kmem:{FREE}\n"
        );
        let read = converted(&text);
        read.is_whole();
        assert_eq!(
            read.lines,
            [format!("sh-12 [1] 37000001000: {FREE}"), format!("sh-12 [1] 37000002000: {FREE}")],
            "{kind}"
        );
    }
}

/// perf has no id of a task that was gone when it read its event: it is unknown, not task 1.
#[test]
fn tasks_without_an_id_are_unknown() {
    let columns = ["rust-lld 29737 [000]", ":-1    -1 [000]", ":-1    -1/-1    [000]", "init     1 [000]"];
    let texts: String = (1..)
        .zip(columns)
        .map(|(time, columns)| format!("{columns}  1.{time:06}: kmem:kfree: call_site=f+0x1 ptr=0x100\n"))
        .collect();
    let read = converted(&texts);
    read.is_whole();
    let tasks: Vec<&str> = read.lines.iter().map(|line| line.split_once(" [").unwrap().0).collect();
    assert_eq!(
        tasks.iter().map(|task| task.rsplit_once('-').unwrap().1).collect::<Vec<_>>(),
        ["29737", "1", "1", "1"]
    );
    assert!(tasks[1].ends_with("--1") && tasks[2].ends_with("--1") && tasks[3] == "init-1", "{tasks:?}");
}
