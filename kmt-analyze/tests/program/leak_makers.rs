//! Who makes what grows, where several tasks allocate at one call site.

use std::fmt::Write as _;
use std::fs;

use crate::support::files::{Scratch, convert, json, run, stdout};

/// Steps of 10 ms in a trace.
const STEPS: u64 = 400;

/// Two leaks at one place: by a task that runs, and by tasks that run for a moment each.
#[test]
fn short_lived_tasks_of_one_name_are_named_beside_a_task() {
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    for is_slab in [true, false] {
        let mut text = String::new();
        let mut number = 0;
        for step in 0..STEPS {
            let time = 1_000_000 + step * 10_000;
            let (seconds, rest) = (time / 1_000_000, time % 1_000_000);
            let pid = 1_000 + step;
            for (task, objects) in [("python3-77".to_owned(), 3), (format!("head-{pid}"), 1)] {
                for _ in 0..objects {
                    number += 1;
                    let event = match is_slab {
                        true => format!(
                            "kmalloc: call_site=leak+0x1/0x2 ptr=ffff8881{:08x} bytes_req=512 bytes_alloc=512 gfp_flags=GFP_KERNEL node=-1 accounted=false",
                            number * 512
                        ),
                        false => format!(
                            "mm_page_alloc: page=ffffea0000000040 pfn={:#x} order=0 migratetype=0 gfp_flags=GFP_KERNEL",
                            0x1000 + number
                        ),
                    };
                    writeln!(text, "{task:>22}     [000] .....     {seconds}.{rest:06}: {event}").unwrap();
                }
            }
            writeln!(
                text,
                "{:>22}     [000] .....     {seconds}.{:06}: sched_process_exit: comm=head pid={pid} prio=120",
                format!("head-{pid}"),
                rest + 9
            )
            .unwrap();
            let freed = match is_slab {
                true => "kfree: call_site=f+0x1/0x2 ptr=ffff888900000000",
                false => "mm_page_free: page=ffffea0000000040 pfn=0x7 order=0",
            };
            writeln!(text, "            python3-77     [000] .....     {seconds}.{:06}: {freed}", rest + 10)
                .unwrap();
        }
        fs::write(&input, text).unwrap();
        let _ = fs::remove_file(&output);
        convert(&input, &output, None).unwrap();
        let said = stdout(&run(&["leaks", "--wide"], &output));
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let parts: Vec<&str> = said.split(", ").collect();
        let at = parts.iter().position(|part| *part == "75 % of it by python3-77").expect(&said);
        let heads = parts[at + 1].strip_prefix("25 % of it by ").expect(&said);
        let number = heads.strip_suffix(" short-lived tasks named head").expect(&said);
        assert!((300..=400).contains(&number.parse::<u64>().unwrap()), "{said}");
        let findings = json(&["findings", "--json"], &output);
        let tasks = findings["findings"][0]["growing"]["tasks"].clone();
        assert_eq!(tasks[1]["task"], heads, "{findings:#}");
    }
}

/// Lines of a text of ftrace with slab events.
#[derive(Default)]
struct Text {
    lines: String,
    step: u64,
    objects: u64,
}

impl Text {
    /// An event some microseconds after the begin of the step.
    fn event(&mut self, task: &str, us: u64, event: &str) {
        let time = 1_000_000 + self.step * 10_000 + us;
        let (seconds, rest) = (time / 1_000_000, time % 1_000_000);
        writeln!(self.lines, "{task:>22}     [000] .....     {seconds}.{rest:06}: {event}").unwrap();
    }

    /// An allocation of a new object.
    fn alloc(&mut self, task: &str, site: &str, cache: &str, size: u64) {
        self.objects += 1;
        let at = format!("call_site={site}+0x1/0x20 name={cache} ptr=ffff8881{:08x}", self.objects * 1024);
        let more = format!("bytes_req={size} bytes_alloc={size} gfp_flags=GFP_KERNEL node=-1 accounted=true");
        self.event(task, self.objects % 1_000, &format!("kmem_cache_alloc: {at} {more}"));
    }
}

/// Sockets that are not closed keep a dentry each. A tar fills the cache of dentries at the same call site.
#[test]
fn dentries_of_a_leak_are_told_from_those_of_a_tar() {
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    let mut text = Text::default();
    for step in 0..STEPS {
        text.step = step;
        text.alloc("python3-77", "sock_alloc_inode", "sock_inode_cache", 768);
        text.alloc("python3-77", "__d_alloc", "dentry", 192);
        // More of them than the leak, at a pace of its own.
        for _ in 0..if step / 40 % 2 == 0 { 3 } else { 1 } {
            text.alloc("tar-99", "__d_alloc", "dentry", 192);
        }
        text.event("tar-99", 5_000, "kmem_cache_free: call_site=f+0x1/0x20 ptr=ffff888900000000 name=dentry");
    }
    fs::write(&input, text.lines).unwrap();
    convert(&input, &output, None).unwrap();
    let leaks = &json(&["leaks", "--json"], &output)["leaks"];
    assert_eq!(
        (&leaks["families_total"], &leaks["families"][0]["call_sites"]),
        (&1.into(), &2.into()),
        "{leaks:#}"
    );
    let rows = leaks["callers"].as_array().unwrap();
    let dentries = rows.iter().find(|row| row["symbol"].as_str().unwrap().starts_with("__d_alloc")).unwrap();
    assert_eq!((&dentries["verdict"], &dentries["family"]), (&"reclaimable".into(), &0.into()), "{leaks:#}");
    assert_eq!(dentries["judged_task"], 77, "{leaks:#}");
    // One of 192 bytes in each 10 ms.
    let rate = dentries["old_bytes_per_second"].as_u64().unwrap();
    assert!((18_500..20_000).contains(&rate), "{leaks:#}");
}

/// Two leaks share the call sites of files and dentries, which are in one finding: the other one has the growth of its task.
#[test]
fn growth_of_the_second_of_two_leaks_has_files_and_dentries() {
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    let mut text = Text::default();
    for step in 0..STEPS {
        text.step = step;
        for _ in 0..2 {
            text.alloc("pipes-77", "alloc_empty_file", "filp", 256);
        }
        text.alloc("pipes-77", "alloc_pipe_info", "pipe", 960);
        text.alloc("pipes-77", "__d_alloc", "dentry", 192);
        text.alloc("sockets-78", "alloc_empty_file", "filp", 256);
        text.alloc("sockets-78", "sock_alloc_inode", "sock_inode_cache", 768);
        text.alloc("sockets-78", "__d_alloc", "dentry", 192);
        text.event("tar-99", 5_000, "kmem_cache_free: call_site=f+0x1/0x20 ptr=ffff888900000000 name=dentry");
    }
    fs::write(&input, text.lines).unwrap();
    convert(&input, &output, None).unwrap();
    let leaks = &json(&["leaks", "--json"], &output)["leaks"];
    assert_eq!(leaks["families_total"], 2, "{leaks:#}");
    for report in ["findings", "leaks"] {
        let said = stdout(&run(&[report, "--wide"], &output));
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        // 768, 256 and 192 bytes in each 10 ms are 118.75 KiB/s.
        let second = "Also: slab memory of sockets-78 grew by 119 KiB/s (";
        assert!(said.contains(second), "{said}");
        assert!(
            said.contains("KiB/s of it at sock_alloc_inode, the rest at call sites of other findings."),
            "{said}"
        );
    }
}
