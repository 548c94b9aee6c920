//! A second reader, written from format-spec/spec.md alone: slow, obvious, sharing no code with the library.

use std::collections::BTreeMap;

use super::naive_codecs::decoded;
use super::naive_events::events;
use super::naive_folds::fold;
use super::naive_metadata;
use super::naive_raw::sub_buffers;

/// Kinds of chunks that the text describes.
pub const KNOWN: [&[u8]; 16] = [
    b"HDRC", b"SCHM", b"EVNT", b"RAWP", b"CLOK", b"META", b"FILE", b"KSYM", b"TASK", b"STAT", b"LINE",
    b"CGRP", b"SUMS", b"FOLD", b"INDX", b"TRLR",
];

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
    /// True if each field is signed.
    pub signed: Vec<bool>,
    /// Number of the class, and what it means.
    pub class: usize,
    pub meaning: u64,
    /// Flags and task of the common fields; 0 where the class has none.
    pub flags: u64,
    pub pid: u64,
}

/// Results of the numbering of a CPU's chunks.
#[derive(Debug, Default)]
pub struct Stream {
    pub chunks_missing: u64,
    pub events_missing: u64,
    /// Numbers of the events in the file before which some were lost or are missing.
    pub gaps: Vec<usize>,
    /// Sequences of chunks that are not verified.
    pub unverified: Vec<u64>,
    next_sequence: u64,
    next_event: u64,
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
    pub streams: BTreeMap<u32, Stream>,
    /// Decoded bodies of KSYM chunks.
    pub symbols: Vec<Vec<u8>>,
    /// Number of the first row of each LINE chunk.
    pub line_chunks: Vec<usize>,
    pub kinds: Vec<String>,
    pub minor: u64,
    pub uuid: Vec<u8>,
    /// Everything else, as the conformance vectors write it.
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

pub struct Field {
    pub name: String,
    pub kind: u8,
    pub signed: bool,
    pub offset: usize,
    pub size: usize,
    /// A fixed array of plain `char`.
    pub is_text: bool,
    pub role: u64,
}

pub struct Class {
    pub id: u64,
    pub meaning: u64,
    pub system: String,
    pub name: String,
    pub fields: Vec<Field>,
}

pub struct Slot {
    pub place: u8,
    pub stored: usize,
    pub transform: u8,
    pub base: usize,
    pub offset: usize,
}

pub struct Shape {
    pub class: usize,
    pub slots: Vec<Slot>,
    pub payload_len: usize,
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
    let is_folded = match all.u32(20) {
        0 => false,
        1 => true,
        _ => panic!("incompatible"),
    };
    assert_eq!(all.u32(header_len - 4) as u32, crc32(&data[..header_len - 4]));
    let mut file = File { big, long: data[30].into(), minor: all.number(14, 2), ..File::default() };
    file.uuid = data[40..56].to_vec();
    let salt = &data[40..44];
    let mut at = header_len;
    let mut classes: BTreeMap<usize, Class> = BTreeMap::new();
    let mut shapes: BTreeMap<usize, Shape> = BTreeMap::new();
    // Readers find classes and shapes behind the events that use them, too.
    let mut ahead = at;
    while ahead < data.len() {
        let header = all.from(ahead, 64);
        let (total, body_len) = (header.number(16, 8) as usize, header.number(24, 8) as usize);
        if &header.data[8..12] == b"SCHM" {
            let stored = decoded(header, &data[ahead + 64..ahead + 64 + body_len], file.long);
            schema(Bytes { data: &stored, big }, &mut classes, &mut shapes);
        }
        ahead += total.max(64);
    }
    while at < data.len() {
        let header = all.from(at, 64);
        assert_eq!(&header.data[..4], b"KMTC");
        assert_eq!(&header.data[4..8], salt);
        assert_eq!(header.u32(60) as u32, crc32(&header.data[..60]));
        let total = header.number(16, 8) as usize;
        let body_len = header.number(24, 8) as usize;
        assert_eq!(total % 64, 0);
        assert_eq!(header.u32(48) as u32, crc32(&data[at + 64..at + total]));
        let stored = &data[at + 64..at + 64 + body_len];
        // Of an unknown kind nothing but the checksum is looked at.
        let is_known = KNOWN.contains(&&header.data[8..12]);
        let stored = if is_known { decoded(header, stored, file.long) } else { stored.to_vec() };
        let body = Bytes { data: &stored, big };
        let kind = header.data[8..12].escape_ascii().to_string();
        if kind == "EVNT" || kind == "RAWP" {
            number(header, body, &mut file);
        }
        match kind.as_str() {
            "KSYM" => file.symbols.push(body.data.to_vec()),
            "LINE" => {
                let lines = file.metadata.get("lines").and_then(|l| l.as_array());
                file.line_chunks.push(lines.map_or(0, |l| l.len()));
            }
            _ => {}
        }
        match kind.as_str() {
            "SCHM" => {}
            "EVNT" => events(body, header.u32(40) as u32, &classes, &shapes, &mut file),
            "RAWP" => sub_buffers(body, header.u32(40) as u32, &classes, &mut file),
            "FOLD" => {
                assert!(is_folded && header.u32(52) >= 88);
                fold(body, &classes, &shapes, &mut file);
            }
            kind => naive_metadata::chunk(kind, body, &mut file.metadata),
        }
        file.kinds.push(kind);
        at += total;
    }
    file
}

/// Takes in the numbers of an event chunk, and its loss.
fn number(header: Bytes<'_>, body: Bytes<'_>, file: &mut File) {
    let (cpu, sequence) = (header.u32(40) as u32, header.number(44, 4));
    let (first_event, count) = (body.number(32, 8), body.number(40, 4));
    let stream = file.streams.entry(cpu).or_default();
    assert!(sequence >= stream.next_sequence);
    stream.chunks_missing += sequence - stream.next_sequence;
    let missing = first_event.saturating_sub(stream.next_event);
    stream.events_missing += missing;
    stream.next_sequence = sequence + 1;
    stream.next_event = stream.next_event.max(first_event).saturating_add(count);
    if header.data[12] & 8 != 0 {
        stream.unverified.push(sequence);
    }
    let (flags, lost) = (body.u32(4) as u32, body.number(8, 8));
    // Bit 0: counted, also where the count is 0.
    let is_loss = flags & !1 != 0 || flags & 1 != 0 && lost != 0;
    if is_loss || missing != 0 {
        stream.gaps.push(file.events.get(&cpu).map_or(0, Vec::len));
    }
    if is_loss {
        file.losses.push(Loss { cpu, at: first_event, flags, count: lost });
    }
}

pub fn schema(body: Bytes<'_>, classes: &mut BTreeMap<usize, Class>, shapes: &mut BTreeMap<usize, Shape>) {
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
        String::from_utf8_lossy(&heap.data[offset..offset + len]).into_owned()
    };
    for i in 0..class_count {
        let at = class_at + i * class_len;
        let count = body.number(at + 4, 2) as usize;
        let first = body.u32(at + 8);
        let common = body.number(at + 6, 2) as usize;
        let fields = (first..first + count)
            .map(|f| {
                let at = field_at + f * field_len;
                let (kind, signed) = (body.data[at + 24], body.data[at + 25] != 0);
                let (offset, size) = (body.u32(at + 16), body.u32(at + 20));
                assert!(offset + size <= 65_536, "a field is beyond the end of any event");
                assert!(f - first >= common || kind == 0 || kind > 4, "a common field is an array");
                let is_char = ["char", "const char"].contains(&text(at + 8).as_str());
                let is_text = kind == 1 && body.data[at + 26] == 1 && is_char;
                let role = body.number(at + 28, 2);
                Field { name: text(at), kind, signed, offset, size, is_text, role }
            })
            .collect();
        let (id, meaning) = (body.number(at, 2), body.number(at + 2, 2));
        let class = Class { id, meaning, system: text(at + 12), name: text(at + 20), fields };
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
