//! Generated events of a load: allocations of a worker, and noise of other tasks.

use std::ops::Range;
use std::path::PathBuf;

use crate::support::files::{Scratch, data};
use kmt_format::kernel::{ByteOrder, TraceClock, parse_kallsyms};
use kmt_format::write::{Loss, Task, Writer, WriterOptions};

/// Name of the task under test.
pub const WORKER: &str = "kmt-worker";
/// Its process id.
pub const WORKER_PID: i32 = 701;
/// Process ids of the other tasks.
const OTHERS: [i32; 3] = [800, 802, 804];
/// A millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;

/// A function that allocates, its cache, and the size of its objects in bytes.
pub type Site = (&'static str, &'static str, u64);

pub const SOCKET: Site = ("sk_prot_alloc", "UNIX", 1_088);
pub const SOCKET_INODE: Site = ("sock_alloc_inode", "sock_inode_cache", 832);
pub const DENTRY: Site = ("__d_alloc", "dentry", 192);
pub const FILE: Site = ("alloc_empty_file", "filp", 256);
pub const INODE: Site = ("shmem_alloc_inode", "shmem_inode_cache", 512);
pub const POOL: Site = ("pool_fill", "pool", 512);
const NOISE: [Site; 4] = [
    ("getname_flags", "names_cache", 4_096),
    ("vm_area_alloc", "vm_area_struct", 152),
    ("prepare_creds", "cred_jar", 192),
    ("alloc_skb", "skbuff", 256),
];
pub const TASK: Site = ("dup_task_struct", "task_struct", 4_096);
pub const SIGNALS: Site = ("copy_signal", "signal_cache", 1_024);
pub const NAMESPACE: Site = ("copy_net_ns", "net_namespace", 4_096);
pub const TABLE: Site = ("__register_sysctl_table", "tables", 8_192);
pub const DISK_INODE: Site = ("ext4_alloc_inode", "ext4_inode_cache", 1_024);
pub const LINK: Site = ("ext4_cache_fast_symlink", "links", 64);
const SITES: [Site; 16] = [
    SOCKET,
    SOCKET_INODE,
    DENTRY,
    FILE,
    INODE,
    POOL,
    TASK,
    SIGNALS,
    NAMESPACE,
    TABLE,
    DISK_INODE,
    LINK,
    NOISE[0],
    NOISE[1],
    NOISE[2],
    NOISE[3],
];

const EVENTS: [&str; 4] = ["kmem_cache_alloc", "kmem_cache_free", "mm_page_alloc", "mm_page_free"];
/// Events of tasks, with the numbers after those of `EVENTS`: system, and format.
const TASK_EVENTS: [(&str, &str); 2] = [
    (
        "task",
        "name: task_newtask\nID: 901\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n\
        \tfield:unsigned long clone_flags;\toffset:32;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n",
    ),
    (
        "sched",
        "name: sched_process_exit\nID: 902\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n",
    ),
];
/// Name of the children.
pub const CHILD: &str = "child";
/// Start of the direct map.
const DIRECT_MAP: u64 = 0xffff_8880_0000_0000;
const TEXT: u64 = 0xffff_ffff_8100_0000;
/// Time of the first event.
const START: u64 = 5_000 * MS;

