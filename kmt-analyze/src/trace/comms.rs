//! Names of tasks over time: the name in a row or a condition is the one at the time of the event.
//!
//! The kernel records the start of a task on one CPU and its next name on another. The last row or event of a file need not be
//! the latest, so everything is sorted by time. Tasks that a task has started are found too. The events of these few classes are
//! read ahead of the pass, in the kernel's order.

use std::collections::{HashMap, HashSet};

use kmt_format::read::{Event, Trace};
use kmt_format::schema::EventClass;

use crate::int_hash::IntHash;

/// Names of each task, with their start times.
#[derive(Debug, Default)]
pub struct Comms {
    by_pid: HashMap<i32, Vec<(u64, Vec<u8>)>, IntHash>,
}

/// Fields of an event with the name of a task.
struct NameSource {
    class: usize,
    /// Field of the task; `None`: the running task.
    pid: Option<usize>,
    comm: usize,
    /// Field of the previous name.
    old: Option<usize>,
    is_exit: bool,
}

/// Longest name of a task, in bytes (TASK_COMM_LEN, include/linux/sched.h, without the zero).
const COMM_MAX: usize = 15;

/// System, event, fields of the task, its name, its previous name (include/trace/events/{task,sched}.h, 3.2 to 7.2).
/// Without a `pid` in task_rename it is the running task.
const SOURCES: [(&str, &str, &str, &str, Option<&str>); 5] = [
    ("task", "task_rename", "pid", "newcomm", Some("oldcomm")),
    ("task", "task_newtask", "pid", "comm", None),
    ("sched", "sched_switch", "prev_pid", "prev_comm", None),
    ("sched", "sched_switch", "next_pid", "next_comm", None),
    ("sched", "sched_process_exit", "pid", "comm", None),
];

/// Names found in events.
#[derive(Default)]
struct FoundName {
    /// Task, time, name.
    rows: Vec<(i32, u64, Vec<u8>)>,
    /// Task, time and name of exits; the names are those of the time before.
    exits: Vec<(i32, u64, Vec<u8>)>,
    last: HashMap<i32, Vec<u8>, IntHash>,
    /// Previous names of tasks whose first event is a rename.
    before: HashMap<i32, Vec<u8>, IntHash>,
}

impl Comms {
    /// Names of a trace, from its table of tasks and, if that may lack some, from recorded events.
    pub fn of(trace: &Trace<'_>) -> Self {
        let mut names = Self::default();
        for task in trace.metadata().tasks.iter().filter(|t| !t.comm.is_empty()) {
            names.add(task.pid, task.time, task.comm.to_vec());
        }
        if !has_all_names(trace) {
            let found = FoundName::of(trace);
            // The kernel's `trace` file has the last name of a task in all of its lines.
            if trace.metadata().text("source") == Some("ftrace text") {
                names.by_pid.retain(|pid, _| !found.last.contains_key(pid));
            }
            let exits = names.merge(found);
            names.sort();
            exits.into_iter().for_each(|(pid, time, name)| names.add_exit(pid, time, name));
            names.name_command(trace);
        }
        names.sort();
        names
    }

    fn sort(&mut self) {
        for rows in self.by_pid.values_mut() {
            rows.sort_by_key(|(time, _)| *time);
            rows.dedup_by(|next, first| {
                let is_same = next.1 == first.1 || next.0 == first.0;
                if is_same && next.0 == first.0 {
                    first.1 = std::mem::take(&mut next.1);
                }
                is_same
            });
        }
    }

    /// Adds the name that a task had at its exit, where its rename was lost. A task that started in the recording had its first
    /// name, that of its parent, until it ran a program: for a moment.
    fn add_exit(&mut self, pid: i32, time: u64, name: Vec<u8>) {
        let rows = self.by_pid.entry(pid).or_default();
        let at = rows.partition_point(|(since, _)| *since <= time);
        let before = at.checked_sub(1).and_then(|last| rows.get_mut(last));
        match before {
            Some((_, last)) if *last == name => {}
            Some((since, last)) if at == 1 && *since > 0 => *last = name,
            _ => rows.insert(at, (time, name)),
        }
    }

