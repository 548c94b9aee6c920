//! Symbols, searched in the file where they lie.

use core::ops::Range;
use std::borrow::Cow;
use std::sync::OnceLock;
use zerocopy::{BigEndian, ByteOrder as Order, FromBytes, Immutable, KnownLayout, LittleEndian, Unaligned};

use super::cast::{Table, array_at, head_len, struct_at};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::ByteOrder;
use crate::raw::{SymbolOwnerRow, SymbolRow32, SymbolRow64, SymbolsHead};

/// What an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved<'d> {
    /// Name of the symbol.
    pub name: &'d [u8],
    /// Bytes from the symbol's start to the address.
    pub offset: u64,
    /// Size of the symbol in bytes; 0 if not known.
    pub size: u64,
    /// Module or the like; `None` for the kernel itself.
    pub module: Option<&'d [u8]>,
}

/// The symbols of the traced kernel: those of all KSYM chunks together. Spec section "KSYM".
///
/// ```
/// use kmt_format::read::Trace;
/// # let file = kmt_format::example()?;
/// let trace = Trace::open(&file)?;
/// let symbols = trace.symbols().expect("a table");
/// let found = symbols.resolve(0xffff_ffff_8100_0220).expect("a symbol");
/// assert_eq!((found.name, found.offset), (&b"do_open"[..], 0x20));
/// # Ok::<(), kmt_format::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct SymbolTable<'d> {
    /// In the order of the file.
    parts: Vec<Part<'d>>,
    /// Where there are many parts: of all addresses at which symbols start, in their order, the symbol that counts.
    merged: OnceLock<Vec<Start>>,
    /// Bounds of the kernel image, as the last part that tells has them.
    core: (Option<u64>, Option<u64>),
}

/// Where a symbol starts: address, number of its part, and of its row there.
type Start = (u64, u32, u32);

/// Up to this number of parts each one is searched: those of a kernel, and of modules loaded while it was traced.
const PARTS_SEARCHED: usize = 8;

/// The symbols of one chunk, sorted by address.
#[derive(Debug, Clone)]
pub(super) struct Part<'d> {
    body: Cow<'d, [u8]>,
    order: ByteOrder,
    long_size: usize,
    owners: Rows,
    rows: Rows,
    heap: Range<usize>,
    core_start: u64,
    core_end: u64,
}

/// Where rows lie in the body.
#[derive(Debug, Clone, Copy)]
struct Rows {
    start: usize,
    count: usize,
    row_len: usize,
}

struct Row {
    address: u64,
    size: u64,
    name: (u32, u16),
    owner: u16,
    kind: u8,
}

/// A symbol as the file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolEntry<'t> {
    /// Address.
    pub address: u64,
    /// Bytes to the next symbol of the same owner; 0 if not known.
    pub size: u64,
    /// Letter as nm prints it.
    pub kind: u8,
    /// Module or the like; `None` for the kernel itself.
    pub owner: Option<&'t [u8]>,
    /// Name.
    pub name: &'t [u8],
}

/// How far a symbol of unknown size reaches at most.
const UNKNOWN_SIZE_MAX: u64 = 1 << 20;

macro_rules! native {
    ($row:expr) => {
        Row {
            address: $row.address.get().into(),
            size: $row.size.get().into(),
            name: ($row.name_offset.get(), $row.name_len.get()),
            owner: $row.owner.get(),
            kind: $row.kind,
        }
    };
}

