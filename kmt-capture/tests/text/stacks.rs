//! Stacks are those of their events: all frames of the kernel, and no others.

use crate::{converted, line};

const ALLOC: &str =
    "kmalloc: call_site=f+0x1/0x20 ptr=ffff888100001000 bytes_req=8 bytes_alloc=8 gfp_flags=GFP_KERNEL";

fn perf(us: u64, event: &str, frames: &[&str]) -> String {
    let frames: String = frames.iter().map(|frame| format!("\t{frame:>16}\n")).collect();
    format!("perf 22697 [000]   659.{us:06}: {event}\n{frames}\n")
}

fn alloc(us: u64, frames: &[&str]) -> String {
    perf(us, &format!("         kmem:{ALLOC}"), frames)
}

/// Names of frames: the text has no sizes.
fn names(stack: &str) -> Vec<&str> {
    stack.split(' ').map(|frame| frame.split('/').next().unwrap()).collect()
}

#[test]
fn the_kernel_is_wherever_its_file_lies() {
    let kernel = [
        "ffffffff8782660d kmem_cache_alloc+0xfd (/usr/lib/debug/lib/modules/4.18.0-305.el8.x86_64/vmlinux)",
        "ffffffffc0a1b2c4 xfs_buf_alloc+0x44 (/lib/modules/4.18.0-305.el8.x86_64/kernel/fs/xfs/xfs.ko.xz)",
        "ffffffffc0a1c2c4 xfs_buf_get_map+0x44 ([xfs])",
        "ffffffff878c1a8f kthread+0x11f (/tmp/kernel (copy))",
        "ffffffff878c1aff inline_one (inlined)",
        "ffffffff878c1aff ret_from_fork+0x1f ([kernel.kallsyms])",
    ];
    let user = [
        "    7efdf7f7d3e8 __poll+0x18 (/usr/lib64/libc-2.28.so)",
        "           ee137 sched_setaffinity@@GLIBC_2.3.4+0x7 (/usr/lib/x86_64-linux-gnu/libc.so.6)",
        "               7 [unknown] (/usr/bin/perf)",
        "          401000 std::map<int, int>::at(int)+0x7 (/usr/bin/a b)",
    ];
    let text = alloc(1, &[&kernel[..], &user].concat()) + &alloc(2, &user) + &alloc(3, &kernel[..1]);
    let read = converted(&text);
    read.is_whole();
    let expected = [
        "kmem_cache_alloc+0xfd",
        "xfs_buf_alloc+0x44",
        "xfs_buf_get_map+0x44",
        "kthread+0x11f",
        "ret_from_fork+0x1f",
    ];
    let stacks: Vec<Vec<&str>> = read.stacks().into_iter().map(names).collect();
    assert_eq!(stacks, [&expected[..], &expected[..1]]);
}

#[test]
fn any_other_line_ends_a_stack() {
    let frames = [
        "ffffffff8164e795 __kmalloc+0x215 ([kernel.kallsyms])",
        "ffffffff82259cc1 do_syscall_64+0x71 ([kernel.kallsyms])",
    ];
    let other = "ffffffff8158ecd0 perf_swevent_event+0x160 ([kernel.kallsyms])";
    for between in [
        perf(2, "    250000             cpu-clock: ", &[other]),
        perf(2, "cpu-clock: ", &[other]),
        perf(2, "    250000 cycles/period=1/u: ", &[other]),
        format!("a line of a log\n\t{other}\n"),
        format!("\n\t{other}\n"),
    ] {
        let read = converted(&[alloc(1, &frames), between.clone(), alloc(3, &frames[..1])].concat());
        let kmallocs: Vec<(usize, &str)> = read
            .texts()
            .windows(2)
            .filter(|pair| pair[0].starts_with("kmalloc"))
            .map(|pair| (names(pair[1]).len(), pair[1]))
            .map(|(count, stack)| (count - 1, stack))
            .collect();
        assert_eq!(kmallocs.len(), 2, "{:?}", read.lines);
        assert!(
            kmallocs.iter().all(|(_, stack)| !stack.contains("perf_swevent")),
            "{between}: {:?}",
            read.lines
        );
        assert_eq!((kmallocs[0].0, kmallocs[1].0), (2, 1), "{between}: {:?}", read.lines);
    }
}

/// `-F +srcline`.
#[test]
fn lines_of_source_code_part_no_stack() {
    let text = alloc(
        1,
        &[
            "ffffffff8164e795 __kmalloc+0x215 ([kernel.kallsyms])",
            "slub.c:4000",
            "ffffffff82259cc1 do_syscall_64+0x71 ([kernel.kallsyms])",
            "common.c:83",
        ],
    );
    let read = converted(&text);
    read.is_whole();
    assert_eq!(names(read.stacks()[0]), ["__kmalloc+0x215", "do_syscall_64+0x71"]);
}

