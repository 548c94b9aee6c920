//! A second reader, written from format-spec/spec.md alone: slow, obvious, sharing no code with the library.

use std::collections::BTreeMap;

use super::naive_metadata;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Number(u64),
    Bytes(Vec<u8>),
    /// Of a kind, a place or a transform that the specification does not describe.
    Opaque,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub cpu: u32,
    pub time: u64,
    pub system: String,
    pub name: String,
    pub fields: Vec<(String, Value)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    pub cpu: u32,
    /// Events of that CPU before the loss.
    pub at: u64,
    pub flags: u32,
    pub count: u64,
}

#[derive(Debug, Default)]
pub struct File {
    pub big: bool,
    pub long: usize,
    /// By CPU, in the order of the file.
    pub events: BTreeMap<u32, Vec<Event>>,
    pub losses: Vec<Loss>,
    pub kinds: Vec<String>,
    pub minor: u64,
    pub uuid: Vec<u8>,
    /// Everything else, as the conformance vectors write it.
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

struct Field {
    name: String,
    kind: u8,
    signed: bool,
    offset: usize,
    size: usize,
    stack: bool,
}

struct Class {
    id: u64,
    system: String,
    name: String,
    fields: Vec<Field>,
}

struct Slot {
    place: u8,
    stored: usize,
    transform: u8,
    base: usize,
    offset: usize,
}

struct Shape {
    class: usize,
    slots: Vec<Slot>,
    payload_len: usize,
}

#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    pub data: &'a [u8],
    pub big: bool,
}

impl<'a> Bytes<'a> {
    pub fn number(&self, at: usize, len: usize) -> u64 {
        let bytes = &self.data[at..at + len];
        let fold = |n: u64, b: &u8| n << 8 | u64::from(*b);
        if self.big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
    }

    pub fn u32(&self, at: usize) -> usize {
        self.number(at, 4) as usize
    }

    pub fn from(&self, at: usize, len: usize) -> Bytes<'a> {
        Bytes { data: &self.data[at..at + len], big: self.big }
    }
}

/// CRC-32 of the spec's section "Checksums", bit by bit.
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// Reads a sound file; panics on any other.
pub fn read(data: &[u8]) -> File {
    assert_eq!(data[..8], [0x89, 0x4b, 0x4d, 0x54, 0x0d, 0x0a, 0x1a, 0x0a]);
    let big = match data[8..12] {
        [4, 3, 2, 1] => false,
        [1, 2, 3, 4] => true,
        _ => panic!("byte order"),
    };
    let all = Bytes { data, big };
    let header_len = all.u32(16);
    assert_eq!(all.u32(header_len - 4) as u32, crc32(&data[..header_len - 4]));
    let mut file = File { big, long: data[30].into(), minor: all.number(14, 2), ..File::default() };
    file.uuid = data[40..56].to_vec();
    let salt = &data[40..44];
    let mut at = header_len;
    let mut classes: BTreeMap<usize, Class> = BTreeMap::new();
    let mut shapes: BTreeMap<usize, Shape> = BTreeMap::new();
    while at < data.len() {
        let header = all.from(at, 64);
        assert_eq!(&header.data[..4], b"KMTC");
        assert_eq!(&header.data[4..8], salt);
        assert_eq!(header.u32(60) as u32, crc32(&header.data[..60]));
        let total = header.number(16, 8) as usize;
        let body_len = header.number(24, 8) as usize;
        assert_eq!(total % 64, 0);
        assert_eq!(header.u32(48) as u32, crc32(&data[at + 64..at + total]));
        let stored = decoded(header, &data[at + 64..at + 64 + body_len], file.long);
        let body = Bytes { data: &stored, big };
        let kind = String::from_utf8(header.data[8..12].to_vec()).unwrap();
        match kind.as_str() {
            "SCHM" => schema(body, &mut classes, &mut shapes),
            "EVNT" => events(body, header.u32(40) as u32, &classes, &shapes, &mut file),
            "RAWP" => sub_buffers(body, header.u32(40) as u32, &classes, &mut file),
            kind => naive_metadata::chunk(kind, body, &mut file.metadata),
        }
        file.kinds.push(kind);
        at += total;
    }
    file
}