/// xorshift64: the same numbers in every run.
pub struct Random(u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// An allocated object.
#[derive(Clone, Copy)]
pub struct Object {
    site: usize,
    ptr: u64,
}

/// Events of a trace. Times are nanoseconds since its start.
pub struct Load {
    pub random: Random,
    /// Keys and values of the file.
    pub facts: Vec<(&'static str, String)>,
    /// Time, process id, index in `EVENTS`, fields.
    events: Vec<(u64, i32, usize, Vec<u8>)>,
    /// Number of objects of each site. Each has an address of its own.
    made: [u64; SITES.len()],
    /// Times in which the events of a CPU are lost.
    pub lost: Option<(u32, Range<u64>)>,
}

impl Load {
    pub fn new(seed: u64) -> Self {
        Self {
            random: Random(seed * 0x9e37_79b9 + 1),
            facts: Vec::new(),
            events: Vec::new(),
            made: [0; SITES.len()],
            lost: None,
        }
    }

    fn event(&mut self, time: u64, pid: i32, kind: usize, words: &[u64], rest: &[u8]) {
        let mut fields: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        fields.extend(rest);
        self.events.push((START + time, pid, kind, fields));
    }

    /// Allocates at the next address of the site.
    pub fn alloc(&mut self, time: u64, pid: i32, site: Site) -> Object {
        let at = SITES.iter().position(|other| *other == site).unwrap();
        self.made[at] += 1;
        let ptr = DIRECT_MAP + ((at as u64 + 1) << 27) + self.made[at] * site.2.next_multiple_of(64);
        self.alloc_at(time, pid, site, ptr)
    }

    fn alloc_at(&mut self, time: u64, pid: i32, site: Site, ptr: u64) -> Object {
        let at = SITES.iter().position(|other| *other == site).unwrap();
        let call_site = function(at) + 0x10;
        self.event(time, pid, 0, &[call_site, ptr, site.2, site.2, 0xcc0, u64::from(u32::MAX)], &[]);
        Object { site: at, ptr }
    }

    pub fn free(&mut self, time: u64, pid: i32, object: Object) {
        let name = format!("{}\0", SITES[object.site].1);
        let rest = [&((name.len() as u32) << 16 | 28).to_le_bytes(), name.as_bytes()].concat();
        self.event(time, pid, 1, &[function(SITES.len()) + 0x10, object.ptr], &rest);
    }

    /// Allocates object `number` of the slab in this page.
    pub fn alloc_in(&mut self, time: u64, pid: i32, site: Site, pfn: u64, number: u64) -> Object {
        self.alloc_at(time, pid, site, DIRECT_MAP + (pfn << 12) + number * site.2)
    }

    /// A task starts another.
    pub fn starts(&mut self, time: u64, parent: i32, child: i32) {
        let mut fields = child.to_le_bytes().to_vec();
        fields.extend(format!("{CHILD:\0<16}").as_bytes());
        fields.extend([0; 12]);
        self.events.push((START + time, parent, EVENTS.len(), fields));
    }

    /// A task exits.
    pub fn exits(&mut self, time: u64, pid: i32) {
        let mut fields = format!("{CHILD:\0<16}").into_bytes();
        fields.extend(pid.to_le_bytes());
        self.events.push((START + time, pid, EVENTS.len() + 1, fields));
    }

    /// A time of the trace's clock.
    pub fn clock(time: u64) -> String {
        (START + time).to_string()
    }

    pub fn page_alloc(&mut self, time: u64, pid: i32, pfn: u64) {
        self.page_alloc_with(time, pid, pfn, 0xcc0);
    }

    pub fn page_alloc_with(&mut self, time: u64, pid: i32, pfn: u64, gfp_flags: u64) {
        self.event(time, pid, 2, &[pfn, 0, gfp_flags, 0], &[]);
    }

    /// A page of a file that is written: GFP_HIGHUSER_MOVABLE with __GFP_WRITE, movable.
    pub fn page_of_file(&mut self, time: u64, pid: i32, pfn: u64) {
        self.event(time, pid, 2, &[pfn, 0, 0x10_1cca, 1], &[]);
    }

    pub fn page_free(&mut self, time: u64, pid: i32, pfn: u64) {
        self.event(time, pid, 3, &[pfn, 0], &[]);
    }

    /// About `count` objects of this task, at random times. Their lifetimes are random, up to 60 ms.
    pub fn noise_of(&mut self, pid: i32, count: u64, length: u64) {
        for _ in 0..2 * count {
            // The number differs between seeds.
            if self.random.below(2) == 0 {
                continue;
            }
            let site = NOISE[self.random.below(NOISE.len() as u64) as usize];
            let time = self.random.below(length);
            let object = self.alloc(time, pid, site);
            let life = 1_000 + self.random.below(60 * MS) * self.random.below(100) / 100;
            if time + life < length {
                self.free(time + life, pid, object);
            }
        }
    }

    /// About `count` objects of each other task, and a pool that one of them fills early and keeps.
    pub fn noise(&mut self, count: u64, length: u64) {
        OTHERS.into_iter().for_each(|pid| self.noise_of(pid, count, length));
        for _ in 0..200 {
            let time = self.random.below(length / 10);
            self.alloc(time, OTHERS[0], POOL);
        }
    }

    /// Writes the file. Tasks with odd process ids run on CPU 1.
    pub fn write(mut self, scratch: &Scratch, name: &str) -> PathBuf {
        let mut writer =
            Writer::new(WriterOptions::new(ByteOrder::Little, 8).page_size(4096).trace_uuid([9; 16]))
                .unwrap();
        let mut ids: Vec<u16> = Vec::new();
        for name in EVENTS {
            let path = data("x86_64-6.1").join("tracefs/events/kmem").join(name).join("format");
            ids.push(writer.add_format("kmem", &std::fs::read_to_string(path).unwrap()).unwrap());
        }
        ids.extend(TASK_EVENTS.map(|(system, format)| writer.add_format(system, format).unwrap()));
        writer.add_clock(&TraceClock::named("mono")).unwrap();
        writer.add_metadata(&[("kernel.release", b"6.1.0")]).unwrap();
        for (key, value) in &self.facts {
            writer.add_metadata(&[(key, value.as_bytes())]).unwrap();
        }
        let others = OTHERS.iter().map(|pid| Task::new(*pid, format!("other-{pid}")));
        let tasks: Vec<Task> = others.chain([Task::new(WORKER_PID, WORKER)]).collect();
        writer.add_tasks(&tasks).unwrap();
        writer.add_symbols(&parse_kallsyms(kallsyms().as_bytes(), &[], 4096), &[]).unwrap();
        self.events.sort_by_key(|event| event.0);
        let mut lost = 0;
        for (time, pid, kind, fields) in &self.events {
            let record = [&ids[*kind].to_le_bytes()[..], &[0, 0], &pid.to_le_bytes(), fields].concat();
            let cpu = (pid & 1) as u32;
            if self.lost.as_ref().is_some_and(|(of, times)| *of == cpu && times.contains(&(time - START))) {
                lost += 1;
                continue;
            }
            if lost > 0 && self.lost.as_ref().is_some_and(|(of, _)| *of == cpu) {
                writer.add_loss(cpu, Loss::counted(std::mem::take(&mut lost))).unwrap();
            }
            writer.add_event(cpu, *time, &record).unwrap();
        }
        let path = scratch.0.join(name);
        std::fs::write(&path, writer.finish().unwrap()).unwrap();
        path
    }
}

/// Address of the function of a site. The function that frees follows those of all sites.
fn function(site: usize) -> u64 {
    TEXT + (site as u64 + 1) * 0x1000
}

fn kallsyms() -> String {
    let names = SITES.iter().map(|site| site.0).chain(["free_object", "_etext"]);
    let lines = names.enumerate().map(|(at, name)| format!("{:x} T {name}\n", function(at)));
    format!("{TEXT:x} T _stext\n{}", lines.collect::<String>())
}
