//! Tasks of the trace where none matches: those with most events first, kernel threads last.

use std::fs;

use kmt_format::write::Task;

use crate::model::{BASE, Crafted};
use crate::support::files::{Scratch, run, stdout};
use crate::support::model::{Event, What};

#[test]
fn tasks_with_most_events_are_first_and_kernel_threads_last() {
    let scratch = Scratch::new();
    let mut trace = Crafted::new();
    trace.release("6.1.0");
    let tasks = [(14, "ksoftirqd/0"), (20, "quiet"), (30, "busy"), (45, "kswapd0")];
    trace.writer.add_tasks(&tasks.map(|(pid, name)| Task::new(pid, name))).unwrap();
    let mut time = 1_000_000;
    for (pid, number) in [(14, 90), (20, 2), (30, 40), (45, 3), (0, 70)] {
        for object in 0..number {
            time += 1_000;
            let what =
                What::Alloc { kmalloc: true, site: 77, ptr: BASE + (object << 13), req: 64, alloc: 64 };
            trace.event(&Event { time, cpu: 0, pid, what });
            trace.event(&Event {
                time: time + 1,
                cpu: 0,
                pid,
                what: What::Free { kfree: true, ptr: BASE + (object << 13) },
            });
        }
    }
    let file = scratch.0.join("tasks.kmt");
    fs::write(&file, trace.writer.finish().unwrap()).unwrap();
    let is_sorted = |text: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix("tasks: ")).unwrap_or_default();
        let tasks: Vec<&str> = line.split(", ").collect();
        assert_eq!(tasks.len(), 5, "{text}");
        assert_eq!(
            (&tasks[..2], &tasks[2..]),
            (&["busy-30", "quiet-20"][..], &["ksoftirqd/0-14", "<idle>-0", "kswapd0-45"][..]),
            "{text}"
        );
    };
    is_sorted(&stdout(&run(&["callers", "--comm", "nosuchname"], &file)));
}