fn schema(body: Bytes<'_>, classes: &mut BTreeMap<usize, Class>, shapes: &mut BTreeMap<usize, Shape>) {
    let [head_len, first_class, first_shape, class_count, field_count, shape_count, slot_count, heap_len] =
        [0, 4, 8, 12, 16, 20, 24, 28].map(|at| body.u32(at));
    let [class_len, field_len, shape_len, slot_len] = [32, 34, 36, 38].map(|at| body.number(at, 2) as usize);
    let class_at = head_len;
    let field_at = class_at + class_count * class_len;
    let shape_at = field_at + field_count * field_len;
    let slot_at = shape_at + shape_count * shape_len;
    let heap = body.from(slot_at + slot_count * slot_len, heap_len);
    let text = |at: usize| {
        let (offset, len) = (body.u32(at), body.u32(at + 4));
        String::from_utf8(heap.data[offset..offset + len].to_vec()).unwrap()
    };
    for i in 0..class_count {
        let at = class_at + i * class_len;
        let count = body.number(at + 4, 2) as usize;
        let first = body.u32(at + 8);
        let fields = (first..first + count)
            .map(|f| {
                let at = field_at + f * field_len;
                let (kind, signed) = (body.data[at + 24], body.data[at + 25] == 1);
                let (offset, size) = (body.u32(at + 16), body.u32(at + 20));
                assert!(offset + size <= 65_536, "a field lies behind any event");
                Field { name: text(at), kind, signed, offset, size, stack: body.number(at + 28, 2) == 17 }
            })
            .collect();
        let class = Class { id: body.number(at, 2), system: text(at + 12), name: text(at + 20), fields };
        classes.entry(first_class + i).or_insert(class);
    }
    for i in 0..shape_count {
        let at = shape_at + i * shape_len;
        let (class, first, payload_len) = (body.u32(at), body.u32(at + 4), body.u32(at + 12));
        let slots = (first..first + classes[&class].fields.len())
            .map(|s| {
                let at = slot_at + s * slot_len;
                let [place, stored, transform, base] = [0, 1, 2, 3].map(|n| body.data[at + n]);
                Slot { place, stored: stored.into(), transform, base: base.into(), offset: body.u32(at + 4) }
            })
            .collect();
        shapes.entry(first_shape + i).or_insert(Shape { class, slots, payload_len });
    }
}

fn events(
    body: Bytes<'_>,
    cpu: u32,
    classes: &BTreeMap<usize, Class>,
    shapes: &BTreeMap<usize, Shape>,
    file: &mut File,
) {
    let [
        flags,
        records,
        _descriptors,
        _contexts,
        epochs,
        epochs_at,
        descriptors_at,
        contexts_at,
        records_at,
        heap_at,
        heap_len,
    ] = [4, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76].map(|at| body.u32(at));
    let (t_base, first_event) = (body.number(16, 8), body.number(32, 8));
    let (stride, context_stride) = (body.number(80, 2) as usize, body.number(82, 2) as usize);
    let heap = body.from(heap_at, heap_len);
    let list = file.events.entry(cpu).or_default();
    assert_eq!(list.len() as u64, first_event);
    if flags != 0 {
        file.losses.push(Loss { cpu, at: first_event, flags: flags as u32, count: body.number(8, 8) });
    }
    for i in 0..records {
        let at = records_at + i * stride;
        let upper = (0..epochs)
            .map(|e| epochs_at + e * 8)
            .rfind(|&e| body.u32(e) <= i)
            .map(|e| body.number(e + 4, 4))
            .unwrap_or(0);
        let time = t_base.wrapping_add(upper << 32 | body.number(at, 4));
        let descriptor = body.u32(descriptors_at + body.number(at + 4, 2) as usize * 4);
        let shape = &shapes[&(body.number(descriptor, 2) as usize)];
        let context = contexts_at + body.number(at + 6, 2) as usize * context_stride;
        let value = body.number(at + 8, stride - 8);
        let class = &classes[&shape.class];
        let stored = |n: usize| {
            let slot = &shape.slots[n];
            match slot.place {
                0 => class.id,
                1 => body.number(context + slot.offset, slot.stored),
                2 => body.number(descriptor + 4 + slot.offset, slot.stored),
                3 => value >> (8 * slot.offset) & (u64::MAX >> (64 - 8 * slot.stored)),
                4 => {
                    assert!(shape.payload_len >= slot.offset + slot.stored);
                    heap.number(value as usize + slot.offset, slot.stored)
                }
                other => panic!("place {other}"),
            }
        };
        let timed =
            |n: usize| if shape.slots[n].transform == 1 { time.wrapping_sub(stored(n)) } else { stored(n) };
        let fields = class.fields.iter().enumerate().map(|(n, field)| {
            let slot = &shape.slots[n];
            let value = match (field.kind, slot.transform) {
                _ if field.kind > 4 || slot.place > 4 || slot.transform > 2 => Value::Opaque,
                (0, 0) => {
                    let shift = 64 - 8 * slot.stored;
                    let raw = stored(n) << shift;
                    Value::Number(if field.signed { (raw as i64 >> shift) as u64 } else { raw >> shift })
                }
                (0, 1 | 2) => {
                    let from = if slot.transform == 1 { time } else { timed(slot.base) };
                    let shift = 64 - 8 * field.size as u32;
                    let raw = from.wrapping_sub(stored(n)) << shift;
                    Value::Number(if field.signed { (raw as i64 >> shift) as u64 } else { raw >> shift })
                }
                _ => {
                    let at = stored(n) as usize;
                    let len = heap.u32(at);
                    Value::Bytes(heap.data[at + 4..at + 4 + len].to_vec())
                }
            };
            (field.name.clone(), value)
        });
        list.push(Event {
            cpu,
            time,
            system: class.system.clone(),
            name: class.name.clone(),
            fields: fields.collect(),
        });
    }
}

