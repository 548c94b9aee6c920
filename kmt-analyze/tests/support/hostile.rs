//! Small files that ask for much: each is sound by its checksums, and none is larger than 16 MB.

use kmt_format::kernel::{ByteOrder, TraceClock};
use kmt_format::write::{Writer, WriterOptions};

/// Identity of the files; its first bytes stand in every chunk.
const UUID: [u8; 16] = *b"a hostile trace!";

/// CRC-32 as the specification has it.
pub fn crc32(bytes: &[u8]) -> [u8; 4] {
    let mut table = [0u32; 256];
    for (byte, entry) in table.iter_mut().enumerate() {
        let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        *entry = (0..8).fold(byte as u32, step);
    }
    let step = |crc: u32, &byte: &u8| crc >> 8 ^ table[usize::from(crc as u8 ^ byte)];
    (!bytes.iter().fold(!0u32, step)).to_le_bytes()
}

/// A chunk: kind, CPU and number of an event chunk, its body, as zstd stores it or as it is.
pub fn chunk(kind: &[u8; 4], stream: Option<(u32, u32)>, body: &[u8], zstd: bool) -> Vec<u8> {
    let (stream, sequence) = stream.unwrap_or((u32::MAX, 0));
    let prefix_len = if kind == b"EVNT" { 96 } else { 0 };
    let (prefix, rest) = body.split_at(prefix_len);
    let rest = if zstd { zstd::bulk::compress(rest, 1).unwrap() } else { rest.to_vec() };
    let stored = [prefix, &rest].concat();
    let total = (64 + stored.len()).next_multiple_of(64);
    let mut rest = stored.clone();
    rest.resize(total - 64, 0);
    let mut out = Vec::with_capacity(total);
    out.extend(b"KMTC");
    out.extend(&UUID[..4]);
    out.extend(kind);
    out.extend([if kind == b"SCHM" || kind == b"EVNT" { 1 } else { 2 }, if zstd { 2 } else { 0 }, 0, 0]);
    for number in [total, stored.len(), body.len()] {
        out.extend((number as u64).to_le_bytes());
    }
    out.extend(stream.to_le_bytes());
    out.extend(sequence.to_le_bytes());
    out.extend(crc32(&rest));
    out.extend((prefix_len as u32).to_le_bytes());
    out.extend(crc32(prefix));
    let crc = crc32(&out);
    out.extend(crc);
    out.extend(rest);
    out
}

/// A table: row length, rows.
pub fn table(row_len: u32, rows: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let rows: Vec<u8> = rows.flatten().collect();
    let mut out = Vec::new();
    for number in [16, row_len, rows.len() as u32 / row_len, 0] {
        out.extend(number.to_le_bytes());
    }
    out.extend(rows);
    out
}

/// A file with events of three kinds, 64 bit, little endian.
pub struct Made {
    writer: Writer,
    now: u64,
}

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/// A format: fields of type, name, size.
fn format(name: &str, id: u16, fields: &[(&str, &str, usize)], print: &str) -> String {
    let mut at = 8usize;
    let mut text = format!("name: {name}\nID: {id}\nformat:\n{COMMON}");
    for (ctype, name, size) in fields {
        at = at.next_multiple_of(*size);
        text += &format!("\tfield:{ctype} {name};\toffset:{at};\tsize:{size};\tsigned:0;\n");
        at += size;
    }
    text + "\nprint fmt: " + print + "\n"
}

impl Default for Made {
    fn default() -> Self {
        let options = WriterOptions::new(ByteOrder::Little, 8).align_u64(8).page_size(4096).trace_uuid(UUID);
        let mut writer = Writer::new(options).unwrap();
        let long = "unsigned long";
        let kmalloc = [
            (long, "call_site", 8),
            ("const void *", "ptr", 8),
            ("size_t", "bytes_req", 8),
            ("size_t", "bytes_alloc", 8),
            (long, "gfp_flags", 8),
            ("int", "node", 4),
        ];
        let free = [(long, "call_site", 8), ("const void *", "ptr", 8), ("__data_loc char[]", "name", 4)];
        let page = [
            (long, "pfn", 8),
            ("unsigned int", "order", 4),
            (long, "gfp_flags", 8),
            ("int", "migratetype", 4),
        ];
        for (system, text) in [
            ("kmem", format("kmalloc", 11, &kmalloc, "\"ptr=%p\", REC->ptr")),
            ("kmem", format("kmem_cache_free", 12, &free, "\"name=%s\", __get_str(name)")),
            ("kmem", format("mm_page_alloc", 13, &page, "\"pfn=0x%lx\", REC->pfn")),
            ("kmem", format("kfree", 14, &free[..2], "\"ptr=%p\", REC->ptr")),
            ("kmem", format("mm_page_free", 15, &page[..2], "\"pfn=0x%lx\", REC->pfn")),
            (
                "ftrace",
                format("kernel_stack", 4, &[("int", "size", 4)], "\"\"").replace(
                    "\nprint fmt",
                    "\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n\nprint fmt",
                ),
            ),
        ] {
            writer.add_format(system, &text).unwrap();
        }
        writer.add_clock(&TraceClock::named("mono")).unwrap();
        Self { writer, now: 1_000_000 }
    }
}

