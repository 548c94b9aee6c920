//! The small real captures in tests/data: converted with the library alone.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use kmt_format::kernel::{
    ByteOrder, HeaderPage, KernelSymbols, Module, OrderVote, SubBuffer, SubBufferItem, parse_kallsyms,
    parse_modules, vote_byte_order,
};
use kmt_format::write::{Writer, WriterLimits, WriterOptions};

pub const NAMES: [&str; 4] = ["x86_64-6.1", "x86_64-6.12", "s390x-6.1", "armhf-6.1"];

pub fn dir(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

pub struct Capture {
    pub file: Vec<u8>,
    pub order: ByteOrder,
    pub header_page: HeaderPage,
    /// Events of each CPU as the sub-buffers hold them: time and record.
    pub raw: HashMap<u32, Vec<(u64, Vec<u8>)>>,
}

pub fn convert(name: &str) -> Capture {
    convert_with(name, WriterLimits::default(), |writer, symbols, modules| {
        writer.add_symbols(symbols, modules).unwrap();
    })
}

/// The same, where `symbols` decides what becomes of the symbols.
pub fn convert_with(
    name: &str,
    limits: WriterLimits,
    symbols: impl FnOnce(&mut Writer, &KernelSymbols<'_>, &[Module]),
) -> Capture {
    let dir = dir(name);
    let text = |path: &str| fs::read_to_string(dir.join(path)).unwrap();
    let header_page = HeaderPage::parse(&text("tracefs/events/header_page")).unwrap();
    let mut cpus: Vec<(u32, Vec<u8>)> = fs::read_dir(dir.join("tracefs/per_cpu"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .map(|p| {
            (
                p.file_name().unwrap().to_str().unwrap()[3..].parse().unwrap(),
                fs::read(p.join("trace_pipe_raw")).unwrap(),
            )
        })
        .collect();
    cpus.sort();
    let mut vote = OrderVote::default();
    for page in cpus.iter().flat_map(|(_, raw)| raw.chunks(header_page.sub_buffer_len())) {
        vote_byte_order(&mut vote, page, &header_page, |_| true);
    }
    let order = vote.winner().unwrap();
    let options =
        WriterOptions::new(order, header_page.long_size()).page_size(4096).trace_uuid(*b"0123456789abcdef");
    let mut writer = Writer::with_limits(options, limits).unwrap();
    for system in
        fs::read_dir(dir.join("tracefs/events")).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir())
    {
        for event in fs::read_dir(&system).unwrap().map(|e| e.unwrap().path()) {
            let text = fs::read_to_string(event.join("format")).unwrap();
            writer.add_format(system.file_name().unwrap().to_str().unwrap(), &text).unwrap();
        }
    }
    let modules = parse_modules(&text("modules"));
    symbols(&mut writer, &parse_kallsyms(text("kallsyms").as_bytes(), &modules, 4096), &modules);
    let mut all = HashMap::new();
    for (cpu, raw) in &cpus {
        let list: &mut Vec<(u64, Vec<u8>)> = all.entry(*cpu).or_default();
        for page in raw.chunks(header_page.sub_buffer_len()) {
            for item in SubBuffer::parse(page, &header_page, order).unwrap().items() {
                if let SubBufferItem::Event { time, record, .. } = item.unwrap() {
                    writer.add_event(*cpu, time, record).unwrap();
                    list.push((time, record.to_vec()));
                }
            }
        }
    }
    Capture { file: writer.finish().unwrap(), order, header_page, raw: all }
}