    /// Names the task that the recorder started for its command, where its rename was lost: it has the recorder's name.
    fn name_command(&mut self, trace: &Trace<'_>) {
        let metadata = trace.metadata();
        let recorder = metadata.text("recorder.pid").and_then(|pid| pid.parse::<i32>().ok());
        let command = metadata.text("record.command").and_then(|line| line.split(' ').next());
        let (Some(recorder), Some(program)) = (recorder, command.filter(|program| !program.is_empty()))
        else {
            return;
        };
        let Some(own) = self.rows(recorder).last().map(|(_, name)| name.clone()) else { return };
        let threads: HashSet<i32> =
            metadata.tasks.iter().filter(|task| task.tgid == recorder).map(|task| task.pid).collect();
        let program = program.rsplit('/').next().unwrap_or(program).as_bytes();
        let program = program.get(..COMM_MAX).unwrap_or(program);
        let others = self.by_pid.iter_mut().filter(|(pid, _)| **pid != recorder && !threads.contains(pid));
        for (_, rows) in others {
            if let [(since, name)] = rows.as_mut_slice() {
                if *since > 0 && *name == own {
                    *name = program.to_vec();
                }
            }
        }
    }

    fn add(&mut self, pid: i32, time: u64, name: Vec<u8>) {
        self.by_pid.entry(pid).or_default().push((time, name));
    }

    /// Adds found names, and returns those of exits.
    fn merge(&mut self, found: FoundName) -> Vec<(i32, u64, Vec<u8>)> {
        for (pid, old) in found.before {
            // saved_cmdlines has last names without a time: the event is better.
            self.by_pid.entry(pid).or_default().retain(|(time, _)| *time > 0);
            self.add(pid, 0, old);
        }
        found.rows.into_iter().for_each(|(pid, time, name)| self.add(pid, time, name));
        found.exits
    }

    fn rows(&self, pid: i32) -> &[(u64, Vec<u8>)] {
        self.by_pid.get(&pid).map(Vec::as_slice).unwrap_or_default()
    }

    /// Time until which a task keeps the name of a time; `u64::MAX`: for good.
    pub fn same_until(&self, pid: i32, time: u64) -> u64 {
        let rows = self.rows(pid);
        rows.get(rows.partition_point(|(since, _)| *since <= time)).map_or(u64::MAX, |next| next.0)
    }

    /// Number of a task's name at a time; the first name also holds before its event.
    pub fn number_at(&self, pid: i32, time: u64) -> u16 {
        let after = self.rows(pid).partition_point(|(since, _)| *since <= time);
        u16::try_from(after.saturating_sub(1)).unwrap_or(u16::MAX)
    }

    /// The name of that number; the idle task always has one.
    pub fn name(&self, pid: i32, number: u16) -> Option<&[u8]> {
        let name = self.rows(pid).get(usize::from(number)).map(|(_, name)| name.as_slice());
        name.or((pid == 0).then_some(b"<idle>"))
    }

    /// The name of that number, `<...>` if it is unknown.
    pub fn shown(&self, pid: i32, number: u16) -> &[u8] {
        self.name(pid, number).unwrap_or(b"<...>")
    }

    /// The name of a task at a time.
    pub fn at(&self, pid: i32, time: u64) -> Option<&[u8]> {
        self.name(pid, self.number_at(pid, time))
    }

    /// The name of a task at a time, `<...>` if it is unknown.
    pub fn shown_at(&self, pid: i32, time: u64) -> &[u8] {
        self.at(pid, time).unwrap_or(b"<...>")
    }

    /// All tasks with names, by id, each with its name at a time.
    pub fn all_at(&self, time: u64) -> Vec<(i32, &[u8])> {
        let mut pids: Vec<i32> = self.by_pid.keys().copied().collect();
        pids.push(0);
        pids.sort_unstable();
        pids.dedup();
        pids.into_iter().map(|pid| (pid, self.shown_at(pid, time))).collect()
    }
}