impl<'d> SymbolTable<'d> {
    /// Adds the symbols of the next chunk.
    pub(super) fn add(&mut self, part: Part<'d>) {
        let known = |bound: u64, before| if bound == 0 { before } else { Some(bound) };
        self.core = (known(part.core_start, self.core.0), known(part.core_end, self.core.1));
        self.parts.push(part);
        self.merged.take();
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.rows.count))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All symbols: chunk by chunk in the order of the file, those of one chunk in the order of their addresses.
    pub fn entries(&self) -> impl Iterator<Item = SymbolEntry<'_>> {
        self.parts.iter().flat_map(Part::entries)
    }

    /// First address of the kernel image, and the first one behind it; `None` where that is not known.
    pub fn core_range(&self) -> (Option<u64>, Option<u64>) {
        self.core
    }

    /// The symbol that holds `address`, as the kernel's `%pS` finds it: the last one that does not start behind it,
    /// and of several at one address the first. Of equal ones in several chunks the last chunk's counts.
    pub fn resolve(&self, address: u64) -> Option<Resolved<'_>> {
        let (part, index) = if self.parts.len() > PARTS_SEARCHED {
            self.in_merged(address)?
        } else {
            self.in_parts(address)?
        };
        part.resolved(index, address, self.core_range())
    }

    /// The symbol that starts last of those that do not start behind `address`.
    fn in_parts(&self, address: u64) -> Option<(&Part<'d>, usize)> {
        let mut best: Option<(u64, &Part<'d>, usize)> = None;
        for part in self.parts.iter().rev() {
            let Some((start, index)) = part.last_not_behind(address) else { continue };
            if best.is_none_or(|(best, _, _)| start > best) {
                best = Some((start, part, index));
            }
        }
        best.map(|(_, part, index)| (part, index))
    }

    /// The same, by the addresses of all parts.
    fn in_merged(&self, address: u64) -> Option<(&Part<'d>, usize)> {
        let starts = self.merged.get_or_init(|| self.starts());
        let behind = starts.partition_point(|&(start, ..)| start <= address);
        let &(_, part, row) = starts.get(behind.checked_sub(1)?)?;
        Some((self.parts.get(part as usize)?, row as usize))
    }

    fn starts(&self) -> Vec<Start> {
        let mut starts: Vec<Start> = Vec::with_capacity(self.len());
        for (number, part) in self.parts.iter().enumerate() {
            let rows = (0..part.rows.count).filter_map(|row| Some((row, part.row(row)?.address)));
            starts.extend(rows.map(|(row, address)| (address, number as u32, row as u32)));
        }
        // Of those at one address the last part's first row.
        starts.sort_unstable_by_key(|&(address, part, row)| (address, core::cmp::Reverse(part), row));
        starts.dedup_by_key(|&mut (address, ..)| address);
        starts
    }
}

impl<'d> Part<'d> {
    pub(super) fn parse(body: Cow<'d, [u8]>, base: u64, order: ByteOrder, long_size: usize) -> Result<Self> {
        match order {
            ByteOrder::Little => Self::parse_in_order::<LittleEndian>(body, base, order, long_size),
            ByteOrder::Big => Self::parse_in_order::<BigEndian>(body, base, order, long_size),
        }
    }

