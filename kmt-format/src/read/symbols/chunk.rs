//! The symbols of one chunk. Spec section "KSYM".

use core::ops::Range;
use std::borrow::Cow;
use zerocopy::ByteOrder as Order;

use super::block::{Name, Symbols};
use super::{Resolved, Start, SymbolEntry};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{ByteOrder, with_order};
use crate::raw::{SYMBOL_NAME_MAX, SYMBOLS_IN_BLOCK_MAX, SymbolBlockRow, SymbolOwnerRow, SymbolsHead};
use crate::read::cast::{TableRows, array_at, head_len, struct_at};

/// Blocks of one chunk at most, so that a position in one fits into 32 bits.
const BLOCKS_MAX: usize = 1 << 24;
/// Maximum size of a symbol of unknown size.
const UNKNOWN_SIZE_MAX: u64 = 1 << 20;
/// From this size on there is a gap of the address space after a symbol: the size bounds nothing.
const SIZE_BOUNDED: u64 = u32::MAX as u64;

/// The symbols of one chunk, sorted by address.
#[derive(Debug, Clone)]
pub(crate) struct SymbolChunk<'d> {
    body: Cow<'d, [u8]>,
    owners: Vec<Owner>,
    blocks: Vec<Block>,
    heap: Range<usize>,
    pub(super) symbol_count: usize,
    /// Bytes of all names together.
    names_len: usize,
    pub(super) core_start: u64,
    pub(super) core_end: u64,
}

#[derive(Debug, Clone, Copy)]
struct Owner {
    base: u64,
    size: u64,
    name_offset: u32,
    name_len: u32,
}

/// Position of a block's symbols in the heap, and the first address.
#[derive(Debug, Clone, Copy)]
struct Block {
    address: u64,
    offset: u32,
    count: u16,
}

/// Position of a symbol: its block, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SymbolPosition {
    block: usize,
    index: usize,
}

impl SymbolPosition {
    /// Both in 32 bits.
    pub fn packed(self) -> u32 {
        (self.block as u32) << 8 | self.index as u32 & 0xff
    }

    pub fn unpacked(packed: u32) -> Self {
        Self { block: (packed >> 8) as usize, index: (packed & 0xff) as usize }
    }
}

impl<'d> SymbolChunk<'d> {
    pub(crate) fn parse(body: Cow<'d, [u8]>, base: u64, order: ByteOrder) -> Result<Self> {
        with_order!(order, O => Self::parse_in_order::<O>(body, base))
    }

