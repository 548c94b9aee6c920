use kmt_format::kernel::{ByteOrder, TraceClock};
use kmt_format::write::{Task, Writer, WriterOptions};

use super::*;

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/// `task_newtask` has no clone flags here.
fn newtask() -> String {
    format!(
        "name: task_newtask\nID: 7\nformat:\n{COMMON}\
         \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
         \tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n\nprint fmt: \"\"\n"
    )
}

/// Since 6.14 or so it has no `pid`.
fn rename() -> String {
    format!(
        "name: task_rename\nID: 8\nformat:\n{COMMON}\
         \tfield:char oldcomm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
         \tfield:char newcomm[16];\toffset:24;\tsize:16;\tsigned:0;\n\nprint fmt: \"\"\n"
    )
}

/// A trace of naming events: table of tasks, then CPU, time, and the record.
fn names(table: &[Task], events: &[(u32, u64, Vec<u8>)], pairs: &[(&str, &[u8])]) -> Comms {
    let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8)).unwrap();
    writer.add_clock(&TraceClock::named("local")).unwrap();
    writer.add_metadata(pairs).unwrap();
    writer.add_format("task", &newtask()).unwrap();
    writer.add_format("task", &rename()).unwrap();
    writer.add_tasks(table).unwrap();
    for (cpu, time, record) in events {
        writer.add_event(*cpu, *time, record).unwrap();
    }
    let file = writer.finish().unwrap();
    Comms::of(&Trace::open(&file).unwrap())
}

fn text(name: &str) -> Vec<u8> {
    let mut out = name.as_bytes().to_vec();
    out.resize(16, 0);
    out
}

fn head(id: u16, current: i32) -> Vec<u8> {
    let mut out = id.to_le_bytes().to_vec();
    out.extend([0, 0]);
    out.extend(current.to_le_bytes());
    out
}

fn begins(pid: i32, name: &str) -> Vec<u8> {
    [head(7, 1), pid.to_le_bytes().to_vec(), text(name)].concat()
}

fn renamed(pid: i32, old: &str, new: &str) -> Vec<u8> {
    [head(8, pid), text(old), text(new)].concat()
}

fn at(names: &Comms, pid: i32, time: u64) -> String {
    String::from_utf8_lossy(names.at(pid, time).unwrap_or(b"?")).into_owned()
}

#[test]
fn a_name_holds_until_the_next_one() {
    let task = |name: &str, time| Task::new(7, name.as_bytes().to_vec()).since(time);
    let late = Task::new(8, b"late".to_vec()).since(50);
    let names = names(&[task("tail", 200), task("sh", 0), task("cat", 100), late], &[], &[]);
    assert_eq!([99, 100, 1_000].map(|time| at(&names, 7, time)), ["sh", "cat", "tail"]);
    assert_eq!(at(&names, 8, 1), "late", "the first name also holds before its event");
    assert_eq!(names.at(9, 1), None);
    assert!(names.changes(7) && !names.changes(8));
}

#[test]
fn a_rename_without_a_task_id_renames_the_running_task() {
    let events = [(1, 200, renamed(7, "python3", "ip")), (0, 100, begins(7, "python3"))];
    let names = names(&[], &events, &[]);
    assert_eq!([100, 199, 200, 900].map(|time| at(&names, 7, time)), ["python3", "python3", "ip", "ip"]);
}

#[test]
fn a_saved_name_without_a_time_does_not_hold_before_the_rename() {
    // saved_cmdlines has the last name, without a time.
    let names = names(&[Task::new(7, b"ip".to_vec())], &[(0, 200, renamed(7, "python3", "ip"))], &[]);
    assert_eq!([1, 199, 200].map(|time| at(&names, 7, time)), ["python3", "python3", "ip"]);
}

#[test]
fn an_event_counts_where_a_later_row_has_the_same_name() {
    let table = [Task::new(7, b"sh".to_vec()), Task::new(7, b"cat".to_vec()).since(300)];
    let names = names(&table, &[(0, 200, begins(7, "cat"))], &[]);
    assert_eq!([199, 200, 300].map(|time| at(&names, 7, time)), ["sh", "cat", "cat"]);
}

#[test]
fn the_table_of_a_live_recorder_has_all_names() {
    let table = [Task::new(7, b"ip".to_vec()).since(200)];
    let events = [(0, 100, begins(7, "python3")), (0, 200, renamed(7, "python3", "ip"))];
    let writer = ("writer", b"kmt-capture 1.0.0".as_slice());
    let live = names(&table, &events, &[writer, ("recorder.pid", b"9")]);
    assert_eq!(at(&live, 7, 100), "ip", "events are not read");
    let converted = names(&table, &events, &[writer]);
    assert_eq!(at(&converted, 7, 100), "python3");
}

#[test]
fn columns_of_a_text_do_not_hold_where_events_have_names() {
    let table = [Task::new(7, b"ip".to_vec()).since(150), Task::new(8, b"sh".to_vec()).since(150)];
    let events = [(0, 100, begins(7, "python3")), (0, 200, renamed(7, "python3", "ip"))];
    let names = names(&table, &events, &[("source", b"ftrace text")]);
    assert_eq!([150, 200].map(|time| at(&names, 7, time)), ["python3", "ip"]);
    assert_eq!(at(&names, 8, 100), "sh");
}

#[test]
fn idle_tasks_have_one_name() {
    let names = names(&[], &[(0, 100, renamed(0, "swapper/0", "swapper/1"))], &[]);
    assert_eq!((at(&names, 0, 50), at(&names, 0, 100)), ("<idle>".to_owned(), "<idle>".to_owned()));
}