    fn parse_in_order<O: Order + 'static>(
        body: Cow<'d, [u8]>,
        base: u64,
        order: ByteOrder,
        long_size: usize,
    ) -> Result<Self> {
        let head = struct_at::<SymbolsHead<O>>(&body, 0, base)?;
        let owners_at = head_len::<SymbolsHead<O>>(head.head_len.get(), &body, base)?;
        let (owner_count, count) = (head.owner_count.get() as usize, head.symbol_count.get() as usize);
        let (core_start, core_end) = (head.core_start.get(), head.core_end.get());
        let owners = Rows { start: owners_at, count: owner_count, row_len: head.owner_len.get() as usize };
        let owners_len =
            Table::<SymbolOwnerRow<O>>::at(&body, owners_at, owner_count, owners.row_len, base)?.len_bytes();
        let rows = Rows {
            start: owners_at.saturating_add(owners_len),
            count,
            row_len: head.symbol_len.get() as usize,
        };
        let rows_len = match long_size {
            8 => Table::<SymbolRow64<O>>::at(&body, rows.start, count, rows.row_len, base)?.len_bytes(),
            _ => Table::<SymbolRow32<O>>::at(&body, rows.start, count, rows.row_len, base)?.len_bytes(),
        };
        let heap_at = rows.start.saturating_add(rows_len);
        let heap_len = array_at::<u8>(&body, heap_at, head.heap_len.get() as usize, base)?.len();
        let heap = heap_at..heap_at.saturating_add(heap_len);
        let table = Self { body, order, long_size, owners, rows, heap, core_start, core_end };
        for i in 0..count {
            let good = table
                .row(i)
                .is_some_and(|r| table.name(r.name).is_some() && usize::from(r.owner) <= owner_count);
            if !good {
                return Err(Error::at(
                    base,
                    ErrorKind::Malformed("a symbol has a name or owner that is not there"),
                ));
            }
        }
        Ok(table)
    }

    /// What it takes besides the decoded body, in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>().saturating_add(self.rows.count.saturating_mul(size_of::<Start>()))
    }

    fn entries(&self) -> impl Iterator<Item = SymbolEntry<'_>> {
        (0..self.rows.count).filter_map(|index| {
            let row = self.row(index)?;
            let owner = row.owner.checked_sub(1).and_then(|owner| self.owner_name(owner.into()));
            let Row { address, size, kind, name, .. } = row;
            Some(SymbolEntry { address, size, kind, owner, name: self.name(name)? })
        })
    }

    fn nth<T>(&self, rows: Rows, index: usize) -> Option<&T>
    where
        T: FromBytes + KnownLayout + Immutable + Unaligned,
    {
        let at = rows.start.checked_add(index.checked_mul(rows.row_len)?)?;
        let bytes = self.body.get(at..).filter(|_| index < rows.count)?;
        T::ref_from_prefix(bytes).ok().map(|(row, _)| row)
    }

    fn row(&self, index: usize) -> Option<Row> {
        Some(match (self.order, self.long_size) {
            (ByteOrder::Little, 8) => native!(self.nth::<SymbolRow64<LittleEndian>>(self.rows, index)?),
            (ByteOrder::Big, 8) => native!(self.nth::<SymbolRow64<BigEndian>>(self.rows, index)?),
            (ByteOrder::Little, _) => native!(self.nth::<SymbolRow32<LittleEndian>>(self.rows, index)?),
            (ByteOrder::Big, _) => native!(self.nth::<SymbolRow32<BigEndian>>(self.rows, index)?),
        })
    }

    fn owner(&self, index: usize) -> Option<Owner> {
        Some(match self.order {
            ByteOrder::Little => owner(self.nth::<SymbolOwnerRow<LittleEndian>>(self.owners, index)?),
            ByteOrder::Big => owner(self.nth::<SymbolOwnerRow<BigEndian>>(self.owners, index)?),
        })
    }

    fn name(&self, (offset, len): (u32, u16)) -> Option<&[u8]> {
        self.heap_part(offset, len.into())
    }

    fn heap_part(&self, offset: u32, len: u32) -> Option<&[u8]> {
        let heap = self.body.get(self.heap.clone())?;
        heap.get(offset as usize..(offset as usize).checked_add(len as usize)?)
    }

    fn owner_name(&self, index: usize) -> Option<&[u8]> {
        let owner = self.owner(index)?;
        self.heap_part(owner.name_offset, owner.name_len)
    }

    fn owner_holds(&self, index: usize, address: u64) -> bool {
        match self.owner(index) {
            Some(Owner { base, size, .. }) if base != 0 && size != 0 => {
                address >= base && address.saturating_sub(base) < size
            }
            _ => true,
        }
    }

    fn owner_has_range(&self, index: usize) -> bool {
        self.owner(index).is_some_and(|owner| owner.base != 0 && owner.size != 0)
    }

    /// Address and index of the last symbol that does not start behind `address`; the first of several at one address.
    fn last_not_behind(&self, address: u64) -> Option<(u64, usize)> {
        let (mut low, mut high) = (0, self.rows.count);
        while low < high {
            let middle = low.saturating_add(high.saturating_sub(low) / 2);
            if self.row(middle)?.address <= address { low = middle.saturating_add(1) } else { high = middle }
        }
        let start = self.row(low.checked_sub(1)?)?.address;
        // The first of those at that address.
        let (mut first, mut last) = (0, low);
        while first < last {
            let middle = first.saturating_add(last.saturating_sub(first) / 2);
            if self.row(middle)?.address < start { first = middle.saturating_add(1) } else { last = middle }
        }
        Some((start, first))
    }

    /// What `address` is to the symbol of that index, if it lies within it.
    fn resolved(&self, index: usize, address: u64, core: (Option<u64>, Option<u64>)) -> Option<Resolved<'_>> {
        let row = self.row(index)?;
        let offset = address.saturating_sub(row.address);
        // No symbol is as large as a size can tell: behind such a one lies a gap of the address space.
        let size = if row.size == u64::from(u32::MAX) { 0 } else { row.size };
        if size != 0 && offset >= size {
            return None;
        }
        let module = match row.owner.checked_sub(1) {
            None => {
                // Without an end of the image the last symbol has none either. Absolute symbols, such as offsets in the
                // per-CPU area, are no places unless they lie in the image.
                let is_place = core.0.is_some() || !row.kind.eq_ignore_ascii_case(&b'a');
                let from = is_place && core.0.is_none_or(|start| row.address.min(address) >= start);
                let to = core.1.map_or(size != 0, |end| address <= end);
                if !from || !to {
                    return None;
                }
                None
            }
            Some(owner) => {
                // Offsets in the per-CPU area are no places, and a symbol without a known end must not swallow what lies
                // behind its module.
                if !self.owner_holds(owner.into(), row.address) && self.owner_has_range(owner.into())
                    || size == 0 && !self.owner_holds(owner.into(), address)
                    || size == 0 && offset >= UNKNOWN_SIZE_MAX
                {
                    return None;
                }
                Some(self.owner_name(owner.into())?)
            }
        };
        Some(Resolved { name: self.name(row.name)?, offset, size: row.size, module })
    }
}

struct Owner {
    base: u64,
    size: u64,
    name_offset: u32,
    name_len: u32,
}

fn owner<O: Order>(row: &SymbolOwnerRow<O>) -> Owner {
    Owner {
        base: row.base.get(),
        size: row.size.get(),
        name_offset: row.name_offset.get(),
        name_len: row.name_len.get(),
    }
}
