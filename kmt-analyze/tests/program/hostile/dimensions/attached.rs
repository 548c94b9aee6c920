//! Files of the kernel that are attached: many lines, many words in a line, and long words.

use super::{HEAP, LONG, SITE, bytes};
use crate::support::hostile::Made;

/// A cache with many values and names: links to it, each of which events name.
pub fn slab_sysfs(count: u64) -> Vec<u8> {
    let values: String = (0..count).map(|i| format!(" v{i}={i}")).collect();
    let links: String = (0..count).map(|i| format!("c{i} -> one\n")).collect();
    let info: String =
        (0..count).map(|i| format!("c{i} 1 1 64 64 1 : tunables 0 0 0 : slabdata 1 1 0\n")).collect();
    let mut made = some();
    let fields = ["call_site", "ptr", "bytes_req", "bytes_alloc", "gfp_flags"].map(|name| (LONG, name, 8));
    made.class("kmem", "kmem_cache_alloc", 20, &fields, "\"%lx\", REC->ptr");
    for i in 0..count {
        made.event(0, 20, 7, &bytes(&[SITE + i * 16, HEAP + i * 64, 60, 64, 0xcc0]));
        made.cache_free(0, SITE, HEAP + i * 64, format!("c{i}").as_bytes());
    }
    with(made, &[("slab_sysfs", format!("one{values}\n{links}")), ("slabinfo", info)])
}

/// Migrate types of many names, and numbers of their blocks.
pub fn types_of_pages(count: u64) -> Vec<u8> {
    let lines: String = (0..count).map(|i| format!("Node 0, zone DMA, type T{i} 1 2 3\n")).collect();
    let names: String = (0..count).map(|i| format!(" T{i}")).collect();
    let numbers: String = (0..count).map(|i| format!(" {i}")).collect();
    with(
        some(),
        &[("pagetypeinfo", format!("{lines}\nNumber of blocks type{names}\nNode 0, zone DMA{numbers}\n"))],
    )
}

/// A migrate type with a long name, and zones with blocks of it.
pub fn long_type_of_pages(count: u64) -> Vec<u8> {
    let name = "T".repeat(count as usize * 10);
    let zones: String = (0..count).map(|i| format!("Node {i}, zone DMA 7\n")).collect();
    let all = [0, 1].map(|_| format!("Node 0, zone DMA, type {name}\n")).concat();
    with(some(), &[("pagetypeinfo", format!("{all}\nNumber of blocks type {name}\n{zones}"))])
}

/// A line of that number, with or without more.
type LineOf = fn(u64, &str) -> String;

/// Zones, nodes and counters.
pub fn zones(count: u64) -> Vec<u8> {
    let line = |of: LineOf, more: &str| (0..count).map(|i| of(i, more)).collect::<String>();
    let files: [(&str, LineOf); 4] = [
        ("buddyinfo", |i, more| format!("Node {i}, zone DMA 1 2 {more}3\n")),
        ("zoneinfo", |i, more| {
            format!("Node {i}, zone DMA\n  pages free {more}3\n    min 1\n    low 2\n    high 3\n")
        }),
        ("meminfo", |i, more| format!("Part{i}: {more}{i} kB\n")),
        ("vmstat", |i, more| format!("nr_{i} {more}{i}\n")),
    ];
    let mut made = some();
    for (name, of) in files {
        for (when, more) in [("before", ""), ("after", "1")] {
            made.writer().add_file(&format!("{name}.{when}"), line(of, more).as_bytes()).unwrap();
        }
    }
    made.finish()
}

/// Call sites by the kernel's own accounts.
pub fn accounts(count: u64) -> Vec<u8> {
    let lines = |of: &dyn Fn(u64) -> String| (0..count).map(of).collect::<String>();
    let allocinfo = lines(&|i| format!("{i} 1 mm/f{i}.c:1 func:f{i}\n"));
    let files = [
        ("allocinfo", format!("allocinfo - version: 1.0\n{allocinfo}")),
        ("page_owner", lines(&|i| format!("{i} f{i}+0x1/0x2\n"))),
        ("slab_traces", lines(&|i| format!("{i} c{} f{i}+0x1/0x2\n", i % 100))),
        ("cgroups", lines(&|i| format!("{i} /a/{i}\n"))),
    ];
    with(some(), &files)
}

/// Conditions of events, and texts of trace_printk.
pub fn conditions(count: u64) -> Vec<u8> {
    let lines: String = (0..count)
        .map(|i| format!("kmem:e{i} enable=1 filter=bytes_req > {i} trigger=stacktrace\n"))
        .collect();
    let texts: String = (0..count).map(|i| format!("0x{:x} : \"text {i}\"\n", SITE + i)).collect();
    let mut made = some();
    made.writer().add_file("event_conditions", lines.as_bytes()).unwrap();
    made.writer().add_file("printk_formats", texts.as_bytes()).unwrap();
    made.writer().add_file("modules", modules(count).as_bytes()).unwrap();
    made.finish()
}

fn modules(count: u64) -> String {
    (0..count).map(|i| format!("m{i} 4096 0 - Live 0x{:016x}\n", SITE + i * 4096)).collect()
}

/// Files that are attached as they were before and after.
fn with(mut made: Made, files: &[(&str, String)]) -> Vec<u8> {
    for (name, text) in files {
        for when in ["before", "after"] {
            made.writer().add_file(&format!("{name}.{when}"), text.as_bytes()).unwrap();
        }
    }
    made.finish()
}

fn some() -> Made {
    let mut made = Made::default();
    for i in 0..1_000 {
        made.kmalloc(0, 7, SITE + i % 10 * 16, HEAP + i * 64);
        made.pages(0, 7, i * 512, 0);
        made.cache_free(0, SITE, HEAP + i * 64 + (1 << 30), format!("c{}", i % 100).as_bytes());
    }
    made
}
