//! Which task holds what grows, and what counts as growth beside other work at the same call site, on traces made for it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use crate::support::files::{Scratch, convert, json, run, stdout};

/// Events by time, in microseconds.
#[derive(Default)]
struct Trace {
    lines: BTreeMap<(u64, usize), String>,
    next: u64,
}

impl Trace {
    fn event(&mut self, time_us: u64, task: &str, text: &str) {
        let number = self.lines.len();
        let (seconds, rest) = ((time_us + 1_000_000) / 1_000_000, time_us % 1_000_000);
        let line = format!("{task:>24}     [000] .....     {seconds}.{rest:06}: {text}");
        self.lines.insert((time_us, number), line);
    }

    /// An object of 256 bytes at an address of its own.
    fn alloc(&mut self, time_us: u64, task: &str, site: &str) -> u64 {
        self.next += 1;
        self.alloc_at(time_us, task, site, self.next * 256);
        self.next * 256
    }

    fn alloc_at(&mut self, time_us: u64, task: &str, site: &str, ptr: u64) {
        let text = format!(
            "kmalloc: call_site={site}+0x10/0x40 ptr=ffff8881{ptr:08x} bytes_req=256 bytes_alloc=256 gfp_flags=GFP_KERNEL node=-1 accounted=false"
        );
        self.event(time_us, task, &text);
    }

    fn free(&mut self, time_us: u64, task: &str, ptr: u64) {
        self.event(time_us, task, &format!("kfree: call_site=done+0x1/0x20 ptr=ffff8881{ptr:08x}"));
    }

    fn start(&mut self, time_us: u64, parent: &str, pid: u32, name: &str, is_thread: bool) {
        let flags = if is_thread { 0x3d_0f00 } else { 0x0120_0000 };
        let text = format!("task_newtask: pid={pid} comm={name} clone_flags={flags:x} oom_score_adj=0");
        self.event(time_us, parent, &text);
    }

    /// Objects that live for a moment, through the whole window: it has an end, and other work.
    fn turnover(mut self, seconds: u64) -> Self {
        for time in (0..seconds * 1_000_000).step_by(20_000) {
            let ptr = self.alloc(time, "worker-60", "turnover");
            self.free(time + 500, "worker-60", ptr);
        }
        self
    }

    /// The tables of `leaks`, and its first sentence.
    fn leaks(&self) -> (Value, String) {
        let scratch = Scratch::new();
        let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
        let mut text = String::new();
        self.lines.values().for_each(|line| writeln!(text, "{line}").unwrap());
        fs::write(&input, text).unwrap();
        convert(&input, &output, None).unwrap();
        let screen = stdout(&run(&["leaks", "--wide"], &output));
        (json(&["leaks", "--json"], &output)["leaks"].clone(), screen.lines().next().unwrap().to_owned())
    }
}

fn row<'l>(leaks: &'l Value, site: &str) -> &'l Value {
    let rows = leaks["callers"].as_array().unwrap();
    let found = rows.iter().find(|row| row["symbol"].as_str().unwrap().starts_with(site));
    found.unwrap_or_else(|| panic!("{leaks:#}"))
}

/// One task keeps five files a second; others start all the time, open thirty and close them when they end.
#[test]
fn the_holder_is_the_task_of_what_is_old() {
    let mut trace = Trace::default();
    (0..200).for_each(|n| _ = trace.alloc(n * 200_000 + 7, "holder-77", "alloc_file"));
    for n in 0..113u32 {
        let (time, task) = (u64::from(n) * 350_000, format!("python3-{}", 1000 + n));
        trace.start(time, "make-50", 1000 + n, "python3", false);
        let files: Vec<u64> =
            (0..30).map(|file| trace.alloc(time + file * 10, &task, "alloc_file")).collect();
        let end = time + 2_500_000;
        files.iter().filter(|_| end < 40_000_000).for_each(|&ptr| trace.free(end, &task, ptr));
    }
    let (leaks, first) = trace.turnover(40).leaks();
    assert_eq!(leaks["families"][0]["makers"]["tasks"], 1, "{leaks:#}");
    assert_eq!(row(&leaks, "alloc_file")["holders"][0]["task"], "holder-77", "{leaks:#}");
    assert!(first.contains("100 % of it by holder-77, at alloc_file"), "{first}");
}

/// The same beside many tasks that start late and still run: the growth began long before them.
#[test]
fn tasks_that_start_late_do_not_explain_what_is_old() {
    let mut trace = Trace::default();
    (0..600).for_each(|n| _ = trace.alloc(n * 66_000 + 7, "holder-77", "alloc_file"));
    for n in 0..400u32 {
        let time = 36_500_000 + u64::from(n) * 8_000;
        trace.start(time, "make-50", 1000 + n, "python3", false);
        trace.next += 1;
        let ptr = trace.next * 256;
        trace.event(
            time,
            "make-50",
            &format!(
                "kmem_cache_alloc: call_site=dup_task_struct+0x1/0x20 ptr=ffff8881{ptr:08x} name=task_struct bytes_req=4096 bytes_alloc=4096 gfp_flags=GFP_KERNEL node=-1 accounted=false"
            ),
        );
        (0..10).for_each(|file| _ = trace.alloc(time + file, &format!("python3-{}", 1000 + n), "alloc_file"));
    }
    let text = "kmem_cache_free: call_site=put_task+0x1/0x20 ptr=ffff888100000000 name=task_struct";
    trace.event(1, "make-50", text);
    let (leaks, first) = trace.turnover(40).leaks();
    assert_eq!(row(&leaks, "alloc_file")["verdict"], "grows", "{leaks:#}");
    assert!(first.contains("by holder-77, at alloc_file"), "{first}");
}

