//! The sentence of `leaks`, and findings that a file of patterns hides, on traces made for it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::files::{Scratch, convert, json, run, stderr, stdout};
use serde_json::Value;

/// Steps of 10 ms in a trace.
const STEPS: u64 = 400;

/// An area of vmalloc with its object in each step, which `is_freed` frees at once, and pipes that another task keeps.
fn areas(is_freed: bool) -> String {
    let mut out = String::new();
    for step in 0..STEPS {
        let time = 1_000_000 + step * 10_000;
        let mut event = |time: u64, text: &str| {
            let (seconds, rest) = (time / 1_000_000, time % 1_000_000);
            writeln!(out, "        leaky-77     [000] .....     {seconds}.{rest:06}: {text}").unwrap();
        };
        let mut object = |time: u64, site: &str, ptr: u64, size: u64| {
            event(
                time,
                &format!(
                    "kmalloc: call_site={site} ptr=ffff8881{ptr:08x} bytes_req={size} bytes_alloc={size} gfp_flags=GFP_KERNEL node=-1 accounted=false"
                ),
            );
        };
        object(time, "prog_alloc+0x10/0x40", step * 4096, 512);
        object(time + 5, "__get_vm_area_node+0x20/0x80", step * 4096 + 1024, 64);
        object(time + 9, "turnover+0x2/0x20", step * 4096 + 2048, 64);
        event(time + 12, &format!("kfree: call_site=done+0x1/0x20 ptr=ffff8881{:08x}", step * 4096 + 2048));
        if is_freed && step % 100 == 99 {
            let area = step * 4096 + 1024;
            event(time + 14, &format!("kfree: call_site=purge+0x1/0x20 ptr=ffff8881{area:08x}"));
        }
    }
    out
}

/// Areas of vmalloc are freed late by design. Where none is, and they come with a leak, they are of it.
#[test]
fn areas_without_frees_are_of_the_leak_that_they_come_with() {
    let scratch = Scratch::new();
    for (is_freed, call_sites, verdict) in [(false, 2, "grows"), (true, 1, "lazy")] {
        let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
        fs::write(&input, areas(is_freed)).unwrap();
        let _ = fs::remove_file(&output);
        convert(&input, &output, None).unwrap();
        let leaks = &json(&["leaks", "--json"], &output)["leaks"];
        assert_eq!(leaks["families"][0]["call_sites"], call_sites, "{leaks:#}");
        let rows = leaks["callers"].as_array().unwrap();
        let area = rows.iter().find(|row| row["symbol"].as_str().unwrap().starts_with("__get_vm_area_node"));
        assert_eq!(area.unwrap()["verdict"], verdict, "{leaks:#}");
    }
}

/// Two leaks of two tasks: a pipe of two objects with a stack, and one object that comes at other times. Besides them a
/// call site that frees all it allocates.
fn trace() -> String {
    let mut out = String::new();
    let mut alloc = |task: &str, time: u64, site: &str, ptr: u64, size: u64| {
        writeln!(
            out,
            "{task:>16}     [000] .....     {}.{:06}: kmalloc: call_site={site} ptr=ffff8881{ptr:08x} bytes_req={size} bytes_alloc={size} gfp_flags=GFP_KERNEL node=-1 accounted=false",
            time / 1_000_000,
            time % 1_000_000
        )
        .unwrap();
        if site.starts_with("pipe_info") {
            out.push_str(&format!(
                "{task:>16}     [000] .....     {}.{:06}: <stack trace>\n => pipe_info+0x10/0x40\n => do_pipe2+0x4/0x40\n => __x64_sys_pipe2+0x14/0x20\n => do_syscall_64+0x7/0x80\n",
                time / 1_000_000,
                time % 1_000_000
            ));
        }
        if site.starts_with("turnover") {
            writeln!(
                out,
                "{task:>16}     [000] .....     {}.{:06}: kfree: call_site=done+0x1/0x20 ptr=ffff8881{ptr:08x}",
                time / 1_000_000,
                time % 1_000_000 + 5
            )
            .unwrap();
        }
    };
    for step in 0..STEPS {
        let time = 1_000_000 + step * 10_000;
        alloc("leaky-77", time + 10, "pipe_info+0x10/0x40", step * 4096, 1024);
        alloc("leaky-77", time + 20, "pipe_file+0x20/0x80", step * 4096 + 1024, 256);
        alloc("leaky-77", time + 30, "turnover+0x2/0x20", step * 4096 + 2048, 64);
        // More and more of them, so that they are no part of the other leak.
        for number in 0..step / 100 {
            alloc(
                "other-78",
                time + 40 + number,
                "other_leak+0x30/0x90",
                0x100_0000 + step * 4096 + number * 512,
                512,
            );
        }
    }
    out
}

