//! Text before each line: of a kernel log, a journal, a console, a mail, a list of files.

use crate::{Converted, converted};

/// A prefix of the line with that number.
type Prefix = (&'static str, fn(usize) -> String);

const PREFIXES: [Prefix; 27] = [
    ("printk", |n| format!("[{:5}.{:06}] ", 37 + n, n)),
    ("printk with level", |n| format!("<{}>[{:5}.{:06}] ", n % 8, 37 + n, n)),
    ("printk with a CPU", |n| format!("[{:5}.{:06}][{:>6}] ", 37 + n, n, format!("C{}", n % 3))),
    ("printk with a thread", |n| format!("[{:5}.{:06}][{:>6}] ", 37 + n, n, format!("T{}", 1 + n * 99))),
    ("dmesg with a thread", |n| format!("[{:5}.{:06}] [{:>6}] ", 37 + n, n, format!("T{}", 1 + n * 99))),
    ("dmesg -T", |n| format!("[Sat Nov 28 09:{n:02}:00 2026] ")),
    ("dmesg -x", |n| format!("kern  :{:<6}: [{:5}.{:06}] ", ["warn", "emerg", "info"][n % 3], 37 + n, n)),
    ("dmesg -H", |n| if n == 0 { "[Nov28 09:00] ".to_owned() } else { format!("[  +0.{n:06}] ") }),
    ("dmesg -d", |n| format!("[{:5}.{:06} <{:12}.000012>] ", 37 + n, n, n)),
    ("dmesg --time-format iso", |n| format!("2026-11-28T09:00:{n:02},123456+00:00 ")),
    ("dmesg in colours", |n| format!("\x1b[32m[{:5}.{:06}] \x1b[0m\x1b[1m", 37 + n, n)),
    ("syslog", |n| format!("Nov  8 09:00:{n:02} box kernel: [{:5}.{:06}] ", 37 + n, n)),
    ("journalctl", |n| format!("Nov 28 09:00:{n:02} box kernel: ")),
    ("journalctl -o short-precise", |n| format!("Nov 28 09:00:00.{n:06} my-box.example kernel: ")),
    ("journalctl -o short-full", |n| format!("Sat 2026-11-28 09:00:{n:02} CET box kernel: ")),
    ("journalctl -o short-iso", |n| format!("2026-11-28T09:00:{n:02}+0100 box kernel: ")),
    ("journalctl -o short-unix", |n| format!("1764320400.{n:06} box kernel: ")),
    ("journalctl -o short-monotonic", |n| format!("[{:5}.{:06}] box kernel: ", 37 + n, n)),
    ("logread", |n| format!("Sat Nov 28 09:00:{n:02} 2026 kern.warn kernel: [{:5}.{:06}] ", 37 + n, n)),
    ("logcat", |n| format!("11-28 09:00:{n:02}.123     0     0 W         : ")),
    ("logcat -v brief", |_| "W/        (    0): ".to_owned()),
    ("a terminal's log", |n| format!("[2026-11-28 09:00:{n:02}.123] ")),
    ("several inputs", |_| "trs.dat: ".to_owned()),
    ("grep -n of several files", |n| format!("{}/trace.txt:{}:", "sub".repeat(n % 3 + 1), n + 1)),
    ("docker compose", |_| "guest_1  | ".to_owned()),
    ("a mail", |_| "> > ".to_owned()),
    ("grep -n", |n| format!("{}:", n + 1)),
];

/// Lines of ftrace, trace-cmd, perf script and the latency format, with a stack and a loss.
fn texts() -> [String; 3] {
    const FREE: &str = "kfree: call_site=f+0x1/0x20 ptr=ffff888100001000";
    const ALLOC: &str =
        "kmalloc: call_site=g+0x1/0x20 ptr=ffff888100001000 bytes_req=56 bytes_alloc=64 gfp_flags=GFP_KERNEL";
    let tasks =
        [("sh", 12, 1), ("kworker/u16:3-ev", 3456, 0), ("a: b", 7, 2), ("rcu_preempt", 15, 1), ("sh", 12, 3)];
    let rows = |line: fn(&str, i32, u32, usize) -> String, middle: &str| {
        let mut text = String::new();
        for (at, (comm, pid, cpu)) in tasks.into_iter().enumerate() {
            let comm = &comm[..comm.len().min(15)];
            text += &line(comm, pid, cpu, at);
            text += if at % 2 == 0 { ALLOC } else { FREE };
            text += "\n";
            text += if at == 1 { middle } else { "" };
        }
        text
    };
    [
        rows(
            |comm, pid, cpu, at| format!("{comm:>16}-{pid:<7} [{cpu:03}] d..1.    37.{at:06}: "),
            "            bash-77      [001] d..1.    37.000002: <stack trace>\n => f\n => g\nCPU:1 [LOST 210 EVENTS]\n",
        ),
        rows(
            |comm, pid, cpu, at| format!("{comm:>16} {pid:>7} [{cpu:03}]    37.{at:06}:        kmem:"),
            "\tffffffff8149a2b1 f+0x1 ([kernel.kallsyms])\n\tffffffff8149b2b1 g+0x1 ([kernel.kallsyms])\n\n",
        ),
        rows(
            |comm, pid, cpu, at| format!("{comm:>8.8}-{pid:<7} {cpu:3}d..2. 3711{at:04}us : "),
            "---------------------------------\nCPU:1 [LOST 210 EVENTS]\n",
        ),
    ]
}

fn with_prefix(text: &str, prefix: fn(usize) -> String) -> String {
    text.lines().enumerate().map(|(at, line)| prefix(at) + line + "\n").collect()
}

/// Lines of perf script -F without comm, and without the blanks before names.
fn unpadded() -> [String; 2] {
    let [_, perf, _] = texts();
    let column = |line: &str| line.trim_start().to_owned() + "\n";
    let is_event = |line: &&str| line.contains("kmem:");
    // In five columns: behind the time of a console, it ends where names end.
    let without_name = |line: &str| {
        let (tid, rest) = line.get(17..).and_then(|line| line.trim_start().split_once(' ')).unwrap();
        format!("{tid:>5} {rest}\n")
    };
    [
        perf.lines().map(|line| if is_event(&line) { column(line) } else { format!("{line}\n") }).collect(),
        perf.lines().filter(is_event).map(without_name).collect(),
    ]
}

#[test]
fn events_behind_any_prefix_are_the_same() {
    for text in texts().into_iter().chain(unpadded()) {
        let plain = converted(&text);
        assert_eq!(plain.lines.iter().filter(|line| !line.contains("stack: ")).count(), 5, "{plain:?}");
        for (name, prefix) in PREFIXES {
            let input = with_prefix(&text, prefix);
            let read = converted(&input);
            let parts = |c: &Converted| (c.lines.clone(), c.tasks.clone(), c.lost, c.uncounted, c.code);
            assert_eq!(parts(&read), parts(&plain), "{name}:\n{input}\n{}", read.stderr);
            assert_eq!(read.numbers, plain.numbers, "{name}");
        }
    }
}

/// Prefixes within prefixes: a console in a journal in a mail.
#[test]
fn prefixes_of_several_programs() {
    for text in texts() {
        let plain = converted(&text);
        for (_, inner) in [PREFIXES[0], PREFIXES[2], PREFIXES[12]] {
            for (name, outer) in [PREFIXES[9], PREFIXES[22], PREFIXES[24], PREFIXES[25]] {
                let input = with_prefix(&with_prefix(&text, inner), outer);
                let read = converted(&input);
                assert_eq!(
                    (read.lines, read.tasks),
                    (plain.lines.clone(), plain.tasks.clone()),
                    "{name}:\n{input}"
                );
            }
        }
    }
}

#[test]
fn other_lines_of_a_log_and_lines_without_the_prefix() {
    let [_, _, dump] = texts();
    let plain = converted(&dump);
    let mut text = String::from(
        "[   36.000001][    T1] usb 1-1: new device: 3\n[   37.000001][    C0] Dumping ftrace buffer:\n",
    );
    for (at, line) in dump.lines().enumerate() {
        text += &format!("[   37.{at:06}][    C0] {line}\n");
    }
    text += "sh-12 [001] 38.5: not an event\n[   39.000001][  T12] BUG: x\n";
    let read = converted(&text);
    assert_eq!(
        (&read.lines, &read.tasks, read.lost),
        (&plain.lines, &plain.tasks, plain.lost),
        "{}",
        read.stderr
    );
    assert!(read.stderr.contains("3 lines"), "{}", read.stderr);
}

/// A log that lost lines between events may have lost events.
#[test]
fn lines_that_a_log_lost() {
    const LOST: &str = "[   37.5] ** 15 printk messages dropped **\n";
    let [_, _, dump] = texts();
    let lines: Vec<String> = dump.lines().map(|line| format!("[   37.1] {line}\n")).collect();
    let (first, rest) = lines.split_at(1);
    let plain = converted(&lines.concat());
    for (text, is_gap) in [
        ([LOST, &lines.concat()].concat(), false),
        ([&lines.concat(), LOST].concat(), false),
        ([&first.concat(), LOST, LOST, &rest.concat()].concat(), true),
    ] {
        let read = converted(&text);
        assert_eq!((read.lines, read.lost), (plain.lines.clone(), plain.lost), "{}", read.stderr);
        assert_eq!(read.stderr.contains("at least one gap without a count"), is_gap, "{}", read.stderr);
    }
    // They may have been of any CPU: of 1, where events are lost anyway, of 0 and of 2.
    let (first, rest) = lines.split_at(5);
    assert_eq!(converted(&[&first.concat(), LOST, &rest.concat()].concat()).uncounted, 2);
}

/// A task may be called as a prefix looks.
#[test]
fn a_task_that_is_called_as_a_prefix() {
    const FREE: &str = "kfree: call_site=f+0x1/0x20 ptr=ffff888100001000";
    for comm in ["> 0123456789abc", "[   37.1] abcde", "trs.dat: abcdef", "<6>0123456789ab"] {
        let text = format!("{comm:>16}-7       [001] d..1.    37.000001: {FREE}\n");
        let read = converted(&text);
        assert_eq!(read.lines, [format!("{comm}-7 [1] 37000001000: {}", FREE)], "{}", read.stderr);
        let text = format!("{:>8.8}-7         1d..1. 37000001us : {FREE}\n", comm);
        let read = converted(&text);
        assert_eq!(
            read.lines,
            [format!("{}-7 [1] 37000001000: {}", comm[..8].trim_end(), FREE)],
            "{}",
            read.stderr
        );
    }
}