/// Undoes codec and filter.
fn decoded(header: Bytes<'_>, stored: &[u8], long: usize) -> Vec<u8> {
    let (codec, filter) = (header.data[13] & 15, header.data[13] >> 4);
    let (prefix, rest) = stored.split_at(header.u32(52));
    assert_eq!(header.u32(56) as u32, crc32(prefix));
    let mut body = prefix.to_vec();
    match codec {
        0 => body.extend(rest),
        1 => lz4(rest, &mut body),
        2 => zstd(rest, &mut body),
        other => panic!("codec {other}"),
    }
    assert_eq!(body.len() as u64, header.number(32, 8));
    if filter == 1 {
        let head = Bytes { data: prefix, big: header.big };
        let (count, start, stride) = (head.u32(40), head.u32(68), 8 + long);
        let planes = body[start..start + count * stride].to_vec();
        let mut time = 0u32;
        for i in 0..count {
            let record: Vec<u8> = (0..stride).map(|k| planes[k * count + i]).collect();
            time = time.wrapping_add(Bytes { data: &record, big: header.big }.number(0, 4) as u32);
            body[start + i * stride..start + (i + 1) * stride].copy_from_slice(&record);
            let bytes = if header.big { time.to_be_bytes() } else { time.to_le_bytes() };
            body[start + i * stride..start + i * stride + 4].copy_from_slice(&bytes);
        }
    }
    body
}

/// One block of <https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md>, behind what `out` holds.
fn lz4(input: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let mut at = 0;
    let long = |nibble: u8, at: &mut usize| {
        let mut len = usize::from(nibble);
        if nibble == 15 {
            loop {
                len += usize::from(input[*at]);
                *at += 1;
                if input[*at - 1] != 255 {
                    break;
                }
            }
        }
        len
    };
    while at < input.len() {
        let token = input[at];
        at += 1;
        let literals = long(token >> 4, &mut at);
        out.extend(&input[at..at + literals]);
        at += literals;
        if at == input.len() {
            break;
        }
        let offset = usize::from(input[at]) | usize::from(input[at + 1]) << 8;
        at += 2;
        let len = long(token & 15, &mut at) + 4;
        assert!(offset > 0 && offset <= out.len() - start);
        (0..len).for_each(|_| out.push(out[out.len() - offset]));
    }
}

/// A Zstandard frame of raw and RLE blocks: what the vectors hold.
fn zstd(input: &[u8], out: &mut Vec<u8>) {
    assert_eq!(input[..5], [0x28, 0xb5, 0x2f, 0xfd, 0xe0]);
    let mut at = 13;
    loop {
        let header = Bytes { data: input, big: false }.number(at, 3) as usize;
        at += 3;
        let len = header >> 3;
        match header >> 1 & 3 {
            0 => {
                out.extend(&input[at..at + len]);
                at += len;
            }
            1 => {
                out.extend(vec![input[at]; len]);
                at += 1;
            }
            other => panic!("block type {other}"),
        }
        if header & 1 == 1 {
            assert_eq!(at, input.len());
            return;
        }
    }
}