#[test]
fn stacks_of_ftrace() {
    for (user, stack_of_user) in [
        (
            "<user stack trace>",
            " => /lib/aarch64-linux-gnu/libc-2.32.so[+0xa76d8]\n => /bin/bash[+0x5f354]\n =>  <00007f325b4ce45b>\n",
        ),
        ("user_stack:           <user stack trace >", "=> main (401000)\n=> <00007f325b4ce45b>\n"),
    ] {
        let text = [
            line(1, ALLOC),
            line(1, "<stack trace>"),
            " => __kmalloc_noprof\n => xfs_a [xfs]\n => 0xffffffffc0a1c2c4\n => [unknown/kretprobe'd]\n => copy_process+0x10/0x20\n".to_owned(),
            line(2, user),
            stack_of_user.to_owned(),
            line(3, ALLOC),
            line(3, user),
            stack_of_user.to_owned(),
        ]
        .concat();
        let read = converted(&text);
        read.is_whole();
        let frames =
            ["__kmalloc_noprof+0x0", "xfs_a+0x0", "[xfs]", "0xffffffffc0a1c2c4", "copy_process+0x10"];
        let stacks: Vec<Vec<&str>> = read.stacks().into_iter().map(names).collect();
        assert_eq!(stacks, [frames]);
        assert_eq!(read.lines.len(), 3, "{:?}", read.lines);
    }
}

/// `trace-cmd report -N` prints the first frame behind the name of the event; the kernel's option `fields` prints none.
#[test]
fn stacks_in_the_line_of_their_event() {
    let frames = "=> do_syscall_64 (ffffffff82259cc1)\n";
    let text = [
        line(1, ALLOC),
        line(1, "kernel_stack:          => __kmalloc_noprof (ffffffff8164e795)"),
        frames.to_owned(),
    ];
    let read = converted(&text.concat());
    read.is_whole();
    assert_eq!(names(read.stacks()[0]), ["__kmalloc_noprof+0x0", "do_syscall_64+0x0"]);
    for fields in ["caller=<OVERFLOW> size=0x8 (8)", "caller=<INVALID-SIZE> size=0x8 (8)"] {
        let read = converted(
            &[line(1, ALLOC), line(1, &format!("kernel_stack: {fields}")), line(2, ALLOC)].concat(),
        );
        read.is_whole();
        assert_eq!((read.stacks().len(), read.lines.len()), (0, 2));
        assert!(read.stderr.contains("1 stack without frames in the text"), "{}", read.stderr);
    }
}

/// The function tracers: each field is printed with its name.
#[test]
fn functions() {
    let graph = "   12.404427 |   0)    true-704    |   0.123 us    |  do_filp_open();\n";
    let read = converted(&(line(1, "do_filp_open <-do_sys_openat2") + &line(2, ALLOC)));
    read.is_whole();
    assert_eq!(read.texts()[0], "function: ip=do_filp_open parent_ip=do_sys_openat2");
    let read = converted(graph);
    assert_eq!(
        read.texts(),
        [
            "funcgraph_entry: func=do_filp_open depth=0",
            "funcgraph_exit: func=do_filp_open depth=0 calltime=12404427000 rettime=12404427123"
        ]
    );
}
/// Where some events have call chains, perf prints the instruction of each other one behind its text.
#[test]
fn the_instruction_of_an_event_is_no_part_of_its_text() {
    const HEAD: &str = "              sh  2011 [001]   454.00000";
    const TEXTS: [&str; 4] = [
        "kmem:rss_stat: mm_id=3938911884 curr=1 type=MM_FILEPAGES size=1294336B",
        "kmem:kmalloc: call_site=f+0x1 ptr=0xffff888100001000 bytes_req=56 bytes_alloc=64 gfp_flags=GFP_KERNEL node=-1 accounted=false",
        "kmem:kfree: call_site=f+0x1 ptr=0xffff888100001000",
        "kmem:mm_page_free: page=0xffffea0000001000 pfn=0x40 order=0",
    ];
    let text = |behind: &str| -> String {
        TEXTS.iter().zip(0..).map(|(text, at)| format!("{HEAD}{at}: {text}{behind}\n")).collect()
    };
    let plain = converted(&text(""));
    plain.is_whole();
    for behind in [
        " ffffffff815dfe36 mm_trace_rss_stat+0x46 ([kernel.kallsyms])",
        " ffffffff815dfe36 mm_trace_rss_stat ([kernel.kallsyms])",
        " ffffffff815dfe36 mm_trace_rss_stat+0x46",
        " ffffffff815dfe36 [unknown] ([ext4])",
        " ffffffff815dfe36",
        "         c0123456 mm_trace_rss_stat+0x46 ([kernel.kallsyms])",
        "     7f22d0da3b0b main+0x7 (/usr/bin/true)",
    ] {
        let read = converted(&text(behind));
        read.is_whole();
        assert_eq!((&read.lines, &read.numbers), (&plain.lines, &plain.numbers), "{behind}");
    }
}
