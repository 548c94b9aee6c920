//! Files of trace-cmd and perf, made of a capture: another description of these formats than the readers'.

#![allow(dead_code)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use kmt_format::kernel::ByteOrder;
use kmt_format::read::{Event, Trace};

/// How parts are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    None,
    Zlib,
    Zstd,
}

/// Bytes in the order of a target.
pub struct Bytes {
    pub bytes: Vec<u8>,
    order: ByteOrder,
}

impl Bytes {
    pub fn new(order: ByteOrder) -> Self {
        Self { bytes: Vec::new(), order }
    }

    pub fn int(&mut self, value: u64, size: usize) -> &mut Self {
        self.order.push(&mut self.bytes, value, size);
        self
    }

    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn set(&mut self, at: usize, value: u64, size: usize) {
        let mut bytes = Vec::new();
        self.order.push(&mut bytes, value, size);
        self.bytes[at..at + size].copy_from_slice(&bytes);
    }

    fn sized(&mut self, size: usize, bytes: &[u8]) -> &mut Self {
        self.int(bytes.len() as u64, size).raw(bytes)
    }
}

/// A capture's files.
pub struct Capture {
    root: PathBuf,
    pub order: ByteOrder,
}

impl Capture {
    pub fn new(root: &Path, order: ByteOrder) -> Self {
        Self { root: root.to_owned(), order }
    }

    fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.root.join(name)).unwrap_or_default()
    }

    fn cpus(&self) -> Vec<(u32, Vec<u8>)> {
        let mut cpus: Vec<(u32, Vec<u8>)> = (0..64)
            .filter_map(|cpu| {
                let path = self.root.join(format!("tracefs/per_cpu/cpu{cpu}/trace_pipe_raw"));
                Some((cpu, fs::read(path).ok()?))
            })
            .collect();
        cpus.sort();
        cpus
    }

    /// System and text of all formats; those of ftrace first.
    fn formats(&self) -> Vec<(String, Vec<Vec<u8>>)> {
        let mut out = Vec::new();
        for system in sorted(&self.root.join("tracefs/events")) {
            let texts: Vec<Vec<u8>> =
                sorted(&system).iter().filter_map(|event| fs::read(event.join("format")).ok()).collect();
            if !texts.is_empty() {
                out.push((system.file_name().unwrap().to_string_lossy().into_owned(), texts));
            }
        }
        out
    }

    fn start(&self, version: &str) -> Bytes {
        let mut out = Bytes::new(self.order);
        let header_page = String::from_utf8(self.file("tracefs/events/header_page")).unwrap();
        let long_size = if header_page.contains("commit;\toffset:8;\tsize:4") { 4 } else { 8 };
        out.raw(b"\x17\x08\x44tracing").raw(version.as_bytes()).raw(b"\0");
        out.raw(&[u8::from(self.order == ByteOrder::Big), long_size]).int(4096, 4);
        out
    }

    fn header_info(&self, out: &mut Bytes) {
        for name in ["header_page", "header_event"] {
            let text = self.file(&format!("tracefs/events/{name}"));
            out.raw(name.as_bytes()).raw(b"\0").sized(8, &text);
        }
    }

    fn ftrace_formats(&self, out: &mut Bytes) {
        let ftrace: Vec<_> = self.formats().into_iter().filter(|(s, _)| s == "ftrace").collect();
        out.int(ftrace.iter().map(|(_, texts)| texts.len() as u64).sum(), 4);
        ftrace.iter().flat_map(|(_, texts)| texts).for_each(|text| {
            out.sized(8, text);
        });
    }

    fn event_formats(&self, out: &mut Bytes) {
        let systems: Vec<_> = self.formats().into_iter().filter(|(s, _)| s != "ftrace").collect();
        out.int(systems.len() as u64, 4);
        for (system, texts) in systems {
            out.raw(system.as_bytes()).raw(b"\0").int(texts.len() as u64, 4);
            texts.iter().for_each(|text| {
                out.sized(8, text);
            });
        }
    }

    fn in_a_row(&self, out: &mut Bytes) {
        self.header_info(out);
        self.ftrace_formats(out);
        self.event_formats(out);
        out.sized(4, &self.file("kallsyms"));
        out.sized(4, &self.file("tracefs/printk_formats"));
        out.sized(8, &self.file("tracefs/saved_cmdlines"));
    }

    /// Id and contents of options that both versions have.
    fn options(&self) -> Vec<(u16, Vec<u8>)> {
        let text = |mut bytes: Vec<u8>| {
            bytes.push(0);
            bytes
        };
        let mut out = vec![(5, text(self.file("uname"))), (4, text(self.file("tracefs/trace_clock")))];
        for (cpu, _) in self.cpus() {
            out.push((2, text(self.file(&format!("tracefs/per_cpu/cpu{cpu}/stats")))));
        }
        out
    }

    /// A trace.dat of version 6; with `instance` the data are those of an instance, and the top level is empty.
    pub fn v6(&self, instance: Option<&str>) -> Vec<u8> {
        let mut out = self.start("6");
        self.in_a_row(&mut out);
        let cpus = self.cpus();
        out.int(cpus.len() as u64, 4).raw(b"options  \0");
        for (id, data) in self.options() {
            out.int(id.into(), 2).sized(4, &data);
        }
        let mut buffer_at = None;
        if let Some(name) = instance {
            out.int(3, 2).int(8 + name.len() as u64 + 1, 4);
            buffer_at = Some(out.bytes.len());
            out.int(0, 8).raw(name.as_bytes()).raw(b"\0");
        }
        out.int(0, 2).raw(b"flyrecord\0");
        let mut table = out.bytes.len();
        cpus.iter().for_each(|_| {
            out.int(0, 8).int(0, 8);
        });
        if let Some(at) = buffer_at {
            let here = out.bytes.len() as u64;
            out.set(at, here, 8);
            out.raw(b"flyrecord\0");
            table = out.bytes.len();
            cpus.iter().for_each(|_| {
                out.int(0, 8).int(0, 8);
            });
        }
        for (number, (_, data)) in cpus.iter().enumerate() {
            out.bytes.resize(out.bytes.len().next_multiple_of(4096), 0);
            let offset = out.bytes.len() as u64;
            out.set(table + number * 16, offset, 8);
            out.set(table + number * 16 + 8, data.len() as u64, 8);
            out.raw(data);
        }
        out.bytes
    }

    /// A trace.dat of version 7.
    pub fn v7(&self, packing: Packing, sub_buffer_len: usize) -> Vec<u8> {
        let mut out = self.start("7");
        let name: &[u8] = match packing {
            Packing::None => b"none\0\0",
            Packing::Zlib => b"zlib\x001.2.13\0",
            Packing::Zstd => b"zstd\x001.5.4\0",
        };
        out.raw(name);
        let options_at = out.bytes.len();
        out.int(0, 8);
        type Part<'p> = (u16, &'p dyn Fn(&mut Bytes));
        let parts: [Part<'_>; 6] = [
            (16, &|b| self.header_info(b)),
            (17, &|b| self.ftrace_formats(b)),
            (18, &|b| self.event_formats(b)),
            (19, &|b| {
                b.sized(4, &self.file("kallsyms"));
            }),
            (20, &|b| {
                b.sized(4, &self.file("tracefs/printk_formats"));
            }),
            (21, &|b| {
                b.sized(8, &self.file("tracefs/saved_cmdlines"));
            }),
        ];
        let mut options = self.options();
        for (id, fill) in parts {
            let mut body = Bytes::new(self.order);
            fill(&mut body);
            let mut offset = Vec::new();
            self.order.push(&mut offset, out.bytes.len() as u64, 8);
            section(&mut out, id, &body.bytes, packing);
            options.push((id, offset));
        }
        let buffer_at = out.bytes.len() as u64;
        out.int(3, 2).int(u64::from(packing != Packing::None), 2).int(0, 4).int(0, 8);
        let mut buffer = Bytes::new(self.order);
        buffer.int(buffer_at, 8).raw(b"\0local\0").int(sub_buffer_len as u64, 4);
        let cpus = self.cpus();
        buffer.int(cpus.len() as u64, 4);
        for (cpu, data) in &cpus {
            out.bytes.resize(out.bytes.len().next_multiple_of(4096), 0);
            let offset = out.bytes.len();
            if packing == Packing::None {
                out.raw(data);
            } else {
                let pieces: Vec<&[u8]> = data.chunks(sub_buffer_len * 2).collect();
                out.int(pieces.len() as u64, 4);
                for piece in pieces {
                    let packed = pack(piece, packing);
                    out.int(packed.len() as u64, 4).int(piece.len() as u64, 4).raw(&packed);
                }
            }
            // trace-cmd leaves the number of pieces out of the size.
            let len = out.bytes.len() - offset - if packing == Packing::None { 0 } else { 4 };
            buffer.int((*cpu).into(), 4).int(offset as u64, 8).int(len as u64, 8);
        }
        options.push((3, buffer.bytes));
        options.push((0, vec![0; 8]));
        let mut body = Bytes::new(self.order);
        for (id, data) in &options {
            body.int((*id).into(), 2).sized(4, data);
        }
        let at = out.bytes.len() as u64;
        section(&mut out, 0, &body.bytes, Packing::None);
        out.set(options_at, at, 8);
        out.bytes
    }

    /// A perf.data of the events of `trace`, a .kmt file of this capture.
    pub fn perf(&self, kmt: &[u8], style: Perf) -> Vec<u8> {
        let trace = Trace::open(kmt).unwrap();
        let mut tracing = self.start("0.6");
        self.in_a_row(&mut tracing);
        let kmalloc =
            trace.schema().classes().find(|(_, c)| c.name == "kmalloc").map(|(_, c)| u64::from(c.id));
        let attr = attr(self.order, kmalloc.filter(|_| style.sampled));
        let mut records = Bytes::new(self.order);
        for task in &trace.metadata().tasks {
            let mut body = Bytes::new(self.order);
            let mut comm = task.comm.to_vec();
            comm.resize((comm.len() + 1).next_multiple_of(8), 0);
            body.int(task.tgid as u32 as u64, 4).int(task.pid as u32 as u64, 4).raw(&comm);
            trailer(&mut body, task.time, 0);
            record(&mut records, 3, &body.bytes);
        }
        let mut merge = trace.merge();
        let mut raw = Vec::new();
        let (mut number, mut seen) = (0u32, 0u64);
        // perf reads one CPU after the other: in a round times go back, and what the last CPUs wrote meanwhile comes in
        // the next round.
        let (mut carried, mut round) = (Vec::new(), Vec::new());
        while let Some(run) = merge.next_run() {
            for event in run.events() {
                seen += 1;
                if style.part.1 > 0 && (seen - 1) * style.part.1 / trace.event_count() != style.part.0 {
                    continue;
                }
                event.to_record(&mut raw);
                let mut body = Bytes::new(self.order);
                sample(&mut body, &event, &raw, if style.sampled { 1_000 } else { 1 });
                let mut one = Bytes::new(self.order);
                record(&mut one, 9, &body.bytes);
                number += 1;
                if style.loses && number == 50 {
                    let mut body = Bytes::new(self.order);
                    body.int(ID, 8).int(17, 8);
                    trailer(&mut body, event.time(), event.cpu());
                    record(&mut one, 2, &body.bytes);
                }
                round.push((event.cpu(), one.bytes));
                if round.len() == 100 {
                    round.sort_by_key(|(cpu, _)| *cpu);
                    let late = round.split_off(60);
                    round.append(&mut carried);
                    carried = late;
                    write_round(&mut records, &mut round);
                    record(&mut records, 68, &[]);
                }
            }
        }
        round.append(&mut carried);
        write_round(&mut records, &mut round);
        let data = if style.packed { compressed(&records, self.order) } else { records.bytes };
        let magic: &[u8] = if self.order == ByteOrder::Little { b"PERFILE2" } else { b"2ELIFREP" };
        let mut out = Bytes::new(self.order);
        if style.pipe {
            out.raw(magic).int(16, 8);
            let mut body = Bytes::new(self.order);
            body.raw(&attr).int(ID, 8);
            record(&mut out, 64, &body.bytes);
            let release = self.release();
            let mut body = Bytes::new(self.order);
            body.int(4, 8).sized(4, &release);
            body.bytes.resize(body.bytes.len().next_multiple_of(8), 0);
            record(&mut out, 80, &body.bytes);
            let mut body = Bytes::new(self.order);
            body.int(tracing.bytes.len() as u64, 4).int(0, 4);
            record(&mut out, 66, &body.bytes);
            out.raw(&tracing.bytes);
            let len = tracing.bytes.len();
            out.bytes.resize(out.bytes.len() + len.next_multiple_of(8) - len, 0);
            out.raw(&data);
            return out.bytes;
        }
        const HEADER_LEN: u64 = 104;
        let ids_at = HEADER_LEN + attr.len() as u64 + 16;
        let data_at = ids_at + 8;
        out.raw(magic).int(HEADER_LEN, 8).int(attr.len() as u64 + 16, 8);
        out.int(HEADER_LEN, 8).int(attr.len() as u64 + 16, 8);
        out.int(data_at, 8).int(data.len() as u64, 8).int(0, 8).int(0, 8);
        out.int(1 << 1 | 1 << 4, 8).int(0, 8).int(0, 8).int(0, 8);
        out.raw(&attr).int(ids_at, 8).int(8, 8).int(ID, 8).raw(&data);
        let mut release = Bytes::new(self.order);
        release.sized(4, &self.release());
        let features = out.bytes.len() as u64 + 32;
        out.int(features, 8).int(tracing.bytes.len() as u64, 8);
        out.int(features + tracing.bytes.len() as u64, 8).int(release.bytes.len() as u64, 8);
        out.raw(&tracing.bytes).raw(&release.bytes);
        out.bytes
    }

    fn release(&self) -> Vec<u8> {
        let uname = String::from_utf8(self.file("uname")).unwrap();
        let mut release = uname.split_whitespace().nth(2).unwrap().as_bytes().to_vec();
        release.push(0);
        release
    }
}

