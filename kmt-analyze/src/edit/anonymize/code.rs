//! New addresses of text: the kernel's image and each module move to new places, which do not depend on the old ones.
//! Hidden functions are shuffled, and so are the call sites in each of them.
//!
//! Input are the text addresses that occur in the trace (`survey`) and its symbols; the output are new addresses for
//! records and a symbol table for the new file. Hidden functions lose their names, and their call sites their
//! distances; the selection of them is `Hiding`. The order and gaps depend on the secret key alone.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use kmt_format::kernel::KernelSymbols;
use kmt_format::read::SymbolTable;

use super::keys::{Purpose, SecretKeys, Texts};
use crate::edit::copy::symbol_table;
use crate::sort_rows::SortRows;

/// Parts of a module farther apart than this were placed separately by the kernel.
const REGION_GAP: u64 = 1 << 20;
/// Parts of the kernel farther apart than this were placed separately: its image is one part.
const IMAGE_GAP: u64 = 1 << 28;
/// Distance of call sites in a hidden function, in bytes.
const SITE_STEP: u64 = 16;
/// Size of a hidden function with few call sites, in bytes.
const FUNCTION_STEP: u64 = 4096;

/// A function with its addresses in the trace.
#[derive(Debug)]
struct HiddenFunction<'t> {
    name: Cow<'t, [u8]>,
    owner: Option<&'t [u8]>,
    size: u64,
    sites: Vec<u64>,
}

/// A part of the text that moves as a whole.
#[derive(Debug)]
struct Region<'t> {
    owner: Option<&'t [u8]>,
    /// First address, and the one after the last.
    first: u64,
    end: u64,
}

/// A symbol of the new file.
#[derive(Debug, PartialEq, Eq)]
struct NewSymbol {
    address: u64,
    size: u64,
    owner: Option<Vec<u8>>,
    name: Vec<u8>,
}

/// New addresses of the text.
#[derive(Debug, Default)]
pub struct Code {
    moved: HashMap<u64, u64>,
    symbols: Vec<NewSymbol>,
    visible: usize,
    hidden: usize,
}

/// Selection of what to hide.
#[derive(Clone, Copy)]
pub struct Hiding<'a> {
    /// True for owners whose functions are hidden.
    pub owner: &'a dyn Fn(Option<&[u8]>) -> bool,
    /// True to hide addresses outside of functions: else they are treated as data.
    pub nameless: bool,
}

impl Code {
    /// New places for `addresses`; `None` if there is no room.
    pub fn new(
        table: Option<&SymbolTable<'_>>,
        addresses: &BTreeSet<u64>,
        long_size: usize,
        keys: &SecretKeys,
        hiding: Hiding<'_>,
        texts: &mut Texts,
    ) -> Option<Self> {
        let mut functions: BTreeMap<u64, HiddenFunction<'_>> = BTreeMap::new();
        let mut nameless = Vec::new();
        for &address in addresses {
            match table.and_then(|t| t.resolve(address)) {
                Some(found) => {
                    let start = address.wrapping_sub(found.offset);
                    let new = HiddenFunction {
                        name: found.name,
                        owner: found.module,
                        size: found.size,
                        sites: Vec::new(),
                    };
                    functions.entry(start).or_insert(new).sites.push(address);
                }
                None => nameless.push(address),
            }
        }
        let (hidden, visible): (BTreeMap<_, _>, _) =
            functions.into_iter().partition(|(_, f)| (hiding.owner)(f.owner));
        let mut code = Self { visible: visible.len(), hidden: hidden.len(), ..Self::default() };
        let regions = regions(&visible, table);
        let hidden_len = hidden.values().map(|f| step(f)).sum::<u64>();
        let nameless = if hiding.nameless { nameless } else { Vec::new() };
        let nameless_len = (nameless.len() as u64 + 1) * SITE_STEP;
        let mut lens: Vec<u64> = regions.iter().map(|r| r.end - r.first).collect();
        lens.extend([hidden_len, nameless_len]);
        let tag = addresses.iter().next_back().map_or(0, |a| a & !(u64::MAX >> 8));
        let zone = if long_size == 8 { (tag | 1 << 54, 1 << 40) } else { (0xc000_0000, 0x2000_0000) };
        let places = places(&lens, zone, keys)?;
        code.show(&visible, &regions, &places, table);
        code.hide(&hidden, *places.get(regions.len())?, keys, texts);
        code.shuffle(&nameless, *places.get(regions.len() + 1)?, keys);
        code.symbols.sort_rows_by_key(|s| s.address);
        Some(code)
    }

