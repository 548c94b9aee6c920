//! Texts that are long, alone and where many rows have them.

use kmt_format::kernel::{KernelSymbols, Symbol, SymbolOwner};
use kmt_format::tables::{CgroupRecord, SourceLine};
use kmt_format::write::Writer;

use super::{HEAP, LONG, SITE, bytes};
use crate::support::hostile::Made;

/// Call sites and tasks of the files below.
const SITES: u64 = 2_000;

/// A source file that many directories lie above.
pub fn directories(count: u64) -> Vec<u8> {
    let file = "a/".repeat(count as usize) + "x.c";
    with(|writer| writer.add_lines(&[line(SITE, "f", &file)]).unwrap())
}

/// A cgroup that many others lie above.
pub fn cgroup_parents(count: u64) -> Vec<u8> {
    let path = "/a".repeat(count as usize);
    with(|writer| writer.add_cgroups(&long_and_short(&path)).unwrap())
}

/// Source lines of one long path.
pub fn lines_of_one_file(count: u64) -> Vec<u8> {
    let file = "x".repeat(count as usize * 10);
    let rows: Vec<SourceLine<'_>> = (0..count).map(|i| line(SITE + i * 16, "f", &file)).collect();
    with(|writer| writer.add_lines(&rows).unwrap())
}

/// Tasks of one cgroup with a long path.
pub fn tasks_of_one_cgroup(count: u64) -> Vec<u8> {
    let path = "x".repeat(count as usize * 10);
    let rows: Vec<CgroupRecord<'_>> =
        (0..count).map(|i| CgroupRecord::new(i as i32, path.as_bytes())).collect();
    with(|writer| writer.add_cgroups(&rows).unwrap())
}

/// One task of a cgroup with a long path, at many call sites.
pub fn call_sites_of_a_long_path(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let path = "x".repeat(60_000);
    made.writer().add_cgroups(&long_and_short(&path)).unwrap();
    (0..count).for_each(|i| made.kmalloc(0, 7, SITE + i * 16, HEAP + i * 64));
    made.kmalloc(0, 8, SITE, HEAP + (1 << 40));
    made.finish()
}

/// The cgroups of two tasks.
fn long_and_short(path: &str) -> [CgroupRecord<'_>; 2] {
    [CgroupRecord::new(7, path.as_bytes()), CgroupRecord::new(8, b"/a")]
}

/// Tasks at a call site of a file with a long path.
pub fn tasks_of_a_long_path(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    made.writer().add_lines(&[line(SITE, "f", &"x".repeat(60_000))]).unwrap();
    (0..count).for_each(|i| made.kmalloc(0, i as i32, SITE, HEAP + i * 64));
    made.finish()
}

/// Tasks at a call site that many functions are inlined in.
pub fn tasks_of_inlined_functions(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let rows = (0..count).map(|i| {
        let mut row = line(SITE, "f", "mm/x.c");
        row.depth = i as u16;
        row
    });
    made.writer().add_lines(&rows.collect::<Vec<_>>()).unwrap();
    (0..count).for_each(|i| made.kmalloc(0, i as i32, SITE, HEAP + i * 64));
    made.finish()
}

/// Functions whose names have many parts.
pub fn parts_of_names(count: u64) -> Vec<u8> {
    let names: Vec<String> = (0..100).map(|i| "a_".repeat(count as usize / 2) + &i.to_string()).collect();
    let symbols = names.iter().zip(0..).map(|(name, i)| symbol(SITE + i * 16, 16, SymbolOwner::Core, name));
    let table = KernelSymbols { symbols: symbols.collect(), owners: Vec::new(), all_zero: false };
    with(|writer| writer.add_symbols(&table, &[]).unwrap())
}

/// A function with a long name that all call sites lie in.
pub fn long_function(count: u64) -> Vec<u8> {
    let name = "x".repeat(count as usize);
    let symbols = vec![symbol(SITE, 1 << 20, SymbolOwner::Core, &name)];
    let table = KernelSymbols { symbols, owners: Vec::new(), all_zero: false };
    with(|writer| writer.add_symbols(&table, &[]).unwrap())
}

/// A module with a long name that all call sites lie in.
pub fn long_module(count: u64) -> Vec<u8> {
    let name = "x".repeat(count as usize);
    let symbols = vec![symbol(SITE, 1 << 20, SymbolOwner::Owner(0), "f")];
    let table = KernelSymbols { symbols, owners: vec![name.as_bytes()], all_zero: false };
    with(|writer| writer.add_symbols(&table, &[]).unwrap())
}

/// A flag with a long name that objects and pages were allocated with, each with others beside it.
pub fn long_flag(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let fields = ["call_site", "ptr", "bytes_req", "bytes_alloc", "gfp_flags"].map(|name| (LONG, name, 8));
    let print = format!(
        "\"%lx %s\", REC->ptr, __print_flags(REC->gfp_flags, \"|\", {{ 1, \"{}\" }})",
        "x".repeat(60_000)
    );
    made.class("kmem", "kmem_cache_alloc", 20, &fields, &print);
    for i in 0..count {
        made.event(0, 20, i as i32, &bytes(&[SITE + i * 16, HEAP + i * 64, 60, 64, i << 1 | 1]));
    }
    made.finish()
}

fn line<'t>(address: u64, function: &'t str, file: &'t str) -> SourceLine<'t> {
    let mut row = SourceLine::new(address);
    (row.function, row.file, row.line) = (function.as_bytes().into(), file.as_bytes().into(), 7);
    row
}

fn symbol(address: u64, size: u64, owner: SymbolOwner, name: &str) -> Symbol<'_> {
    Symbol { address, size, kind: b't', owner, name: name.as_bytes() }
}

/// Objects of many call sites and tasks, and what `add` writes before them.
fn with(add: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut made = Made::default();
    add(made.writer());
    for i in 0..SITES {
        made.kmalloc(0, i as i32, SITE + i * 16, HEAP + i * 64);
        made.pages(0, i as i32, i, 0);
        made.stack(0, i as i32, &[SITE + i * 16, SITE + i % 100 * 16]);
    }
    made.finish()
}
