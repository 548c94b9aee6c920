//! Contents of the vectors: the calls of a writer by name, and the layouts of each.

use crate::classes::{KMALLOC, PAGE_ALLOC};
use crate::model::{End, How, Layout, Loss, Op};

pub mod folded;
mod maker;

pub use maker::{Maker, plain};

/// Two CPUs whose events interleave, some at the same time.
pub fn two_cpus(m: Maker) -> Vec<Op> {
    vec![
        Op::Event(1, m.kmalloc(1_000, 0x40, 100)),
        Op::Event(0, m.kmalloc(1_000, 0x80, 100)),
        Op::Event(0, m.free(1_005, 0x80, "dentry")),
        Op::Event(1, m.of(7, m.kmalloc(1_010, 0xc0, 9))),
        Op::Event(0, m.kmalloc(1_020, 0x80, 100)),
        Op::Flush(0),
        Op::Event(0, m.page(1_030, 0x1234, 2)),
        Op::Event(1, m.free(1_030, 0x40, "dentry")),
        Op::Event(0, m.free(1_040, 0x80, "inode_cache")),
        Op::Event(5, m.page(1_025, 0x77, 0)),
    ]
}

/// Losses of every kind and at every place.
pub fn losses(m: Maker) -> Vec<Op> {
    let counted = Loss { counted: 5, ..Loss::default() };
    let uncounted = Loss { uncounted: true, ..Loss::default() };
    let damaged = Loss { damaged: true, ..Loss::default() };
    vec![
        Op::Lost(0, counted),
        Op::Event(0, m.kmalloc(10, 0x40, 8)),
        Op::Lost(0, uncounted),
        Op::Event(0, m.kmalloc(20, 0x50, 8)),
        Op::Lost(0, counted),
        Op::Lost(0, uncounted),
        Op::Event(0, m.kmalloc(30, 0x60, 8)),
        Op::Lost(0, damaged),
        Op::Event(0, m.kmalloc(40, 0x70, 8)),
        Op::Event(2, m.kmalloc(15, 0x80, 8)),
        Op::Lost(2, counted),
    ]
}

/// Long pauses, a clock that steps back, the ends of the number range.
pub fn times(m: Maker) -> Vec<Op> {
    vec![
        Op::Event(0, m.kmalloc(5, 0x40, 8)),
        Op::Event(0, m.kmalloc(5, 0x50, 8)),
        Op::Event(0, m.kmalloc(5 + (1 << 32), 0x60, 8)),
        Op::Event(0, m.kmalloc(6 + (3 << 32), 0x70, 8)),
        Op::Event(0, m.kmalloc(100, 0x80, 8)),
        Op::Event(0, m.kmalloc(u64::MAX - 1, 0x90, 8)),
        Op::Event(1, m.empty(0)),
        Op::Event(1, m.empty(u64::MAX)),
    ]
}

/// Arrays of every kind, and stacks that repeat.
pub fn arrays(m: Maker) -> Vec<Op> {
    vec![
        Op::Event(0, m.arrays(1, "a task", &[1, 2, 3])),
        Op::Event(0, m.arrays(2, "sixteen letters!", &[])),
        Op::Event(0, m.arrays(3, "", &[1, 2, 3])),
        Op::Event(0, m.stack(4, 2)),
        Op::Event(0, m.stack(5, 12)),
        Op::Event(0, m.stack(6, 2)),
        Op::Event(0, m.tail(7, b"four")),
        Op::Event(0, m.tail(8, b"and eigh")),
        Op::Event(0, m.free(9, 0x40, "")),
    ]
}

/// Numbers that need their full width, times of functions, and one whose times do not fit.
pub fn wide(m: Maker) -> Vec<Op> {
    let top = if m.long == 8 { u64::MAX } else { u64::from(u32::MAX) };
    vec![
        Op::Event(0, m.kmalloc(1_000, 0x40, 100)),
        Op::Event(0, plain(1_001, &KMALLOC, &[top, top, top, top, top, 1 << 31 | u64::MAX << 32])),
        Op::Event(0, m.exit(2_000, 1_200, 1_900)),
        Op::Event(0, m.exit(2_100, 1_300, 2_000)),
        Op::Event(0, m.exit(2_200, 3_000, 2_500)),
        Op::Event(0, plain(2_300, &PAGE_ALLOC, &[top, 0, 0, u64::MAX])),
    ]
}

