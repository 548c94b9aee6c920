//! Building a symbols chunk: sorted once here, searched in place ever after.

use std::borrow::Cow;
use std::collections::HashMap;
use zerocopy::{ByteOrder, IntoBytes};

use crate::kernel::{KernelSymbols, Module, SymbolOwner, modules_by_name};
use crate::raw::{OWNER_FOLLOWS, SYMBOL_NAME_MAX, SymbolBlockRow, SymbolOwnerRow, SymbolsHead};

/// Symbols of one block. Twice as many save 2 % of a kernel's table, and double the bytes that a lookup reads.
const BLOCK_LEN: usize = 32;

/// The body of a symbols chunk. Of the kernel image's bounds those that `symbols` lacks are 0, or taken from `core`.
pub(super) fn symbols_body<O: ByteOrder>(
    symbols: &KernelSymbols<'_>,
    modules: &[Module],
    core: Option<(u64, u64)>,
) -> Vec<u8> {
    let mut heap = Vec::new();
    let places = modules_by_name(modules);
    let owners: Vec<SymbolOwnerRow<O>> = symbols
        .owners
        .iter()
        .map(|&owner| {
            let module = places.get(owner);
            let (name_offset, name) = (heap.len() as u32, cut(owner));
            heap.extend_from_slice(name);
            SymbolOwnerRow {
                base: module.map_or(0, |m| m.base).into(),
                size: module.map_or(0, |m| m.size).into(),
                name_offset: name_offset.into(),
                name_len: (name.len() as u32).into(),
            }
        })
        .collect();
    // Those of several chunks together are not sorted. Stable: of those at one address the first one counts.
    let mut sorted = Cow::Borrowed(symbols.symbols.as_slice());
    if !sorted.is_sorted_by_key(|s| s.address) {
        sorted.to_mut().sort_by_key(|s| s.address);
    }
    let blocks: Vec<SymbolBlockRow<O>> = sorted
        .chunks(BLOCK_LEN)
        .map(|block| {
            let (address, offset) = (block.first().map_or(0, |s| s.address), heap.len() as u32);
            push_block(&mut heap, block, address);
            SymbolBlockRow {
                address: address.into(),
                offset: offset.into(),
                symbol_count: (block.len() as u16).into(),
                reserved: 0.into(),
            }
        })
        .collect();
    let (core_start, core_end) = core.unwrap_or_else(|| core_range(symbols));
    let head = SymbolsHead::<O> {
        head_len: (size_of::<SymbolsHead<O>>() as u32).into(),
        owner_count: (owners.len() as u32).into(),
        symbol_count: (symbols.symbols.len() as u32).into(),
        block_count: (blocks.len() as u32).into(),
        core_start: core_start.into(),
        core_end: core_end.into(),
        owner_len: (size_of::<SymbolOwnerRow<O>>() as u32).into(),
        block_len: (size_of::<SymbolBlockRow<O>>() as u32).into(),
        heap_len: (heap.len() as u32).into(),
        reserved: 0.into(),
    };
    let mut out = head.as_bytes().to_vec();
    out.extend_from_slice(owners.as_bytes());
    out.extend_from_slice(blocks.as_bytes());
    out.extend_from_slice(&heap);
    out
}

/// Each symbol by what is different from the one before.
fn push_block(heap: &mut Vec<u8>, symbols: &[crate::kernel::Symbol<'_>], first: u64) {
    let (mut address, mut owner, mut name) = (first, 0u64, &b""[..]);
    for symbol in symbols {
        let of = match symbol.owner {
            SymbolOwner::Core => 0,
            SymbolOwner::Owner(index) => u64::from(index).saturating_add(1),
        };
        let kind = if symbol.kind.is_ascii() { symbol.kind } else { b'?' };
        if of == owner {
            heap.push(kind);
        } else {
            heap.push(kind | OWNER_FOLLOWS);
            push_number(heap, of);
        }
        push_number(heap, symbol.address.saturating_sub(address));
        push_number(heap, symbol.size);
        let new = cut(symbol.name);
        let shared = name.iter().zip(new).take(usize::from(u8::MAX)).take_while(|(a, b)| a == b).count();
        heap.push(shared as u8);
        let rest = new.get(shared..).unwrap_or_default();
        push_number(heap, rest.len() as u64);
        heap.extend_from_slice(rest);
        (address, owner, name) = (symbol.address, of, new);
    }
}

fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn cut(name: &[u8]) -> &[u8] {
    name.get(..name.len().min(SYMBOL_NAME_MAX)).unwrap_or_default()
}

/// The kernel image, outside of which the kernel names nothing by its own symbols (`is_ksym_addr`, kernel/kallsyms.c):
/// from `_stext` or `_text` to `_end`, or to `_etext` and over the init text where data symbols are not kept.
pub(super) fn core_range(symbols: &KernelSymbols<'_>) -> (u64, u64) {
    let mut found = HashMap::new();
    for symbol in symbols.symbols.iter().filter(|s| s.owner == SymbolOwner::Core) {
        if KernelSymbols::BOUNDS.contains(&symbol.name) {
            found.entry(symbol.name).or_insert(symbol.address);
        }
    }
    let find = |name: &[u8]| found.get(name).copied();
    let start = [find(b"_stext"), find(b"_text")].into_iter().flatten().min().unwrap_or(0);
    let end = find(b"_end").or_else(|| [find(b"_etext"), find(b"_einittext")].into_iter().flatten().max());
    (start, end.unwrap_or(0))
}