/// A handful of ends without events does not explain two thousand objects that are left.
#[test]
fn a_few_implied_frees_do_not_explain_all_that_is_left() {
    let mut trace = Trace::default();
    for n in 0..1_972u64 {
        let time = n * 20_000;
        let ptr = trace.alloc(time, "ip-77", "neigh_alloc");
        if n % 500 == 400 {
            trace.alloc_at(time + 300, "worker-60", "another", ptr);
            trace.free(time + 600, "worker-60", ptr);
        }
    }
    let (leaks, first) = trace.turnover(40).leaks();
    assert_eq!(row(&leaks, "neigh_alloc")["freed_unseen"], 4, "{leaks:#}");
    assert_eq!(row(&leaks, "neigh_alloc")["verdict"], "grows", "{leaks:#}");
    assert!(first.contains("by ip-77, at neigh_alloc"), "{first}");
}

/// Objects of the start, by the same task or by another, do not hide what grows after it.
#[test]
fn what_follows_a_warm_up_is_judged_by_itself() {
    for starter in ["holder-77", "other-78"] {
        for per_second in [5, 1] {
            let mut trace = Trace::default();
            (0..2_000).for_each(|n| _ = trace.alloc(n * 100, starter, "cache_fill"));
            for n in 0..per_second * 40 {
                trace.alloc(1_300_000 / per_second + n * 1_000_000 / per_second, "holder-77", "cache_fill");
            }
            let (leaks, first) = trace.turnover(41).leaks();
            let what = format!("{starter}, {per_second} a second: {first}\n{leaks:#}");
            assert_eq!(row(&leaks, "cache_fill")["verdict"], "grows", "{what}");
            assert!(first.contains("100 % of it by holder-77, at cache_fill"), "{what}");
            // 256 bytes each.
            let rate = leaks["families"][0]["old_bytes_per_second"].as_u64().unwrap();
            assert!((230 * per_second..285 * per_second).contains(&rate), "{rate}: {what}");
        }
    }
}

/// A cache that fills ever more slowly has no part that grows.
#[test]
fn a_slow_end_of_a_warm_up_is_no_growth() {
    let mut trace = Trace::default();
    for n in 1..2_000u64 {
        // The n-th object comes when the logarithm of the time has grown by a little: rates fall as 1 / t.
        let time = (1.005f64.powi(n as i32) - 1.0) / (1.005f64.powi(2_000) - 1.0) * 39_000_000.0;
        trace.alloc(time as u64, "reader-77", "cache_fill");
    }
    let (leaks, first) = trace.turnover(40).leaks();
    assert_eq!(row(&leaks, "cache_fill")["verdict"], "warming", "{first}\n{leaks:#}");
}

/// Others free what they allocate at the same call site after 15 s, this task keeps all.
#[test]
fn long_lives_of_other_tasks_do_not_make_the_window_too_short() {
    let mut trace = Trace::default();
    for n in 0..400u64 {
        let time = n * 100_000;
        trace.alloc(time, "holder-77", "pte_alloc_one");
        let ptr = trace.alloc(time + 50, "shell-80", "pte_alloc_one");
        if time + 15_000_000 < 40_000_000 {
            trace.free(time + 15_000_000, "shell-80", ptr);
        }
    }
    let (leaks, first) = trace.turnover(40).leaks();
    assert_eq!(row(&leaks, "pte_alloc_one")["verdict"], "grows", "{first}\n{leaks:#}");
    assert!(first.contains("100 % of it by holder-77, at pte_alloc_one"), "{first}");
    let rate = leaks["families"][0]["old_bytes_per_second"].as_u64().unwrap();
    assert!((2_400..2_700).contains(&rate), "{rate}: {first}\n{leaks:#}");
}

