//! A file as a recorder makes it, of any bytes: classes as kernels have them, events on few addresses, losses, stacks,
//! several CPUs, statistics, tasks, symbols, snapshots. Numbers are plausible mostly, and at an edge sometimes.

use super::made_numbers::{edge, small};
use arbitrary::{Result, Unstructured};
use kmt_format::Compression;
use kmt_format::kernel::{ByteOrder, ClockUnit, CpuStats, TraceClock, parse_kallsyms, parse_modules};
use kmt_format::write::{Loss, StatsTaken, Task, Writer, WriterOptions, WriterStats};

use super::made_texts::{KALLSYMS, MODULES, snapshot};

/// Size of a field in bytes; a `long` of the target, text by its place, or addresses to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Is(usize),
    Long,
    Text,
    Tail,
}
use Size::{Is, Long, Tail, Text};

/// Type, name, size.
type Field = (&'static str, &'static str, Size);

const SITE: Field = ("unsigned long", "call_site", Long);
const PTR: Field = ("const void *", "ptr", Long);
const REQ: Field = ("size_t", "bytes_req", Long);
const ALLOC: Field = ("size_t", "bytes_alloc", Long);
const GFP: Field = ("unsigned long", "gfp_flags", Long);
const NODE: Field = ("int", "node", Is(4));
const NAME: Field = ("__data_loc char[]", "name", Text);
const PFN: Field = ("unsigned long", "pfn", Long);
const ORDER: Field = ("unsigned int", "order", Is(4));
const TYPE: Field = ("int", "migratetype", Is(4));
const DEPTH: Field = ("int", "depth", Is(4));
const FUNC: Field = ("unsigned long", "func", Long);

/// System, name and fields: include/trace/events/{kmem,vmscan,compaction,sched,task}.h, kernel/trace/trace_entries.h.
const CLASSES: [(&str, &str, &[Field]); 29] = [
    ("kmem", "kmalloc", &[SITE, PTR, REQ, ALLOC, GFP, NODE]),
    ("kmem", "kfree", &[SITE, PTR]),
    ("kmem", "kmem_cache_alloc", &[SITE, PTR, REQ, ALLOC, GFP, NODE, ("bool", "accounted", Is(1))]),
    ("kmem", "kmem_cache_free", &[SITE, PTR, NAME]),
    ("kmem", "mm_page_alloc", &[PFN, ORDER, GFP, TYPE]),
    ("kmem", "mm_page_free", &[PFN, ORDER]),
    ("kmem", "kmalloc_node", &[SITE, PTR, REQ, ALLOC, GFP, NODE]),
    ("kmem", "kmem_cache_alloc_node", &[SITE, PTR, NAME, REQ, ALLOC, GFP, NODE]),
    ("kmem", "mm_page_free_batched", &[PFN]),
    ("kmem", "mm_page_pcpu_drain", &[PFN, ORDER, TYPE]),
    ("kmem", "mm_page_alloc_zone_locked", &[PFN, ORDER, TYPE]),
    (
        "kmem",
        "mm_page_alloc_extfrag",
        &[
            PFN,
            ("int", "alloc_order", Is(4)),
            ("int", "fallback_order", Is(4)),
            ("int", "alloc_migratetype", Is(4)),
            ("int", "fallback_migratetype", Is(4)),
            ("int", "change_ownership", Is(4)),
        ],
    ),
    (
        "kmem",
        "rss_stat",
        &[("unsigned int", "mm_id", Is(4)), ("int", "member", Is(4)), ("long", "size", Long)],
    ),
    ("ftrace", "kernel_stack", &[("int", "size", Is(4)), ("unsigned long", "caller[]", Tail)]),
    (
        "kmt",
        "kvfree_call_rcu",
        &[("u64", "head", Is(8)), ("u64", "object", Is(8)), ("u64", "call_site", Is(8))],
    ),
    ("vmscan", "mm_vmscan_direct_reclaim_begin", &[ORDER, GFP]),
    ("vmscan", "mm_vmscan_direct_reclaim_end", &[("unsigned long", "nr_reclaimed", Long)]),
    ("vmscan", "mm_vmscan_kswapd_wake", &[("int", "nid", Is(4)), ORDER]),
    ("vmscan", "mm_vmscan_kswapd_sleep", &[("int", "nid", Is(4))]),
    ("vmscan", "mm_shrink_slab_start", &[("struct shrinker *", "shr", Long), ("void *", "shrink", Long)]),
    (
        "vmscan",
        "mm_shrink_slab_end",
        &[("struct shrinker *", "shr", Long), ("void *", "shrink", Long), ("int", "retval", Is(4))],
    ),
    ("compaction", "mm_compaction_begin", &[("unsigned long", "zone_start", Long)]),
    ("compaction", "mm_compaction_end", &[("unsigned long", "zone_start", Long)]),
    ("ftrace", "funcgraph_entry", &[FUNC, DEPTH]),
    ("ftrace", "funcgraph_exit", &[FUNC, DEPTH, ("u64", "calltime", Is(8)), ("u64", "rettime", Is(8))]),
    ("task", "task_newtask", &[("pid_t", "pid", Is(4)), ("char", "comm[16]", Is(16))]),
    ("task", "task_rename", &[("pid_t", "pid", Is(4)), ("char", "newcomm[16]", Is(16))]),
    ("sched", "sched_switch", &[("char", "prev_comm[16]", Is(16)), ("pid_t", "next_pid", Is(4))]),
    ("ours", "other", &[("u8", "a", Is(1)), ("s64", "b", Is(8)), ("__data_loc char[]", "c", Text)]),
];
const STACK: usize = 13;
const FIRST_ID: u16 = 300;

