//! The files: each asks for as much as it can of one thing.

use super::dimensions;
use crate::support::hostile::{Made, Schema, cache_frees, chunk, table};

const SITE: u64 = 0xffff_ffff_8100_0000;
const HEAP: u64 = 0xffff_8880_0000_0000;

/// A file.
pub struct File {
    /// Its name.
    pub name: &'static str,
    /// Makes it.
    pub make: fn() -> Vec<u8>,
    /// Allocations that it holds.
    pub allocations: u64,
    /// Call sites of allocations and frees in it, if they are many.
    pub sites: u64,
    /// Whether the program takes its time when it is not optimised.
    pub is_long: bool,
}

/// All of them.
pub fn all() -> Vec<File> {
    let file = |name, allocations, is_long, make| File { name, make, allocations, sites: 0, is_long };
    let sites = |name, number, make| File { sites: number, ..file(name, number, true, make) };
    vec![
        file("meta-values", 2000, false, meta_values),
        file("meta-pairs", 2000, false, meta_pairs),
        file("cpu-ranges", 2000, false, cpu_ranges),
        file("attachments", 2000, true, attachments),
        file("tasks", 2000, false, tasks),
        file("stats", 2000, false, stats),
        file("shared-fields", 2000, false, || shared_fields(0)),
        file("overlapping-fields", 2000, false, || shared_fields(1)),
        file("shared-formats", 2000, false, || shared_formats(0)),
        file("overlapping-formats", 2000, false, || shared_formats(1)),
        file("symbol-chunks", 80_000, true, symbol_chunks),
        file("symbols-at-one-address", 100_000, true, symbols_at_one_address),
        file("high-orders", 20_200, false, high_orders),
        file("overlapping-orders", 100_000, true, overlapping_orders),
        file("long-name", 2000, false, || long_name(false)),
        file("long-names", 2000, false, || long_name(true)),
        file("colliding", 16_000, false, colliding),
        sites("many-sites", 200_000, many_sites),
        file("many-tasks", 400_000, true, many_tasks),
        file("many-cpus", 16_000, true, many_cpus),
        file("deep-stacks", 200, false, deep_stacks),
        file("many-stacks", 200_000, true, many_stacks),
        file("chunks-of-nothing", 2000, true, chunks_of_nothing),
        file("slabinfo", 2000, true, slabinfo),
        sites("freeing-sites", 200_000, || dimensions::freeing_sites(200_000)),
        file("cache-names", 50_000, true, || dimensions::cache_names(50_000)),
        file("open-stalls", 1, true, || dimensions::open_stalls(200_000)),
        file("shrinkers", 1, true, || dimensions::shrinkers_of_a_function(50_000)),
        file("deep-graph", 1, true, || dimensions::deep_graph(200_000)),
        file("symbol-owners", 60_000, true, || dimensions::symbol_owners(60_000)),
        file("page-on-each-cpu", 32_000, true, || dimensions::page_on_each_cpu(16_000)),
        file("renames", 100_000, true, || dimensions::renames(100_000)),
        file("naming-classes", 20_000, true, || dimensions::naming_classes(4_000, 20_000)),
        file("snapshots", 50_000, true, || dimensions::snapshots(600, 50_000)),
        sites("sites-and-caches", 100_000, || dimensions::sites_and_caches(100_000)),
        file("shared-text", 1, false, || dimensions::shared_text(60_000)),
    ]
}

fn some_events() -> Made {
    let mut made = Made::default();
    for i in 0..1000 {
        made.kmalloc(0, 7, SITE + i % 10 * 16, HEAP + i * 64);
        made.pages(0, 7, 0x1000 + i, 0);
        if i % 2 == 0 {
            made.kfree(0, SITE, HEAP + i * 64);
            made.pages_free(0, 0x1000 + i, 0);
        }
    }
    made
}

/// 250 MiB in 10 KB, forty times.
fn meta_values() -> Vec<u8> {
    let mut body = Vec::new();
    let value = vec![b'x'; 250 << 20];
    body.extend(1u32.to_le_bytes());
    body.extend((value.len() as u32).to_le_bytes());
    body.extend(b"k");
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
    let one = chunk(b"META", None, &body, true);
    some_events().with(1, std::iter::repeat_n(one, 40))
}

/// One value of 80 MiB: more than a small file may hold by default.
pub fn one_large_value() -> Vec<u8> {
    let len = 80u32 << 20;
    let mut body = [1, len].iter().flat_map(|n: &u32| n.to_le_bytes()).collect::<Vec<u8>>();
    body.resize(12 + len as usize, b'x');
    some_events().with(1, [chunk(b"META", None, &body, true)])
}

/// Empty keys and values: eight bytes each, that cost nothing.
fn meta_pairs() -> Vec<u8> {
    let one = chunk(b"META", None, &vec![0; 200 << 20], true);
    some_events().with(1, std::iter::repeat_n(one, 40))
}

