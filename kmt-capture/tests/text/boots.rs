//! Two boots in a text: a console log with the dump of each.

use crate::{converted, converted_with, refused};

/// A log of a console: 12 events of the first boot, from 48.89 s on, and 8 of the second, from 0.412 s on.
const TWO: &str = include_str!("two-boots.txt");

/// The log from the start of the second boot on.
fn second() -> &'static str {
    &TWO[TWO.rfind("[    0.000000] Linux version").unwrap()..]
}

fn first() -> &'static str {
    &TWO[..TWO.len() - second().len()]
}

#[test]
fn two_boots_are_refused_and_each_can_be_converted() {
    let told = refused(TWO);
    for part in [
        "the time of CPU 0 steps back from 48.890",
        " s to 0.412000 s, and that of 2 of 2 CPUs: the text holds the events of two boots",
        "--boot last converts",
        "printed twice",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    for (boot, alone, events) in [("first", first(), 12), ("last", second(), 8)] {
        let (of_two, one) = (converted_with(TWO, &["--boot", boot]), converted(alone));
        assert_eq!(of_two.code, Some(0), "{}", of_two.stderr);
        assert_eq!((of_two.lines.len(), &of_two.lines), (events, &one.lines), "{boot}");
        assert_eq!((of_two.tasks, of_two.lost), (one.tasks, one.lost), "{boot}");
    }
    let whole = converted_with(second(), &["--boot", "last"]);
    assert!(whole.lines == converted(second()).lines);
    assert!(whole.stderr.contains("--boot: all events are of one boot"), "{}", whole.stderr);
}

#[test]
fn one_cpu_of_two_or_one_line_is_no_boot() {
    // Only the lines of CPU 0 step back.
    let of_one_cpu = |line: &&str| !line.contains(" 1d..2.");
    let second: Vec<&str> = second().lines().filter(of_one_cpu).collect();
    let read = converted(&format!("{}{}\n", first(), second.join("\n")));
    assert_eq!(read.lines.len(), 12 + 4, "{}", read.stderr);
    // A line of a wrong time between those of each CPU.
    let mut lines: Vec<&str> = first().lines().collect();
    let at = lines.iter().position(|line| line.contains(" 0d..2.")).unwrap() + 5;
    let wrong = lines[at].replace("48890", "90");
    assert_ne!(wrong, lines[at]);
    lines.insert(at, &wrong);
    assert_eq!(converted(&(lines.join("\n") + "\n")).lines.len(), 13);
}

#[test]
fn many_events_of_time_0_are_of_a_boot_and_few_are_rounded() {
    let event = |us: u32, number: u32| {
        format!(
            "       swapper-0       [000] d....     0.{us:06}: kmalloc: call_site=f+0x1/0x20 ptr=ffff88810000{number:02x}00 bytes_req=56 bytes_alloc=64 gfp_flags=GFP_KERNEL\n"
        )
    };
    let text =
        |zeros: u32| -> String { (0..zeros + 3).map(|at| event(at.saturating_sub(zeros), at)).collect() };
    // Each with the first of the others, whose time is 0 too.
    assert!(converted(&text(40)).stderr.contains("41 events have the time 0"));
    assert!(!converted(&text(8)).stderr.contains("have the time 0"));
}
