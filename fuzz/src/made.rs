//! A file as a recorder makes it, of any bytes: classes as kernels have them, events on few addresses, losses, stacks,
//! several CPUs, statistics, tasks, symbols, snapshots. Numbers are plausible mostly, and at an edge sometimes.

use arbitrary::{Result, Unstructured};
use kmt_format::Compression;
use kmt_format::kernel::{ByteOrder, ClockUnit, CpuStats, TraceClock, parse_kallsyms, parse_modules};
use kmt_format::write::{Loss, StatsTaken, Task, Writer, WriterOptions, WriterStats};

use super::made_classes::{
    AREAS, CLASSES, FIRST_ID, Is, Long, OBJECTS_AND_PAGES, STACK, Tail, Text, format, number, places,
};
use super::made_numbers::{edge, small};
use super::made_tables;
use super::made_texts::{KALLSYMS, MODULES, snapshot};

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
                9 | 10 => self.snapshots(u, 1)?,
                11 => made_tables::add(&mut self.writer, self.time, u)?,
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
        let class = match what {
            ..160 => OBJECTS_AND_PAGES.start + what % OBJECTS_AND_PAGES.len(),
            160..190 => AREAS.start + what % AREAS.len(),
            _ => what % CLASSES.len(),
        };
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
                    const TEXTS: [&[u8]; 5] =
                        [b"kmalloc-64\0", b"dentry\0", b"\0", b"a<b>\x1b[1m\0", b"/user.slice/a\0"];
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
