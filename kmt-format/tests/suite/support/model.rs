//! Random traces: what is written, so that it can be compared with what is read.

use kmt_format::kernel::ByteOrder;
use kmt_format::write::{Loss, Writer, WriterOptions};
use proptest::prelude::*;

/// One thing that happens to a writer.
#[derive(Debug, Clone)]
pub enum Op {
    Event { cpu: u32, class: usize, step: i64, seed: u64, repeat: bool },
    Lost { cpu: u32, counted: u64, uncounted: bool },
    Flush { cpu: u32 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue {
    Number(u64),
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEvent {
    pub time: u64,
    pub name: &'static str,
    /// In the order of the fields, common_type first.
    pub fields: Vec<FieldValue>,
}

/// A field of a model class: name, C type, size in bytes (0: `long`), signed.
type FieldSpec = (&'static str, &'static str, usize, bool);

pub struct ClassSpec {
    pub system: &'static str,
    pub name: &'static str,
    pub id: u16,
    pub fields: &'static [FieldSpec],
}

/// One class of each kind: with a moving address, with dynamic text, with a function's times, with arrays, without
/// any field, and one whose numbers never repeat.
pub const CLASSES: [ClassSpec; 6] = [
    ClassSpec {
        system: "kmem",
        name: "kmalloc",
        id: 11,
        fields: &[
            ("call_site", "unsigned long", 0, false),
            ("ptr", "const void *", 0, false),
            ("bytes_req", "size_t", 0, false),
            ("node", "int", 4, true),
        ],
    },
    ClassSpec {
        system: "kmem",
        name: "kmem_cache_free",
        id: 12,
        fields: &[
            ("call_site", "unsigned long", 0, false),
            ("ptr", "const void *", 0, false),
            ("name", "__data_loc char[]", 4, false),
        ],
    },
    ClassSpec {
        system: "ftrace",
        name: "funcgraph_exit",
        id: 10,
        fields: &[
            ("func", "unsigned long", 0, false),
            ("calltime", "unsigned long long", 8, false),
            ("rettime", "unsigned long long", 8, false),
            ("depth", "int", 4, true),
        ],
    },
    ClassSpec {
        system: "odd",
        name: "arrays",
        id: 300,
        fields: &[
            ("comm", "char", 16, true),
            ("raw", "u8", 5, false),
            ("tail", "__rel_loc u32", 4, false),
            ("flag", "bool", 1, false),
        ],
    },
    ClassSpec { system: "odd", name: "empty", id: 301, fields: &[] },
    ClassSpec {
        system: "odd",
        name: "restless",
        id: 65_535,
        fields: &[("a", "s64", 8, true), ("b", "u16", 2, false), ("c", "long", 0, true)],
    },
];

impl ClassSpec {
    fn size(&self, field: &FieldSpec, long: usize) -> usize {
        if field.2 == 0 { long } else { field.2 }
    }

    /// Offsets as a C compiler would lay the fields out, behind eight common bytes.
    pub fn offsets(&self, long: usize) -> Vec<usize> {
        let mut at: usize = 8;
        let mut out = Vec::new();
        for field in self.fields {
            let size = self.size(field, long);
            let align = if size.is_power_of_two() && size <= 8 { size } else { 1 };
            at = at.next_multiple_of(align);
            out.push(at);
            at += size;
        }
        out
    }

    pub fn format_text(&self, long: usize) -> String {
        let mut out = format!("name: {}\nID: {}\nformat:\n", self.name, self.id);
        for (name, ty, offset, size, signed) in [
            ("common_type", "unsigned short", 0, 2, 0),
            ("common_flags", "unsigned char", 2, 1, 0),
            ("common_preempt_count", "unsigned char", 3, 1, 0),
            ("common_pid", "int", 4, 4, 1),
        ] {
            out += &format!("\tfield:{ty} {name};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
        }
        out.push('\n');
        for (field, offset) in self.fields.iter().zip(self.offsets(long)) {
            let (name, ty, _, signed) = field;
            let size = self.size(field, long);
            let bracket = match *ty {
                "char" => "[16]",
                "u8" => "[5]",
                "__rel_loc u32" => "[]",
                _ => "",
            };
            out += &format!(
                "\tfield:{ty} {name}{bracket};\toffset:{offset};\tsize:{size};\tsigned:{};\n",
                u8::from(*signed)
            );
        }
        out + "\nprint fmt: \"\"\n"
    }
}

/// A small generator of numbers from a seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }
}

/// Makes the record and the event that must be read back. Padding is filled with 0xa5, as stale memory would.
pub fn record(
    class: &ClassSpec,
    order: ByteOrder,
    long: usize,
    time: u64,
    seed: u64,
) -> (Vec<u8>, ModelEvent) {
    let mut numbers = Numbers(seed);
    let offsets = class.offsets(long);
    let end = class.fields.iter().zip(&offsets).map(|(f, o)| o + class.size(f, long)).max().unwrap_or(8);
    let mut record = vec![0xa5; end.next_multiple_of(4)];
    let mut values = Vec::new();
    let put = |record: &mut Vec<u8>, at: usize, size: usize, value: u64| {
        let mut bytes = Vec::new();
        order.push(&mut bytes, value, size);
        record[at..at + size].copy_from_slice(&bytes);
    };
    let (flags, preempt, pid) = (numbers.next() & 3, numbers.next() & 1, numbers.next() % 5);
    put(&mut record, 0, 2, class.id.into());
    put(&mut record, 2, 1, flags);
    put(&mut record, 3, 1, preempt);
    put(&mut record, 4, 4, pid);
    values.extend([u64::from(class.id), flags, preempt, pid].map(FieldValue::Number));
    for (field, &offset) in class.fields.iter().zip(&offsets) {
        let (name, ty, _, signed) = *field;
        let size = class.size(field, long);
        let extend = |v: u64| {
            let shift = 64 - 8 * size;
            if signed { (v << shift) as i64 >> shift } else { (v << shift >> shift) as i64 }
        };
        match ty {
            "char" => {
                // Text shorter than its field, with stale bytes behind the NUL.
                let len = (numbers.next() % 17) as usize;
                let text = vec![b'x'; len];
                record[offset..offset + len].copy_from_slice(&text);
                if len < 16 {
                    record[offset + len] = 0;
                }
                values.push(FieldValue::Bytes(text));
            }
            "u8" => {
                let bytes: Vec<u8> = (0..5).map(|_| (numbers.next() & 3) as u8).collect();
                record[offset..offset + 5].copy_from_slice(&bytes);
                values.push(FieldValue::Bytes(bytes));
            }
            "__data_loc char[]" | "__rel_loc u32" => {
                let relative = ty.starts_with("__rel");
                let bytes: Vec<u8> = if relative {
                    vec![(numbers.next() & 1) as u8; 8]
                } else {
                    [vec![b'n'; (numbers.next() % 3) as usize], vec![0]].concat()
                };
                let at = record.len();
                let origin = if relative { offset + 4 } else { 0 };
                put(&mut record, offset, 4, (bytes.len() as u64) << 16 | (at - origin) as u64);
                record.extend(&bytes);
                values.push(FieldValue::Bytes(bytes));
            }
            _ => {
                let value = match name {
                    "rettime" if numbers.next() % 4 > 0 => time.wrapping_sub(numbers.next() % 100),
                    "calltime" if numbers.next() % 4 > 0 => time.wrapping_sub(1_000 + numbers.next() % 100),
                    "call_site" | "func" => 0xffff_8000_0000_0000 | (numbers.next() & 0xff),
                    "bytes_req" if numbers.next() % 8 > 0 => numbers.next() % 64,
                    "node" => numbers.next() % 3,
                    _ => numbers.next(),
                };
                let value = if name == "node" { value.wrapping_sub(1) } else { value };
                put(&mut record, offset, size, value);
                values.push(FieldValue::Number(extend(value) as u64));
            }
        }
    }
    record.resize(record.len().next_multiple_of(4), 0xa5);
    (record, ModelEvent { time, name: class.name, fields: values })
}

/// A writer without any class.
pub fn writer(order: ByteOrder, long: usize) -> Writer {
    let options = WriterOptions::new(order, long).trace_uuid([7; 16]);
    Writer::new(options).unwrap()
}

/// The events of each CPU.
pub type Events = Vec<Vec<ModelEvent>>;
/// The losses of each CPU: events before, and the loss.
pub type Losses = Vec<Vec<(u64, Loss)>>;

/// Runs the operations: the file, each CPU's events, and each CPU's losses as (events before, loss).
pub fn write(ops: &[Op], order: ByteOrder, long: usize) -> (Vec<u8>, Events, Losses) {
    let mut writer = writer(order, long);
    for class in &CLASSES {
        writer.add_format(class.system, &class.format_text(long)).unwrap();
    }
    let mut file = Vec::new();
    let mut events = vec![Vec::new(); 3];
    let mut losses: Vec<Vec<(u64, Loss)>> = vec![Vec::new(); 3];
    let mut times = [1u64 << 40; 3];
    for op in ops {
        match *op {
            Op::Event { cpu, class, step, seed, repeat } => {
                let time = &mut times[cpu as usize];
                *time = time.wrapping_add_signed(step);
                let seed = if repeat { seed % 4 } else { seed };
                let (record, event) = record(&CLASSES[class], order, long, *time, seed);
                writer.add_event(cpu, *time, &record).unwrap();
                events[cpu as usize].push(event);
            }
            Op::Lost { cpu, counted, uncounted } => {
                let mut loss = Loss::counted(counted);
                loss.uncounted = uncounted;
                writer.add_loss(cpu, loss).unwrap();
                let at = events[cpu as usize].len() as u64;
                match losses[cpu as usize].last_mut() {
                    Some((last, old)) if *last == at => *old = old.and(loss),
                    _ => losses[cpu as usize].push((at, loss)),
                }
            }
            Op::Flush { cpu } => writer.flush(cpu).unwrap(),
        }
        if writer.pending_len() > 4096 {
            file.extend(writer.take());
        }
    }
    file.extend(writer.finish().unwrap());
    for list in &mut losses {
        list.retain(|(_, loss)| *loss != Loss::default());
    }
    (file, events, losses)
}

pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let step = prop_oneof![
        20 => 0i64..2_000,
        1 => -500i64..0,
        1 => (1i64 << 31)..(1i64 << 34),
    ];
    let event = (0u32..3, 0usize..CLASSES.len(), step, any::<u64>(), prop::bool::weighted(0.7))
        .prop_map(|(cpu, class, step, seed, repeat)| Op::Event { cpu, class, step, seed, repeat });
    let lost = (0u32..3, 0u64..50, any::<bool>()).prop_map(|(cpu, counted, uncounted)| Op::Lost {
        cpu,
        counted,
        uncounted,
    });
    let op = prop_oneof![
        40 => event,
        2 => lost,
        1 => (0u32..3).prop_map(|cpu| Op::Flush { cpu }),
    ];
    prop::collection::vec(op, 0..300)
}
