//! Symbols, searched in the file where they lie.

mod block;
mod chunk;

use std::borrow::Cow;
use std::sync::OnceLock;

pub(crate) use chunk::SymbolChunk;
use chunk::SymbolPosition;

/// Symbol of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved<'t> {
    /// Name of the symbol.
    pub name: Cow<'t, [u8]>,
    /// Bytes from the symbol's start to the address.
    pub offset: u64,
    /// Size of the symbol in bytes; 0 if not known.
    pub size: u64,
    /// Module or the like; `None` for the kernel itself.
    pub module: Option<&'t [u8]>,
}

/// A symbol as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolEntry<'t> {
    /// Address.
    pub address: u64,
    /// Bytes to the next symbol of the same owner at another address; 0 if not known.
    pub size: u64,
    /// Letter as nm prints it.
    pub kind: u8,
    /// Module or the like; `None` for the kernel itself.
    pub owner: Option<&'t [u8]>,
    /// Name.
    pub name: Cow<'t, [u8]>,
}

/// The symbols of the traced kernel: those of all KSYM chunks together. Spec section "KSYM".
///
/// ```
/// use kmt_format::read::Trace;
/// # let file = kmt_format::example()?;
/// let trace = Trace::open(&file)?;
/// let symbols = trace.symbols().expect("a table");
/// let found = symbols.resolve(0xffff_ffff_8100_0220).expect("a symbol");
/// assert_eq!((found.name.as_ref(), found.offset), (&b"do_open"[..], 0x20));
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct SymbolTable<'d> {
    /// In the order of the file.
    chunks: Vec<SymbolChunk<'d>>,
    /// If there are many chunks: for each address at which symbols start, in order, the valid symbol.
    merged: OnceLock<Vec<Start>>,
    /// Bounds of the kernel image, from the last chunk that has them.
    core: (Option<u64>, Option<u64>),
}

/// Start of a symbol: address, number of its chunk, and its position there.
type Start = (u64, u32, u32);

/// Up to this number of chunks each one is searched: those of a kernel, and of modules loaded while it was traced.
const CHUNKS_SEARCHED: usize = 8;

impl<'d> SymbolTable<'d> {
    /// Adds the symbols of the next chunk.
    pub(crate) fn add(&mut self, chunk: SymbolChunk<'d>) {
        let stated = |bound: u64, before| if bound == 0 { before } else { Some(bound) };
        self.core = (stated(chunk.core_start, self.core.0), stated(chunk.core_end, self.core.1));
        self.chunks.push(chunk);
        self.merged.take();
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        self.chunks.iter().fold(0, |sum, chunk| sum.saturating_add(chunk.symbol_count))
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All symbols: chunk by chunk in the order of the file, those of one chunk in the order of their addresses.
    pub fn entries(&self) -> impl Iterator<Item = SymbolEntry<'_>> {
        self.chunks.iter().flat_map(SymbolChunk::entries)
    }

    /// First address of the kernel image, and the first one after it; `None` where that is not known.
    pub fn core_range(&self) -> (Option<u64>, Option<u64>) {
        self.core
    }

    /// The symbol that holds `address`, as the kernel's `%pS` finds it: the last one that does not start after it,
    /// and of several at one address the first. Of equal ones in several chunks the last chunk's counts.
    pub fn resolve(&self, address: u64) -> Option<Resolved<'_>> {
        let (chunk, position) = self.last_not_behind(address)?;
        chunk.resolved(position, address, self.core_range())
    }

    /// The symbol that decides what [`SymbolTable::resolve`] returns for `address`, also where it does not hold it,
    /// with base and size of its owner: a table that has it for each address of a set gives the same answers for them.
    pub(crate) fn deciding(&self, address: u64) -> Option<(SymbolEntry<'_>, Option<(u64, u64)>)> {
        let (chunk, position) = self.last_not_behind(address)?;
        Some((chunk.entry(position)?, chunk.owner_range(position)))
    }

    fn last_not_behind(&self, address: u64) -> Option<(&SymbolChunk<'d>, SymbolPosition)> {
        if self.chunks.len() > CHUNKS_SEARCHED { self.in_merged(address) } else { self.in_chunks(address) }
    }

    /// The symbol that starts last of those that do not start after `address`.
    fn in_chunks(&self, address: u64) -> Option<(&SymbolChunk<'d>, SymbolPosition)> {
        let mut best: Option<(u64, &SymbolChunk<'d>, SymbolPosition)> = None;
        for chunk in self.chunks.iter().rev() {
            let Some((start, position)) = chunk.last_not_behind(address) else { continue };
            if best.is_none_or(|(best, _, _)| start > best) {
                best = Some((start, chunk, position));
            }
        }
        best.map(|(_, chunk, position)| (chunk, position))
    }

    /// The symbol that starts last of those that do not start after `address`, by the addresses of all chunks.
    fn in_merged(&self, address: u64) -> Option<(&SymbolChunk<'d>, SymbolPosition)> {
        let starts = self.merged.get_or_init(|| self.starts());
        let behind = starts.partition_point(|&(start, ..)| start <= address);
        let &(_, chunk, position) = starts.get(behind.checked_sub(1)?)?;
        Some((self.chunks.get(chunk as usize)?, SymbolPosition::unpacked(position)))
    }

    fn starts(&self) -> Vec<Start> {
        let mut starts: Vec<Start> = Vec::with_capacity(self.len());
        for (number, chunk) in self.chunks.iter().enumerate() {
            starts.extend(
                chunk.starts().map(|(address, position)| (address, number as u32, position.packed())),
            );
        }
        // Of those at one address the last chunk's first symbol.
        starts.sort_unstable_by_key(|&(address, chunk, position)| {
            (address, core::cmp::Reverse(chunk), position)
        });
        starts.dedup_by_key(|&mut (address, ..)| address);
        starts
    }
}
