//! A generated recording: tasks that start on one CPU, get their name on another, and allocate before and after it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::files::data;
use kmt_format::kernel::{ByteOrder, TraceClock};
use kmt_format::write::{Task, Writer, WriterOptions};

/// The shell that starts all others, and its name.
pub const PARENT: (i32, &str) = (50, "python3");
const CPUS: u32 = 4;
const TASKS: i32 = 60;
const NAMES: [&str; 5] = ["ip", "sh", "cc1", "kworker/u8:1", "a-b c"];
const START: u64 = 1_000_000_000;
const LEN: usize = 4096;
pub const LEAK: u64 = 0xffff_ffff_8100_2010;
const SITE: u64 = 0xffff_ffff_8100_1010;

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/// An event of the recording.
#[derive(Debug, Clone)]
pub enum Kind {
    New { pid: i32, name: &'static str },
    Rename { old: &'static str, new: &'static str },
    Alloc { site: u64, ptr: u64 },
    Free { ptr: u64 },
}

#[derive(Debug, Clone)]
pub struct Made {
    pub time: u64,
    pub cpu: u32,
    pub pid: i32,
    pub kind: Kind,
}

/// The recording. Each event has a microsecond of its own.
pub struct Recording {
    pub events: Vec<Made>,
    /// task_rename has a `pid`, as before 6.14 or so.
    has_pid: bool,
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

impl Recording {
    pub fn new(seed: u64, has_pid: bool) -> Self {
        let mut random = Random(seed | 1);
        let (mut events, mut taken, mut ptr) = (Vec::new(), BTreeSet::new(), 0xffff_8880_1000_0000u64);
        let mut add = |at: u64, cpu: u64, pid: i32, kind: Kind| {
            let free = (at..).find(|at| taken.insert(*at)).unwrap();
            events.push(Made { time: START + free * 1_000, cpu: cpu as u32, pid, kind });
            free
        };
        for number in 0..TASKS {
            let pid = 100 + number;
            let cpu = random.below(CPUS.into());
            let mut at = add(number as u64 * 50_000, cpu, PARENT.0, Kind::New { pid, name: PARENT.1 });
            let mut name = PARENT.1;
            for _ in 0..=random.below(3) {
                let cpu = random.below(CPUS.into());
                for site in [SITE, LEAK, SITE] {
                    ptr += 256;
                    at = add(at + 1 + random.below(300), cpu, pid, Kind::Alloc { site, ptr });
                    if site == SITE {
                        let by = if random.below(2) == 0 { pid } else { PARENT.0 };
                        add(at + 1 + random.below(2_000), random.below(CPUS.into()), by, Kind::Free { ptr });
                    }
                }
                let new = NAMES[random.below(NAMES.len() as u64) as usize];
                let cpu = random.below(CPUS.into());
                at = add(at + 1 + random.below(300), cpu, pid, Kind::Rename { old: name, new });
                name = new;
            }
            ptr += 256;
            add(at + 1 + random.below(300), cpu, pid, Kind::Alloc { site: LEAK, ptr });
        }
        events.sort_by_key(|event| event.time);
        Self { events, has_pid }
    }

    fn is_naming(event: &Made) -> bool {
        matches!(event.kind, Kind::New { .. } | Kind::Rename { .. })
    }

    /// Task, time and name of all naming events, CPU by CPU: the order of a file.
    pub fn naming(&self) -> Vec<(i32, u64, &'static str)> {
        let mut events: Vec<&Made> = self.events.iter().filter(|event| Self::is_naming(event)).collect();
        events.sort_by_key(|event| (event.cpu, event.time));
        let name = |event: &&Made| match event.kind {
            Kind::New { pid, name } => (pid, event.time, name),
            Kind::Rename { new, .. } => (event.pid, event.time, new),
            _ => unreachable!(),
        };
        events.iter().map(name).collect()
    }

