//! Symbols, searched in the file where they lie.

use zerocopy::{BigEndian, ByteOrder as Order, LittleEndian};

use super::cast::{array_at, head_len, struct_at};
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

/// The symbols of the traced kernel, sorted by address.
#[derive(Debug, Clone, Copy)]
pub struct SymbolTable<'d> {
    rows: Rows<'d>,
    heap: &'d [u8],
    core_start: u64,
    core_end: u64,
    owners: Owners<'d>,
}

#[derive(Debug, Clone, Copy)]
enum Rows<'d> {
    Little64(&'d [SymbolRow64<LittleEndian>]),
    Big64(&'d [SymbolRow64<BigEndian>]),
    Little32(&'d [SymbolRow32<LittleEndian>]),
    Big32(&'d [SymbolRow32<BigEndian>]),
}

#[derive(Debug, Clone, Copy)]
enum Owners<'d> {
    Little(&'d [SymbolOwnerRow<LittleEndian>]),
    Big(&'d [SymbolOwnerRow<BigEndian>]),
}

struct Row {
    address: u64,
    size: u64,
    name: (u32, u16),
    owner: u16,
}

macro_rules! native {
    ($row:expr) => {
        Row {
            address: $row.address.get().into(),
            size: $row.size.get().into(),
            name: ($row.name_offset.get(), $row.name_len.get()),
            owner: $row.owner.get(),
        }
    };
}

impl<'d> SymbolTable<'d> {
    pub(super) fn parse(body: &'d [u8], base: u64, order: ByteOrder, long_size: usize) -> Result<Self> {
        match order {
            ByteOrder::Little => Self::parse_in_order::<LittleEndian>(body, base, order, long_size),
            ByteOrder::Big => Self::parse_in_order::<BigEndian>(body, base, order, long_size),
        }
    }

    fn parse_in_order<O: Order>(
        body: &'d [u8],
        base: u64,
        order: ByteOrder,
        long_size: usize,
    ) -> Result<Self> {
        let head = struct_at::<SymbolsHead<O>>(body, 0, base)?;
        let owners_at = head_len::<SymbolsHead<O>>(head.head_len.get(), body, base)?;
        let (owner_count, count) = (head.owner_count.get() as usize, head.symbol_count.get() as usize);
        let owners = match order {
            ByteOrder::Little => Owners::Little(array_at(body, owners_at, owner_count, base)?),
            ByteOrder::Big => Owners::Big(array_at(body, owners_at, owner_count, base)?),
        };
        let rows_at = owners_at + owner_count * size_of::<SymbolOwnerRow<O>>();
        let row_size = if long_size == 8 { size_of::<SymbolRow64<O>>() } else { size_of::<SymbolRow32<O>>() };
        let rows = match (order, long_size) {
            (ByteOrder::Little, 8) => Rows::Little64(array_at(body, rows_at, count, base)?),
            (ByteOrder::Big, 8) => Rows::Big64(array_at(body, rows_at, count, base)?),
            (ByteOrder::Little, _) => Rows::Little32(array_at(body, rows_at, count, base)?),
            (ByteOrder::Big, _) => Rows::Big32(array_at(body, rows_at, count, base)?),
        };
        let heap_at = rows_at + count * row_size;
        let heap = array_at(body, heap_at, head.heap_len.get() as usize, base)?;
        let (core_start, core_end) = (head.core_start.get(), head.core_end.get());
        let table = Self { rows, heap, core_start, core_end, owners };
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

    /// Number of symbols.
    pub fn len(&self) -> usize {
        match self.rows {
            Rows::Little64(r) => r.len(),
            Rows::Big64(r) => r.len(),
            Rows::Little32(r) => r.len(),
            Rows::Big32(r) => r.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn row(&self, index: usize) -> Option<Row> {
        Some(match self.rows {
            Rows::Little64(r) => native!(r.get(index)?),
            Rows::Big64(r) => native!(r.get(index)?),
            Rows::Little32(r) => native!(r.get(index)?),
            Rows::Big32(r) => native!(r.get(index)?),
        })
    }

    fn name(&self, (offset, len): (u32, u16)) -> Option<&'d [u8]> {
        self.heap.get(offset as usize..(offset as usize).checked_add(usize::from(len))?)
    }

    fn owner_name(&self, index: usize) -> Option<&'d [u8]> {
        let (offset, len) = match self.owners {
            Owners::Little(o) => o.get(index).map(|o| (o.name_offset.get(), o.name_len.get()))?,
            Owners::Big(o) => o.get(index).map(|o| (o.name_offset.get(), o.name_len.get()))?,
        };
        self.heap.get(offset as usize..(offset as usize).checked_add(len as usize)?)
    }

    fn owner_holds(&self, index: usize, address: u64) -> bool {
        let range = match self.owners {
            Owners::Little(o) => o.get(index).map(|o| (o.base.get(), o.size.get())),
            Owners::Big(o) => o.get(index).map(|o| (o.base.get(), o.size.get())),
        };
        match range {
            Some((base, size)) if base != 0 && size != 0 => address >= base && address - base < size,
            _ => true,
        }
    }

    /// The symbol that holds `address`, as the kernel's `%pS` finds it: the last one that does not start behind it,
    /// and of several at one address the first.
    pub fn resolve(&self, address: u64) -> Option<Resolved<'d>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.row(middle)?.address <= address { low = middle + 1 } else { high = middle }
        }
        let mut index = low.checked_sub(1)?;
        let start = self.row(index)?.address;
        while index > 0 && self.row(index - 1)?.address == start {
            index -= 1;
        }
        let row = self.row(index)?;
        let offset = address - row.address;
        if row.size != 0 && offset >= row.size && row.size != u64::from(u32::MAX) {
            return None;
        }
        let module = match row.owner.checked_sub(1) {
            None => {
                // A bound that is 0 is not known. Without an end the last symbol has none either.
                let from = self.core_start == 0 || address >= self.core_start;
                let to = if self.core_end == 0 { row.size != 0 } else { address <= self.core_end };
                if !from || !to {
                    return None;
                }
                None
            }
            Some(owner) => {
                // A symbol without a known end must not swallow what lies behind its module.
                if row.size == 0 && !self.owner_holds(owner.into(), address) {
                    return None;
                }
                Some(self.owner_name(owner.into())?)
            }
        };
        Some(Resolved { name: self.name(row.name)?, offset, size: row.size, module })
    }
}