/// True if the table of tasks has every name that events have: a live recorder writes a row for each of them.
fn has_all_names(trace: &Trace<'_>) -> bool {
    let metadata = trace.metadata();
    let is_ours = metadata.text("writer").is_some_and(|writer| writer.starts_with("kmt-capture "));
    let is_recorded = |name| trace.schema().classes().any(|(_, c)| c.system == "task" && c.name == name);
    is_ours
        && metadata.text("recorder.pid").is_some()
        && trace.is_finished()
        && trace.damage_count() == 0
        // Renames may be among lost events.
        && trace.streams().values().flat_map(|stream| &stream.chunks).all(|(_, info)| info.loss.is_none())
        && is_recorded("task_newtask")
        && is_recorded("task_rename")
}

impl FoundName {
    /// Names in events of a trace. Reads only the chunks that may have such events.
    fn of(trace: &Trace<'_>) -> Self {
        let mut found = Self::default();
        let schema = trace.schema();
        let mut all: HashMap<usize, Vec<NameSource>, IntHash> = HashMap::default();
        for source in schema.classes().flat_map(|(index, class)| sources(index, class)) {
            all.entry(source.class).or_default().push(source);
        }
        rare_events(trace, is_naming, |event| {
            let sources = all.get(&event.class_index());
            sources.into_iter().flatten().for_each(|source| found.event(source, event));
        });
        found
    }

    fn event(&mut self, source: &NameSource, event: &Event<'_>) {
        let pid = match source.pid {
            None => event.pid(),
            Some(field) => event.uint(field).map_or(0, |pid| pid as i32),
        };
        // Idle tasks have the id 0 and a name for each CPU.
        let Some(comm) = event.text(source.comm).filter(|comm| pid != 0 && !comm.is_empty()) else { return };
        if source.is_exit {
            self.exits.push((pid, event.time(), comm.to_vec()));
            return;
        }
        let last = self.last.get(&pid);
        if last.is_some_and(|last| last == comm) {
            return;
        }
        if let (None, Some(old)) = (last, source.old.and_then(|field| event.text(field))) {
            self.before.insert(pid, old.to_vec());
        }
        self.last.insert(pid, comm.to_vec());
        self.rows.push((pid, event.time(), comm.to_vec()));
    }
}

fn is_naming(class: &EventClass) -> bool {
    SOURCES.iter().any(|source| source.0 == class.system && source.1 == class.name)
}

fn sources(index: usize, class: &EventClass) -> impl Iterator<Item = NameSource> + '_ {
    let sources = SOURCES.iter().filter(|s| s.0 == class.system && s.1 == class.name);
    sources.filter_map(move |(_, event, pid, comm, old)| {
        let field = class.field_named(pid);
        Some(NameSource {
            class: index,
            pid: if *event == "task_rename" { field } else { Some(field?) },
            comm: class.field_named(comm)?,
            old: old.and_then(|old| class.field_named(old)),
            is_exit: *event == "sched_process_exit",
        })
    })
}

