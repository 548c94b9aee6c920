//! Cgroups and descendants of tasks, against loops over all events.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use kmt_format::tables::CgroupRecord;
use serde_json::Value;

use crate::model::{BASE, Crafted, next};
use crate::support::files::{Scratch, at, json as document, run, stderr, stdout};
use crate::support::model::{Event, What};

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

const PATHS: [&str; 4] = ["/", "/web", "/web/one", "/db"];
const CLONE_THREAD: u64 = 0x1_0000;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Alloc,
    /// The task starts another one, or a thread.
    Start {
        pid: i32,
        is_thread: bool,
    },
    /// A process is moved.
    Move {
        pid: i32,
        path: usize,
    },
}

/// Time, CPU, task, kind.
type Step = (u64, u64, i32, Kind);

/// Tasks 10 to 13 run at the start, in the cgroups of these numbers.
const FIRST: [(i32, usize); 4] = [(10, 0), (11, 1), (12, 2), (13, 3)];

fn random(mut seed: u64) -> Vec<Step> {
    let mut below = |limit: u64| next(&mut seed) % limit;
    let mut processes: Vec<i32> = FIRST.iter().map(|task| task.0).collect();
    let mut tasks = processes.clone();
    let mut steps = Vec::new();
    for number in 0..400u64 {
        let pid = tasks[below(tasks.len() as u64) as usize];
        let kind = match below(10) {
            0 => {
                let (pid, is_thread) = (100 + number as i32, below(3) == 0);
                tasks.push(pid);
                if !is_thread {
                    processes.push(pid);
                }
                Kind::Start { pid, is_thread }
            }
            1 => {
                let pid = processes[below(processes.len() as u64) as usize];
                Kind::Move { pid, path: below(4) as usize }
            }
            _ => Kind::Alloc,
        };
        steps.push((1_000 + 10 * number, below(3), pid, kind));
    }
    steps
}

fn write(scratch: &Scratch, name: &str, steps: &[Step]) -> std::path::PathBuf {
    let mut made = Crafted::new();
    let newtask = format!(
        "name: task_newtask\nID: 70\nformat:\n{COMMON}\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
         \tfield:unsigned long clone_flags;\toffset:16;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n"
    );
    let attach = format!(
        "name: cgroup_attach_task\nID: 71\nformat:\n{COMMON}\tfield:int dst_root;\toffset:8;\tsize:4;\tsigned:1;\n\
         \tfield:int pid;\toffset:12;\tsize:4;\tsigned:1;\n\
         \tfield:char dst_path[16];\toffset:16;\tsize:16;\tsigned:0;\n\nprint fmt: \"\"\n"
    );
    made.writer.add_format("task", &newtask).unwrap();
    made.writer.add_format("cgroup", &attach).unwrap();
    let rows = FIRST.map(|(pid, path)| CgroupRecord::new(pid, PATHS[path].as_bytes()));
    made.writer.add_cgroups(&rows).unwrap();
    for (number, (time, cpu, pid, kind)) in steps.iter().enumerate() {
        let mut record = match kind {
            Kind::Alloc => {
                let ptr = BASE + 64 * number as u64;
                let what = What::Alloc { kmalloc: true, site: 0x10, ptr, req: 60, alloc: 64 };
                made.event(&Event { time: *time, cpu: *cpu, pid: i64::from(*pid), what });
                continue;
            }
            Kind::Start { .. } => vec![70, 0, 0, 0],
            Kind::Move { .. } => vec![71, 0, 0, 0],
        };
        record.extend(pid.to_le_bytes());
        match *kind {
            Kind::Start { pid, is_thread } => {
                record.extend(pid.to_le_bytes());
                record.extend([0; 4]);
                record.extend(if is_thread { CLONE_THREAD } else { 17 }.to_le_bytes());
            }
            Kind::Move { pid, path } => {
                record.extend(0i32.to_le_bytes());
                record.extend(pid.to_le_bytes());
                let mut text = PATHS[path].as_bytes().to_vec();
                text.resize(16, 0);
                record.extend(text);
            }
            Kind::Alloc => {}
        }
        made.writer.add_event(*cpu as u32, *time, &record).unwrap();
    }
    let free = Event { time: 900_000, cpu: 0, pid: 10, what: What::Free { kfree: true, ptr: BASE } };
    made.event(&free);
    let path = scratch.0.join(name);
    fs::write(&path, made.writer.finish().unwrap()).unwrap();
    path
}