fn traced(scratch: &Scratch) -> PathBuf {
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    fs::write(&input, trace()).unwrap();
    convert(&input, &output, None).unwrap();
    output
}

fn ignored(scratch: &Scratch, file: &Path, patterns: &str) -> (Value, String) {
    let path = scratch.0.join("known");
    fs::write(&path, patterns).unwrap();
    let path = path.to_str().unwrap();
    let leaks = json(&["leaks", "--ignore", path, "--json"], file)["leaks"].clone();
    (leaks, stdout(&run(&["leaks", "--ignore", path, "--wide"], file)))
}

fn symbols(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().map(|row| row["symbol"].as_str().unwrap()).collect()
}

#[test]
fn the_first_sentence_has_amount_rate_task_and_place() {
    let scratch = Scratch::new();
    let file = traced(&scratch);
    let leaks = &json(&["leaks", "--json"], &file)["leaks"];
    assert_eq!(leaks["families_total"], 2, "{leaks:#}");
    let family = &leaks["families"][0];
    let number = |key: &str| family[key].as_u64().unwrap();
    assert_eq!((number("call_sites"), family["leader"].as_str()), (2, Some("pipe_info+0x10/0x40")));
    // 100 of them per second; the last eighth of the window is too recent.
    assert!((127_000..130_000).contains(&number("old_bytes_per_second")), "{family}");
    let text = stdout(&run(&["leaks", "--wide"], &file));
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("Slab memory grew by 12") && first.contains(" MiB an hour) in 3.99 s, "),
        "{first}"
    );
    assert!(first.contains(", 100 % of it by leaky-77, at pipe_info through pipe2()."), "{first}");
    let second = text.lines().nth(1).unwrap();
    assert!(second.starts_with("Also: slab memory grew by "), "{second}");
    assert!(text.contains("stack of 100 % of the objects of pipe_info"), "{text}");
    let exact = stdout(&run(&["leaks", "--wide", "--bytes"], &file));
    let bytes = number("old_bytes_per_second").to_string();
    let (thousands, rest) = bytes.split_at(bytes.len() - 3);
    assert!(exact.starts_with(&format!("Slab memory grew by {thousands},{rest} bytes/s (")), "{exact}");
    assert!(leaks.get("ignored").is_none() && !text.contains("hidden"), "{text}");
}

#[test]
fn patterns_hide_findings_and_count_them() {
    let scratch = Scratch::new();
    let file = traced(&scratch);
    for (patterns, findings, rows, left) in [
        // The leader of a family hides it as a whole.
        ("pipe_info", 1, 2, &["other_leak+0x30/0x90"][..]),
        ("# by its place\n\npipe_info+0x10/*\n", 1, 2, &["other_leak+0x30/0x90"]),
        ("other-*", 1, 1, &["pipe_info+0x10/0x40", "pipe_file+0x20/0x80"]),
        ("kmalloc-512", 1, 1, &["pipe_info+0x10/0x40", "pipe_file+0x20/0x80"]),
        // One member of it: the others still grow.
        ("pipe_file", 1, 1, &["pipe_info+0x10/0x40", "other_leak+0x30/0x90"]),
        ("leaky-77\nother_leak", 2, 3, &[]),
        ("*", 2, 3, &[]),
        (
            "pipe\n#other_leak\n",
            0,
            0,
            &["pipe_info+0x10/0x40", "pipe_file+0x20/0x80", "other_leak+0x30/0x90"],
        ),
    ] {
        let (leaks, text) = ignored(&scratch, &file, patterns);
        let ignored = &leaks["ignored"];
        assert_eq!(
            (ignored["findings"].as_u64(), ignored["rows"].as_u64()),
            (Some(findings), Some(rows)),
            "{patterns}"
        );
        assert!(ignored["file"].as_str().unwrap().ends_with("known"));
        let (mut found, mut expected) = (symbols(&leaks["callers"]), left.to_vec());
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{patterns}");
        assert_eq!(leaks["callers_total"].as_u64(), Some(left.len() as u64), "{patterns}");
        for site in ["pipe_info+0x10/0x40 ", "pipe_file+0x20/0x80 ", "other_leak+0x30/0x90 "] {
            assert_eq!(text.contains(site), left.contains(&site.trim()), "{patterns}: {text}");
        }
        let sentence = match findings {
            0 => "hidden by".to_owned(),
            1 => format!("1 finding hidden by {}.", ignored["file"].as_str().unwrap()),
            _ => format!("{findings} findings hidden by {}.", ignored["file"].as_str().unwrap()),
        };
        assert_eq!(text.contains(&sentence), findings > 0, "{patterns}: {text}");
        // Families are numbered anew, and their rows agree.
        let families = leaks["families"].as_array().unwrap();
        for row in leaks["callers"].as_array().unwrap() {
            assert!(row["family"].as_u64().is_none_or(|number| number < families.len() as u64), "{leaks:#}");
        }
        let leaders = families.iter().all(|family| left.contains(&family["leader"].as_str().unwrap()));
        assert!(leaders, "{leaks:#}");
    }
}

