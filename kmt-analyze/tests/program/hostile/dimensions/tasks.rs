//! Many tasks, and what they do: their cgroups, stacks and waits.

use kmt_format::tables::CgroupRecord;
use kmt_format::write::Task;

use super::{HEAP, LONG, SITE, bytes};
use crate::support::hostile::Made;

/// Each object and each page is of another task.
pub fn tasks(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        made.kmalloc(0, i as i32, SITE, HEAP + i * 64);
        made.pages(0, i as i32, i * 2, 1);
    }
    made.finish()
}

/// Names and thread groups of tasks; two events of each.
pub fn rows(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let row = |i: u64| Task::new(i as i32, format!("task{i}")).tgid((i / 10 * 10) as i32);
    made.writer().add_tasks(&(0..count).map(row).collect::<Vec<_>>()).unwrap();
    (0..count * 2).for_each(|i| made.kmalloc(0, (i % count) as i32, SITE, HEAP + i * 64));
    made.finish()
}

/// Tasks that each start the next one and exit.
pub fn task_events(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let task = [("pid_t", "pid", 4), ("char", "comm", 1)];
    made.class("task", "task_newtask", 20, &task[..1], "\"pid=%d\", REC->pid");
    made.class("sched", "sched_process_exit", 21, &task[..1], "\"pid=%d\", REC->pid");
    for i in 0..count {
        let pid = i as i32 + 10;
        made.event(0, 20, pid, &(pid + 1).to_le_bytes());
        made.kmalloc(0, pid, SITE, HEAP + i * 64);
        made.event(0, 21, pid, &pid.to_le_bytes());
    }
    made.finish()
}

/// One task in ever another cgroup.
pub fn cgroups_of_one(count: u64) -> Vec<u8> {
    in_cgroups(count, |_| 7)
}

/// Each task in a cgroup of its own.
pub fn cgroups(count: u64) -> Vec<u8> {
    in_cgroups(count, |i| i as i32)
}

fn in_cgroups(count: u64, pid: impl Fn(u64) -> i32) -> Vec<u8> {
    let mut made = Made::default();
    let paths: Vec<String> = (0..count).map(|i| format!("/slice{}/{i}", i % 100)).collect();
    let rows = paths.iter().zip(0..).map(|(path, i)| {
        let mut row = CgroupRecord::new(pid(i), path.as_bytes());
        row.time = 1_000_000 + i * 100;
        row
    });
    made.writer().add_cgroups(&rows.collect::<Vec<_>>()).unwrap();
    (0..count).for_each(|i| made.kmalloc(0, pid(i), SITE, HEAP + i * 64));
    made.finish()
}

/// Each object has a stack of its own.
pub fn stacks(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        made.kmalloc(0, 7, SITE, HEAP + i * 64);
        made.stack(0, 7, &[SITE + i * 16, SITE + i * 32, SITE + i % 100 * 16, SITE]);
    }
    made.finish()
}

/// Stacks of that many addresses.
pub fn depth(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..40 {
        made.kmalloc(0, 7, SITE, HEAP + i * 64);
        let stack: Vec<u64> = (0..count).map(|k| SITE + (i * count + k) % 65_000 * 16).collect();
        made.stack(0, 7, &stack);
    }
    made.finish()
}

/// Stacks of functions that call themselves and each other, each deeper than the one before.
pub fn recursion(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..40 {
        made.kmalloc(0, 7, SITE, HEAP + i * 64);
        let stack: Vec<u64> = (0..count * (i + 1) / 40).map(|k| SITE + k * k % 7 * 16).collect();
        made.stack(0, 7, &stack);
    }
    made.finish()
}

/// Direct reclaim of many tasks, one within the time of the other.
pub fn stalls(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let fields = [("int", "order", 4), ("unsigned int", "gfp_flags", 4)];
    made.class("vmscan", "mm_vmscan_direct_reclaim_begin", 20, &fields, "\"%d\", REC->order");
    let fields = [(LONG, "nr_reclaimed", 8)];
    made.class("vmscan", "mm_vmscan_direct_reclaim_end", 21, &fields, "\"%lu\", REC->nr_reclaimed");
    for i in 0..count {
        made.event(0, 20, i as i32 + 10, &bytes(&[0xcc0 << 32]));
        if i >= 100 {
            made.event(0, 21, (i - 100) as i32 + 10, &bytes(&[i]));
        }
    }
    made.kmalloc(0, 7, SITE, HEAP);
    made.finish()
}

/// Shrinkers that each have a function.
pub fn shrinkers(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let fields = [("struct shrinker *", "shr", 8), ("void *", "shrink", 8), ("long", "retval", 8)];
    made.class("vmscan", "mm_shrink_slab_start", 20, &fields[..2], "\"%p\", REC->shr");
    made.class("vmscan", "mm_shrink_slab_end", 21, &fields, "\"%p\", REC->shr");
    for i in 0..count {
        made.event(0, 20, 7, &bytes(&[HEAP + i * 64, SITE + i * 16]));
        made.event(0, 21, 7, &bytes(&[HEAP + i * 64, SITE + i * 16, 1]));
    }
    made.kmalloc(0, 7, SITE, HEAP);
    made.finish()
}