/// Every chunk without events, and kinds that nobody knows.
pub fn metadata(m: Maker) -> Vec<Op> {
    let base = m.address(0);
    let stats = |n: u64| std::array::from_fn(|i| (i < 8).then_some(n + i as u64));
    let mut writer = [None; 11];
    for (i, n) in [(0, 3), (3, 900), (8, 2), (9, 0), (10, 1)] {
        writer[i] = Some(n);
    }
    vec![
        Op::Clock("mono", false, true),
        Op::Meta(vec![("writer", b"by hand"), ("uname", b"Linux target 6.1.0"), ("odd", b"\x00\xff")]),
        Op::Meta(vec![("", b"")]),
        Op::File("slabinfo", b"slabinfo - version: 2.1\n", Some((900, 905))),
        Op::File("empty", b"", None),
        Op::Tasks(vec![(0, 42, 41, "a task"), (900, -7, 0, "sixteen letters!"), (0, 1, 1, "")]),
        Op::Stats(vec![(0, 0, stats(100)), (1, 0, stats(200))]),
        Op::Stats(vec![(0, 1, stats(300))]),
        Op::Stats(vec![(0, 2, writer)]),
        Op::Symbols(
            vec![("nfs", base + 0x9000, 0x1000), ("bpf", 0, 0)],
            vec![
                (base, 0x100, b'T', 0, "_stext"),
                (base + 0x100, 0x700, b't', 0, "allocate"),
                (base + 0x100, 0x700, b't', 0, "alias"),
                (base + 0x800, 0, b'T', 0, "_etext"),
                (base + 0x9000, 0x40, b't', 1, "nfs_open"),
                (base + 0xa000, 0, b't', 2, "prog"),
            ],
            (base, base + 0x800),
        ),
        Op::Event(0, m.kmalloc(1_000, 0x40, 100)),
    ]
}

/// Tables that programs add from other sources than the ring buffer.
pub fn added(m: Maker) -> Vec<Op> {
    let site = m.address(0x100);
    let keys: Vec<(&str, &[u8])> = vec![
        ("boot_id", b"11111111-2222-3333-4444-555555555555"),
        ("build_id", b"5f1d7a84db00d2fce00b31a7fc73224f5ece9f35"),
        ("build_id/nfs", b"0123456789abcdef0123456789abcdef01234567"),
        ("kernel.text", b"0xffffffff81000000"),
        ("module_base/nfs", b"0xffffffffc0400000"),
        ("clock.reason", b"mono: comparable between CPUs"),
        ("sampling", b"kmem:kmalloc ptr 0x1c0 0x40\n"),
        ("record.command_status", b"3"),
        ("recorder.cpu_ns", b"12000000"),
    ];
    let overwritten = Loss { counted: 700, overwritten: true, ..Loss::default() };
    vec![
        Op::Meta(keys),
        Op::Lines(vec![
            (site, "kmalloc_array", "include/linux/slab.h", 640, 0),
            (site, "pipe_alloc", "fs/pipe.c", 807, 1),
            (m.address(0x200), "kmem_free", "", 0, 0),
        ]),
        Op::Cgroups(vec![
            (0, 17, 42, 0, "/system.slice/a.service"),
            (1_005, 0, -7, 4, "/"),
            (1_010, 18, 42, 0, "/user.slice"),
        ]),
        Op::Sums(vec![
            ([0, 5_000], site, "", 1, [Some(12), Some(1_200), Some(1_536)]),
            ([5_000, 9_000], 0, "pipe_alloc", 1, [Some(3), None, None]),
        ]),
        Op::File("allocinfo", b"allocinfo - version: 1.0\n", Some((10, 12))),
        Op::File("allocinfo", b"allocinfo - version: 1.0\n 4096 1 fs/pipe.c:807\n", Some((4_000, 4_002))),
        Op::Lost(0, overwritten),
        Op::Event(0, m.kmalloc(1_000, 0x40, 100)),
    ]
}