/// All CPUs of a node, thousands of times in 32 KB.
fn cpu_ranges() -> Vec<u8> {
    let mut made = some_events();
    let list = "0-65535,".repeat(4000);
    made.writer().add_metadata(&[("node0.cpus", list.as_bytes()), ("node1.cpus", b"1")]).unwrap();
    made.finish()
}

/// Attachments without contents, and large ones.
fn attachments() -> Vec<u8> {
    let mut large = (8u64 << 20).to_le_bytes().to_vec();
    large.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    large.extend([b'a', 0, 0, 0, 0, 0, 0, 0]);
    large.resize(24 + (8 << 20), b'\n');
    let large = chunk(b"FILE", None, &large, true);
    let small = chunk(b"FILE", None, &[[0u8; 16], *b"slabinfo\0\0\0\0\0\0\0\0"].concat(), false);
    let chunks = std::iter::repeat_n(large, 500).chain(std::iter::repeat_n(small, 80_000));
    some_events().with(1, chunks)
}

fn tasks() -> Vec<u8> {
    let rows = (0..4_000_000u32).map(|i| {
        let mut row = 0u64.to_le_bytes().to_vec();
        row.extend((i % 3_000_000).to_le_bytes());
        row.extend([0; 4]);
        row.extend(b"0123456789abcdef");
        row
    });
    some_events().with(1, [chunk(b"TASK", None, &table(32, rows), true)])
}

fn stats() -> Vec<u8> {
    let rows = (0..2_000_000u32).map(|i| {
        let mut row = i.to_le_bytes().to_vec();
        row.resize(104, 0);
        row
    });
    some_events().with(1, [chunk(b"STAT", None, &table(104, rows), true)])
}

/// As many classes as there can be, each with 256 fields: the same ones, or each one's a row further on.
fn shared_fields(step: u32) -> Vec<u8> {
    let heap = b"abcdefghijklmnopqrstuvwxyz".repeat(40);
    let fields = (0..256 + step * 65_000).map(|i| ((i % 900, 8), 8, if i % 256 == 4 { 5 } else { 0 }));
    let classes = (0..60_000).map(|i| (i as u16 + 100, (i % 6) as u16, 256, i * step, (0, 40)));
    let schema = Schema {
        first: (6, 18),
        classes: classes.collect(),
        fields: fields.collect(),
        shapes: (0..60_000).map(|i| (6 + i, 0)).collect(),
        slots: (0..256).map(|i| (2, 8, i * 8)).collect(),
        heap,
    };
    some_events().with(1, [chunk(b"SCHM", None, &schema.body(), true)])
}

/// Classes that share a format of 1 MB.
fn shared_formats(step: u32) -> Vec<u8> {
    let heap = b"name: abcdefghijklmnopqrstuvwxyz\n".repeat(32_768);
    let len = 1_000_000;
    let classes = (0..4_000).map(|i| (i as u16 + 100, 0, 1, 0, (i * step * 7, len)));
    let schema = Schema {
        first: (6, 18),
        classes: classes.collect(),
        fields: vec![((0, 4), 8, 0)],
        heap,
        ..Schema::default()
    };
    some_events().with(1, [chunk(b"SCHM", None, &schema.body(), true)])
}

fn symbols(rows: impl Iterator<Item = u64>) -> Vec<u8> {
    let rows: Vec<u64> = rows.collect();
    let (mut blocks, mut heap) = (Vec::new(), Vec::new());
    for block in rows.chunks(256) {
        blocks.extend(block[0].to_le_bytes());
        blocks.extend((heap.len() as u32).to_le_bytes());
        blocks.extend((block.len() as u32).to_le_bytes());
        // The first has a name, the others share it; all are at one address.
        heap.extend([b'T', 0, 16, 0, 4, b'n', b'a', b'm', b'e']);
        for _ in 1..block.len() {
            heap.extend([b'T', 0, 16, 4, 0]);
        }
    }
    let mut body = Vec::new();
    for number in [48u32, 0, rows.len() as u32, rows.len().div_ceil(256) as u32] {
        body.extend(number.to_le_bytes());
    }
    for number in [SITE, SITE + (1 << 24), 24 | 16 << 32, heap.len() as u64] {
        body.extend(number.to_le_bytes());
    }
    [body, blocks, heap].concat()
}

/// Chunks of one symbol each, and as many addresses to be looked up.
fn symbol_chunks() -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..80_000 {
        made.kmalloc(0, 7, SITE + i * 16, HEAP + i * 64);
    }
    made.with(1, (0..50_000).map(|i| chunk(b"KSYM", None, &symbols(std::iter::once(SITE + i * 32)), false)))
}

/// All symbols at one address.
fn symbols_at_one_address() -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..100_000 {
        made.kmalloc(0, 7, SITE + i * 16, HEAP + i * 64);
    }
    made.with(1, [chunk(b"KSYM", None, &symbols(std::iter::repeat_n(SITE, 500_000)), true)])
}

/// 20,000 allocations of 2^15 frames, and of as many as a number can say.
fn high_orders() -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..20_000 {
        made.pages(0, 7, i << 15, 15);
    }
    for i in 0..100 {
        made.pages(0, 7, 1 << 40 | i << 20, u32::MAX - i as u32);
        made.pages(0, 7, 1 << 41 | i << 31, 31);
        made.pages_free(0, 1 << 41 | i << 31, 31);
    }
    made.finish()
}