/// Most events of a file.
const EVENTS_MAX: usize = 400;

/// What is made of the bytes.
pub fn file(data: &[u8]) -> Vec<u8> {
    let mut input = Unstructured::new(data);
    Making::new(&mut input).and_then(|making| making.all(&mut input)).unwrap_or_default()
}

/// A snapshot that was read while events were recorded is known by its times.
fn attach(writer: &mut Writer, name: &str, text: &[u8]) {
    let (name, times) = match name.strip_suffix(".meanwhile") {
        Some(stem) => (stem, Some((1_000_000_000, 1_000_100_000))),
        None => (name, None),
    };
    writer.add_file_at(name, text, times).expect("no codec refuses it");
}

/// A small file with this file of the target attached.
pub fn with_file(name: &str, text: &[u8]) -> Vec<u8> {
    let bytes: Vec<u8> = (0..160u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut input = Unstructured::new(&bytes);
    let make = |mut making: Making| {
        attach(&mut making.writer, name, text);
        making.all(&mut input)
    };
    Making::new(&mut Unstructured::new(&[])).and_then(make).unwrap_or_default()
}

struct Making {
    writer: Writer,
    order: ByteOrder,
    long: usize,
    time: u64,
    record: Vec<u8>,
}

impl Making {
    fn new(u: &mut Unstructured<'_>) -> Result<Self> {
        let order = if u.ratio(3, 4)? { ByteOrder::Little } else { ByteOrder::Big };
        let long = if u.ratio(3, 4)? { 8 } else { 4 };
        let options = WriterOptions::new(order, long)
            .align_u64(*u.choose(&[None, Some(8), Some(4)])?)
            .page_size(*u.choose(&[Some(4096), Some(4096), None, Some(16_384), Some(65_536)])?)
            .trace_uuid(*b"made of any byte")
            .compression(if u.ratio(1, 8)? { Compression::Lz4 } else { Compression::None });
        let mut writer = Writer::new(options).map_err(|_| arbitrary::Error::IncorrectFormat)?;
        for (class, (system, ..)) in CLASSES.iter().enumerate() {
            writer.add_format(system, &format(class, long)).expect("a good format");
        }
        Ok(Self { writer, order, long, time: 1_000_000_000, record: Vec::new() })
    }

    /// Bytes that run out end the file early, which is a file all the same.
    fn all(mut self, u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
        self.about(u).ok();
        let cpus = [0, 1, 3, 7];
        let mut events = 0;
        while !u.is_empty() && events < EVENTS_MAX {
            let cpu = cpus[u.int_in_range(0..=3)?];
            match u.arbitrary::<u8>()? {
                0..=2 => self.writer.flush(cpu).expect("a good codec"),
                3..=5 => {
                    let mut loss = Loss::counted(small(u)?);
                    (loss.uncounted, loss.damaged_input) = (u.arbitrary()?, u.ratio(1, 8)?);
                    self.writer.add_loss(cpu, loss).expect("a good CPU");
                }
                6 => self.time = edge(u)?,
                7 => self.tasks(u)?,
                8 => self.statistics(u)?,
                9..=11 => self.snapshots(u, 1)?,
                what => {
                    self.event(u, cpu, usize::from(what))?;
                    events += 1;
                }
            }
        }
        self.writer.finish().map_err(|_| arbitrary::Error::IncorrectFormat)
    }

    /// What goes before the events.
    fn about(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let units = [ClockUnit::Nanoseconds, ClockUnit::Nanoseconds, ClockUnit::Ticks];
        let name = *u.choose(&["mono", "local", "counter"])?;
        let clock = TraceClock::new(name, *u.choose(&units)?).comparable(u.arbitrary()?);
        self.writer.add_clock(&clock).expect("no codec refuses it");
        const PAIRS: [(&str, &[&str]); 12] = [
            ("kernel.release", &["6.1.0-18-amd64", "5.10.7", "6.12.3", "7.2.0-rc1", "x"]),
            ("kernel.machine", &["x86_64", "s390x", "armv7l", "i686"]),
            ("pointers", &["hashed", "real"]),
            ("host", &["board", ""]),
            ("node0.cpus", &["0-1", "0-4294967295", "x"]),
            ("node1.cpus", &["2-9", ""]),
            ("clock.pair", &["1000000000 1700000000000000000", "-1 9223372036854775807", "1"]),
            ("perf/sampled", &["kmem:kmalloc 10 1000", "kmem:kfree 1 18446744073709551615", "x y z"]),
            ("recorder.pid", &["7", "-1", "99999999999"]),
            ("tracefs/trace_options", &["sym-offset sym-addr", "nohash-ptr"]),
            ("source", &["tracefs directory", "perf.data", "ftrace text", "live"]),
            ("perf/kernel_start", &["0xffff800000000000", "x"]),
        ];
        for (key, values) in PAIRS {
            if u.ratio(1, 2)? {
                let value = u.choose(values)?.as_bytes();
                self.writer.add_metadata(&[(key, value)]).expect("no codec refuses it");
            }
        }
        if u.ratio(3, 4)? {
            let modules = parse_modules(MODULES);
            self.writer
                .add_symbols(&parse_kallsyms(KALLSYMS, &modules, 4096), &modules)
                .expect("no codec refuses it");
        }
        if u.ratio(1, 2)? {
            self.tasks(u)?;
        }
        let count = u.int_in_range(0..=6)?;
        self.snapshots(u, count)
    }

    fn tasks(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let mut tasks = Vec::new();
        for _ in 0..u.int_in_range(1..=4)? {
            let time = if u.ratio(1, 4)? { edge(u)? } else { self.time };
            const NAMES: [&[u8]; 5] =
                [b"kswapd0", b"cc1", b"", b"\x1b[2J\xe2\x80\xae<b>", b"sixteen bytes ok"];
            let comm = u.choose(&NAMES)?;
            tasks.push(Task::new(pid(u)?, comm.to_vec()).tgid(pid(u)?).since(time));
        }
        self.writer.add_tasks(&tasks).expect("no codec refuses it");
        Ok(())
    }

    fn statistics(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        let taken = if u.arbitrary()? { StatsTaken::Before } else { StatsTaken::After };
        let mut rows = Vec::new();
        for cpu in [0, 1, 3] {
            let mut number =
                || Ok::<_, arbitrary::Error>(if u.ratio(1, 4)? { None } else { Some(small(u)?) });
            let mut stats = CpuStats::default();
            (stats.entries, stats.overrun) = (number()?, number()?);
            (stats.commit_overrun, stats.bytes) = (number()?, number()?);
            (stats.dropped, stats.read) = (number()?, number()?);
            (stats.oldest_time, stats.now_time) = (number()?, number()?);
            rows.push((cpu, stats));
        }
        self.writer.add_stats(taken, &rows).expect("no codec refuses it");
        let (events, bytes, sub_buffers) = (small(u)?, small(u)?, small(u)?);
        let mut stats = WriterStats::default();
        (stats.events, stats.bytes, stats.sub_buffers) = (events, bytes, sub_buffers);
        stats.sub_buffers_damaged = small(u)?;
        self.writer.add_writer_stats(&[(0, stats)]).expect("no codec refuses it");
        Ok(())
    }

    fn snapshots(&mut self, u: &mut Unstructured<'_>, count: usize) -> Result<()> {
        for _ in 0..count {
            let (name, text) = snapshot(u)?;
            attach(&mut self.writer, &name, &text);
        }
        Ok(())
    }

    fn event(&mut self, u: &mut Unstructured<'_>, cpu: u32, what: usize) -> Result<()> {
        // Allocations and frees mostly.
        let class = if what < 200 { what % 6 } else { what % CLASSES.len() };
        let step = *u.choose(&[0, 1, 100, 5_000, 400_000, 1_000_000, 3_000_000_000])?;
        self.time = self.time.wrapping_add(step);
        let task = pid(u)?;
        self.record(u, class, task)?;
        self.writer.add_event(cpu, self.time, &self.record).expect("a good record");
        if u.ratio(1, 6)? {
            self.record(u, STACK, task)?;
            self.writer.add_event(cpu, self.time, &self.record).expect("a good record");
        }
        Ok(())
    }

    fn record(&mut self, u: &mut Unstructured<'_>, class: usize, task: i32) -> Result<()> {
        let (order, long) = (self.order, self.long);
        let out = &mut self.record;
        out.clear();
        order.push(out, u64::from(FIRST_ID) + class as u64, 2);
        out.extend([u.arbitrary::<u8>()? & 0x1f, 0]);
        order.push(out, task as u32 as u64, 4);
        let end = places(class, long).1;
        let mut tail = Vec::new();
        for ((_, name, size), at) in CLASSES[class].2.iter().zip(places(class, long).0) {
            out.resize(at, 0);
            match size {
                Text => {
                    const TEXTS: [&[u8]; 4] = [b"kmalloc-64\0", b"dentry\0", b"\0", b"a<b>\x1b[1m\0"];
                    let text = u.choose(&TEXTS)?;
                    order.push(out, (text.len() << 16 | (end + tail.len())) as u64, 4);
                    tail.extend(*text);
                }
                Tail => {
                    for _ in 0..u.int_in_range(0..=6)? {
                        order.push(&mut tail, number(u, "call_site", long)?, long);
                    }
                }
                Is(16) => out.extend(*u.choose(&[b"task\0\0\0\0\0\0\0\0\0\0\0\0", b"\x1b]0;sixteen byt\0"])?),
                Is(len) => order.push(out, number(u, name, long)?, *len),
                Long => order.push(out, number(u, name, long)?, long),
            }
        }
        out.resize(end, 0);
        out.extend(tail);
        out.resize(out.len().next_multiple_of(4), 0);
        Ok(())
    }
}

fn pid(u: &mut Unstructured<'_>) -> Result<i32> {
    u.choose(&[7, 7, 8, 9, 1234, 0, -1, i32::MAX, i32::MIN]).copied()
}

/// A number that a field of that name holds.
fn number(u: &mut Unstructured<'_>, name: &str, long: usize) -> Result<u64> {
    if u.ratio(1, 24)? {
        return edge(u);
    }
    let (text, data) =
        if long == 8 { (0xffff_ffff_8100_0000, 0xffff_8880_0000_0000) } else { (0xc100_0000, 0xc000_0000) };
    let few = u64::from(u.arbitrary::<u8>()?);
    Ok(match name {
        "call_site" | "func" | "shrink" => text + few % 24 * 0x80 + 4,
        "ptr" | "object" | "head" => data + (16 << 12) + few % 64 * 0x60,
        "shr" => data + few % 4 * 0x1000,
        "bytes_req" => [8, 30, 64, 100, 192, 4_000, 16_000, 100_000][few as usize % 8],
        "bytes_alloc" => [8, 32, 64, 128, 192, 4_096, 16_384, 131_072][few as usize % 8],
        "gfp_flags" => [0xcc0, 0xdc0, 0x140_dca, 0x820, 0][few as usize % 5],
        "node" => [0, 1, u64::MAX, 2][few as usize % 4],
        "pfn" => 16 + few % 32,
        "order" | "alloc_order" | "fallback_order" => [0, 0, 0, 1, 2, 3, 9, 10][few as usize % 8],
        "migratetype" | "alloc_migratetype" | "fallback_migratetype" => few % 6,
        "depth" => few % 5,
        "pid" | "next_pid" => 7 + few % 3,
        "calltime" | "rettime" => 1_000_000_000 + few * 1_000_000,
        _ => few,
    })
}

/// Offsets of the fields of a class, and where they end.
fn places(class: usize, long: usize) -> (Vec<usize>, usize) {
    let mut at = 8usize;
    let mut out = Vec::new();
    for (_, _, size) in CLASSES[class].2 {
        let (len, align) = match size {
            Is(16) => (16, 1),
            Is(len) => (*len, *len),
            Long => (long, long),
            Text => (4, 4),
            Tail => (0, long),
        };
        at = at.next_multiple_of(align);
        out.push(at);
        at += len;
    }
    (out, at.next_multiple_of(4))
}

fn format(class: usize, long: usize) -> String {
    let (_, name, fields) = CLASSES[class];
    let mut out = format!("name: {name}\nID: {}\nformat:\n", usize::from(FIRST_ID) + class);
    out += "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n";
    out += "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n";
    out += "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n";
    out += "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
    let (mut print, mut values) = (String::new(), String::new());
    for ((kind, name, size), at) in fields.iter().zip(places(class, long).0) {
        let len = match size {
            Is(len) => *len,
            Long => long,
            Text => 4,
            Tail => 0,
        };
        let signed = u8::from(["int", "long", "s64", "pid_t", "char"].contains(kind));
        out += &format!("\tfield:{kind} {name};\toffset:{at};\tsize:{len};\tsigned:{signed};\n");
        let plain = name.split('[').next().unwrap_or_default();
        let (spec, value) = match size {
            Text => ("%s", format!("__get_str({plain})")),
            Is(16) => ("%s", format!("REC->{plain}")),
            Tail => continue,
            _ => ("%lx", format!("REC->{plain}")),
        };
        print += &format!("{plain}={spec} ");
        values += &format!(", {value}");
    }
    out + &format!("\nprint fmt: \"{print}\"{values}\n")
}