/// The same event ids in two parts of a file, with classes of their own.
pub fn ids_again(m: Maker) -> Vec<Op> {
    vec![
        Op::SubBuffer(0, vec![m.kmalloc(100, 0x40, 8), m.page(110, 3, 0)], Loss::default()),
        Op::Append,
        Op::SubBuffer(0, vec![m.free(200, 0x40, "dentry"), m.kmalloc(210, 0x80, 9)], Loss::default()),
        Op::Event(1, m.kmalloc(220, 0xc0, 10)),
    ]
}

/// Symbols in three chunks: the kernel's in two, one of them in both, and a module that was loaded later.
pub fn symbols_in_parts(m: Maker) -> Vec<Op> {
    let base: u64 = if m.long == 8 { 0xffff_ffff_8100_0000 } else { 0xc010_0000 };
    vec![
        Op::Symbols(
            vec![],
            vec![(base, 0x100, b'T', 0, "_stext"), (base + 0x100, 0x100, b't', 0, "allocate")],
            (base, 0),
        ),
        Op::Symbols(
            vec![],
            vec![(base + 0x100, 0x100, b't', 0, "alias"), (base + 0x200, 0, b'T', 0, "_etext")],
            (0, base + 0x200),
        ),
        Op::Event(0, m.kmalloc(1_000, 0x40, 100)),
        Op::Symbols(
            vec![("nfs", base + 0x9000, 0x1000)],
            vec![(base + 0x9000, 0x40, b't', 1, "nfs_open")],
            (0, 0),
        ),
    ]
}

/// Kinds that nobody knows, between all others.
pub fn unknown(m: Maker) -> Vec<Op> {
    let mut ops = two_cpus(m);
    ops.insert(0, Op::Unknown(*b"xNEW", 0, b"of a later version"));
    ops.insert(5, Op::Unknown(*b"cNEW", 2, b""));
    ops.push(Op::Unknown(*b"KMTC", 2, b"KMTCKMT KMTC a body that looks like chunks"));
    ops
}

/// Sub-buffers as the kernel wrote them, among others.
pub fn sub_buffers(m: Maker) -> Vec<Op> {
    let first = vec![m.kmalloc(100, 0x40, 8), m.free(101, 0x40, "dentry"), m.stack(1 << 30, 20)];
    let second = vec![m.of(7, m.kmalloc(2 << 30, 0x40, 8)), m.arrays(3 << 30, "task", &[9])];
    let counted = Loss { counted: 9, ..Loss::default() };
    let uncounted = Loss { uncounted: true, ..Loss::default() };
    vec![
        Op::SubBuffer(0, first, Loss::default()),
        Op::SubBuffer(0, second, Loss::default()),
        Op::SubBuffer(0, vec![m.page(4 << 30, 3, 0)], counted),
        Op::Event(0, m.page(5 << 30, 4, 0)),
        Op::SubBuffer(0, vec![m.page(50, 5, 0)], Loss::default()),
        Op::SubBuffer(1, vec![m.exit(2_000, 1_200, 1_900), m.exit(9_000_000_000, 5, 6)], uncounted),
    ]
}

/// Contents of a kernel's sub-buffers except plain events: discarded ones, fillers, absolute times, loss bits in every combination.
pub fn walks(m: Maker) -> Vec<Op> {
    let events = |start: u64| {
        let stack = m.stack(start + 90, 12);
        vec![m.kmalloc(start, 0x40, 8), m.free(start + 40, 0x40, "dentry"), m.page(start + 41, 3, 0), stack]
    };
    let counted = Loss { counted: 9, ..Loss::default() };
    let uncounted = Loss { uncounted: true, ..Loss::default() };
    let plain = How::default();
    let discards = How { discards: true, ..plain };
    let absolute = How { absolute: true, ..plain };
    vec![
        Op::SubBufferWith(0, events(1_000), Loss::default(), discards),
        Op::SubBufferWith(0, events(2_000), Loss::default(), How { end: End::Void, ..discards }),
        Op::SubBufferWith(0, events(3_000), Loss::default(), How { end: End::Filler, ..discards }),
        // The upper five bits of an absolute time come from the one before.
        Op::SubBufferWith(1, events((5 << 59) + 7), Loss::default(), absolute),
        Op::SubBufferWith(1, events((5 << 59) + 200), Loss::default(), How { discards: true, ..absolute }),
        Op::SubBufferWith(1, vec![m.empty((6 << 59) - 1), m.empty((6 << 59) + 3)], Loss::default(), absolute),
        Op::SubBufferWith(2, events(10), counted, How { end: End::Void, ..plain }),
        Op::SubBufferWith(2, events(200), uncounted, How { end: End::Filler, ..plain }),
        Op::SubBufferWith(2, events(400), uncounted, How { stored_alone: true, ..plain }),
    ]
}