    fn formats(&self) -> [(&'static str, &'static str, String); 4] {
        let own = |event: &str| {
            let path = format!("tracefs/events/kmem/{event}/format");
            fs::read_to_string(data("x86_64-6.1").join(path)).unwrap()
        };
        let field = |kind: &str, name: &str, offset: usize, size: usize| {
            format!("\tfield:{kind} {name};\toffset:{offset};\tsize:{size};\tsigned:0;\n")
        };
        let new = format!(
            "name: task_newtask\nID: 90\nformat:\n{COMMON}{}{}{}{}\n\
             print fmt: \"pid=%d comm=%s clone_flags=%lx oom_score_adj=%hd\", REC->pid, REC->comm, \
             REC->clone_flags, REC->oom_score_adj\n",
            field("pid_t", "pid", 8, 4).replace("signed:0", "signed:1"),
            field("char", "comm[16]", 12, 16),
            field("unsigned long", "clone_flags", 32, 8),
            field("short", "oom_score_adj", 40, 2).replace("signed:0", "signed:1"),
        );
        let (pid, text, arg, at) = match self.has_pid {
            true => {
                (field("pid_t", "pid", 8, 4).replace("signed:0", "signed:1"), "pid=%d ", "REC->pid, ", 12)
            }
            false => (String::new(), "", "", 8),
        };
        let rename = format!(
            "name: task_rename\nID: 91\nformat:\n{COMMON}{pid}{}{}{}\n\
             print fmt: \"{text}oldcomm=%s newcomm=%s oom_score_adj=%hd\", {arg}REC->oldcomm, REC->newcomm, \
             REC->oom_score_adj\n",
            field("char", "oldcomm[16]", at, 16),
            field("char", "newcomm[16]", at + 16, 16),
            field("short", "oom_score_adj", at + 32, 2).replace("signed:0", "signed:1"),
        );
        [
            ("kmem", "kmem_cache_alloc", own("kmem_cache_alloc")),
            ("kmem", "kmem_cache_free", own("kmem_cache_free")),
            ("task", "task_newtask", new),
            ("task", "task_rename", rename),
        ]
    }

    fn record(&self, event: &Made) -> Vec<u8> {
        let id: u16 = match event.kind {
            Kind::Alloc { .. } => 553,
            Kind::Free { .. } => 550,
            Kind::New { .. } => 90,
            Kind::Rename { .. } => 91,
        };
        let mut out = id.to_le_bytes().to_vec();
        out.extend([0, 0]);
        out.extend(event.pid.to_le_bytes());
        let words = |out: &mut Vec<u8>, words: &[u64]| words.iter().for_each(|w| out.extend(w.to_le_bytes()));
        let comm = |out: &mut Vec<u8>, name: &str| {
            out.extend(name.as_bytes());
            out.extend(vec![0; 16 - name.len()]);
        };
        match event.kind {
            Kind::Alloc { site, ptr } => {
                words(&mut out, &[site, ptr, 200, 256, 0xcc0]);
                out.extend([0xff; 4]);
                out.extend([0; 4]);
            }
            Kind::Free { ptr } => {
                words(&mut out, &[SITE, ptr]);
                out.extend((4u32 << 16 | 28).to_le_bytes());
                out.extend(b"obj\0");
            }
            Kind::New { pid, name } => {
                out.extend(pid.to_le_bytes());
                comm(&mut out, name);
                out.extend([0; 4]);
                words(&mut out, &[0x0120_0000]);
                out.extend([0; 4]);
            }
            Kind::Rename { old, new } => {
                if self.has_pid {
                    out.extend(event.pid.to_le_bytes());
                }
                comm(&mut out, old);
                comm(&mut out, new);
                out.extend([0; 4]);
            }
        }
        out
    }

    /// Sub-buffers of a CPU.
    fn sub_buffers(&self, cpu: u32) -> Vec<u8> {
        let (mut out, mut page, mut last) = (Vec::new(), Vec::new(), 0);
        let mut end = |page: &mut Vec<u8>| {
            if !page.is_empty() {
                let len = page.len() as u64 - 16;
                page[8..16].copy_from_slice(&len.to_le_bytes());
                page.resize(LEN, 0);
                out.append(page);
            }
        };
        for event in self.events.iter().filter(|event| event.cpu == cpu) {
            let record = self.record(event);
            if page.len() + record.len() + 12 > LEN {
                end(&mut page);
            }
            if page.is_empty() {
                page.extend(event.time.to_le_bytes());
                page.extend([0; 8]);
                last = event.time;
            }
            // A time extend before each event: gaps are longer than the 27 bits of its own time.
            let delta = event.time - last;
            for word in [30 | (delta as u32) << 5, (delta >> 27) as u32, record.len() as u32 / 4] {
                page.extend(word.to_le_bytes());
            }
            page.extend(record);
            last = event.time;
        }
        end(&mut page);
        out
    }

