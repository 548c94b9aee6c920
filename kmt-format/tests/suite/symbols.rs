//! Symbols: all in one table, and those that events need in parts.

use std::collections::{BTreeSet, HashMap};

use kmt_format::Compression;
use kmt_format::kernel::{KernelSymbols, Symbol, SymbolOwner, parse_kallsyms};
use kmt_format::print::{EventText, PrintEnv};
use kmt_format::raw::ChunkKind;
use kmt_format::read::{Event, Trace};
use kmt_format::schema::Role;
use kmt_format::write::{Writer, WriterLimits, WriterOptions};

use crate::support::captures;

/// Small chunks, so that there are many.
const LIMITS: WriterLimits = WriterLimits::new().chunk_len(1 << 10);

fn used(name: &str) -> Vec<u8> {
    captures::convert_with(name, LIMITS, |writer, symbols, modules| {
        writer.add_symbols_on_use(symbols, modules).unwrap();
    })
    .file
}

fn all(name: &str) -> Vec<u8> {
    captures::convert_with(name, LIMITS, |writer, symbols, modules| {
        writer.add_symbols(symbols, modules).unwrap();
    })
    .file
}

/// The text of each event, by CPU.
fn texts(file: &[u8]) -> HashMap<u32, Vec<Vec<u8>>> {
    let trace = Trace::open(file).unwrap();
    let header = trace.header();
    let env = PrintEnv::new(header.order, header.long_size).with_symbols(trace.symbols());
    let of_class: HashMap<usize, EventText> =
        trace.schema().classes().map(|(i, c)| (i, EventText::new(c, &env))).collect();
    let mut out: HashMap<u32, Vec<Vec<u8>>> = HashMap::new();
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for index in run.range {
            let event = Event::new(trace.schema(), run.chunk, index).unwrap();
            let mut line = Vec::new();
            of_class[&event.class_index()].write(&mut line, &event, &env);
            out.entry(run.cpu).or_default().push(line);
        }
    }
    out
}

#[test]
fn used_symbols_name_every_event_of_every_prefix() {
    for name in captures::NAMES {
        let (used, all) = (used(name), all(name));
        assert_ne!(used.len(), all.len(), "{name}");
        let expected = texts(&all);
        assert_eq!(texts(&used), expected, "{name}");
        let trace = Trace::open(&used).unwrap();
        let whole = Trace::open(&all).unwrap();
        assert_eq!(trace.symbols().unwrap().core_range(), whole.symbols().unwrap().core_range());
        let mut ends: Vec<usize> = trace
            .streams()
            .values()
            .flat_map(|stream| stream.chunks.iter().map(|(c, _)| (c.offset + c.total_len) as usize))
            .collect();
        ends.sort_unstable();
        assert!(ends.len() > 8, "{name}: {} chunks", ends.len());
        for end in ends.iter().step_by(ends.len().div_ceil(8)) {
            let found = texts(&used[..*end]);
            assert!(!found.is_empty());
            for (cpu, lines) in found {
                assert!(expected[&cpu].starts_with(&lines), "{name}, CPU {cpu}, cut at {end}");
            }
        }
    }
}

#[test]
fn a_table_in_parts_has_the_symbols_that_are_used_and_the_bounds_of_the_image() {
    let file = used("x86_64-6.1");
    let trace = Trace::open(&file).unwrap();
    let table = trace.symbols().unwrap();
    let mut sites = BTreeSet::new();
    let mut merge = trace.merge();
    while let Some(run) = merge.next_run() {
        for index in run.range {
            let event = Event::new(trace.schema(), run.chunk, index).unwrap();
            sites.extend(event.uint_with(Role::CALL_SITE));
        }
    }
    let names: BTreeSet<Vec<u8>> = table.entries().map(|s| s.name.to_vec()).collect();
    for &site in &sites {
        assert!(names.contains(table.resolve(site).unwrap().name.as_ref()), "{site:#x}");
    }
    for bound in [&b"_text"[..], b"_stext", b"_etext"] {
        assert!(names.contains(bound));
    }
    assert!(names.len() < sites.len() + 16, "{} names of {} call sites", names.len(), sites.len());
}

fn options() -> WriterOptions {
    WriterOptions::new(kmt_format::kernel::ByteOrder::Big, 8).trace_uuid([7; 16])
}