impl Made {
    /// Another class: fields of type, name, size.
    pub fn class(&mut self, system: &str, name: &str, id: u16, fields: &[(&str, &str, usize)], print: &str) {
        self.writer.add_format(system, &format(name, id, fields, print)).unwrap();
    }

    /// An event of fields that follow the common ones, 100 units after the event before.
    pub fn event(&mut self, cpu: u32, id: u16, pid: i32, rest: &[u8]) {
        let mut record = id.to_le_bytes().to_vec();
        record.extend([0, 0]);
        record.extend(pid.to_le_bytes());
        record.extend(rest);
        self.now = self.now.wrapping_add(100);
        self.writer.add_event(cpu, self.now, &record).unwrap();
    }

    /// An object of 64 bytes.
    pub fn kmalloc(&mut self, cpu: u32, pid: i32, call_site: u64, ptr: u64) {
        let mut rest = Vec::new();
        for number in [call_site, ptr, 60, 64, 0xcc0] {
            rest.extend(number.to_le_bytes());
        }
        rest.extend((-1i32).to_le_bytes());
        self.event(cpu, 11, pid, &rest);
    }

    /// An object goes.
    pub fn kfree(&mut self, cpu: u32, call_site: u64, ptr: u64) {
        let rest: Vec<u8> = [call_site, ptr].iter().flat_map(|n| n.to_le_bytes()).collect();
        self.event(cpu, 14, 7, &rest);
    }

    /// An object goes back to a cache of that name.
    pub fn cache_free(&mut self, cpu: u32, call_site: u64, ptr: u64, name: &[u8]) {
        let mut rest: Vec<u8> = [call_site, ptr].iter().flat_map(|n| n.to_le_bytes()).collect();
        rest.extend((32u32 | ((name.len() + 1) as u32) << 16).to_le_bytes());
        rest.resize(24, 0);
        rest.extend(name);
        rest.push(0);
        self.event(cpu, 12, 7, &rest);
    }

    /// 2^order frames.
    pub fn pages(&mut self, cpu: u32, pid: i32, pfn: u64, order: u32) {
        let mut rest = pfn.to_le_bytes().to_vec();
        rest.extend(u64::from(order).to_le_bytes());
        rest.extend(0xcc0u64.to_le_bytes());
        rest.extend(1u64.to_le_bytes());
        self.event(cpu, 13, pid, &rest);
    }

    /// 2^order frames go.
    pub fn pages_free(&mut self, cpu: u32, pfn: u64, order: u32) {
        let mut rest = pfn.to_le_bytes().to_vec();
        rest.extend(u64::from(order).to_le_bytes());
        self.event(cpu, 15, 7, &rest);
    }

    /// The stack of the event before.
    pub fn stack(&mut self, cpu: u32, pid: i32, addresses: &[u64]) {
        let mut rest = (addresses.len() as u64).to_le_bytes().to_vec();
        addresses.iter().for_each(|a| rest.extend(a.to_le_bytes()));
        self.event(cpu, 4, pid, &rest);
    }

    /// Sets the clock: the next event is 100 units later.
    pub fn set_time(&mut self, now: u64) {
        self.now = now;
    }

    /// Keys and values.
    pub fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    /// The whole file.
    pub fn finish(self) -> Vec<u8> {
        self.writer.finish().unwrap()
    }

    /// The file without its end, and chunks behind it.
    pub fn with(mut self, cpus: u32, chunks: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
        (0..cpus).for_each(|cpu| self.writer.flush(cpu).unwrap());
        let mut out = self.writer.take();
        chunks.into_iter().for_each(|chunk| out.extend(chunk));
        out
    }
}

