//! Building a symbols chunk: sorted once here, searched in place ever after.

use std::collections::HashMap;
use zerocopy::{ByteOrder, IntoBytes};

use crate::kernel::{KernelSymbols, Module, SymbolOwner, modules_by_name};
use crate::raw::{SymbolOwnerRow, SymbolRow32, SymbolRow64, SymbolsHead};

/// The body of a symbols chunk.
pub(super) fn symbols_body<O: ByteOrder>(
    symbols: &KernelSymbols<'_>,
    modules: &[Module],
    long_size: usize,
) -> Vec<u8> {
    let mut heap = Heap::default();
    let places = modules_by_name(modules);
    let owners: Vec<SymbolOwnerRow<O>> = symbols
        .owners
        .iter()
        .map(|&name| {
            let module = places.get(name);
            let (name_offset, name_len) = heap.push(name);
            SymbolOwnerRow {
                base: module.map_or(0, |m| m.base).into(),
                size: module.map_or(0, |m| m.size).into(),
                name_offset: name_offset.into(),
                name_len: u32::from(name_len).into(),
            }
        })
        .collect();
    let mut rows = Vec::new();
    let symbol_len = if long_size == 8 { size_of::<SymbolRow64<O>>() } else { size_of::<SymbolRow32<O>>() };
    for symbol in &symbols.symbols {
        let (name_offset, name_len) = heap.push(symbol.name);
        let owner = match symbol.owner {
            SymbolOwner::Core => 0,
            SymbolOwner::Owner(index) => index.saturating_add(1),
        };
        let size = u32::try_from(symbol.size).unwrap_or(u32::MAX);
        if long_size == 8 {
            let row = SymbolRow64::<O> {
                address: symbol.address.into(),
                size: size.into(),
                name_offset: name_offset.into(),
                name_len: name_len.into(),
                owner: owner.into(),
                kind: symbol.kind,
                reserved: [0; 3],
            };
            rows.extend_from_slice(row.as_bytes());
        } else {
            let row = SymbolRow32::<O> {
                address: (symbol.address as u32).into(),
                size: size.into(),
                name_offset: name_offset.into(),
                name_len: name_len.into(),
                owner: owner.into(),
                kind: symbol.kind,
                reserved: [0; 3],
            };
            rows.extend_from_slice(row.as_bytes());
        }
    }
    let (core_start, core_end) = core_range(symbols);
    let head = SymbolsHead::<O> {
        head_len: (size_of::<SymbolsHead<O>>() as u32).into(),
        owner_count: (owners.len() as u32).into(),
        symbol_count: (symbols.symbols.len() as u32).into(),
        heap_len: (heap.bytes.len() as u32).into(),
        core_start: core_start.into(),
        core_end: core_end.into(),
        owner_len: (size_of::<SymbolOwnerRow<O>>() as u32).into(),
        symbol_len: (symbol_len as u32).into(),
    };
    let mut out = head.as_bytes().to_vec();
    out.extend_from_slice(owners.as_bytes());
    out.extend_from_slice(&rows);
    out.extend_from_slice(&heap.bytes);
    out
}

/// The kernel image, outside of which the kernel names nothing by its own symbols (`is_ksym_addr`, kernel/kallsyms.c):
/// from `_stext` or `_text` to `_end`, or to `_etext` and over the init text where data symbols are not kept.
fn core_range(symbols: &KernelSymbols<'_>) -> (u64, u64) {
    let find = |name: &[u8]| {
        symbols.symbols.iter().find(|s| s.owner == SymbolOwner::Core && s.name == name).map(|s| s.address)
    };
    let start = [find(b"_stext"), find(b"_text")].into_iter().flatten().min().unwrap_or(0);
    let end = find(b"_end").or_else(|| [find(b"_etext"), find(b"_einittext")].into_iter().flatten().max());
    (start, end.unwrap_or(0))
}

#[derive(Default)]
struct Heap<'a> {
    bytes: Vec<u8>,
    seen: HashMap<&'a [u8], u32>,
}

impl<'a> Heap<'a> {
    fn push(&mut self, name: &'a [u8]) -> (u32, u16) {
        let name = name.get(..name.len().min(usize::from(u16::MAX))).unwrap_or_default();
        let offset = *self.seen.entry(name).or_insert_with(|| {
            let offset = self.bytes.len() as u32;
            self.bytes.extend_from_slice(name);
            offset
        });
        (offset, name.len() as u16)
    }
}