#[test]
fn a_file_of_patterns_that_cannot_be_read_is_refused() {
    let scratch = Scratch::new();
    let file = traced(&scratch);
    let output = run(&["leaks", "--ignore", "/nonexistent/known"], &file);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    assert!(
        stderr(&output).contains("--ignore") && stderr(&output).contains("No such file"),
        "{}",
        stderr(&output)
    );
}

/// Pages of files in memory, by the call site behind the page cache: ramfs has no other one, and nothing reclaims it.
#[test]
fn pages_of_ramfs_grow_at_their_call_site() {
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    for (caller, gfp, symbol, verdict) in [
        ("simple_write_begin", "GFP_HIGHUSER", "simple_write_begin+", "grows"),
        ("ext4_da_write_begin", "GFP_HIGHUSER_MOVABLE|__GFP_WRITE", "__filemap_get_folio+", "reclaimable"),
    ] {
        let mut text = String::new();
        for step in 0..STEPS {
            let time = 1_000_000 + step * 10_000;
            let task = format!(
                "        writer-77     [000] .....     {}.{:06}:",
                time / 1_000_000,
                time % 1_000_000
            );
            let page = format!("page=ffffea0000000040 pfn={:#x} order=0 migratetype=0", 0x1000 + step);
            writeln!(text, "{task} mm_page_alloc: {page} gfp_flags={gfp}|__GFP_COMP").unwrap();
            writeln!(
                text,
                "{task} <stack trace>\n => __alloc_pages+0x1/0x2\n => folio_alloc+0x1/0x2\n => __filemap_get_folio+0x1/0x2\n => {caller}+0x1/0x2\n => generic_perform_write+0x1/0x2"
            )
            .unwrap();
            if step % 100 == 0 {
                writeln!(text, "{task} mm_page_free: page=ffffea0000000040 pfn=0x7 order=0").unwrap();
            }
        }
        fs::write(&input, text).unwrap();
        convert(&input, &output, None).unwrap();
        let leaks = &json(&["leaks", "--json"], &output)["leaks"];
        let row = &leaks["page_callers"][0];
        assert!(row["symbol"].as_str().unwrap().starts_with(symbol), "{leaks:#}");
        assert_eq!(row["verdict"], verdict, "{leaks:#}");
        // No slab object was recorded: the table of CSV is that of pages, and groups of slab objects are refused.
        let csv = stdout(&run(&["leaks", "--csv"], &output));
        assert!(csv.lines().count() > 1 && csv.contains(&format!("{symbol}0x1/0x2")), "{csv}");
        let groups = run(&["tasks", "--by", "comm"], &output);
        assert_eq!(groups.status.code(), Some(1), "{}", stdout(&groups));
        let said = stderr(&groups);
        assert!(said.contains("it needs kmem:kmalloc") && said.contains("`pages --by comm`"), "{said}");
        assert!(!stdout(&run(&["pages", "--by", "comm"], &output)).is_empty());
    }
}

/// Files that are written in 1.5 s, as a text without slabinfo and /sys/kernel/slab: no free names the cache of their extents.
#[test]
fn a_cache_that_fills_is_no_leak_where_no_event_names_it() {
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    for (function, grows) in
        [("__es_insert_extent", false), ("__d_alloc", false), ("xas_alloc", false), ("my_driver_open", true)]
    {
        let mut text = String::new();
        for step in 0..STEPS {
            let time = 1_000_000 + step * 1_500_000 / STEPS;
            let line =
                format!("        tar-77     [000] .....     {}.{:06}:", time / 1_000_000, time % 1_000_000);
            let object = format!("ptr=ffff8881{:08x} bytes_req=40 bytes_alloc=40", step * 64);
            writeln!(
                text,
                "{line} kmem_cache_alloc: call_site={function}+0x1/0x2 {object} gfp_flags=GFP_NOFS node=-1 accounted=false"
            )
            .unwrap();
            let other = format!("ptr=ffff8882{:08x}", step % 7 * 64);
            writeln!(text, "{line} kmem_cache_free: call_site=f+0x1/0x2 {other} name=file").unwrap();
        }
        fs::write(&input, text).unwrap();
        let _ = fs::remove_file(&output);
        convert(&input, &output, None).unwrap();
        let leaks = &json(&["leaks", "--json"], &output)["leaks"];
        assert_eq!(leaks["families_total"], u64::from(grows), "{function}: {leaks:#}");
        let verdict = if grows { "grows" } else { "reclaimable" };
        assert_eq!(leaks["callers"][0]["verdict"], verdict, "{function}: {leaks:#}");
    }
}