/// How a perf.data is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Perf {
    pub pipe: bool,
    pub packed: bool,
    pub loses: bool,
    /// kmalloc by frequency: each sample stands for 1,000 events.
    pub sampled: bool,
    /// One of so many parts, as `--switch-output` makes them; (0, 0): all.
    pub part: (u64, u64),
}

const ID: u64 = 77;
/// IDENTIFIER, IP, TID, TIME, CALLCHAIN, CPU, PERIOD, RAW.
const SAMPLE_TYPE: u64 = 1 << 16 | 1 | 2 | 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 10;

fn attr(order: ByteOrder, sampled: Option<u64>) -> Vec<u8> {
    let mut out = Bytes::new(order);
    out.int(2, 4).int(128, 4).int(sampled.unwrap_or(0x292), 8).int(if sampled.is_some() { 99 } else { 1 }, 8);
    out.int(SAMPLE_TYPE, 8).int(4, 8);
    // freq is bit 10, sample_id_all bit 18 of a bit field.
    let bit = |bit: usize| if order == ByteOrder::Little { 1 << (bit % 8) } else { 1 << (7 - bit % 8) };
    let mut flags = [0u8; 8];
    flags[1] = if sampled.is_some() { bit(10) } else { 0 };
    flags[2] = bit(18);
    out.raw(&flags);
    out.bytes.resize(128, 0);
    out.bytes
}

