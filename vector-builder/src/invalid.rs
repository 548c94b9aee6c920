//! Vectors with one named defect each, and the error that it must give where.

use serde_json::json;

use crate::Vector;
use crate::bytes::{crc32, number, read};
use crate::cases::{self, Maker};
use crate::file::{File, build};
use crate::model::{Layout, Loss, Op};

/// What a reader must say.
enum Expect {
    /// The file is refused.
    Refused(&'static str, u64),
    /// Damage is listed when the file is opened: code and offset.
    Damage(Vec<(&'static str, u64)>),
    /// Nothing is damaged: only events are missing by the count of their numbers.
    Missing,
    /// An event chunk cannot be read: code and offset.
    Unreadable(&'static str, u64),
}

/// A sound file that is changed by hand: it gets a defect, or something that no reader knows.
pub(crate) struct Broken {
    pub file: File,
    big: bool,
}

impl Broken {
    pub fn new(ops: &[Op], layout: Layout) -> Self {
        Self { file: build(ops, layout), big: layout.big }
    }

    /// Where the `nth` chunk of a kind starts and ends.
    pub fn chunk(&self, kind: &[u8; 4], nth: usize) -> (usize, usize) {
        let chunk = self.file.chunks.iter().filter(|c| c.kind == *kind).nth(nth).expect("the chunk is there");
        (chunk.offset, chunk.end)
    }

    fn put(&mut self, at: usize, value: u64, len: usize) {
        let bytes = number(value, len, self.big);
        self.file.bytes[at..at + len].copy_from_slice(&bytes);
    }

    pub fn number(&self, at: usize, len: usize) -> u64 {
        read(&self.file.bytes, at, len, self.big)
    }

    /// Makes the checksums of a chunk right again.
    fn stamp(&mut self, offset: usize, end: usize) {
        let crc = crc32(&self.file.bytes[offset + 64..end]);
        self.put(offset + 48, crc.into(), 4);
        let prefix_len = self.number(offset + 52, 4) as usize;
        if offset + 64 + prefix_len <= end {
            let crc = crc32(&self.file.bytes[offset + 64..offset + 64 + prefix_len]);
            self.put(offset + 56, crc.into(), 4);
        }
        let crc = crc32(&self.file.bytes[offset..offset + 60]);
        self.put(offset + 60, crc.into(), 4);
    }

    /// A field of a chunk header; returns where the chunk starts.
    pub fn header(&mut self, kind: &[u8; 4], nth: usize, at: usize, value: u64, len: usize) -> u64 {
        let (offset, end) = self.chunk(kind, nth);
        self.put(offset + at, value, len);
        self.stamp(offset, end);
        offset as u64
    }

    /// A field of a body; returns where the body starts.
    pub fn body(&mut self, kind: &[u8; 4], nth: usize, at: usize, value: u64, len: usize) -> u64 {
        let (offset, end) = self.chunk(kind, nth);
        self.put(offset + 64 + at, value, len);
        self.stamp(offset, end);
        offset as u64 + 64
    }

    /// A field of the file header, and of its copy.
    pub fn file_header(&mut self, at: usize, value: u64, len: usize) {
        for start in [0, 128] {
            self.put(start + at, value, len);
            let crc = crc32(&self.file.bytes[start..start + 60]);
            self.put(start + 60, crc.into(), 4);
        }
        self.stamp(64, 192);
    }

    /// Offset, in the body of an event chunk, that its head gives at `at`.
    fn place(&self, nth: usize, at: usize) -> usize {
        let (offset, _) = self.chunk(b"EVNT", nth);
        self.number(offset + 64 + at, 4) as usize
    }
}

fn base_ops(m: Maker) -> Vec<Op> {
    let mut ops = cases::metadata(m);
    ops.extend(cases::two_cpus(m));
    ops.extend([Op::Event(4, m.arrays(5, "task", &[1])), Op::Event(4, m.exit(2_200, 3_000, 2_500))]);
    ops.push(Op::Lost(4, Loss { uncounted: true, ..Loss::default() }));
    ops
}

fn refused() -> Vec<(&'static str, Broken, Expect)> {
    let base = || Broken::new(&cases::two_cpus(Maker { big: false, long: 8 }), Layout::plain(false, 8));
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken), code, offset| {
        let mut broken = base();
        change(&mut broken);
        out.push((name, broken, Expect::Refused(code, offset)));
    };
    add("empty-file", &|b| b.file.bytes.clear(), "not-kmt", 0);
    add("no-magic", &|b| b.file.bytes[..192].fill(b'x'), "not-kmt", 0);
    add("text-mode", &|b| drop(b.file.bytes.splice(4..6, [b'\n'])), "magic-damaged", 0);
    add("seven-bit", &|b| drop(b.file.bytes.splice(..192, *b"\x09KMT\r\n\x1a\n")), "magic-damaged", 0);
    add("byte-order", &|b| drop(b.file.bytes.splice(8..192, [3, 4, 1, 2])), "byte-order-mark", 8);
    add("short-header", &|b| b.file.bytes.truncate(40), "truncated", 0);
    add(
        "header-checksum",
        &|b| {
            b.file.bytes[30] ^= 4;
            b.file.bytes[64..192].fill(0);
        },
        "checksum",
        0,
    );
    add("header-length", &|b| b.file_header(16, 100, 4), "malformed", 16);
    add("major-version", &|b| b.file_header(12, 2, 2), "major-version", 12);
    add("incompatible", &|b| b.file_header(20, 0x8000_0000, 4), "incompatible-features", 20);
    add("size-of-long", &|b| b.file_header(30, 2, 1), "malformed", 30);
    add("page-shift", &|b| b.file_header(34, 31, 1), "malformed", 34);
    add(
        "critical-kind",
        &|b| {
            b.header(b"SCHM", 0, 8, u64::from_le_bytes(*b"NEWK\x01\0\0\0") & 0xffff_ffff, 4);
        },
        "unknown-critical-chunk",
        192,
    );
    out
}

fn lengths_and_checksums(m: Maker, layout: Layout) -> Vec<(&'static str, Broken, Expect)> {
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken) -> Vec<(&'static str, u64)>| {
        let mut broken = Broken::new(&base_ops(m), layout);
        let damage = change(&mut broken);
        out.push((name, broken, Expect::Damage(damage)));
    };
    add("header-damaged", &|b| {
        b.file.bytes[41] ^= 1;
        vec![("checksum", 0)]
    });
    add("chunk-header", &|b| {
        let (offset, _) = b.chunk(b"META", 0);
        b.file.bytes[offset + 20] ^= 1;
        vec![("not-a-chunk", offset as u64)]
    });
    add("other-salt", &|b| {
        let (offset, _) = b.chunk(b"META", 0);
        b.put(offset + 4, 0, 4);
        b.stamp(offset, offset + 128);
        vec![("not-a-chunk", offset as u64)]
    });
    add("total-length", &|b| vec![("malformed", b.header(b"META", 0, 16, 130, 8))]);
    add("no-length", &|b| vec![("malformed", b.header(b"META", 0, 16, 0, 8))]);
    add("body-length", &|b| vec![("malformed", b.header(b"META", 0, 24, 1 << 40, 8))]);
    add("prefix-length", &|b| vec![("malformed", b.header(b"META", 0, 52, 1 << 30, 4))]);
    add("chunk-too-long", &|b| vec![("limit-exceeded", b.header(b"META", 0, 16, 1 << 31, 8))]);
    add("past-the-end", &|b| vec![("truncated", b.header(b"TRLR", 0, 16, 192, 8))]);
    add("body-checksum", &|b| {
        let (offset, _) = b.chunk(b"META", 0);
        b.file.bytes[offset + 70] ^= 1;
        vec![("checksum", offset as u64 + 64)]
    });
    add("padding-checksum", &|b| {
        let (offset, end) = b.chunk(b"CLOK", 0);
        b.file.bytes[end - 1] = 1;
        vec![("checksum", offset as u64 + 64)]
    });
    add("prefix-checksum", &|b| {
        let (offset, end) = b.chunk(b"EVNT", 0);
        b.stamp(offset, end);
        b.put(offset + 56, 0, 4);
        let crc = crc32(&b.file.bytes[offset..offset + 60]);
        b.put(offset + 60, crc.into(), 4);
        vec![("checksum", offset as u64 + 64)]
    });
    add("unknown-codec", &|b| vec![("unknown-codec", b.header(b"META", 0, 13, 7, 1) + 13)]);
    add("codec-garbage", &|b| {
        let offset = b.header(b"META", 0, 13, 1, 1);
        vec![("codec", offset + 64)]
    });
    add("two-lengths", &|b| vec![("malformed", b.header(b"META", 0, 32, 5, 8))]);
    add("decoded-too-long", &|b| {
        b.header(b"META", 0, 32, 1 << 30, 8);
        vec![("limit-exceeded", b.header(b"META", 0, 13, 1, 1))]
    });
    add("trailer-counts", &|b| {
        b.body(b"TRLR", 0, 4, 3, 4);
        vec![("malformed", b.file.bytes.len() as u64)]
    });
    add("twice", &|b| {
        let (offset, end) = b.chunk(b"EVNT", 0);
        let copy = b.file.bytes[offset..end].to_vec();
        b.file.bytes.splice(end..end, copy);
        vec![("malformed", end as u64)]
    });
    add("events-of-no-cpu", &|b| vec![("malformed", b.header(b"EVNT", 0, 40, 0xffff_ffff, 4))]);
    add("head-not-in-prefix", &|b| vec![("malformed", b.header(b"EVNT", 0, 52, 95, 4) + 64)]);
    out
}

fn metadata(m: Maker, layout: Layout) -> Vec<(&'static str, Broken, Expect)> {
    let mut out = Vec::new();
    let mut add = |name, kind: &[u8; 4], at, value, len, code, further| {
        let mut broken = Broken::new(&base_ops(m), layout);
        let offset = broken.body(kind, 0, at, value, len) + further;
        out.push((name, broken, Expect::Damage(vec![(code, offset)])));
    };
    add("clock-head", b"CLOK", 0, 11, 4, "malformed", 0);
    add("clock-name", b"CLOK", 8, 5, 4, "malformed", 0);
    add("clock-not-utf8", b"CLOK", 12, 0xff, 1, "malformed", 0);
    add("meta-head", b"META", 0, 11, 4, "malformed", 0);
    add("meta-pair-length", b"META", 4, 7, 4, "malformed", 0);
    add("meta-count", b"META", 8, 99, 4, "malformed", 0);
    add("meta-key", b"META", 12, 1 << 20, 4, "malformed", 0);
    add("meta-value", b"META", 16, 1 << 20, 4, "malformed", 0);
    add("file-head", b"FILE", 0, 39, 4, "malformed", 0);
    add("file-contents", b"FILE", 8, 1 << 20, 8, "malformed", 0);
    add("file-name", b"FILE", 40, 0xff, 1, "malformed", 0);
    add("task-row-length", b"TASK", 4, 31, 4, "malformed", 0);
    add("task-rows", b"TASK", 8, 9, 4, "truncated", 16);
    add("stat-rows", b"STAT", 8, 3, 4, "truncated", 16);
    // The head, two owners, a block; in the heap two names of owners, then symbols of 12, 15, 9, 12 bytes.
    let (owners, blocks, heap) = (48, 96, 112);
    add("symbol-count", b"KSYM", 8, 7, 4, "malformed", 0);
    add("symbol-block-length", b"KSYM", 36, 4, 4, "malformed", 0);
    add("symbol-owner-name", b"KSYM", owners + 16, 1 << 20, 4, "malformed", 0);
    add("symbol-block-outside", b"KSYM", blocks + 8, 1 << 20, 4, "malformed", 0);
    add("symbol-block-empty", b"KSYM", blocks + 12, 0, 2, "malformed", 0);
    add("symbol-name", b"KSYM", heap + 6 + 5, 127, 1, "malformed", 0);
    add("symbol-shared", b"KSYM", heap + 6 + 12 + 5, 7, 1, "malformed", 0);
    add("symbol-owner", b"KSYM", heap + 6 + 48 + 1, 3, 1, "malformed", 0);
    for (name, kind, at) in [
        ("line-function", b"LINE", 16 + 8),
        ("cgroup-path", b"CGRP", 16 + 24),
        ("sums-function", b"SUMS", 16 + 48),
    ] {
        let mut broken = Broken::new(&cases::added(m), layout);
        let offset = broken.body(kind, 0, at, 1 << 20, 4);
        out.push((name, broken, Expect::Damage(vec![("malformed", offset)])));
    }
    let mut ops = base_ops(m);
    ops.push(Op::Clock("local", false, false));
    let clocks = Broken::new(&ops, layout);
    let (second, _) = clocks.chunk(b"CLOK", 1);
    out.push(("two-clocks", clocks, Expect::Damage(vec![("malformed", second as u64 + 64)])));
    out
}

/// A schema whose first copy is damaged is healed by the second, so both get the defect.
fn schema(m: Maker, layout: Layout) -> Vec<(&'static str, Broken, Expect)> {
    let mut out = Vec::new();
    let plain = Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
    let (offset, _) = plain.chunk(b"SCHM", 0);
    let [classes, fields, shapes, slots] =
        [12, 16, 20, 24].map(|at| plain.number(offset + 64 + at, 4) as usize);
    let field_at = 40 + classes * 44;
    let shape_at = field_at + fields * 32;
    let slot_at = shape_at + shapes * 16;
    let heap_at = slot_at + slots * 8;
    let mut add = |name, at, value, len, code, further| {
        let mut broken = Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
        let first = broken.body(b"SCHM", 0, at, value, len) + further;
        let second = broken.body(b"SCHM", 1, at, value, len) + further;
        out.push((name, broken, Expect::Damage(vec![(code, first), (code, second)])));
    };
    add("schema-head", 0, 39, 4, "malformed", 0);
    add("schema-row-length", 32, 43, 2, "malformed", 0);
    add("schema-heap", 28, 1 << 20, 4, "truncated", heap_at as u64);
    add("schema-too-many-classes", 4, 65_520, 4, "limit-exceeded", 0);
    add("schema-string", 40 + 12, 1 << 20, 4, "malformed", 0);
    add("schema-print-fmt", 40 + 40, 1 << 20, 4, "malformed", 0);
    add("schema-class-fields", 40 + 8, 100, 4, "malformed", 0);
    add("schema-too-many-fields", 40 + 4, 257, 2, "limit-exceeded", 0);
    add("schema-common-fields", 40 + 6, 200, 2, "malformed", 0);
    add("schema-scalar-size", field_at + 20, 3, 4, "malformed", 0);
    add("schema-shape-class", shape_at, 9, 4, "malformed", 0);
    add("schema-shape-slots", shape_at + 4, 1_000, 4, "malformed", 0);
    add("schema-slot-stored", slot_at + 1, 3, 1, "malformed", 0);
    let from_field_99 = if layout.big { 2 << 8 | 99 } else { 2 | 99 << 8 };
    add("schema-slot-base", slot_at + 2, from_field_99, 2, "malformed", 0);
    add("schema-slot-too-wide", slot_at + 8 + 1, 8, 1, "malformed", 0);
    add("schema-slot-reach", slot_at + 8 * 4 + 4, 1_000, 4, "malformed", 0);
    out.extend(field_end(m, layout));
    let mut differs = Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
    let second = differs.body(b"SCHM", 1, 40, 99, 2);
    out.push(("schema-two-meanings", differs, Expect::Damage(vec![("malformed", second)])));
    out
}

/// A field that ends one byte behind the longest event: `common_type` has 2 bytes.
fn field_end(m: Maker, layout: Layout) -> Vec<(&'static str, Broken, Expect)> {
    let mut broken = Broken::new(&[Op::Event(0, m.kmalloc(1_000, 0x40, 100))], layout);
    let (offset, _) = broken.chunk(b"SCHM", 0);
    let field_at = 40 + broken.number(offset + 64 + 12, 4) as usize * 44;
    let damages = [0, 1].map(|nth| ("malformed", broken.body(b"SCHM", nth, field_at + 16, 65_535, 4)));
    vec![("schema-field-end", broken, Expect::Damage(damages.to_vec()))]
}

fn events(m: Maker, layout: Layout) -> Vec<(&'static str, Broken, Expect)> {
    let mut out = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Broken) -> u64, code| {
        let mut broken = Broken::new(&base_ops(m), layout);
        let offset = change(&mut broken);
        out.push((name, broken, Expect::Unreadable(code, offset)));
    };
    // The first event chunk: records of CPU 0; the second: of CPU 4, with arrays and a payload.
    let head = |at, value, len| move |b: &mut Broken| b.body(b"EVNT", 0, at, value, len);
    let second = 1;
    add(
        "events-body-checksum",
        &|b| {
            let (offset, end) = b.chunk(b"EVNT", 0);
            let crc = b.number(offset + 48, 4) ^ 1;
            b.stamp(offset, end);
            b.put(offset + 48, crc, 4);
            let crc = crc32(&b.file.bytes[offset..offset + 60]);
            b.put(offset + 60, crc.into(), 4);
            offset as u64 + 64
        },
        "checksum",
    );
    add("events-head", &head(0, 95, 4), "malformed");
    add("events-stride", &head(80, 24, 2), "malformed");
    add("events-too-many", &head(40, 0xffff_ffff, 4), "limit-exceeded");
    add("events-too-many-descriptors", &head(44, 65_521, 4), "limit-exceeded");
    add("events-records-outside", &|b| b.body(b"EVNT", 0, 68, 1 << 20, 4) + (1 << 20), "truncated");
    add("events-contexts-outside", &|b| b.body(b"EVNT", 0, 64, 1 << 20, 4) + (1 << 20), "truncated");
    add(
        "events-heap-outside",
        &|b| {
            let at = b.place(0, 72) as u64;
            b.body(b"EVNT", 0, 76, 1 << 20, 4) + at
        },
        "truncated",
    );
    add("events-descriptors-outside", &|b| b.body(b"EVNT", 0, 60, 1 << 20, 4) + (1 << 20), "truncated");
    add("events-descriptor-offset", &|b| b.body(b"EVNT", 0, b.place(0, 60), 1 << 20, 4), "malformed");
    add(
        "events-unknown-shape",
        &|b| {
            let (offset, _) = b.chunk(b"EVNT", 0);
            let at = b.number(offset + 64 + b.place(0, 60), 4) as usize;
            b.body(b"EVNT", 0, at, 999, 2)
        },
        "malformed",
    );
    add(
        "events-short-descriptor",
        &|b| {
            let (offset, _) = b.chunk(b"EVNT", 0);
            let at = b.number(offset + 64 + b.place(0, 60), 4) as usize;
            b.body(b"EVNT", 0, at + 2, 3, 2)
        },
        "malformed",
    );
    add("events-context-stride", &head(82, 4, 2), "malformed");
    add("events-no-context", &|b| b.body(b"EVNT", 0, b.place(0, 68) + 6, 99, 2), "malformed");
    add("events-no-descriptor", &|b| b.body(b"EVNT", 0, b.place(0, 68) + 4, 99, 2), "malformed");
    add("events-first-time", &|b| b.body(b"EVNT", 0, b.place(0, 68), 1, 4), "malformed");
    add(
        "events-times-fall",
        &|b| {
            let stride = 8 + m.long;
            b.body(b"EVNT", 0, b.place(0, 68) + stride, 0xffff, 4)
        },
        "malformed",
    );
    add("events-class-untold", &head(88, 0, 8), "malformed");
    add("events-last-time", &head(24, 7, 8), "malformed");
    add(
        "events-array-outside",
        &|b| {
            let (offset, _) = b.chunk(b"EVNT", second);
            let at = b.number(offset + 64 + b.place(second, 60), 4) as usize;
            b.body(b"EVNT", second, at + 4, 1 << 20, 4)
        },
        "malformed",
    );
    if m.long == 8 {
        add(
            "events-payload-outside",
            &|b| {
                let at = b.place(second, 68) + 8 + m.long;
                b.body(b"EVNT", second, at + 8, 1 << 20, 8)
            },
            "malformed",
        );
    }
    out
}

/// Length of a SubBuffersHead.
const RAW_HEAD: usize = 72;

fn others(m: Maker, layout: Layout) -> Vec<(&'static str, Broken, Expect)> {
    let mut out = Vec::new();
    let epochs = Broken::new(&cases::times(m), layout);
    let mut broken = epochs;
    let at = broken.place(0, 56);
    let offset = broken.body(b"EVNT", 0, at + 4, 7, 4);
    out.push(("events-epochs-fall", broken, Expect::Unreadable("malformed", offset)));
    let mut raw = |name, change: &dyn Fn(&mut Broken) -> u64, code| {
        let mut broken = Broken::new(&cases::sub_buffers(m), layout);
        let offset = change(&mut broken);
        out.push((name, broken, Expect::Unreadable(code, offset)));
    };
    raw("raw-layout", &|b| b.body(b"RAWP", 0, 56, 5, 2), "malformed");
    raw("raw-count", &|b| b.body(b"RAWP", 0, 48, 9, 4), "malformed");
    raw("raw-events", &|b| b.body(b"RAWP", 0, 40, 4, 4), "malformed");
    raw(
        "raw-commit",
        &|b| b.body(b"RAWP", 0, RAW_HEAD + 8, 2_000, m.long) + RAW_HEAD as u64 + 8,
        "sub-buffer",
    );
    raw(
        "raw-event-header",
        &|b| {
            // An event of 112 bytes where 20 were committed.
            let data = RAW_HEAD + 8 + m.long;
            b.body(b"RAWP", 0, data, if layout.big { 28 << 27 } else { 28 }, 4);
            b.body(b"RAWP", 0, RAW_HEAD + 8, 20, m.long) + data as u64
        },
        "sub-buffer",
    );
    raw("raw-loss-untold", &|b| b.body(b"RAWP", 1, 4, 0, 4) + RAW_HEAD as u64 + 8, "malformed");
    raw(
        "raw-loss-inside",
        &|b| {
            let at = RAW_HEAD + 1024 + 8;
            let (offset, _) = b.chunk(b"RAWP", 0);
            let commit = b.number(offset + 64 + at, m.long);
            b.body(b"RAWP", 0, at, commit | 1 << 31, m.long) + at as u64
        },
        "malformed",
    );
    raw(
        "raw-unknown-event",
        &|b| {
            let data = RAW_HEAD + 8 + m.long;
            b.body(b"RAWP", 0, data + 4, 999, 2) + data as u64
        },
        "unknown-event-id",
    );
    raw("raw-classes-missing", &|b| b.body(b"RAWP", 0, 60, 99, 4), "malformed");
    raw(
        "raw-class-limit",
        &|b| {
            let data = RAW_HEAD + 8 + m.long;
            b.body(b"RAWP", 0, 60, 0, 4) + data as u64
        },
        "unknown-event-id",
    );
    raw("raw-classes-untold", &|b| b.body(b"RAWP", 0, 64, 0, 8), "malformed");
    // Found by fuzzing: event numbers at the end of what 64 bits hold.
    for (name, kind) in [("events-event-number", b"EVNT"), ("raw-event-number", b"RAWP")] {
        let mut broken = Broken::new(&cases::sub_buffers(m), layout);
        broken.body(kind, 0, 32, u64::MAX, 8);
        out.push((name, broken, Expect::Missing));
    }
    let mut filtered = Broken::new(&cases::many(m), Layout { codec: 1, ..layout });
    let offset = filtered.body(b"EVNT", 0, 40, 1 << 20, 4);
    out.push(("filter-outside", filtered, Expect::Unreadable("malformed", offset)));
    let mut filtered = Broken::new(&cases::many(m), Layout { codec: 1, ..layout });
    let offset = filtered.header(b"EVNT", 0, 13, 0x21, 1) + 13;
    out.push(("unknown-filter", filtered, Expect::Unreadable("unknown-codec", offset)));
    let mut plain = Broken::new(&cases::many(m), layout);
    let offset = plain.header(b"EVNT", 0, 13, 0x10, 1) + 13;
    out.push(("filter-without-codec", plain, Expect::Unreadable("unknown-codec", offset)));
    let mut short = Broken::new(&cases::many(m), Layout { codec: 1, ..layout });
    let (start, _) = short.chunk(b"EVNT", 0);
    let raw_len = short.number(start + 32, 8);
    let offset = short.header(b"EVNT", 0, 32, raw_len + 1, 8) + 64;
    out.push(("decoded-length", short, Expect::Unreadable("codec", offset)));
    out
}

/// All of them: refused files once, the others in both byte orders and word sizes; where a field may end, in all four.
pub fn vectors() -> Vec<Vector> {
    let mut out: Vec<Vector> =
        refused().into_iter().map(|(name, b, e)| vector(name, "le64", &b, &e)).collect();
    for (suffix, big, long) in [("le64", false, 8), ("be32", true, 4)] {
        let (m, layout) = (Maker { big, long }, Layout::plain(big, long));
        let groups = [lengths_and_checksums, metadata, schema, events, others];
        for (name, broken, expect) in groups.into_iter().flat_map(|group| group(m, layout)) {
            out.push(vector(name, suffix, &broken, &expect));
        }
    }
    for (suffix, big, long) in [("le32", false, 4), ("be64", true, 8)] {
        let (m, layout) = (Maker { big, long }, Layout::plain(big, long));
        let found = field_end(m, layout).into_iter();
        out.extend(found.map(|(name, broken, expect)| vector(name, suffix, &broken, &expect)));
    }
    out
}

fn vector(name: &str, suffix: &str, broken: &Broken, expect: &Expect) -> Vector {
    let list = |damages: &[(&str, u64)]| -> Vec<serde_json::Value> {
        damages.iter().map(|(code, offset)| json!({"code": code, "offset": offset})).collect()
    };
    let json = match expect {
        Expect::Refused(code, offset) => json!({"error": {"code": code, "offset": offset}}),
        Expect::Damage(damages) => json!({"damages": list(damages)}),
        Expect::Missing => json!({"damages": [], "unreadable": []}),
        Expect::Unreadable(code, offset) => json!({"damages": [], "unreadable": list(&[(code, *offset)])}),
    };
    let name = format!("invalid-{name}-{suffix}");
    Vector { name, bytes: broken.file.bytes.clone(), json: format!("{json}\n"), script: None }
}
