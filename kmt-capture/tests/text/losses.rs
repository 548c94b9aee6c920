//! Losses of a text are neither hidden nor invented.

use crate::{converted, line};

const FREE: &str = "kfree: call_site=f+0x1/0x20 ptr=ffff888100001000";

/// A line of perf script.
fn perf(us: u64, text: &str) -> String {
    format!("            perf 22704 [001]   660.{us:06}: {text}\n")
}

#[test]
fn lost_records_of_perf() {
    let free = |us| perf(us, &format!(" kmem:{FREE}"));
    let text = [
        free(1),
        perf(2, "PERF_RECORD_LOST lost 70"),
        free(2),
        perf(3, "PERF_RECORD_LOST lost 3"),
        perf(4, "PERF_RECORD_LOST_SAMPLES lost 2"),
        free(5),
        perf(5, "PERF_RECORD_THROTTLE"),
        free(6),
        perf(6, "PERF_RECORD_UNTHROTTLE"),
        free(7),
    ]
    .concat();
    let read = converted(&text);
    assert_eq!((read.code, read.lost, read.uncounted), (Some(3), 75, 1), "{}", read.stderr);
    assert_eq!(read.lines.len(), 5, "{:?}", read.lines);
    assert!(!read.stderr.contains("without an event"), "{}", read.stderr);
}

#[test]
fn records_of_perf_that_are_no_events() {
    let text = [
        "swapper     0 [000]     0.000000: PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x1276508) @ 0xffffffff81000000]: x [kernel.kallsyms]_text\n",
        "swapper     0 [000]     0.000000: PERF_RECORD_FORK(7:8):(0:0)\n",
        "my: task     0 [000]     0.000000: PERF_RECORD_COMM: my: task:7/8\n",
        "perf 19675 [000]   565.251338:          kmem:kfree: call_site=f+0x127 ptr=0xffff888102c90e60\n",
        "sh      8 [000]   565.251339: PERF_RECORD_COMM exec: sh:7/8\n",
        "sh      8 [001]   565.253738:          kmem:kfree: call_site=f+0x127 ptr=0xffff8881042895c0\n",
        "sh      8 [001]   565.253739: PERF_RECORD_EXIT(7:8):(0:0)\n",
    ]
    .concat();
    let read = converted(&text);
    read.is_whole();
    assert_eq!(
        read.lines,
        [
            "perf-19675 [0] 565251338000: kfree: call_site=f+0x127/0x10000 ptr=ffff888102c90e60",
            "sh-8 [1] 565253738000: kfree: call_site=f+0x127/0x10000 ptr=ffff8881042895c0",
        ]
    );
    let names: Vec<&str> = read.tasks.iter().map(String::as_str).collect();
    assert_eq!(
        names,
        ["8 (7) my: task since 0", "19675 (0) perf since 565251338000", "8 (7) sh since 565251339000"]
    );
}

#[test]
fn losses_behind_the_name_of_a_file() {
    for prefix in ["", "trs.dat: ", "a/b-c:     "] {
        let text = [line(1, FREE), format!("{prefix}CPU:1 [210 EVENTS DROPPED]\n"), line(2, FREE)].concat();
        let read = converted(&text);
        assert_eq!((read.code, read.lost, read.lines.len()), (Some(3), 210, 2), "{prefix}: {}", read.stderr);
    }
}

#[test]
fn texts_that_mention_allocators_are_no_losses() {
    let text = [
        line(1, FREE),
        line(2, "stat_set+0x220/0x428: [+]mem_ptr1: 7576a560"),
        line(3, "stat_set+0x2ec/0x428: [+][kmem_cache]name : kmalloc-128, size : 80"),
        line(4, "stat_set+0x2ec/0x428: kmalloc: call_site=f+0x1/0x20"),
        line(5, FREE),
    ]
    .concat();
    let read = converted(&text);
    assert_eq!((read.code, read.lost, read.lines.len()), (Some(0), 0, 2), "{}", read.stderr);
}

