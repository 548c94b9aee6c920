//! Addresses of code that events hold, and the symbols that name them.

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::kernel::{ByteOrder, KernelSymbols, Module, Symbol, SymbolOwner};
use crate::pack::RecordPlan;
use crate::read::{SymbolEntry, SymbolTable};

/// Addresses that are remembered. Beyond, all are forgotten, and may be reported once more: a kernel has some
/// ten thousand call sites, and a hostile one must not take more memory.
const ADDRESSES_MAX: usize = 1 << 18;
/// Addresses that are recognized without a search in all.
const RECENT: usize = 1 << 10;

/// Addresses of code found in events by a writer.
#[derive(Debug, Default)]
pub(super) struct UsedCode {
    is_on: bool,
    recent: Vec<u64>,
    addresses: HashSet<u64>,
    /// Those that are new since the last time, in the order of the events.
    fresh: Vec<u64>,
    source: Option<Source>,
}

/// Base and size of a symbol's owner, where they are known.
type OwnerRange = Option<(u64, u64)>;

/// A table from which symbols are written when they are needed.
#[derive(Debug)]
struct Source {
    table: SymbolTable<'static>,
    /// Starts of the symbols that are in the file.
    written: HashSet<u64>,
    is_begun: bool,
}

/// New symbols for a chunk, with their modules and the bounds of the kernel image.
pub(super) struct NewSymbols<'t> {
    pub symbols: KernelSymbols<'t>,
    pub modules: Vec<Module>,
    pub core: (u64, u64),
}

impl UsedCode {
    pub fn start(&mut self) {
        self.is_on = true;
    }

    pub fn is_on(&self) -> bool {
        self.is_on
    }

    pub fn set_source(&mut self, table: SymbolTable<'static>) {
        self.is_on = true;
        self.source = Some(Source { table, written: HashSet::new(), is_begun: false });
    }

    /// Adds an address.
    #[inline]
    pub fn add(&mut self, address: u64) {
        // The upper bits of a product depend on all bits of the address.
        let slot = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % RECENT;
        if self.recent.get(slot) == Some(&address) || address == 0 {
            return;
        }
        self.recent.resize(RECENT, 0);
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = address;
        }
        if self.addresses.len() >= ADDRESSES_MAX {
            self.addresses.clear();
        }
        if self.addresses.insert(address) {
            self.fresh.push(address);
        }
    }

    /// Adds the addresses of an event.
    pub fn add_record(&mut self, plan: &RecordPlan, record: &[u8], order: ByteOrder, long_size: usize) {
        for code in plan.code(long_size) {
            let mut add = |address: u64| {
                self.add(address);
                if code.before {
                    self.add(address.wrapping_sub(1));
                }
            };
            match plan.arrays.get(code.array) {
                Some(array) => array
                    .bytes(record, order, long_size)
                    .chunks_exact(long_size)
                    .for_each(|address| add(order.uint(address))),
                None => {
                    let (offset, len) = (code.scalar.offset as usize, code.scalar.len as usize);
                    add(order.uint_at(record, offset, len).unwrap_or(0));
                }
            }
        }
    }

    /// Forgets what was added and written: the next file has none of it.
    pub fn forget(&mut self) {
        self.recent.clear();
        self.addresses.clear();
        self.fresh.clear();
        if let Some(source) = &mut self.source {
            source.written.clear();
            source.is_begun = false;
        }
    }

    /// The addresses that are new since the last time.
    pub fn take(&mut self) -> Vec<u64> {
        core::mem::take(&mut self.fresh)
    }

    /// Symbols for the addresses that are new, and the bounds of the kernel image the first time; calls `write` if
    /// there are any.
    pub fn new_symbols(&mut self, write: impl FnOnce(&NewSymbols<'_>) -> Result<()>) -> Result<()> {
        let Some(Source { table, written, is_begun }) = &mut self.source else { return Ok(()) };
        let mut found: Vec<(SymbolEntry<'_>, OwnerRange)> = Vec::new();
        if !core::mem::replace(is_begun, true) {
            let bounds = table
                .entries()
                .filter(|s| s.owner.is_none() && KernelSymbols::BOUNDS.contains(&s.name.as_ref()));
            // The first symbol at an address decides: a bound that another one hides stays hidden.
            for bound in bounds {
                let first = table.deciding(bound.address);
                let is_first = first.as_ref().is_some_and(|(entry, _)| *entry == bound);
                found.extend(first.filter(|(entry, _)| written.insert(entry.address)));
                found.extend((!is_first).then_some((bound, None)));
            }
        }
        for address in self.fresh.drain(..) {
            found.extend(table.deciding(address).filter(|(entry, _)| written.insert(entry.address)));
        }
        if found.is_empty() {
            return Ok(());
        }
        // Stable: of those at one address the one that decides comes first.
        found.sort_by_key(|(entry, _)| entry.address);
        let core = table.core_range();
        write(&NewSymbols::of(&found, (core.0.unwrap_or(0), core.1.unwrap_or(0))))
    }
}

impl<'t> NewSymbols<'t> {
    fn of(found: &'t [(SymbolEntry<'t>, OwnerRange)], core: (u64, u64)) -> Self {
        let mut owners: Vec<(&[u8], OwnerRange)> = Vec::new();
        let mut numbers: HashMap<(&[u8], OwnerRange), usize> = HashMap::new();
        let mut symbols = Vec::new();
        for (entry, range) in found {
            let owner = entry.owner.map_or(SymbolOwner::Core, |owner| {
                let at = *numbers.entry((owner, *range)).or_insert_with(|| {
                    owners.push((owner, *range));
                    owners.len().saturating_sub(1)
                });
                SymbolOwner::Owner(at as u16)
            });
            let SymbolEntry { address, size, kind, ref name, .. } = *entry;
            symbols.push(Symbol { address, size, kind, owner, name });
        }
        let modules = owners.iter().filter_map(|(name, range)| {
            let (base, size) = (*range)?;
            Some(Module { name: String::from_utf8_lossy(name).into_owned(), base, size })
        });
        let modules = modules.collect();
        let owners = owners.into_iter().map(|(name, _)| name).collect();
        Self { symbols: KernelSymbols { symbols, owners, all_zero: false }, modules, core }
    }
}