    /// New value of an address; `None` if it belongs to no function.
    pub fn moved(&self, address: u64) -> Option<u64> {
        self.moved.get(&address).copied()
    }

    /// Numbers of functions that keep their names, and of hidden ones.
    pub fn functions(&self) -> (usize, usize) {
        (self.visible, self.hidden)
    }

    /// Symbols of the new file: functions that occur in it, and the bounds of the kernel's image.
    pub fn table(&self) -> KernelSymbols<'_> {
        let symbols = self.symbols.iter();
        symbol_table(symbols.map(|s| (s.address, s.size, b't', s.owner.as_deref(), s.name.as_slice())))
    }

    fn show(
        &mut self,
        functions: &BTreeMap<u64, HiddenFunction<'_>>,
        regions: &[Region<'_>],
        places: &[u64],
        table: Option<&SymbolTable<'_>>,
    ) {
        // Regions are sorted by owner and address.
        let moved = |owner: Option<&[u8]>, address: u64| {
            let at = regions.partition_point(|r| (r.owner, r.first) <= (owner, address)).checked_sub(1)?;
            let region = regions.get(at).filter(|r| r.owner == owner && address < r.end)?;
            Some(places.get(at)?.wrapping_add(address - region.first))
        };
        for (&start, function) in functions {
            let Some(address) = moved(function.owner, start) else { continue };
            self.moved.extend(function.sites.iter().map(|&site| (site, address.wrapping_add(site - start))));
            let reach = function.sites.iter().map(|site| site - start + 1).max().unwrap_or(1);
            let size = if function.size == 0 { reach } else { function.size };
            let owner = function.owner.map(<[u8]>::to_vec);
            self.symbols.push(NewSymbol { address, size, owner, name: function.name.to_vec() });
        }
        // Readers need the symbols that bound the kernel's image (`is_ksym_addr`, kernel/kallsyms.c).
        for (address, name) in bounds(table) {
            let Some(address) = moved(None, address) else { continue };
            self.symbols.push(NewSymbol { address, size: 1, owner: None, name: name.to_vec() });
        }
    }

    /// Places functions in random order, each with room for its call sites in random order.
    fn hide(
        &mut self,
        functions: &BTreeMap<u64, HiddenFunction<'_>>,
        first: u64,
        keys: &SecretKeys,
        texts: &mut Texts,
    ) {
        let mut order: Vec<_> = functions.iter().collect();
        order.sort_rows_by_key(|(start, _)| keys.number(Purpose::TextOrder, **start, 0));
        let mut address = first;
        for (&start, function) in order {
            let mut sites = function.sites.clone();
            // The entry of a function stays its entry.
            sites.sort_rows_by_key(|&site| (site != start, keys.number(Purpose::TextOrder, site, 1)));
            let from = u64::from(!function.sites.contains(&start));
            let places = (from..).map(|number| address + number * SITE_STEP);
            self.moved.extend(sites.into_iter().zip(places));
            let name =
                [function.owner.unwrap_or_default(), b"\0", &function.name, b"\0", &start.to_le_bytes()]
                    .concat();
            let name = texts.name(&name, "function");
            let owner = function.owner.map(|owner| texts.name(owner, "module"));
            self.symbols.push(NewSymbol { address, size: step(function), owner, name });
            address += step(function);
        }
    }

    fn shuffle(&mut self, addresses: &[u64], first: u64, keys: &SecretKeys) {
        let mut order = addresses.to_vec();
        order.sort_rows_by_key(|&address| keys.number(Purpose::TextOrder, address, 2));
        self.moved.extend(order.into_iter().zip((0..).map(|number| first + number * SITE_STEP)));
    }
}

