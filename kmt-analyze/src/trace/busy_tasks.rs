//! Order of tasks in messages: those with most events first, kernel threads last.
//!
//! Where no task matches, its name was mistyped or is of a program: kernel threads, which are on every kernel, are of no help. Events are
//! counted in at most about four million of them, evenly over the file.

use std::collections::HashMap;

use kmt_format::read::{Event, Trace};

use super::comms::Comms;

/// Events that are counted, about.
const EVENTS_MAX: u64 = 1 << 22;

/// Beginnings of names of kernel threads (kernel/workqueue.c, kernel/smpboot.c users, mm/vmscan.c, mm/compaction.c, kernel/rcu,
/// fs/jbd2, kernel/irq/manage.c; 4.4 to 7.2).
const KERNEL_THREADS: [&[u8]; 24] = [
    b"<idle>",
    b"swapper",
    b"kworker/",
    b"ksoftirqd/",
    b"migration/",
    b"rcu_",
    b"rcuc/",
    b"rcuop/",
    b"rcuog/",
    b"rcuos/",
    b"rcub/",
    b"cpuhp/",
    b"idle_inject/",
    b"irq/",
    b"kthreadd",
    b"kswapd",
    b"kcompactd",
    b"khugepaged",
    b"ksmd",
    b"kdevtmpfs",
    b"kauditd",
    b"khungtaskd",
    b"jbd2/",
    b"oom_reaper",
];

/// Sorts tasks with these numbers of events.
pub fn sort(pids: &mut [i32], events: &HashMap<i32, u64>, names: &Comms) {
    pids.sort_by_cached_key(|pid| {
        let name = names.shown_at(*pid, u64::MAX);
        let is_kernel_thread = *pid == 0 || KERNEL_THREADS.iter().any(|begin| name.starts_with(begin));
        (is_kernel_thread, std::cmp::Reverse(events.get(pid).copied().unwrap_or(0)), *pid)
    });
}

/// Events by task, of a part of the chunks.
pub fn events(trace: &Trace<'_>) -> HashMap<i32, u64> {
    let step = usize::try_from(trace.event_count().div_ceil(EVENTS_MAX)).unwrap_or(usize::MAX).max(1);
    let schema = trace.schema();
    let mut sums: HashMap<i32, u64> = HashMap::new();
    for stream in trace.streams().values() {
        for (chunk, _) in stream.chunks.iter().step_by(step) {
            // A damaged chunk is reported elsewhere.
            let Ok(chunk) = trace.read(chunk) else { continue };
            for event in (0..).map_while(|index| Event::new(schema, &chunk, index)) {
                *sums.entry(event.pid()).or_default() += 1;
            }
        }
    }
    sums
}