    fn parse_in_order<O: Order + 'static>(body: Cow<'d, [u8]>, base: u64) -> Result<Self> {
        let malformed = |what: &'static str| Error::at(base, ErrorKind::Malformed(what));
        let head = struct_at::<SymbolsHead<O>>(&body, 0, base)?;
        let (core_start, core_end) = (head.core_start.get(), head.core_end.get());
        let symbol_count = head.symbol_count.get() as usize;
        let mut at = head_len::<SymbolsHead<O>>(head.head_len.get(), &body, base)?;
        TableRows::<SymbolOwnerRow<O>>::check_len(head.owner_len.get() as usize, base)?;
        TableRows::<SymbolBlockRow<O>>::check_len(head.block_len.get() as usize, base)?;
        let (count, len) = (head.owner_count.get(), head.owner_len.get() as usize);
        let rows = TableRows::<SymbolOwnerRow<O>>::next(&body, &mut at, count, len, base)?;
        let owners: Vec<Owner> = rows.iter().map(owner).collect();
        let (count, len) = (head.block_count.get(), head.block_len.get() as usize);
        let rows = TableRows::<SymbolBlockRow<O>>::next(&body, &mut at, count, len, base)?;
        if rows.len() > BLOCKS_MAX {
            return Err(malformed("a symbols chunk has more than 16,777,216 blocks"));
        }
        let blocks: Vec<Block> = rows.iter().map(block).collect();
        let heap_len = array_at::<u8>(&body, at, head.heap_len.get() as usize, base)?.len();
        let heap = at..at.saturating_add(heap_len);
        let mut chunk = Self { body, owners, blocks, heap, symbol_count, names_len: 0, core_start, core_end };
        if (0..chunk.owners.len()).any(|index| chunk.owner_name(index).is_none()) {
            return Err(malformed("the name of an owner of symbols lies outside its chunk or is too long"));
        }
        chunk.names_len = chunk.check_blocks().map_err(malformed)?;
        Ok(chunk)
    }

    /// Reads all blocks once; returns the length of all names.
    fn check_blocks(&self) -> core::result::Result<usize, &'static str> {
        let (mut last, mut symbol_count, mut names_len, mut end) = (0, 0usize, 0usize, 0usize);
        for (index, block) in self.blocks.iter().enumerate() {
            if !(1..=SYMBOLS_IN_BLOCK_MAX).contains(&usize::from(block.count)) {
                return Err("a block of symbols has an invalid number of symbols");
            }
            // Blocks that share bytes would make one byte cost more than once.
            if (block.offset as usize) < end {
                return Err("blocks of symbols overlap");
            }
            let mut name = Name::default();
            let mut symbols = self.symbols(index).ok_or("a block of symbols lies outside its chunk")?;
            let mut first = true;
            while let Some(symbol) = symbols.next() {
                if symbol.address < last || first && symbol.address != block.address {
                    return Err("symbols are not in the order of their addresses");
                }
                if symbol.owner > self.owners.len() as u64 {
                    return Err("a symbol has an owner that does not exist");
                }
                (last, first) = (symbol.address, false);
                name.follow(symbol);
                symbol_count = symbol_count.saturating_add(1);
                names_len = names_len.saturating_add(name.len());
            }
            if !symbols.is_done() || first {
                return Err("a block of symbols cannot be read completely");
            }
            end = self.heap.len().saturating_sub(symbols.bytes_left());
        }
        if symbol_count != self.symbol_count {
            return Err("a symbols chunk has another number of symbols than its head states");
        }
        Ok(names_len)
    }

    /// Memory of the table and of its entries without the decoded body, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let rows = self.owners.len().saturating_mul(size_of::<Owner>());
        let blocks = self.blocks.len().saturating_mul(size_of::<Block>());
        let starts = self.symbol_count.saturating_mul(size_of::<Start>());
        [size_of::<Self>(), rows, blocks, starts, self.names_len].into_iter().fold(0, usize::saturating_add)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = SymbolEntry<'_>> {
        (0..self.blocks.len()).flat_map(move |block| {
            let (mut symbols, mut name) = (self.symbols(block), Name::default());
            core::iter::from_fn(move || {
                let symbol = symbols.as_mut()?.next()?;
                name.follow(symbol);
                let owner = usize::try_from(symbol.owner).ok()?.checked_sub(1);
                Some(SymbolEntry {
                    address: symbol.address,
                    size: symbol.size,
                    kind: symbol.kind,
                    owner: owner.and_then(|owner| self.owner_name(owner)),
                    name: name.get(),
                })
            })
        })
    }

    /// Address and position of each symbol.
    pub(super) fn starts(&self) -> impl Iterator<Item = (u64, SymbolPosition)> {
        (0..self.blocks.len()).flat_map(move |block| {
            let mut symbols = self.symbols(block);
            let mut index = 0usize;
            core::iter::from_fn(move || {
                let symbol = symbols.as_mut()?.next()?;
                let position = SymbolPosition { block, index };
                index = index.saturating_add(1);
                Some((symbol.address, position))
            })
        })
    }

    fn symbols(&self, block: usize) -> Option<Symbols<'_>> {
        let &Block { address, offset, count } = self.blocks.get(block)?;
        let bytes = self.body.get(self.heap.clone())?.get(offset as usize..)?;
        Some(Symbols::new(bytes, address, count.into()))
    }

    pub(super) fn owner_name(&self, index: usize) -> Option<&[u8]> {
        let owner = self.owners.get(index)?;
        let start = owner.name_offset as usize;
        if owner.name_len as usize > SYMBOL_NAME_MAX {
            return None;
        }
        self.body.get(self.heap.clone())?.get(start..start.checked_add(owner.name_len as usize)?)
    }

    /// Address and position of the last symbol that does not start after `address`; the first of several at one address.
    pub(super) fn last_not_behind(&self, address: u64) -> Option<(u64, SymbolPosition)> {
        let behind = self.blocks.partition_point(|block| block.address <= address);
        let block = behind.checked_sub(1)?;
        let (start, position) = self.last_in_block(block, address)?;
        if self.blocks.get(block)?.address < start {
            return Some((start, position));
        }
        // Symbols at this address may fill blocks, and end the block before them.
        let first = self.blocks.partition_point(|block| block.address < start);
        let before = first.checked_sub(1).and_then(|block| self.last_in_block(block, start));
        let before = before.filter(|&(found, _)| found == start);
        Some(before.unwrap_or((start, SymbolPosition { block: first, index: 0 })))
    }

    fn last_in_block(&self, block: usize, address: u64) -> Option<(u64, SymbolPosition)> {
        let mut symbols = self.symbols(block)?;
        let mut found: Option<(u64, usize)> = None;
        let mut index = 0usize;
        while let Some(symbol) = symbols.next().filter(|s| s.address <= address) {
            if found.is_none_or(|(start, _)| start < symbol.address) {
                found = Some((symbol.address, index));
            }
            index = index.saturating_add(1);
        }
        found.map(|(start, index)| (start, SymbolPosition { block, index }))
    }

    /// The symbol at that position.
    pub(super) fn entry(&self, position: SymbolPosition) -> Option<SymbolEntry<'_>> {
        let (mut symbols, mut name) = (self.symbols(position.block)?, Name::default());
        for _ in 0..position.index {
            name.follow(symbols.next()?);
        }
        let symbol = symbols.next()?;
        name.follow(symbol);
        let owner = usize::try_from(symbol.owner).ok()?.checked_sub(1);
        let owner = owner.and_then(|owner| self.owner_name(owner));
        Some(SymbolEntry {
            address: symbol.address,
            size: symbol.size,
            kind: symbol.kind,
            owner,
            name: name.get(),
        })
    }

    fn owner_at(&self, position: SymbolPosition) -> Option<usize> {
        let mut symbols = self.symbols(position.block)?;
        for _ in 0..position.index {
            symbols.next()?;
        }
        usize::try_from(symbols.next()?.owner).ok()?.checked_sub(1)
    }

    /// Base and size of the owner of the symbol at that position, where they are known.
    pub(super) fn owner_range(&self, position: SymbolPosition) -> Option<(u64, u64)> {
        let owner = self.owners.get(self.owner_at(position)?)?;
        (owner.base != 0 && owner.size != 0).then_some((owner.base, owner.size))
    }

    /// The symbol at that position, if `address` is within it.
    pub(super) fn resolved(
        &self,
        position: SymbolPosition,
        address: u64,
        core: (Option<u64>, Option<u64>),
    ) -> Option<Resolved<'_>> {
        let entry = self.entry(position)?;
        let offset = address.saturating_sub(entry.address);
        let size = if entry.size >= SIZE_BOUNDED { 0 } else { entry.size };
        if size != 0 && offset >= size {
            return None;
        }
        if entry.owner.is_none() {
            // Without an end of the image the last symbol has none either. Absolute symbols, such as offsets in the
            // per-CPU area, are no places unless they lie in the image.
            let is_place = core.0.is_some() || !entry.kind.eq_ignore_ascii_case(&b'a');
            let from = is_place && core.0.is_none_or(|start| entry.address.min(address) >= start);
            if !from || !core.1.map_or(size != 0, |end| address <= end) {
                return None;
            }
        } else {
            // Offsets in the per-CPU area are no places, and a symbol without a known end must not swallow what is
            // after its module.
            let range = self.owner_range(position);
            let holds = |at: u64| {
                range.is_none_or(|(base, len)| at.checked_sub(base).is_some_and(|offset| offset < len))
            };
            if !holds(entry.address) || size == 0 && (!holds(address) || offset >= UNKNOWN_SIZE_MAX) {
                return None;
            }
        }
        Some(Resolved { name: entry.name, offset, size: entry.size, module: entry.owner })
    }
}

fn owner<O: Order>(row: &SymbolOwnerRow<O>) -> Owner {
    Owner {
        base: row.base.get(),
        size: row.size.get(),
        name_offset: row.name_offset.get(),
        name_len: row.name_len.get(),
    }
}

fn block<O: Order>(row: &SymbolBlockRow<O>) -> Block {
    Block { address: row.address.get(), offset: row.offset.get(), count: row.symbol_count.get() }
}
