//! Tables with many rows: symbols, lines, sums, counters, attached files.

use kmt_format::kernel::{CpuStats, KernelSymbols, Symbol, SymbolOwner};
use kmt_format::schema::Meaning;
use kmt_format::tables::{SiteSums, SourceLine};
use kmt_format::write::StatsTaken;

use super::{HEAP, SITE};
use crate::support::hostile::Made;

/// Symbols, and a call site in each tenth.
pub fn symbols(count: u64) -> Vec<u8> {
    with_symbols(count, 16)
}

/// Symbols of one address.
pub fn symbols_of_one_address(count: u64) -> Vec<u8> {
    with_symbols(count, 0)
}

fn with_symbols(count: u64, step: u64) -> Vec<u8> {
    let mut made = Made::default();
    let names: Vec<Vec<u8>> = (0..count).map(|i| format!("function{i}").into_bytes()).collect();
    let symbols = names.iter().zip(0..).map(|(name, i)| Symbol {
        address: SITE + i * step,
        size: 16,
        kind: b't',
        owner: SymbolOwner::Core,
        name,
    });
    let table = KernelSymbols { symbols: symbols.collect(), owners: Vec::new(), all_zero: false };
    made.writer().add_symbols(&table, &[]).unwrap();
    (0..count / 10).for_each(|i| made.kmalloc(0, 7, SITE + i * 160 + 4, HEAP + i * 64));
    made.finish()
}

/// A line of each call site.
pub fn lines(count: u64) -> Vec<u8> {
    with_lines(count, |i| (SITE + i * 16, 0))
}

/// Functions inlined into one another.
pub fn inlined(count: u64) -> Vec<u8> {
    with_lines(count, |i| (SITE, i as u16))
}

fn with_lines(count: u64, place: impl Fn(u64) -> (u64, u16)) -> Vec<u8> {
    let mut made = Made::default();
    let rows = (0..count).map(|i| {
        let (address, depth) = place(i);
        let mut row = SourceLine::new(address);
        (row.function, row.file) =
            (format!("f{i}").into_bytes().into(), format!("mm/{i}.c").into_bytes().into());
        (row.line, row.depth) = (i as u32, depth);
        row
    });
    made.writer().add_lines(&rows.collect::<Vec<_>>()).unwrap();
    (0..count).for_each(|i| made.kmalloc(0, 7, place(i).0, HEAP + i * 64));
    made.finish()
}

/// Totals of call sites.
pub fn sums(count: u64) -> Vec<u8> {
    let mut made = Made::default();
    let rows = (0..count).map(|i| {
        let mut row = SiteSums::new(Meaning::KMALLOC, 1_000_000, 2_000_000);
        (row.call_site, row.events) = (SITE + i * 16, Some(i));
        (row.bytes_req, row.bytes_alloc) = (Some(i * 60), Some(i * 64));
        row
    });
    made.writer().add_sums(&rows.collect::<Vec<_>>()).unwrap();
    (0..1_000).for_each(|i| made.kmalloc(0, 7, SITE + i * 16, HEAP + i * 64));
    made.finish()
}

/// Counters of CPUs, of which few have events.
pub fn counters(count: u64) -> Vec<u8> {
    let mut made = few();
    let counters = CpuStats::parse("entries: 1\noverrun: 2\nread events: 3\n").unwrap();
    let rows: Vec<(u32, CpuStats)> = (0..count as u32).map(|cpu| (cpu, counters)).collect();
    made.writer().add_stats(StatsTaken::After, &rows).unwrap();
    made.finish()
}

/// Caches in two readings of slabinfo.
pub fn slabinfo_lines(count: u64) -> Vec<u8> {
    let mut made = few();
    for name in ["slabinfo.before", "slabinfo.after"] {
        let line = |i| format!("c{i} {i} {i} 64 64 1 : tunables 0 0 0 : slabdata {i} {i} 0\n");
        let text = "slabinfo - version: 2.1\n".to_owned() + &(0..count).map(line).collect::<String>();
        made.writer().add_file(name, text.as_bytes()).unwrap();
    }
    made.finish()
}

/// Attached files of many names.
pub fn files(count: u64) -> Vec<u8> {
    let mut made = few();
    (0..count).for_each(|i| made.writer().add_file(&format!("file{i}"), b"a line\n").unwrap());
    made.finish()
}

/// Keys and values.
pub fn keys(count: u64) -> Vec<u8> {
    let mut made = few();
    let keys: Vec<String> = (0..count).map(|i| format!("key{i}")).collect();
    let pairs: Vec<(&str, &[u8])> = keys.iter().map(|key| (key.as_str(), &b"value"[..])).collect();
    made.writer().add_metadata(&pairs).unwrap();
    made.finish()
}

/// Ranges of CPUs of two nodes.
pub fn cpu_ranges(count: u64) -> Vec<u8> {
    let mut made = few();
    let list = |first: u64| {
        let ranges: Vec<String> = (0..count).map(|i| (i * 2 + first).to_string()).collect();
        ranges.join(",").into_bytes()
    };
    made.writer().add_metadata(&[("node0.cpus", &list(0)), ("node1.cpus", &list(1))]).unwrap();
    made.finish()
}

fn few() -> Made {
    let mut made = Made::default();
    for i in 0..1_000 {
        made.kmalloc((i % 4) as u32, 7, SITE + i % 10 * 16, HEAP + i * 64);
        made.pages(0, 7, i, 0);
    }
    made
}
