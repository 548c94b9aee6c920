//! Bytes as a story: what happens to a writer. The same story can be written in any byte order and word size.

use kmt_format::Compression;
use kmt_format::kernel::ByteOrder;
use kmt_format::write::{Loss, Writer, WriterOptions};

/// Takes numbers from bytes; zeros at their end.
pub struct Numbers<'d>(pub &'d [u8]);

impl Numbers<'_> {
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    pub fn number(&mut self, len: usize) -> u64 {
        (0..len).fold(0, |n, _| n << 8 | u64::from(self.byte()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// An event: CPU, class, time, numbers, text.
    Event(u32, usize, u64, [u64; 3], Vec<u8>),
    Lost(u32, Loss),
    Flush(u32),
}

/// C type, name, and size (0: long).
type Field = (&'static str, &'static str, usize);

/// Name, id and fields.
const CLASSES: [(&str, u16, &[Field]); 4] = [
    ("kmalloc", 11, &[("unsigned long", "call_site", 0), ("const void *", "ptr", 0), ("int", "node", 4)]),
    ("kmem_cache_free", 12, &[("const void *", "ptr", 0), ("__data_loc char[]", "name", 4)]),
    ("rss_stat", 13, &[("long", "size", 0), ("u64", "wide", 8), ("u8", "narrow", 1)]),
    ("kernel_stack", 14, &[("u16", "a", 2), ("__rel_loc char[]", "b", 4)]),
];

/// The story that the bytes tell; times rise mostly, and numbers fit into 32 bits where `narrow`.
pub fn of(data: &[u8], narrow: bool) -> Vec<Step> {
    let mut numbers = Numbers(data);
    let mut time = 1_000;
    let mut out = Vec::new();
    while !numbers.is_empty() && out.len() < 150 {
        let what = numbers.byte();
        let cpu = u32::from(what >> 6 & 1);
        match what & 15 {
            0 => out.push(Step::Flush(cpu)),
            1 => {
                let counted = numbers.number(1);
                let mut loss = Loss::counted(counted);
                (loss.uncounted, loss.damaged_input) = (what & 16 != 0, what & 32 != 0);
                out.push(Step::Lost(cpu, loss));
            }
            2 => time = numbers.number(8),
            3 => time = u64::wrapping_add(time, numbers.number(5)),
            _ => {
                time = u64::wrapping_add(time, numbers.number(1));
                let class = usize::from(what >> 4 & 3);
                let mask = if narrow { 0x7fff_ffff } else { u64::MAX };
                let width = if what & 8 == 0 { 1 } else { 8 };
                let values = [(); 3].map(|()| numbers.number(width) & mask);
                let len = usize::from(numbers.byte() & 7);
                let text = (0..len).map(|_| numbers.byte()).collect();
                out.push(Step::Event(cpu, class, time, values, text));
            }
        }
    }
    out
}

fn size(field: &Field, long: usize) -> usize {
    if field.2 == 0 { long } else { field.2 }
}

fn format(class: usize, long: usize) -> String {
    let (name, id, fields) = CLASSES[class];
    let mut out = format!("name: {name}\nID: {id}\nformat:\n");
    out += "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n";
    out += "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
    let mut at = 8;
    for field in fields {
        let size = size(field, long);
        out += &format!("\tfield:{} {};\toffset:{at};\tsize:{size};\tsigned:0;\n", field.0, field.1);
        at += 8;
    }
    out + "\nprint fmt: \"x\"\n"
}

fn record(class: usize, values: [u64; 3], text: &[u8], order: ByteOrder, long: usize) -> Vec<u8> {
    let (_, id, fields) = CLASSES[class];
    let mut out = Vec::new();
    order.push(&mut out, id.into(), 2);
    out.extend([0; 2]);
    order.push(&mut out, values[2] & 3, 4);
    for (i, field) in fields.iter().enumerate() {
        out.resize(8 + 8 * i, 0);
        let end = 8 + 8 * fields.len();
        let origin = if field.0.starts_with("__rel") { 8 + 8 * i + 4 } else { 0 };
        let value = match field.0.contains("_loc") {
            true => (text.len() << 16 | (end - origin)) as u64,
            false => values[i],
        };
        order.push(&mut out, value, size(field, long));
    }
    out.resize(8 + 8 * fields.len(), 0);
    out.extend(text);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// Tells a story to a writer: the file.
pub fn write(story: &[Step], order: ByteOrder, long: usize, compression: Compression) -> Vec<u8> {
    let options = WriterOptions::new(order, long).trace_uuid(*b"a story to write").compression(compression);
    let mut writer = Writer::new(options).expect("good options");
    for class in 0..CLASSES.len() {
        writer.add_format("kmem", &format(class, long)).expect("a good format");
    }
    for step in story {
        match step {
            Step::Event(cpu, class, time, values, text) => {
                let record = record(*class, *values, text, order, long);
                writer.add_event(*cpu, *time, &record).expect("a good event");
            }
            Step::Lost(cpu, loss) => writer.add_loss(*cpu, *loss).expect("a good CPU"),
            Step::Flush(cpu) => writer.flush(*cpu).expect("a good codec"),
        }
    }
    writer.finish().expect("a good codec")
}
