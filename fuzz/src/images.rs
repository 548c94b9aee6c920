//! The reader of debug information and of sizes, on any bytes as a kernel: the lines of a trace whose functions are those of
//! its symbols, and its footprint.

use kmt_analyze::in_process;
use kmt_format::kernel::{KernelSymbols, Module, Symbol, SymbolOwner};
use kmt_format::write::{Writer, WriterOptions};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

/// Distance of the traced kernel from its ELF file.
const SLIDE: u64 = 0x1_c000_0000;
/// Most functions that allocate.
const FUNCTIONS_MAX: usize = 40;

/// Lines, a picture of directories, sizes, and the difference to itself.
pub fn run(data: &[u8]) {
    let trace = trace(data).unwrap_or_default();
    let files = [("vmlinux", data), ("trace.kmt", trace.as_slice())];
    let elf = ["--vmlinux", "vmlinux"];
    let lines = ["callers", "--by", "dir,file,line,function", "--json", "trace.kmt"];
    let sizes = ["footprint", "--depth", "2", "--json"];
    let difference = ["footprint", "--against", "vmlinux", "--json"];
    for args in [&lines[..], &sizes, &difference] {
        let ran = in_process::run(&[args, &elf].concat(), &files);
        let is_usage = ran.ended.as_ref().is_err_and(|what| what.contains("Usage:"));
        assert!(!is_usage, "{args:?}: {:?}", ran.ended);
        if ran.ended.is_ok() {
            assert!(serde_json::from_slice::<serde_json::Value>(&ran.written).is_ok(), "{args:?}: not JSON");
        }
    }
}

/// A trace with two allocations of each function of the first section with code.
fn trace(data: &[u8]) -> Option<Vec<u8>> {
    let elf = object::File::parse(data).ok()?;
    let text = elf.sections().find(|section| section.kind() == SectionKind::Text)?.index();
    let symbols = elf.symbols().filter(|symbol| symbol.section_index() == Some(text) && symbol.size() > 0);
    let functions: Vec<(u64, u64, Vec<u8>)> = symbols
        .filter_map(|symbol| {
            let name = symbol.name_bytes().ok().filter(|name| !name.is_empty() && name.len() < 512)?;
            Some((symbol.address().wrapping_add(SLIDE), symbol.size().min(1 << 20), name.to_vec()))
        })
        .take(FUNCTIONS_MAX)
        .collect();
    let order = kmt_format::kernel::ByteOrder::Little;
    let mut writer = Writer::new(WriterOptions::new(order, 8)).ok()?;
    writer.add_format("kmem", FORMAT).ok()?;
    let mut sorted = functions.clone();
    sorted.sort();
    let symbols = sorted.iter().map(|(address, size, name)| Symbol {
        address: *address,
        size: *size,
        kind: b't',
        owner: SymbolOwner::Core,
        name,
    });
    let table = KernelSymbols { symbols: symbols.collect(), owners: Vec::new(), all_zero: false };
    writer.add_symbols(&table, &[] as &[Module]).ok()?;
    for (number, (address, size, _)) in (0u64..).zip(&functions) {
        for (time, offset) in [(0, 1 + size / 2), (1, *size)] {
            let mut record = Vec::new();
            order.push(&mut record, 300, 2);
            record.extend([0; 2]);
            order.push(&mut record, 7, 4);
            for value in
                [address.wrapping_add(offset), 0xffff_8880_0000_0000 + number * 128 + 64 * time, 50, 64]
            {
                order.push(&mut record, value, 8);
            }
            writer.add_event(0, 1_000 + number, &record).ok()?;
        }
    }
    writer.finish().ok()
}

/// include/trace/events/kmem.h of Linux 6.1, shortened.
const FORMAT: &str = "name: kmalloc
ID: 300
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;
\tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;
\tfield:size_t bytes_req;\toffset:24;\tsize:8;\tsigned:0;
\tfield:size_t bytes_alloc;\toffset:32;\tsize:8;\tsigned:0;

print fmt: \"\"
";