    /// Writes a target's folder. saved_cmdlines has last names, of half of the tasks.
    pub fn folder(&self, root: &Path, last: impl Fn(i32) -> String) {
        let write = |path: &str, bytes: &[u8]| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        let files = ["tracefs/events/header_page", "tracefs/events/header_event", "tracefs/trace_clock"];
        for name in files.into_iter().chain(["uname", "pagesize"]) {
            write(name, &fs::read(data("x86_64-6.1").join(name)).unwrap());
        }
        for (system, event, text) in self.formats() {
            write(&format!("tracefs/events/{system}/{event}/format"), text.as_bytes());
        }
        let saved = (0..TASKS).step_by(2).map(|number| 100 + number).chain([PARENT.0]);
        let saved: String = saved.map(|pid| format!("{pid} {}\n", last(pid))).collect();
        write("tracefs/saved_cmdlines", saved.as_bytes());
        for cpu in 0..CPUS {
            write(&format!("tracefs/per_cpu/cpu{cpu}/trace_pipe_raw"), &self.sub_buffers(cpu));
        }
    }

    /// A file without naming events: its table of tasks has them, in the order of CPUs.
    pub fn with_table_alone(&self) -> Vec<u8> {
        let mut writer = Writer::new(WriterOptions::new(ByteOrder::Little, 8)).unwrap();
        writer.add_clock(&TraceClock::named("local")).unwrap();
        for (system, _, text) in self.formats() {
            writer.add_format(system, &text).unwrap();
        }
        let row = |(pid, time, name): (i32, u64, &str)| Task::new(pid, name.as_bytes().to_vec()).since(time);
        let parent = Task::new(PARENT.0, PARENT.1.as_bytes().to_vec());
        let tasks: Vec<Task> = self.naming().into_iter().map(row).chain([parent]).collect();
        writer.add_tasks(&tasks).unwrap();
        for event in self.events.iter().filter(|event| !Self::is_naming(event)) {
            writer.add_event(event.cpu, event.time, &self.record(event)).unwrap();
        }
        writer.finish().unwrap()
    }

    /// The kernel's text, with the name of each task at each event by `name`.
    pub fn text(&self, name: impl Fn(i32, u64) -> String) -> String {
        let mut out = String::from("# tracer: nop\n#\n");
        for event in &self.events {
            let micros = event.time / 1_000;
            let fields = match event.kind {
                Kind::Alloc { site, ptr } => format!(
                    "kmem_cache_alloc: call_site=f{site:x}+0x10/0x20 ptr={ptr:016x} bytes_req=200 \
                     bytes_alloc=256 gfp_flags=GFP_KERNEL node=-1 accounted=false"
                ),
                Kind::Free { ptr } => {
                    format!("kmem_cache_free: call_site=f+0x10/0x20 ptr={ptr:016x} name=obj")
                }
                Kind::New { pid, name } => {
                    format!("task_newtask: pid={pid} comm={name} clone_flags=1200000 oom_score_adj=0")
                }
                Kind::Rename { old, new } => {
                    let pid = if self.has_pid { format!("pid={} ", event.pid) } else { String::new() };
                    format!("task_rename: {pid}oldcomm={old} newcomm={new} oom_score_adj=0")
                }
            };
            out += &format!(
                "{:>16}-{:<7} [{:03}] ..... {:5}.{:06}: {fields}\n",
                name(event.pid, event.time),
                event.pid,
                event.cpu,
                micros / 1_000_000,
                micros % 1_000_000
            );
        }
        out
    }
}