#[test]
fn columns_between_time_and_event() {
    for column in ["(+1567)", "(+334)  ", "         1         ", "(-5)"] {
        for event in [FREE.to_owned(), format!("kmem:{FREE}")] {
            let read = converted(&[line(1, &event), line(2, &format!("{column} {event}"))].concat());
            read.is_whole();
            assert_eq!(read.texts(), [FREE, FREE], "{column}");
        }
    }
    // One that is not known: the event is in the text and cannot be read.
    let read = converted(&[line(1, FREE), line(2, &format!("~~ {FREE}"))].concat());
    assert_eq!((read.code, read.lost, read.lines.len()), (Some(3), 1, 1), "{}", read.stderr);
}

/// The header of a text of two CPUs.
fn header(held: u64, written: u64) -> String {
    format!("# tracer: nop\n#\n# entries-in-buffer/entries-written: {held}/{written}   #P:2\n#\n")
}

/// A line of another CPU than [`line`].
fn of_cpu(cpu: u32, us: u64) -> String {
    line(us, FREE).replace("[001]", &format!("[{cpu:03}]"))
}

/// A text that ends within a line lacks what is behind it: all before it is whole.
#[test]
fn a_text_that_is_cut_within_a_line_lacks_its_end_alone() {
    let whole = [header(40, 40), of_cpu(0, 1), of_cpu(1, 2), of_cpu(0, 3)].concat();
    let cut = whole.len() - 9;
    let read = converted(&whole[..cut]);
    assert_eq!((read.code, read.lost, read.missing), (Some(3), 0, 0), "{}", read.stderr);
    assert_eq!((read.uncounted, read.lines.len()), (2, 2), "{}", read.stderr);
    assert!(read.stderr.contains("cut off: all before the cut was converted"), "{}", read.stderr);
    // The last line of a whole text may lack its end of line.
    let whole = [header(3, 3), of_cpu(0, 1), of_cpu(1, 2), of_cpu(0, 3)].concat();
    let read = converted(whole.trim_end());
    read.is_whole();
    assert_eq!(read.lines.len(), 3, "{:?}", read.lines);
}

#[test]
fn entries_of_the_header_that_have_no_line() {
    for (held, missing) in [(7, 5), (3, 1)] {
        let read = converted(&[header(held, held), of_cpu(0, 1), of_cpu(1, 2)].concat());
        // Of which CPU they are is unknown: each has a mark, and none a number.
        assert_eq!(
            (read.code, read.lost, read.uncounted, read.missing, read.lines.len()),
            (Some(3), 0, 2, missing, 2),
            "{}",
            read.stderr
        );
        let note = format!(
            "counts {held} entries of the buffer, and the text has 2: it ends early, or lines were left out"
        );
        assert!(read.stderr.contains(&note), "{}", read.stderr);
        assert!(!read.stderr.contains("marked in the input"), "{}", read.stderr);
    }
}

/// A console that drops lines drops those of all CPUs: the time without lines is named.
#[test]
fn a_hole_in_the_text_is_named() {
    let lines = |times: &[u64]| times.iter().map(|us| of_cpu((us % 2) as u32, *us)).collect::<String>();
    let hole = converted(&[header(9, 9), lines(&[1_000, 2_000, 3_000, 90_001, 91_000])].concat());
    assert!(
        hole.stderr.contains("no line is between ") && hole.stderr.contains("(87.0 ms; "),
        "{}",
        hole.stderr
    );
    let none = converted(&[header(9, 9), lines(&[1_000, 2_000, 3_000, 4_001, 5_000])].concat());
    assert!(none.stderr.contains("no time without lines stands out"), "{}", none.stderr);
}