/// Size of a hidden function in bytes: the same for all except those with very many call sites.
fn step(function: &HiddenFunction<'_>) -> u64 {
    ((function.sites.len() as u64 + 1) * SITE_STEP).next_multiple_of(FUNCTION_STEP)
}

/// Symbols that bound the image.
fn bounds<'t>(table: Option<&'t SymbolTable<'_>>) -> Vec<(u64, Cow<'t, [u8]>)> {
    let all = table.into_iter().flat_map(SymbolTable::entries);
    all.filter(|s| s.owner.is_none() && KernelSymbols::BOUNDS.contains(&s.name.as_ref()))
        .map(|s| (s.address, s.name))
        .collect()
}

/// Parts that move as a whole: the image, and the contiguous parts of each module.
fn regions<'t>(
    functions: &BTreeMap<u64, HiddenFunction<'t>>,
    table: Option<&SymbolTable<'_>>,
) -> Vec<Region<'t>> {
    let mut by_owner: BTreeMap<Option<&'t [u8]>, Vec<Region<'t>>> = BTreeMap::new();
    for (&start, function) in functions {
        let last = function.sites.iter().copied().max().unwrap_or(start);
        let end = (last + 1).max(start.saturating_add(function.size.min(REGION_GAP)));
        let regions = by_owner.entry(function.owner).or_default();
        let gap = if function.owner.is_none() { IMAGE_GAP } else { REGION_GAP };
        match regions.last_mut() {
            Some(region) if start < region.end.saturating_add(gap) => {
                region.end = region.end.max(end);
            }
            _ => regions.push(Region { owner: function.owner, first: start, end }),
        }
    }
    for (address, _) in bounds(table) {
        let near = |r: &&mut Region<'_>| {
            address >= r.first.saturating_sub(IMAGE_GAP) && address < r.end.saturating_add(IMAGE_GAP)
        };
        if let Some(image) = by_owner.get_mut(&None).and_then(|regions| regions.iter_mut().find(near)) {
            image.first = image.first.min(address);
            image.end = image.end.max(address.saturating_add(1));
        }
    }
    by_owner.into_values().flatten().collect()
}

/// A page for each part, in an order and with gaps that depend on the key alone; `None` if the zone is too small.
fn places(lens: &[u64], (first, room): (u64, u64), keys: &SecretKeys) -> Option<Vec<u64>> {
    const PAGE: u64 = 4096;
    let pages: Vec<u64> = lens.iter().map(|len| len / PAGE + 2).collect();
    let needed = pages.iter().try_fold(0u64, |sum, &p| sum.checked_add(p))?;
    let gap_max = (room / PAGE).checked_sub(needed)? / lens.len().max(1) as u64;
    let mut order: Vec<usize> = (0..lens.len()).collect();
    order.sort_rows_by_key(|&index| keys.number(Purpose::TextOrder, index as u64, 3));
    let mut places = vec![0; lens.len()];
    let mut page = first / PAGE;
    for index in order {
        page += keys.number(Purpose::TextGap, index as u64, 0) % gap_max.max(1);
        *places.get_mut(index)? = page * PAGE;
        page += pages.get(index)?;
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_apart_in_their_zone() {
        let keys = SecretKeys::new(Some(5)).unwrap();
        let lens = [10_000, 5, 1 << 20];
        let zone = (0xc000_0000, 0x3fc0_0000);
        let places = places(&lens, zone, &keys).unwrap();
        let mut ranges: Vec<_> = places.iter().zip(lens).map(|(&p, len)| (p, p + len)).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|w| w[0].1 < w[1].0) && ranges[0].0 >= zone.0);
        assert!(ranges[2].1 <= zone.0 + zone.1);
        assert!(super::places(&[zone.1], zone, &keys).is_none());
    }
}
