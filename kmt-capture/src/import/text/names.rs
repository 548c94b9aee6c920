//! Symbols of a text: functions without addresses get addresses, so that a file can name them.

use std::collections::HashMap;

use kmt_format::kernel::{KernelSymbols, Symbol, SymbolOwner};

/// Functions by name, in the order in which they came.
#[derive(Debug)]
pub struct NamedSymbols {
    by_name: HashMap<Vec<u8>, usize>,
    rows: Vec<Row>,
    next: u64,
    sites: HashMap<Vec<u8>, u64>,
    most: usize,
    /// Places in functions that came when there were too many.
    pub left_out: u64,
}

#[derive(Debug)]
struct Row {
    name: Vec<u8>,
    owner: Option<Vec<u8>>,
    address: u64,
    size: u64,
}

/// Room for a function whose size the text does not tell.
const ROOM: u64 = 0x1_0000;

impl NamedSymbols {
    /// None yet, and at most `most`.
    pub fn new(long_size: usize, most: u64) -> Self {
        Self::at(if long_size == 8 { 0xffff_ffff_8100_0000 } else { 0xc100_0000 }, most)
    }

    /// The same, with addresses from `next` on.
    pub fn at(next: u64, most: u64) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Self { by_name: HashMap::new(), rows: Vec::new(), next, sites: HashMap::new(), most, left_out: 0 }
    }

    /// True if there are functions.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The address of `FUNCTION+0xOFFSET/0xSIZE [MODULE]`, where all but the function may be missing.
    pub fn address(&mut self, text: &[u8]) -> Option<u64> {
        if let Some(&address) = self.sites.get(text) {
            return Some(address);
        }
        let (symbol, owner) = match text.iter().position(|&b| b == b'[') {
            Some(at) => {
                (text.get(..at)?.trim_ascii_end(), Some(text.get(at + 1..)?.split(|&b| b == b']').next()?))
            }
            None => (text.split(|&b| b == b' ').next()?, None),
        };
        let plus = symbol.iter().rposition(|&b| b == b'+').unwrap_or(symbol.len());
        let name = symbol.get(..plus).filter(|n| is_function(n))?;
        let mut numbers = symbol.get(plus..)?.trim_ascii().split(|&b| b == b'/').map(hex);
        let offset = match numbers.next() {
            Some(Some(offset)) => offset,
            _ if plus == symbol.len() => 0,
            _ => return None,
        };
        let size = numbers.next().flatten().unwrap_or(0);
        let base = self.base(name, owner, offset, size)?;
        let address = base.checked_add(offset)?;
        if self.sites.len() < self.most {
            self.sites.insert(text.to_vec(), address);
        }
        Some(address)
    }

    /// The address of a frame of a stack: `FUNCTION+0x1/0x20`, or an address that no symbol has; `None` if it is neither.
    /// trace-cmd prints the address behind the name, too.
    pub fn frame(&mut self, text: &[u8]) -> Option<u64> {
        let text = text.trim_ascii();
        let end = text.windows(2).position(|w| w == b" (").unwrap_or(text.len());
        let text = text.get(..end)?.trim_ascii_end();
        let number = text.strip_prefix(b"0x").and_then(hex);
        number.or_else(|| self.address(text)).filter(|&address| address != 0)
    }

    /// A function of which the text tells an address in it: `FUNCTION+0xOFFSET/0xSIZE [MODULE]`, where all but the
    /// function may be missing.
    pub fn set_address(&mut self, text: &[u8], address: u64) {
        let (text, owner) = match text.iter().position(|&b| b == b' ') {
            Some(at) => text.split_at(at),
            None => (text, &b""[..]),
        };
        let owner = owner.strip_prefix(b" [").and_then(|owner| owner.strip_suffix(b"]")).map(<[u8]>::to_vec);
        let slash = text.iter().rposition(|&b| b == b'/').unwrap_or(text.len());
        let (text, size) = text.split_at(slash);
        let size = size.strip_prefix(b"/").and_then(hex).unwrap_or(0);
        let plus = text.iter().rposition(|&b| b == b'+').unwrap_or(text.len());
        let (Some(name), Some(rest)) = (text.get(..plus).filter(|n| is_function(n)), text.get(plus..)) else {
            return;
        };
        let offset = if rest.is_empty() { Some(0) } else { hex(rest) };
        let Some(base) = offset.and_then(|offset| address.checked_sub(offset)) else { return };
        if self.by_name.contains_key(name) {
            return;
        }
        if self.rows.len() < self.most {
            self.by_name.insert(name.to_vec(), self.rows.len());
            self.rows.push(Row { name: name.to_vec(), owner, address: base, size });
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }

    fn base(&mut self, name: &[u8], owner: Option<&[u8]>, offset: u64, size: u64) -> Option<u64> {
        if let Some(row) = self.by_name.get(name).and_then(|&at| self.rows.get_mut(at)) {
            // A size comes late where the text had none at first; its room was kept.
            if row.owner.as_deref() == owner && offset < ROOM.max(row.size) {
                if row.size == 0 && size <= ROOM {
                    row.size = size;
                }
                return Some(row.address);
            }
        }
        if self.rows.len() >= self.most {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        let room = ROOM.max(size.min(1 << 24)).max(offset.min(1 << 24).saturating_add(1));
        let address = self.next;
        self.next = address.checked_add(room.next_multiple_of(16))?;
        self.by_name.insert(name.to_vec(), self.rows.len());
        let owner = owner.map(<[u8]>::to_vec);
        self.rows.push(Row { name: name.to_vec(), owner, address, size });
        Some(address)
    }

    /// As a file wants them.
    pub fn kernel_symbols(&self) -> KernelSymbols<'_> {
        let mut owners: Vec<&[u8]> = Vec::new();
        let mut numbers: HashMap<&[u8], usize> = HashMap::new();
        let mut symbols = Vec::new();
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(|row| row.address);
        for row in rows {
            let owner = row.owner.as_deref().map_or(SymbolOwner::Core, |owner| {
                let at = *numbers.entry(owner).or_insert_with(|| {
                    owners.push(owner);
                    owners.len() - 1
                });
                u16::try_from(at).map_or(SymbolOwner::Core, SymbolOwner::Owner)
            });
            let size = if row.size == 0 { ROOM } else { row.size };
            symbols.push(Symbol { address: row.address, size, kind: b't', owner, name: &row.name });
        }
        KernelSymbols { symbols, owners, all_zero: false }
    }
}

fn is_function(name: &[u8]) -> bool {
    let starts = name.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_' || *b == b'.');
    starts && name.iter().all(|b| b.is_ascii_graphic())
}

/// `+0x1f`, `0x1f`, `1f`.
fn hex(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.strip_prefix('+').unwrap_or(text);
    u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_get_addresses() {
        let mut symbols = NamedSymbols::new(8, 100);
        let first = symbols.address(b"do_fork+0x10/0x80").unwrap();
        assert_eq!(symbols.address(b"do_fork+0x20/0x80"), Some(first + 0x10));
        assert_eq!(symbols.address(b"do_fork"), Some(first - 0x10));
        let other = symbols.address(b"ext4_x+0x4/0x9 [ext4]").unwrap();
        assert!(other > first + 0x80);
        assert_eq!(symbols.address(b"12"), None);
        assert_eq!(symbols.address(b""), None);
        let table = symbols.kernel_symbols();
        assert_eq!(table.symbols.len(), 2);
        assert_eq!(table.owners, [b"ext4"]);
        assert_eq!(table.symbols[0].size, 0x80);
    }
}