/// A buffer that is not read keeps the newest entries: the recording begins with the first of them.
#[test]
fn entries_that_were_overwritten_by_design_are_not_lost() {
    let part = [of_cpu(0, 1), of_cpu(1, 2)].concat();
    // Each file of one CPU has the header of all; in one of a buffer in use the number rises.
    let files = |later| [header(2, 12), of_cpu(0, 1), header(2, later), of_cpu(1, 2), of_cpu(1, 3)].concat();
    for (text, overwritten) in
        [([header(2, 12), part.clone()].concat(), 10), (files(12), 10), (files(15), 13)]
    {
        let read = converted(&text);
        // Each of the two CPUs has a mark without a count.
        assert_eq!(
            (read.code, read.lost, read.uncounted, read.overwritten),
            (Some(0), 0, 2, overwritten),
            "{}",
            read.stderr
        );
        let note = format!("{overwritten} older events were overwritten before them");
        for part in [note.as_str(), "one number of overwritten entries for all CPUs"] {
            assert!(read.stderr.contains(part), "{part}: {}", read.stderr);
        }
        assert!(!read.stderr.contains("ends early") && !read.stderr.contains("lost"), "{}", read.stderr);
    }
    let one = converted(&[header(2, 3), of_cpu(1, 1), of_cpu(1, 2)].concat());
    assert_eq!((one.code, one.lost, one.uncounted, one.overwritten), (Some(0), 0, 1, 1), "{}", one.stderr);
    assert!(!one.stderr.contains("for all CPUs"), "{}", one.stderr);
}

/// What the buffer overwrote between two readings of it, one behind the other in the text, is of the recorded time.
#[test]
fn entries_that_were_overwritten_between_two_texts_are_lost() {
    let part = |us| [of_cpu(0, us), of_cpu(1, us + 1)].concat();
    let read = converted(&[header(2, 12), part(1), header(2, 30), part(5)].concat());
    assert_eq!(
        (read.code, read.lost, read.overwritten, read.lines.len()),
        (Some(3), 28, 10, 4),
        "{}",
        read.stderr
    );
}

#[test]
fn headers_without_a_loss() {
    let both = [of_cpu(0, 1), of_cpu(1, 2)].concat();
    let stack = [line(3, "<stack trace>"), " => f\n => g\n".to_owned()].concat();
    let texts = [
        ("each entry has a line", [header(2, 2), both.clone()].concat()),
        ("more lines than entries", [header(1, 1), both.clone()].concat()),
        ("files of single CPUs", [header(2, 2), of_cpu(0, 1), header(2, 2), of_cpu(1, 2)].concat()),
        ("one of these is empty", [header(1, 1), header(1, 1), of_cpu(1, 2)].concat()),
        ("a text behind another", [header(2, 2), both.clone(), header(2, 2), both.clone()].concat()),
        ("no header", both.clone()),
        ("the constant header of traceconv", [header(30_624, 30_624), both.clone()].concat()),
        ("stacks are entries", [header(3, 3), both.clone(), stack].concat()),
        ("an event of others", [header(3, 3), both.clone(), line(3, "tracing_mark_write: x")].concat()),
    ];
    for (what, text) in texts {
        let read = converted(&text);
        assert_eq!((read.code, read.lost, read.uncounted), (Some(0), 0, 0), "{what}: {}", read.stderr);
    }
}

#[test]
fn a_loss_is_counted_once() {
    let both = [of_cpu(0, 1), of_cpu(1, 2)].concat();
    // Overwritten while the text was read; torn; neither an event nor known.
    for (lines, lost) in [
        ("CPU:1 [LOST 3 EVENTS]\n".to_owned(), 3),
        (line(3, "~~ kfree: call_site=").repeat(3), 3),
        ("some words\n".repeat(3), 0),
    ] {
        let read = converted(&[header(5, 5), both.clone(), lines.clone()].concat());
        assert_eq!((read.lost, read.uncounted), (lost, 0), "{lines}: {}", read.stderr);
        assert!(!read.stderr.contains("ends early"), "{lines}: {}", read.stderr);
    }
}
