//! Files for which work that is a product of two counts takes minutes.

use kmt_format::kernel::{KernelSymbols, Symbol, SymbolOwner};
use kmt_format::write::Task;

use super::{HEAP, LONG, SITE, bytes};
use crate::support::hostile::{Made, cache_frees, chunk};

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
    made.writer().add_symbols(&table, &[]).unwrap();
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

/// One task with many names, in the table of tasks and in events.
pub fn renames(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    naming_class(&mut made, 20);
    let rows: Vec<Task> =
        (0..count).map(|i| Task::new(7, format!("row{i}")).since(1_000_000 + i * 150)).collect();
    made.writer().add_tasks(&rows).unwrap();
    for i in 0..count {
        made.event(0, 20, 7, &rename(i));
        made.kmalloc(1, 7, SITE, HEAP + i * 64);
    }
    made.finish()
}

/// Many classes of one name: all of them rename tasks.
pub fn naming_classes(count: u16, events: u64) -> Vec<u8> {
    let mut made = Made::default();
    for i in 0..count {
        naming_class(&mut made, 20 + i);
    }
    for i in 0..events {
        made.event(0, 20 + (i % u64::from(count)) as u16, 7, &rename(i));
        made.kmalloc(1, 7, SITE, HEAP + i * 64);
    }
    made.finish()
}

fn naming_class(made: &mut Made, id: u16) {
    let text = format!(
        "name: task_rename\nID: {id}\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:char oldcomm[16];\toffset:12;\tsize:16;\tsigned:0;\n\
        \tfield:char newcomm[16];\toffset:28;\tsize:16;\tsigned:0;\n\n\
        print fmt: \"newcomm=%s\", REC->newcomm\n"
    );
    made.writer().add_format("task", &text).unwrap();
}

fn rename(number: u64) -> Vec<u8> {
    let mut rest = 7i32.to_le_bytes().to_vec();
    for name in [format!("old{number}"), format!("new{number}")] {
        let mut name = name.into_bytes();
        name.resize(16, 0);
        rest.extend(name);
    }
    rest
}

/// Readings of slabinfo during allocations at many call sites.
pub fn snapshots(snapshots: u64, sites: u64) -> Vec<u8> {
    let mut made = Made::default();
    let text = "slabinfo - version: 2.1\nkmalloc-64 1 1 64 64 1 : tunables 0 0 0 : slabdata 1 1 0\n";
    for i in 0..snapshots {
        let from = 1_000_000 + i * sites * 100 / snapshots;
        made.writer().add_file_at("slabinfo", text.as_bytes(), (from, from + 10)).unwrap();
    }
    (0..sites).for_each(|i| made.kmalloc(0, 7, SITE + i * 16, HEAP + i * 64));
    made.kfree(0, SITE, HEAP);
    made.finish()
}

/// As many pairs of call site and cache.
pub fn sites_and_caches(count: u64) -> Vec<u8> {
    let mut made = cache_allocs();
    for i in 0..count {
        made.event(0, 20, 7, &bytes(&[SITE + i * 16, HEAP + i * 64, 60, 64, 0xcc0, u64::MAX]));
        made.cache_free(0, SITE, HEAP + i * 64, format!("cache{}", i % 1000).as_bytes());
    }
    made.finish()
}

/// Events of one text of 1 MB.
pub fn shared_text(events: u32) -> Vec<u8> {
    let mut made = Made::default();
    made.cache_free(0, SITE, HEAP, b"one");
    let mut heap = 1_000_000u32.to_le_bytes().to_vec();
    heap.resize(1_000_004, b'x');
    let body = cache_frees(0, std::iter::repeat_n(0, events as usize), &heap);
    made.with(1, [chunk(b"EVNT", Some((1, 0)), &body, true)])
}