/// Calls `each` with the events of the classes for which `is_wanted`. Reads only the chunks that may have them.
pub fn rare_events(
    trace: &Trace<'_>,
    is_wanted: impl Fn(&EventClass) -> bool,
    mut each: impl FnMut(&Event<'_>),
) {
    let schema = trace.schema();
    let wanted: Vec<bool> =
        (0..schema.class_count()).map(|index| schema.class(index).is_some_and(&is_wanted)).collect();
    if !wanted.contains(&true) {
        return;
    }
    let mut merge = trace.merge_of(schema.class_bits(&is_wanted), None);
    // By CPU, the number of its chunk, and the descriptors of wanted events there: runs of CPUs alternate.
    let mut chunks: HashMap<u32, (u64, Vec<bool>), IntHash> = HashMap::default();
    while let Some(run) = merge.next_run() {
        let (number, descriptors) = chunks.entry(run.cpu).or_insert((u64::MAX, Vec::new()));
        if *number != run.chunk_number {
            let class = |descriptor| Some(schema.shape(run.chunk.shape_of(descriptor)?)?.class);
            let is_of = |descriptor| class(descriptor).is_some_and(|class| wanted.get(class) == Some(&true));
            *descriptors = (0..run.chunk.descriptor_count()).map(is_of).collect();
            *number = run.chunk_number;
        }
        let mut index = run.range.start;
        run.chunk.for_each_in(run.range.clone(), |_, record| {
            if descriptors.get(usize::from(record.descriptor)) == Some(&true) {
                if let Some(event) = Event::new(schema, run.chunk, index) {
                    each(&event);
                }
            }
            index += 1;
        });
    }
}

/// Threads and descendants of the tasks for which `is_root` is true, by the events of new tasks. A task is judged by its
/// id and the time at which it starts another. A thread belongs to the task that starts it.
pub fn descendants(trace: &Trace<'_>, is_root: impl Fn(i32, u64) -> bool) -> HashSet<i32> {
    let mut found = HashSet::new();
    rare_events(trace, is_start, |event| {
        let parent = event.pid();
        let pid = event.class().field_named("pid").and_then(|field| event.uint(field));
        if let Some(pid) = pid.filter(|_| found.contains(&parent) || is_root(parent, event.time())) {
            found.insert(pid as i32);
        }
    });
    found
}

/// True if starts of tasks were recorded.
pub fn has_starts(trace: &Trace<'_>) -> bool {
    trace.schema().classes().any(|(_, class)| is_start(class))
}

fn is_start(class: &EventClass) -> bool {
    class.system == "task" && class.name == "task_newtask"
}

#[cfg(test)]
mod tests {
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
        assert_eq!([0, 99, 100, 200].map(|time| names.same_until(7, time)), [100, 100, 200, u64::MAX]);
        assert_eq!(
            ([50, 99].map(|time| names.same_until(8, time)), names.same_until(9, 1)),
            ([u64::MAX; 2], u64::MAX)
        );
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

    /// The rename to `find` was lost: the exit still has it. A child of the recorder that still runs is its command.
    #[test]
    fn a_lost_rename_is_found_by_the_exit_and_by_the_command() {
        let exits = "name: sched_process_exit\nID: 9\nformat:\n".to_owned()
            + COMMON
            + "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
               \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";
        let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8)).unwrap();
        writer.add_clock(&TraceClock::named("local")).unwrap();
        let pairs: [(&str, &[u8]); 3] = [
            ("writer", b"kmt-capture 1.0.0"),
            ("recorder.pid", b"5"),
            ("record.command", b"/usr/bin/find / -x"),
        ];
        writer.add_metadata(&pairs).unwrap();
        writer.add_format("task", &newtask()).unwrap();
        writer.add_format("task", &rename()).unwrap();
        writer.add_format("sched", &exits).unwrap();
        let name = |pid, time| Task::new(pid, b"kmt-capture".to_vec()).since(time);
        writer.add_tasks(&[name(5, 0), name(7, 100), name(8, 100), Task::new(9, b"sh".to_vec())]).unwrap();
        let exit = |pid: i32, name: &str| [head(9, pid), text(name), pid.to_le_bytes().to_vec()].concat();
        writer.add_event(0, 100, &begins(7, "kmt-capture")).unwrap();
        writer.add_loss(0, kmt_format::Loss::counted(3)).unwrap();
        writer.add_event(0, 300, &exit(7, "grep")).unwrap();
        writer.add_event(0, 400, &exit(9, "cat")).unwrap();
        let file = writer.finish().unwrap();
        let names = Comms::of(&Trace::open(&file).unwrap());
        assert_eq!([at(&names, 7, 150), at(&names, 7, 300)], ["grep", "grep"]);
        assert_eq!([at(&names, 9, 399), at(&names, 9, 400)], ["sh", "cat"], "when it changed is unknown");
        assert_eq!([at(&names, 8, 150), at(&names, 5, 150)], ["find", "kmt-capture"]);
    }

    #[test]
    fn idle_tasks_have_one_name() {
        let names = names(&[], &[(0, 100, renamed(0, "swapper/0", "swapper/1"))], &[]);
        assert_eq!((at(&names, 0, 50), at(&names, 0, 100)), ("<idle>".to_owned(), "<idle>".to_owned()));
    }
}