/// Each frees, and takes, half of what the one before took.
fn overlapping_orders() -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..100_000u64 {
        made.pages(0, 7, i * 0x9e37 % 400_000, 15);
        made.pages_free(0, i * 0x79b9 % 400_000, if i % 2 == 0 { 14 } else { 0 });
    }
    made.finish()
}

/// A name of 1 MB that all frees have, or each a part of.
fn long_name(distinct: bool) -> Vec<u8> {
    let mut made = Made::default();
    made.cache_free(0, SITE, HEAP, b"one");
    let words = (0..300_000u32).flat_map(|i| (1_000_000u32 - i % 50_000).to_le_bytes());
    let heap: Vec<u8> = words.collect();
    let body = cache_frees(0, (0..60_000).map(|i| if distinct { i % 50_000 * 4 } else { 0 }), &heap);
    made.with(1, [chunk(b"EVNT", Some((1, 0)), &body, true)])
}

/// Pages whose hashes by a known multiplication all end alike.
fn colliding() -> Vec<u8> {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut made = Made::default();
    let hash = |page: u64| {
        let product = u128::from(page) * u128::from(SPREAD);
        (product >> 64) as u64 ^ product as u64
    };
    // With its low 18 bits zero, only those of the upper half of the product are left; the distances between pages that
    // hash to 0 are three in all.
    let is_hit = |a: u64| hash(a << 18) & 0x3_ffff == 0;
    let first = (1..1u64 << 22).find(|&a| is_hit(a)).unwrap();
    let mut gaps: Vec<u64> = Vec::new();
    let mut last = first;
    for a in first + 1..first + (1 << 23) {
        if is_hit(a) {
            if !gaps.contains(&(a - last)) {
                gaps.push(a - last);
            }
            last = a;
        }
    }
    gaps.sort_unstable();
    let mut a = first;
    let page = |a: u64| (a << 30) & ((1 << 56) - 1);
    for i in 0..16_000 {
        made.kmalloc(0, 7, SITE, page(a));
        if i % 1000 == 0 {
            made.kfree(0, SITE, page(a));
        }
        a += gaps.iter().find(|&&gap| is_hit(a + gap)).copied().unwrap_or(1);
    }
    made.finish()
}

/// No two call sites alike.
fn many_sites() -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..200_000 {
        made.kmalloc(0, 7, SITE + i * 0x9e37 % (1 << 30), HEAP + i * 0x1_0008);
        if i % 3 == 0 {
            made.cache_free(0, SITE + i * 7, HEAP + i * 0x1_0008, format!("cache{i}").as_bytes());
        }
    }
    made.finish()
}

fn many_tasks() -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..200_000u64 {
        made.kmalloc(0, i as i32, SITE, HEAP + i * 64);
        made.pages(0, i as i32, i * 2, 1);
    }
    made.finish()
}

/// An event of each of 16,000 CPUs: readers take 16,384.
fn many_cpus() -> Vec<u8> {
    let mut made = Made::default();
    for cpu in 0..16_000 {
        made.kmalloc(cpu, 7, SITE, HEAP + u64::from(cpu) * 64);
    }
    made.finish()
}

/// Stacks as deep as they can be.
fn deep_stacks() -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..100u64 {
        made.kmalloc(0, 7, SITE, HEAP + i * 64);
        let stack: Vec<u64> = (0..8_000).map(|k| SITE + (i * 8_000 + k) % 65_000 * 16).collect();
        made.stack(0, 7, &stack);
        made.pages(0, 7, i, 0);
        made.stack(0, 7, &stack);
    }
    made.finish()
}

fn many_stacks() -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..100_000u64 {
        made.pages(0, i as i32, i, 0);
        if i > 0 {
            made.kmalloc(0, 7, SITE, HEAP + i * 64);
            made.stack(0, 7, &[SITE + i * 16, SITE + i * 32, SITE + i * 48]);
        }
    }
    made.finish()
}

/// Event chunks without events.
fn chunks_of_nothing() -> Vec<u8> {
    let body = cache_frees(0, std::iter::empty(), &[]);
    some_events().with(1, (0..60_000).map(|i| chunk(b"EVNT", Some((i % 1000 + 1, i / 1000)), &body, false)))
}

/// Snapshots with as many caches as fit.
fn slabinfo() -> Vec<u8> {
    let mut text = String::from("slabinfo - version: 2.1\n# name <active_objs> <num_objs> <objsize>\n");
    for i in 0..70_000 {
        text += &format!("c{i} 1 1 64 64 1 : tunables 0 0 0 : slabdata 1 1 0\n");
    }
    let mut made = some_events();
    for name in ["slabinfo.before", "slabinfo.after", "slabinfo.1", "slabinfo.2"] {
        made.writer().add_file(name, text.as_bytes()).unwrap();
    }
    made.finish()
}