/// Offset and length of a text.
type Text = (u32, u32);
/// Id, meaning, fields, first field, format text.
type Class = (u16, u16, u16, u32, Text);

/// Parts of a schema chunk that a file may share and overlap as it likes.
#[derive(Default)]
pub struct Schema {
    /// First number of its classes and of its shapes.
    pub first: (u32, u32),
    /// Classes.
    pub classes: Vec<Class>,
    /// Name, size, role.
    pub fields: Vec<(Text, u32, u16)>,
    /// Class, first slot.
    pub shapes: Vec<(u32, u32)>,
    /// Place, bytes stored, offset.
    pub slots: Vec<(u8, u8, u32)>,
    /// Texts.
    pub heap: Vec<u8>,
}

impl Schema {
    /// The body of the chunk.
    pub fn body(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let counts =
            [self.classes.len(), self.fields.len(), self.shapes.len(), self.slots.len(), self.heap.len()];
        for number in [40, self.first.0, self.first.1].into_iter().chain(counts.map(|n| n as u32)) {
            out.extend(number.to_le_bytes());
        }
        for len in [44u16, 32, 16, 8] {
            out.extend(len.to_le_bytes());
        }
        for (id, meaning, fields, first, text) in &self.classes {
            for number in [*id, *meaning, *fields, 0] {
                out.extend(number.to_le_bytes());
            }
            for number in [*first, text.0, text.1.min(4), text.0, text.1.min(4), text.0, text.1, text.0, 0] {
                out.extend(number.to_le_bytes());
            }
        }
        for (name, size, role) in &self.fields {
            for number in [name.0, name.1, name.0, name.1, 0, *size] {
                out.extend(number.to_le_bytes());
            }
            out.extend([0, 0, *size as u8, 0]);
            out.extend(role.to_le_bytes());
            out.extend([0, 0]);
        }
        for (class, slot) in &self.shapes {
            for number in [*class, *slot, 4096, 0] {
                out.extend(number.to_le_bytes());
            }
        }
        for (place, stored, offset) in &self.slots {
            out.extend([*place, *stored, 0, 0]);
            out.extend(offset.to_le_bytes());
        }
        out.extend(&self.heap);
        out
    }
}

/// The body of a chunk of frees to caches: for each the offset of its cache's name in `heap`.
pub fn cache_frees(shape: u16, names: impl Iterator<Item = u32>, heap: &[u8]) -> Vec<u8> {
    let names: Vec<u32> = names.collect();
    let count = names.len() as u32;
    let (table_at, data_at) = (96, 96 + 4 * count);
    let contexts_at = (data_at + 16 * count).next_multiple_of(8);
    let heap_at = contexts_at + 8;
    let records_at = (heap_at + heap.len() as u32).next_multiple_of(16);
    let mut out = Vec::new();
    for number in [96u32, 0] {
        out.extend(number.to_le_bytes());
    }
    for number in [0u64, 1_000, 1_000 + u64::from(count.saturating_sub(1)), 0] {
        out.extend(number.to_le_bytes());
    }
    let places = [table_at, table_at, contexts_at, records_at, heap_at, heap.len() as u32];
    for number in [count, count, 1, 0].into_iter().chain(places) {
        out.extend(number.to_le_bytes());
    }
    for stride in [16u16, 8] {
        out.extend(stride.to_le_bytes());
    }
    // Events of any class.
    out.resize(88, 0);
    out.extend([0xff; 8]);
    for i in 0..count {
        out.extend((data_at + 16 * i).to_le_bytes());
    }
    for (i, name) in names.iter().enumerate() {
        out.extend(shape.to_le_bytes());
        out.extend(12u16.to_le_bytes());
        out.extend((0xffff_ffff_8100_0000u64 + i as u64 * 16).to_le_bytes());
        out.extend(name.to_le_bytes());
    }
    out.resize(contexts_at as usize, 0);
    out.extend([0, 0, 7, 0, 0, 0, 0, 0]);
    out.extend(heap);
    out.resize(records_at as usize, 0);
    for i in 0..count {
        out.extend(i.to_le_bytes());
        out.extend((i as u16).to_le_bytes());
        out.extend(0u16.to_le_bytes());
        out.extend((0xffff_8880_0000_0000u64 + u64::from(i) * 64).to_le_bytes());
    }
    out
}