/// Process of a task: of a thread, that of the task that started it.
fn process(steps: &[Step], pid: i32) -> i32 {
    let start = steps.iter().find_map(|step| match step.3 {
        Kind::Start { pid: of, is_thread: true } if of == pid => Some(step.2),
        _ => None,
    });
    start.map_or(pid, |parent| process(steps, parent))
}

/// Cgroup of a task before a step: the last move of its process, or that of its parent when it was started.
fn cgroup(steps: &[Step], before: usize, pid: i32) -> usize {
    let process = process(steps, pid);
    for (number, step) in steps.iter().enumerate().take(before).rev() {
        match step.3 {
            Kind::Move { pid, path } if pid == process => return path,
            Kind::Start { pid, .. } if pid == process => return cgroup(steps, number, step.2),
            _ => {}
        }
    }
    FIRST.iter().find(|task| task.0 == process).unwrap().1
}

fn allocations(steps: &[Step]) -> impl Iterator<Item = (usize, i32)> {
    let is_alloc = |step: &Step| matches!(step.3, Kind::Alloc);
    steps.iter().enumerate().filter(move |(_, step)| is_alloc(step)).map(|(number, step)| (number, step.2))
}

fn allocs(report: &Value) -> u64 {
    at(report, "/slab/alloc_events").as_u64().unwrap()
}

#[test]
fn cgroups_are_those_of_a_loop_over_all_events() {
    let scratch = Scratch::new();
    for seed in 0..5 {
        let steps = random(seed);
        let file = write(&scratch, &format!("{seed}.kmt"), &steps);
        let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
        for (number, pid) in allocations(&steps) {
            *expected.entry(PATHS[cgroup(&steps, number, pid)]).or_default() += 1;
        }
        let report = document(&["callers", "--json", "--by", "cgroup", "-l", "100"], &file);
        let rows = at(&report, "/groups").as_array().unwrap();
        let found: BTreeMap<&str, u64> = rows
            .iter()
            .map(|row| (row["cgroup"].as_str().unwrap(), row["alloc_events"].as_u64().unwrap()))
            .collect();
        assert_eq!(found, expected, "seed {seed}");
        // A path selects those below it too, in a report and in a dump.
        let below = |path: &str| expected.iter().filter(|(of, _)| of.starts_with(path)).map(|(_, n)| n).sum();
        for path in ["/web", "/web/one", "/db"] {
            let condition = format!("cgroup={path}");
            let report = document(&["summary", "--json", "--where", &condition], &file);
            let number: u64 = below(path);
            assert_eq!(allocs(&report), number, "seed {seed}: {path}");
            let dump = stdout(&run(&["dump", "--event", "kmalloc", "--where", &condition], &file));
            assert_eq!(dump.lines().filter(|line| line.contains("kmalloc:")).count() as u64, number);
        }
    }
}

#[test]
fn children_are_all_descendants() {
    let scratch = Scratch::new();
    let steps = random(7);
    let file = write(&scratch, "children.kmt", &steps);
    let mut descendants = BTreeSet::from([11]);
    for (.., pid, kind) in &steps {
        if let (Kind::Start { pid: new, .. }, true) = (kind, descendants.contains(pid)) {
            descendants.insert(*new);
        }
    }
    assert!(descendants.len() > 5);
    let number = allocations(&steps).filter(|(_, pid)| descendants.contains(pid)).count() as u64;
    let alone = allocations(&steps).filter(|(_, pid)| *pid == 11).count() as u64;
    let of =
        |args: &[&str]| allocs(&document(&[&["summary", "--json", "--pid", "11"], args].concat(), &file));
    assert_eq!((of(&["--children"]), of(&[])), (number, alone));
    assert!(stderr(&run(&["summary", "--children"], &file)).contains("--children needs --pid or --comm"));
    let mut made = Crafted::new();
    made.event(&Event { time: 1, cpu: 0, pid: 11, what: What::Free { kfree: true, ptr: BASE } });
    let file = scratch.0.join("none.kmt");
    fs::write(&file, made.writer.finish().unwrap()).unwrap();
    let error = stderr(&run(&["summary", "--pid", "11", "--children"], &file));
    assert!(error.contains("needs the events of new tasks"), "{error}");
    let error = stderr(&run(&["callers", "--by", "cgroup"], &file));
    assert!(error.contains("--by cgroup needs cgroups of tasks"), "{error}");
}
