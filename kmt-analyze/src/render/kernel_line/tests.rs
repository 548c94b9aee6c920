//! One event, printed as kernels of different ages print it.

use kmt_format::kernel::{ByteOrder, TraceClock};
use kmt_format::read::Trace;
use kmt_format::write::{Task, Writer, WriterOptions};

use super::*;

struct Case {
    version: Option<(u32, u32)>,
    flags: u8,
    preempt: u8,
    pid: i32,
    options: &'static str,
    clock: &'static str,
    realtime: bool,
}

const CASE: Case = Case {
    version: Some((6, 1)),
    flags: 0,
    preempt: 0,
    pid: 42,
    options: "",
    clock: "local",
    realtime: false,
};

fn line(case: &Case) -> String {
    let extra = if case.realtime {
        "\tfield:unsigned char common_migrate_disable;\toffset:8;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_lazy_count;\toffset:9;\tsize:1;\tsigned:0;\n"
    } else {
        ""
    };
    let format = format!(
        "name: ev\nID: 5\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
         \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n{extra}\n\nprint fmt: \"\"\n"
    );
    let options = WriterOptions::new(ByteOrder::Big, 4).trace_uuid([0; 16]);
    let mut writer = Writer::new(options).unwrap();
    writer.add_clock(&TraceClock::named(case.clock)).unwrap();
    writer.add_metadata(&[("tracefs/trace_options", case.options.as_bytes())]).unwrap();
    writer
        .add_tasks(&[Task::new(42, b"my task".to_vec()).tgid(41), Task::new(40_000, b"late".to_vec())])
        .unwrap();
    writer.add_format("sys", &format).unwrap();
    let mut record = vec![0, 5, case.flags, case.preempt];
    record.extend(case.pid.to_be_bytes());
    record.extend([3, 2]);
    writer.add_event(7, 12_345_678_500, &record).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let chunk = trace.read(&trace.streams()[&7].chunks[0].0).unwrap();
    let event = Event::new(trace.schema(), &chunk, 0).unwrap();
    let version = case.version.map(|(major, minor)| KernelVersion::new(major, minor));
    let mut out = Vec::new();
    LineStart::new(trace.metadata(), version).write(&mut out, &event);
    String::from_utf8(out).unwrap()
}

fn check(case: Case, expected: &str) {
    assert_eq!(line(&case), expected);
}

#[test]
fn columns_follow_the_kernels_version() {
    let at = |version| Case { version: Some(version), ..CASE };
    check(at((4, 4)), "         my task-42    [007] ....    12.345679: ");
    check(at((5, 3)), "         my task-42    [007] ....    12.345679: ");
    check(at((5, 4)), "         my task-42      [007] ....    12.345679: ");
    check(at((5, 10)), "         my task-42      [007] ....    12.345679: ");
    check(at((5, 15)), "         my task-42      [007] .....    12.345679: ");
    check(Case { version: None, ..CASE }, "         my task-42      [007] .....    12.345679: ");
}

#[test]
fn flags_and_counts() {
    let flags = |version, flags, preempt| {
        let line = line(&Case { version: Some(version), flags, preempt, ..CASE });
        line.split("] ").nth(1).unwrap().split(' ').next().unwrap().to_owned()
    };
    assert_eq!(flags((4, 4), 0x01 | 0x04 | 0x08, 0x12), "dnh12");
    assert_eq!(flags((5, 10), 0x02 | 0x24 | 0x18, 1), "XNH1");
    assert_eq!(flags((5, 15), 0x20 | 0x10, 0x21), ".ps12");
    assert_eq!(flags((5, 19), 0x81 | 0x40, 0x10), "D.z.1");
    assert_eq!(flags((6, 1), 0x80 | 0x48, 0x0f), "b.Zf.");
    assert_eq!(flags((6, 12), 0x02, 0), "X....");
    for (bits, letter) in
        [(0x02, 'l'), (0x06, 'b'), (0x22, 'L'), (0x26, 'B'), (0x24, 'N'), (0x04, 'n'), (0x20, 'p')]
    {
        assert_eq!(flags((6, 14), bits, 0), format!(".{letter}..."));
    }
}

#[test]
fn real_time_kernels_have_columns_of_their_own() {
    let case = Case { version: Some((5, 10)), realtime: true, flags: 0x02, preempt: 1, ..CASE };
    check(case, "         my task-42      [007] ..L.123    12.345679: ");
}

#[test]
fn names_of_tasks() {
    let pid = |pid, version| line(&Case { pid, version: Some(version), ..CASE });
    assert!(pid(0, (6, 1)).starts_with("          <idle>-0       ["));
    assert!(pid(99, (6, 1)).starts_with("           <...>-99      ["));
    assert!(pid(-3, (6, 1)).starts_with("           <XXX>--3      ["));
    assert!(pid(40_000, (6, 1)).starts_with("            late-40000   ["));
    assert!(pid(40_000, (4, 4)).starts_with("           <...>-40000 ["));
}

#[test]
fn options_and_clocks() {
    let with = |options, version| line(&Case { options, version: Some(version), ..CASE });
    assert_eq!(
        with("record-tgid irq-info", (6, 1)),
        "         my task-42      (     41) [007] .....    12.345679: "
    );
    assert_eq!(with("record-tgid", (4, 15)), "         my task-42    (   41) [007] ....    12.345679: ");
    assert_eq!(with("noirq-info norecord-tgid", (6, 1)), "         my task-42      [007]     12.345679: ");
    let nobody = line(&Case { options: "record-tgid", pid: 9, ..CASE });
    assert!(nobody.contains("-9       (-------) ["), "{nobody}");
    check(Case { clock: "x86-tsc", ..CASE }, "         my task-42      [007] .....  12345678500: ");
}