/// Timers of two tasks: the call site of the timers is half of one task, that of their files is of many. Tasks that hold recent
/// files alone do not count.
#[test]
fn things_of_two_equal_tasks_are_one_finding() {
    let scratch = Scratch::new();
    let mut text = String::new();
    let mut alloc = |pid: u64, time: u64, event: &str, site: &str, ptr: u64| {
        writeln!(
            text,
            "         python3-{pid}     [000] .....     {}.{:06}: {event}: call_site={site}+0x1/0x20 ptr=ffff8881{ptr:08x} bytes_req=256 bytes_alloc=256 gfp_flags=GFP_KERNEL node=-1 accounted=false",
            time / 1_000_000,
            time % 1_000_000
        )
        .unwrap();
    };
    for step in 0..STEPS {
        let (time, pid) = (1_000_000 + step * 10_000, 200 + step % 2);
        alloc(pid, time, "kmalloc", "__do_sys_timerfd_create", step * 256);
        alloc(pid, time + 10, "kmem_cache_alloc", "alloc_empty_file", 0x0100_0000 + step * 256);
        // 12 tasks open a file at the end.
        if step >= STEPS - 12 {
            let (pid, ptr) = (300 + STEPS - step, 0x0200_0000 + step * 256);
            alloc(pid, time + 20, "kmem_cache_alloc", "alloc_empty_file", ptr);
        }
    }
    for event in [
        "kfree: call_site=f+0x1/0x2 ptr=ffff888900000000",
        "kmem_cache_free: call_site=f+0x1/0x2 ptr=ffff888900001000 name=filp",
    ] {
        writeln!(text, "            idle-1       [000] .....     5.900000: {event}").unwrap();
    }
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    fs::write(&input, text).unwrap();
    convert(&input, &output, None).unwrap();
    let leaks = &json(&["leaks", "--json"], &output)["leaks"];
    assert_eq!(leaks["families_total"], 1, "{leaks:#}");
    assert_eq!(leaks["families"][0]["call_sites"], 2);
    assert_eq!(leaks["families"][0]["makers"]["tasks"], 2, "{leaks:#}");
    let text = stdout(&run(&["leaks", "--wide"], &output));
    let first = text.lines().next().unwrap();
    for task in ["49 % of it by python3-200", "49 % of it by python3-201"] {
        assert!(first.contains(task), "{task}: {first}");
    }
}

/// Growth that began late: the time is in the sentence of `leaks` and in that of the first screen, and in the rate.
#[test]
fn the_begin_of_growth_is_named() {
    let scratch = Scratch::new();
    let (input, output) = (scratch.0.join("text"), scratch.0.join("text.kmt"));
    for (first_step, since) in [(1, None), (100, Some(1_000_000_000_u64))] {
        let mut text = String::new();
        for step in 0..STEPS {
            let time = 1_000_000 + step * 10_000;
            let line =
                format!("        leaky-77     [000] .....     {}.{:06}:", time / 1_000_000, time % 1_000_000);
            let site = if step < first_step { "turnover" } else { "leak" };
            writeln!(
                text,
                "{line} kmalloc: call_site={site}+0x1/0x2 ptr=ffff8881{:08x} bytes_req=512 bytes_alloc=512 gfp_flags=GFP_KERNEL node=-1 accounted=false",
                step * 512
            )
            .unwrap();
            if step < first_step {
                writeln!(text, "{line} kfree: call_site=f+0x1/0x2 ptr=ffff8881{:08x}", step * 512).unwrap();
            }
        }
        fs::write(&input, text).unwrap();
        let _ = fs::remove_file(&output);
        convert(&input, &output, None).unwrap();
        let findings = json(&["findings", "--json"], &output);
        let growing = &findings["findings"][0]["growing"];
        match since {
            None => assert!(growing["since"].is_null(), "{findings:#}"),
            // A step is 125 ms long.
            Some(since) => {
                let found = growing["since"].as_u64().unwrap() - 1_000_000_000;
                assert!(found.abs_diff(since) <= 125_000_000, "{findings:#}");
            }
        }
        // 512 bytes in each 10 ms, since it began.
        let rate = findings["findings"][0]["bytes_per_second"].as_u64().unwrap();
        assert!((48_000..54_000).contains(&rate), "{findings:#}");
        for report in ["leaks", "findings"] {
            let text = stdout(&run(&[report, "--wide"], &output));
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(text.contains(" to the end, "), since.is_some(), "{report}: {text}");
        }
    }
}