fn sample(out: &mut Bytes, event: &Event<'_>, raw: &[u8], period: u64) {
    out.int(ID, 8)
        .int(0xffff_ffff_8100_0000, 8)
        .int(event.pid() as u32 as u64, 4)
        .int(event.pid() as u32 as u64, 4);
    out.int(event.time(), 8).int(event.cpu().into(), 4).int(0, 4).int(period, 8).int(0, 8);
    let len = (raw.len() + 4).next_multiple_of(8) - 4;
    out.int(len as u64, 4).raw(raw);
    out.bytes.resize(out.bytes.len().next_multiple_of(8), 0);
}

fn trailer(out: &mut Bytes, time: u64, cpu: u32) {
    out.int(0, 8).int(time, 8).int(cpu.into(), 4).int(0, 4).int(ID, 8);
}

fn record(out: &mut Bytes, kind: u32, body: &[u8]) {
    out.int(kind.into(), 4).int(0, 2).int(body.len() as u64 + 8, 2).raw(body);
}

/// One stream through all records, cut where it happens to be.
fn compressed(records: &Bytes, order: ByteOrder) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    let mut out = Bytes::new(order);
    for piece in records.bytes.chunks(10_007) {
        encoder.write_all(piece).unwrap();
        encoder.flush().unwrap();
        let packed = std::mem::take(encoder.get_mut());
        for part in packed.chunks(60_000) {
            record(&mut out, 81, part);
        }
    }
    out.bytes
}

fn section(out: &mut Bytes, id: u16, body: &[u8], packing: Packing) {
    let is_packed = packing != Packing::None;
    let mut stored = Bytes::new(out.order);
    if is_packed {
        let packed = pack(body, packing);
        stored.int(packed.len() as u64, 4).int(body.len() as u64, 4).raw(&packed);
    } else {
        stored.raw(body);
    }
    out.int(id.into(), 2).int(u64::from(is_packed), 2).int(0, 4).sized(8, &stored.bytes);
}

fn pack(bytes: &[u8], packing: Packing) -> Vec<u8> {
    match packing {
        Packing::None => bytes.to_vec(),
        Packing::Zlib => {
            let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        }
        Packing::Zstd => zstd::bulk::compress(bytes, 1).unwrap(),
    }
}

fn sorted(path: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(path).into_iter().flatten().map(|e| e.unwrap().path()).collect();
    entries.retain(|p| p.is_dir());
    entries.sort();
    entries
}

/// Writes the records of a round, CPU by CPU.
fn write_round(out: &mut Bytes, round: &mut Vec<(u32, Vec<u8>)>) {
    round.sort_by_key(|(cpu, _)| *cpu);
    for (_, record) in round.drain(..) {
        out.raw(&record);
    }
}