/// Sub-buffers as section RAWP tells how to walk them; fields as the class places them in the record.
fn sub_buffers(body: Bytes<'_>, cpu: u32, classes: &BTreeMap<usize, Class>, file: &mut File) {
    let [head_len, flags, count, len, number] = [0, 4, 40, 44, 48].map(|at| body.u32(at));
    let class_limit = body.u32(60);
    let [stamp_at, commit_at, commit_size, data_at] = [52, 54, 56, 58].map(|at| body.number(at, 2) as usize);
    let first_event = body.number(32, 8);
    if flags != 0 {
        file.losses.push(Loss { cpu, at: first_event, flags: flags as u32, count: body.number(8, 8) });
    }
    let long = file.long;
    let list = file.events.entry(cpu).or_default();
    assert_eq!(list.len() as u64, first_event);
    for i in 0..number {
        let sub_buffer = body.from(head_len + i * len, len);
        let mut time = sub_buffer.number(stamp_at, 8);
        let commit = sub_buffer.number(commit_at, commit_size);
        let committed = commit as usize & 0x7ff_ffff;
        assert!(i == 0 || commit >> 30 & 3 == 0, "a loss is told where a chunk starts");
        let data = sub_buffer.from(data_at, committed);
        let mut at = 0;
        while at + 4 <= committed {
            let word = data.u32(at);
            let (kind, delta) =
                if body.big { (word >> 27, word & 0x7ff_ffff) } else { (word & 31, word >> 5) };
            let delta = delta as u64;
            let second = || data.u32(at + 4);
            let long_delta = || delta + ((second() as u64) << 27);
            let record_at = match kind {
                0 => Some((at + 8, second() - 4)),
                1..=28 => Some((at + 4, kind * 4)),
                _ => None,
            };
            if let Some((start, size)) = record_at {
                time = time.wrapping_add(delta);
                list.push(record(data.from(start, size), cpu, time, (classes, class_limit), long));
                at = (start + size).next_multiple_of(4);
                continue;
            }
            match kind {
                29 if delta == 0 => break,
                29 => {
                    time = time.wrapping_add(if delta == 1 { 0 } else { delta });
                    at = (at + 4 + second()).next_multiple_of(4);
                }
                30 => {
                    time = time.wrapping_add(long_delta());
                    at += 8;
                }
                _ => {
                    let upper = time >> 59 << 59;
                    let stamp = long_delta() | upper;
                    let is_wrapped = if upper == 0 { time > stamp + (1 << 58) } else { time > stamp };
                    time = if is_wrapped { stamp.wrapping_add(1 << 59) } else { stamp };
                    at += 8;
                }
            }
        }
    }
    assert_eq!(list.len() as u64 - first_event, count as u64);
}

fn record(
    record: Bytes<'_>,
    cpu: u32,
    time: u64,
    (classes, class_limit): (&BTreeMap<usize, Class>, usize),
    long: usize,
) -> Event {
    let id = record.number(0, 2);
    let class = classes.range(..class_limit).rev().map(|(_, c)| c).find(|c| c.id == id).unwrap();
    let depth = class.fields.iter().find(|f| f.name == "size").map_or(0, |f| record.u32(f.offset));
    let fields = class.fields.iter().map(|f| {
        let value = match f.kind {
            0 => {
                let shift = 64 - 8 * f.size;
                let raw = record.number(f.offset, f.size) << shift;
                Value::Number(if f.signed { (raw as i64 >> shift) as u64 } else { raw >> shift })
            }
            1 if f.stack => Value::Bytes(record.data[f.offset..f.offset + depth * long].to_vec()),
            1 => {
                let bytes = &record.data[f.offset..f.offset + f.size];
                let len = if f.name == "comm" { bytes.iter().position(|&b| b == 0) } else { None };
                Value::Bytes(bytes[..len.unwrap_or(f.size)].to_vec())
            }
            4 => Value::Bytes(record.data[f.offset..].to_vec()),
            5.. => Value::Opaque,
            kind => {
                let locator = record.u32(f.offset);
                let origin = if kind == 3 { f.offset + 4 } else { 0 };
                let start = origin + (locator & 0xffff);
                Value::Bytes(record.data[start..start + (locator >> 16)].to_vec())
            }
        };
        (f.name.clone(), value)
    });
    let (system, name) = (class.system.clone(), class.name.clone());
    Event { cpu, time, system, name, fields: fields.collect() }
}