/// Every address of a table of blocks, against a search through the list.
#[test]
fn lookups_in_blocks_find_what_a_list_would() {
    let names: Vec<String> = (0..1_000).map(|i| format!("function_{}", i * 7919 % 1_000)).collect();
    let mut address = 0x1000;
    let symbols: Vec<Symbol<'_>> = names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            // Some share an address, up to 70 of them: more than a block has.
            address += if i % 5 == 0 || (300..370).contains(&i) { 0 } else { 16 + i as u64 % 48 };
            Symbol { address, size: 16, kind: b't', owner: SymbolOwner::Core, name: name.as_bytes() }
        })
        .collect();
    let table = KernelSymbols { symbols: symbols.clone(), owners: Vec::new(), all_zero: false };
    let mut writer = Writer::new(options()).unwrap();
    writer.add_symbols(&table, &[]).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let table = trace.symbols().unwrap();
    for address in 0xff0..address + 40 {
        let last = symbols.iter().rev().find(|s| s.address <= address);
        let first = last.and_then(|last| symbols.iter().find(|s| s.address == last.address));
        let expected = first.filter(|s| address - s.address < s.size).map(|s| s.name.to_vec());
        assert_eq!(table.resolve(address).map(|r| r.name.into_owned()), expected, "{address:#x}");
    }
    let found: Vec<Vec<u8>> = table.entries().map(|s| s.name.into_owned()).collect();
    assert!(found.iter().zip(&names).all(|(a, b)| a == b.as_bytes()) && found.len() == names.len());
}

/// Entries of a table in parts, written as one part.
#[test]
fn symbols_may_be_given_in_any_order() {
    let symbol = |address, name| Symbol { address, size: 16, kind: b't', owner: SymbolOwner::Core, name };
    let symbols =
        vec![symbol(0x3000, &b"c"[..]), symbol(0x1000, b"a"), symbol(0x3000, b"d"), symbol(0x2000, b"b")];
    let mut writer = Writer::new(options()).unwrap();
    writer.add_symbols(&KernelSymbols { symbols, owners: Vec::new(), all_zero: false }, &[]).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let found: Vec<Vec<u8>> = trace.symbols().unwrap().entries().map(|s| s.name.into_owned()).collect();
    assert_eq!(found, [b"a", b"b", b"c", b"d"]);
    assert_eq!(trace.symbols().unwrap().resolve(0x3001).unwrap().name.as_ref(), b"c");
}

/// A size is kept as it is, but one beyond 32 bits bounds nothing.
#[test]
fn symbols_before_a_gap_of_the_address_space_reach_to_the_end_of_the_image() {
    let text = b"0000000000001000 A cpu_area\nffffffff81000000 T _stext\nffffffff81000100 B _end\n";
    let mut writer = Writer::new(options()).unwrap();
    writer.add_symbols(&parse_kallsyms(text, &[], 4096), &[]).unwrap();
    let file = writer.finish().unwrap();
    let trace = Trace::open(&file).unwrap();
    let table = trace.symbols().unwrap();
    assert_eq!(table.entries().next().unwrap().size, 0xffff_ffff_80ff_f000);
    assert_eq!(table.resolve(0x2000), None);
    assert_eq!(table.resolve(0xffff_ffff_8100_0100).unwrap().name.as_ref(), b"_end");
    assert_eq!(table.resolve(0xffff_ffff_8100_0101), None);
}

/// Names of tasks, files and copies with a codec of their own; events in place.
#[test]
fn what_is_besides_events_may_have_a_codec_of_its_own() {
    let plain = captures::convert("x86_64-6.1").file;
    let text = vec![b'x'; 10_000];
    let packed = captures::convert_with("x86_64-6.1", WriterLimits::default(), |writer, symbols, modules| {
        writer.compress_besides(Compression::Lz4).unwrap();
        writer.add_file("slabinfo.before", &text).unwrap();
        writer.add_symbols(symbols, modules).unwrap();
    })
    .file;
    assert_eq!(texts(&plain), texts(&packed));
    assert!(packed.len() < plain.len(), "{} and {} bytes", packed.len(), plain.len());
    let trace = Trace::open(&packed).unwrap();
    assert_eq!(trace.metadata().attachment("slabinfo.before"), Some(&text[..]));
    for (chunk, _) in trace.streams().values().flat_map(|stream| &stream.chunks) {
        assert!(chunk.kind == ChunkKind::EVENTS && chunk.codec == 0);
    }
}

#[test]
fn the_length_of_the_finished_file_is_known() {
    let mut lens = (0, 0);
    let file = captures::convert_with("armhf-6.1", LIMITS, |writer, symbols, modules| {
        writer.add_symbols(symbols, modules).unwrap();
        let mut early = Writer::new(options()).unwrap();
        early.add_symbols(symbols, modules).unwrap();
        lens = (early.finished_len(), early.finish().unwrap().len() as u64);
    });
    assert!(lens.0 >= lens.1 && lens.0 < lens.1 + 512, "{lens:?} of {}", file.file.len());
}