/// TIME_WAIT lasts 60 s: what it holds is not judged in a window of 40 s, and is in one of 120 s.
#[test]
fn what_the_kernel_keeps_for_a_known_time_is_judged_by_it() {
    for (seconds, kept, verdict) in [(40, 0, "window_too_short"), (120, 0, "young"), (120, 5, "grows")] {
        let mut trace = Trace::default();
        for n in 0..seconds * 10 {
            let time = n * 100_000;
            let ptr = trace.alloc(time, "swapper-0", "inet_bind_bucket_create");
            if time + 60_000_000 < seconds * 1_000_000 && (kept == 0 || n % kept != 0) {
                trace.free(time + 60_000_000, "swapper-0", ptr);
            }
        }
        let (leaks, first) = trace.turnover(seconds).leaks();
        let verdict_seen = &row(&leaks, "inet_bind_bucket_create")["verdict"];
        assert_eq!(verdict_seen, verdict, "{seconds} s: {first}\n{leaks:#}");
    }
    // The kernel collects no more than 1,024 neighbours of a table.
    for (count, verdict) in [(1_000, "window_too_short"), (2_000, "grows")] {
        let mut trace = Trace::default();
        for n in 0..count {
            trace.alloc(n * (40_000_000 / count), "ip-77", "___neigh_create");
        }
        let (leaks, first) = trace.turnover(40).leaks();
        assert_eq!(row(&leaks, "___neigh_create")["verdict"], verdict, "{count}: {first}\n{leaks:#}");
    }
}

#[test]
fn two_leaks_at_one_call_site_are_named_with_their_shares() {
    let mut trace = Trace::default();
    for n in 0..400 {
        let tasks = ["one-77", "one-77", "one-77", "two-78", "two-78"];
        tasks.iter().for_each(|task| _ = trace.alloc(n * 100_000, task, "both"));
    }
    let (_, first) = trace.turnover(40).leaks();
    assert!(first.contains(", 60 % of it by one-77, 40 % of it by two-78, at both."), "{first}");
}

#[test]
fn threads_are_named_with_their_process() {
    let mut trace = Trace::default();
    trace.start(1, "shell-50", 900, "server", false);
    (0..8).for_each(|thread| trace.start(2 + thread, "server-900", 901 + thread as u32, "server", true));
    for n in 0..800 {
        trace.alloc(100 + n * 50_000, &format!("server-{}", 901 + n % 8), "session_new");
    }
    let (leaks, first) = trace.turnover(40).leaks();
    let makers = &leaks["families"][0]["makers"];
    assert_eq!((&makers["threads"]["threads"], &makers["parent"]), (&8.into(), &Value::Null), "{leaks:#}");
    assert!(first.contains(", by 8 threads of server-900, at session_new."), "{first}");
}

/// Forty objects at 0, 8, 16 and 24 s of 28 s: their rate is that of the periods between them.
#[test]
fn batches_at_both_ends_are_not_overstated() {
    let mut trace = Trace::default();
    for batch in 0..4 {
        (0..40).for_each(|n| _ = trace.alloc(batch * 8_000_000 + n, "cron-77", "batch_new"));
    }
    let (leaks, first) = trace.turnover(28).leaks();
    let row = row(&leaks, "batch_new");
    assert_eq!(row["verdict"], "grows_in_batches", "{row:#}");
    let rate = row["old_bytes_per_second"].as_f64().unwrap();
    assert!((rate / 1_280.0 - 1.0).abs() < 0.05, "{rate}: {first}");
    assert!(first.contains(" (4.47 MiB an hour): 40.0 KiB in 4 batches, 100 % of it by cron-77"), "{first}");
}

/// The same at a call site that others fill at the start.
#[test]
fn batches_of_one_task_are_found_beside_a_warm_up() {
    let mut trace = Trace::default();
    (0..900).for_each(|n| _ = trace.alloc(n * 900, "cc1-80", "batch_new"));
    for batch in 0..5 {
        (0..40).for_each(|n| _ = trace.alloc(batch * 8_000_000 + n, "cron-77", "batch_new"));
    }
    let (leaks, first) = trace.turnover(40).leaks();
    let row = row(&leaks, "batch_new");
    assert_eq!((&row["verdict"], &row["judged_task"]), (&"grows_in_batches".into(), &77.into()), "{row:#}");
    let rate = row["old_bytes_per_second"].as_f64().unwrap();
    assert!((rate / 1_280.0 - 1.0).abs() < 0.05, "{rate}: {first}");
    assert!(first.contains(" batches, 100 % of it by cron-77, at batch_new"), "{first}");
}

/// A security module keeps a blob for each inode; only the inode holds a dentry.
#[test]
fn blobs_of_inodes_pin_nothing() {
    let mut trace = Trace::default();
    let text = |what: &str, ptr: u64, name: &str| {
        format!(
            "kmem_cache_alloc: call_site={what}+0x1/0x20 ptr=ffff8881{ptr:08x} name={name} bytes_req=128 bytes_alloc=128 gfp_flags=GFP_KERNEL node=-1 accounted=false"
        )
    };
    for n in 0..800u64 {
        trace.event(n * 50_000, "app-77", &text("io_alloc_req", n * 512, "lsm_inode_cache"));
        trace.event(n * 50_000 + 1, "app-77", &text("__d_alloc", n * 512 + 256, "dentry"));
    }
    let free = "kmem_cache_free: call_site=done+0x1/0x20 ptr=ffff888200000000 name=dentry";
    trace.event(7, "app-77", free);
    let (leaks, first) = trace.turnover(40).leaks();
    let dentry = row(&leaks, "__d_alloc");
    assert_eq!((&dentry["verdict"], &dentry["family"]), (&"reclaimable".into(), &Value::Null), "{first}");
}
