//! Names of tasks.

use super::converted;
use super::encoder::{Message, all, bundle, event, kmalloc, msg, num, packet};

const PTR: u64 = 0xffff_8880_0400_0040;

fn process(pid: u64, parent: u64, command: &str) -> Message {
    msg(1, all([num(1, pid), num(2, parent), msg(3, command)]))
}

fn thread(tid: u64, name: &str, tgid: u64) -> Message {
    msg(2, all([num(1, tid), msg(2, name), num(3, tgid)]))
}

#[test]
fn names_come_from_events_before_those_of_programs() {
    let tree = [
        process(40, 1, "/system/bin/app_process64"),
        process(9, 2, "kswapd0"),
        thread(41, "RenderThread", 40),
        process(50, 1, "/bin/sh -c x"),
    ];
    let newtask = all([num(1, 60), msg(2, "sh"), num(3, 0x1_1200), num(4, 0)]);
    let rename = all([num(1, 50), msg(2, "sh"), msg(3, "make"), num(4, 0)]);
    let switch = all([msg(1, "main"), num(2, 40), msg(5, "swapper/0"), num(6, 0)]);
    let exit = all([msg(1, "worker"), num(2, 71), num(3, 70), num(4, 120)]);
    let compact =
        msg(4, all([msg(1, [25, 1]), msg(3, [80, 0]), msg(5, "logd"), msg(5, "swapper"), msg(6, [0, 1])]));
    let parts = [
        kmalloc(10, PTR),
        event(20, 50, 235, newtask),
        event(21, 50, 236, rename),
        event(22, 40, 4, switch),
        event(23, 71, 238, exit),
        compact,
    ];
    let converted = converted(&[packet(1, [msg(2, all(tree))]), packet(2, [bundle(0, parts)])].concat());
    for row in [
        "40 (40) main since 22",
        "9 (9) kswapd0 since 0",
        "41 (40) RenderThread since 0",
        "50 (0) sh since 0",
        "50 (0) make since 21",
        "60 (0) sh since 20",
        "71 (70) worker since 23",
        "80 (0) logd since 25",
    ] {
        let (pid, rest) = row.split_once(' ').unwrap();
        let has = |task: &String| {
            let (other, other_rest) = task.split_once(' ').unwrap();
            // The group may be known to another row.
            pid == other && rest.split_once(' ').unwrap().1 == other_rest.split_once(' ').unwrap().1
        };
        assert!(converted.tasks.iter().any(has), "{row}: {:?}", converted.tasks);
    }
    for name in ["app_process64", "swapper"] {
        assert!(!converted.tasks.iter().any(|task| task.contains(name)), "{name}: {:?}", converted.tasks);
    }
    assert!(converted.tasks.iter().any(|task| task.starts_with("41 (40)")), "{:?}", converted.tasks);
}

#[test]
fn the_name_of_a_program_is_used_where_there_is_no_other() {
    let tree = [process(40, 1, "/system/bin/surfaceflinger_of_a_device")];
    let converted =
        converted(&[packet(1, [msg(2, all(tree))]), packet(2, [bundle(0, [kmalloc(10, PTR)])])].concat());
    assert!(converted.tasks.contains(&"40 (40) surfaceflinger_ since 0".to_owned()), "{:?}", converted.tasks);
    assert!(converted.stderr.contains("1 task of which no event has the name"), "{}", converted.stderr);
}
