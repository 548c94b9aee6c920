//! Files that have much of one thing: a program whose work is a product of two counts takes minutes for them.

use kmt_format::kernel::{KernelSymbols, Symbol, SymbolOwner};

use crate::support::hostile::Made;

const SITE: u64 = 0xffff_ffff_8100_0000;
const HEAP: u64 = 0xffff_8880_0000_0000;
const LONG: &str = "unsigned long";

fn bytes(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

/// Each object of one call site is freed at another place, on another CPU.
pub fn freeing_sites(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        made.kmalloc(0, 7, SITE, HEAP + i * 64);
        made.kfree(1, SITE + i * 16, HEAP + i * 64);
    }
    made.finish()
}

/// One function allocates with many flags, from caches that each have another name.
pub fn cache_names(count: u64) -> Vec<u8> {
    let mut made = cache_allocs();
    for i in 0..count {
        made.event(0, 20, 7, &bytes(&[SITE, HEAP + i * 64, 60, 64, i, u64::MAX]));
        made.cache_free(0, SITE, HEAP + i * 64, format!("cache{i}").as_bytes());
    }
    made.finish()
}

fn cache_allocs() -> Made {
    let mut made = Made::default();
    let fields = [
        (LONG, "call_site", 8),
        ("const void *", "ptr", 8),
        ("size_t", "bytes_req", 8),
        ("size_t", "bytes_alloc", 8),
        (LONG, "gfp_flags", 8),
        ("int", "node", 4),
    ];
    made.class("kmem", "kmem_cache_alloc", 20, &fields, "\"ptr=%p\", REC->ptr");
    made
}

/// Shrinkers that begin and never end, of one task.
pub fn open_stalls(count: u64) -> Vec<u8> {
    let mut made = shrinkers();
    (0..count).for_each(|i| made.event(0, 20, 7, &bytes(&[HEAP + i * 64, SITE])));
    made.kmalloc(0, 7, SITE, HEAP);
    made.finish()
}

/// Shrinkers that share a function.
pub fn shrinkers_of_a_function(count: u64) -> Vec<u8> {
    let mut made = shrinkers();
    for i in 0..count {
        made.event(0, 20, 7, &bytes(&[HEAP + i * 64, SITE]));
        made.event(0, 21, 7, &bytes(&[HEAP + i * 64, SITE, 1]));
    }
    made.kmalloc(0, 7, SITE, HEAP);
    made.finish()
}

fn shrinkers() -> Made {
    let mut made = Made::default();
    let fields = [("struct shrinker *", "shr", 8), ("void *", "shrink", 8), ("long", "retval", 8)];
    made.class("vmscan", "mm_shrink_slab_start", 20, &fields[..2], "\"%p\", REC->shr");
    made.class("vmscan", "mm_shrink_slab_end", 21, &fields, "\"%p\", REC->shr");
    made
}

/// Functions that call each other ever deeper.
pub fn deep_graph(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let fields = [(LONG, "func", 8), (LONG, "depth", 8)];
    made.class("ftrace", "funcgraph_entry", 20, &fields, "\"%ps\", (void *)REC->func");
    (0..count).for_each(|i| made.event(0, 20, 7, &bytes(&[SITE, i])));
    made.kmalloc(0, 7, SITE, HEAP);
    made.finish()
}

/// Symbols of as many modules.
pub fn symbol_owners(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let names: Vec<Vec<u8>> = (0..count).map(|i| format!("module{i}").into_bytes()).collect();
    let symbols = names.iter().enumerate().map(|(i, name)| Symbol {
        address: SITE + i as u64 * 16,
        size: 16,
        kind: b't',
        owner: SymbolOwner::Owner(i as u16),
        name,
    });
    let table = KernelSymbols {
        symbols: symbols.collect(),
        owners: names.iter().map(Vec::as_slice).collect(),
        all_zero: false,
    };
    made.writer().symbols(&table, &[]).unwrap();
    (0..count).for_each(|i| made.kmalloc(0, 7, SITE + i * 16, HEAP + i * 64));
    made.finish()
}

/// A page on each CPU, and objects on one of them.
pub fn page_on_each_cpu(cpus: u32) -> Vec<u8> {
    let mut made = Made::default();
    (1..cpus).for_each(|cpu| made.pages(cpu, 7, u64::from(cpu), 0));
    (0..u64::from(cpus)).for_each(|i| made.kmalloc(0, 7, SITE, HEAP + i * 64));
    made.finish()
}