/// A file that was gone on with.
pub fn appended(m: Maker) -> Vec<Op> {
    let mut ops = two_cpus(m);
    ops.push(Op::Append);
    ops.push(Op::Meta(vec![("later", b"yes")]));
    ops.extend([Op::Event(0, m.kmalloc(2_000, 0x40, 100)), Op::Event(9, m.page(2_001, 1, 0))]);
    ops
}

/// Many events, so that codecs have something to do.
pub fn many(m: Maker) -> Vec<Op> {
    let event = |i: u64| match i % 3 {
        0 => m.kmalloc(10_000 + i * 77, 0x40 * i, 64),
        1 => m.free(10_000 + i * 77, 0x40 * (i - 1), "dentry"),
        _ => m.page(10_000 + i * 77, 0x1000 + i, 0),
    };
    (0..40).map(|i| Op::Event(0, event(i))).collect()
}

/// The cases by name.
pub fn all(m: Maker) -> Vec<(&'static str, Vec<Op>)> {
    vec![
        ("empty", Vec::new()),
        ("one", vec![Op::Event(3, m.kmalloc(1_000, 0x40, 100))]),
        ("two-cpus", two_cpus(m)),
        ("losses", losses(m)),
        ("times", times(m)),
        ("arrays", arrays(m)),
        ("wide", wide(m)),
        ("metadata", metadata(m)),
        ("added", added(m)),
        ("ids-again", ids_again(m)),
        ("symbols-in-parts", symbols_in_parts(m)),
        ("unknown", unknown(m)),
        ("sub-buffers", sub_buffers(m)),
        ("walks", walks(m)),
        ("appended", appended(m)),
        ("many", many(m)),
        ("folded", folded::intervals(m)),
        ("folded-gap", folded::gap(m)),
        ("folded-most", folded::most(m)),
    ]
}

/// The layouts in which a case is built, by name.
pub fn layouts(case: &str) -> Vec<(String, Layout)> {
    let mut out = Vec::new();
    for (big, long) in [(false, 8), (true, 8), (false, 4), (true, 4)] {
        let name = format!("{}{}", if big { "be" } else { "le" }, long * 8);
        let plain = Layout::plain(big, long);
        out.push((name.clone(), plain));
        if ["many", "metadata", "added", "sub-buffers", "appended", "times", "folded"].contains(&case) {
            out.push((format!("{name}-lz4"), Layout { codec: 1, ..plain }));
            out.push((format!("{name}-zstd"), Layout { codec: 2, ..plain }));
        }
        out.push((format!("{name}-padded"), Layout { padded: true, ..plain }));
        if ["two-cpus", "metadata", "empty", "folded"].contains(&case) {
            out.push((format!("{name}-unfinished"), Layout { trailer: false, index: false, ..plain }));
        }
        if ["two-cpus", "times", "arrays", "wide"].contains(&case) {
            out.push((format!("{name}-records-first"), Layout { records_first: true, ..plain }));
        }
        if case == "sub-buffers" {
            out.push((format!("{name}-4k-lz4"), Layout { codec: 1, sub_buffer_len: 4096, ..plain }));
            out.push((format!("{name}-64k-zstd"), Layout { codec: 2, sub_buffer_len: 65_536, ..plain }));
        }
        if case == "many" {
            out.push((format!("{name}-no-index"), Layout { index: false, ..plain }));
            out.push((format!("{name}-lz4-padded"), Layout { codec: 1, padded: true, ..plain }));
            out.push((format!("{name}-zstd-first"), Layout { codec: 2, records_first: true, ..plain }));
        }
    }
    out
}
