//! `/proc/kallsyms`: the kernel's symbols, with the ends that the kernel itself would give them.

use std::collections::HashMap;

use super::{Module, modules_by_name};

/// Owner of a symbol: the kernel itself, or the module (also `bpf`, `__builtin__ftrace` ...) of that index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolOwner {
    /// The kernel.
    Core,
    /// The owner of that index in [`KernelSymbols::owners`].
    Owner(u16),
}

/// One symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Address.
    pub address: u64,
    /// Bytes to the next symbol of the same owner at another address; 0 where that is not known.
    pub size: u64,
    /// Letter as nm prints it.
    pub kind: u8,
    /// Owner.
    pub owner: SymbolOwner,
    /// Name.
    pub name: &'a [u8],
}

/// All symbols, sorted by address; of those at one address the one that the kernel would name comes first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelSymbols<'a> {
    /// The symbols.
    pub symbols: Vec<Symbol<'a>>,
    /// Names of the owners except the kernel.
    pub owners: Vec<&'a [u8]>,
    /// True if every address in the file is 0: they are hidden from the reader (`kptr_restrict`).
    pub all_zero: bool,
}

impl KernelSymbols<'_> {
    /// Names of the symbols that bound the kernel image.
    pub const BOUNDS: [&'static [u8]; 6] =
        [b"_stext", b"_text", b"_etext", b"_sinittext", b"_einittext", b"_end"];
}

/// Parses `/proc/kallsyms`: `ADDRESS TYPE NAME[\t[OWNER]]`. Lines that are none are passed over.
///
/// Sizes follow `get_symbol_pos` (kernel/kallsyms.c) and `find_kallsyms_symbol` (kernel/module): a symbol reaches to
/// the next one of its owner at a higher address. `modules` and `page_size` bound the last function of a module.
///
/// ```
/// use kmt_format::kernel::parse_kallsyms;
///
/// let text = b"ffffffff81000000 T _text\nffffffff81000100 T do_open\nffffffff81000300 T _end\n";
/// let symbols = parse_kallsyms(text, &[], 4096).symbols;
/// assert_eq!((symbols[1].name, symbols[1].size), (&b"do_open"[..], 0x200));
/// ```
pub fn parse_kallsyms<'a>(text: &'a [u8], modules: &[Module], page_size: u64) -> KernelSymbols<'a> {
    let mut out = KernelSymbols::default();
    let mut any_address = false;
    let mut owners = Owners::default();
    for line in text.split(|&b| b == b'\n') {
        let Some((address, kind, name, owner)) = parse_line(line) else { continue };
        any_address |= address != 0;
        let owner = match owner {
            None => SymbolOwner::Core,
            // ARM, arm64 and RISC-V mapping symbols mark code and data inside modules; the kernel ignores them.
            Some(_) if is_mapping_symbol(name) => continue,
            Some(owner) => owners.owner(owner),
        };
        out.symbols.push(Symbol { address, size: 0, kind, owner, name });
    }
    if !any_address {
        let all_zero = !out.symbols.is_empty();
        return KernelSymbols { all_zero, ..KernelSymbols::default() };
    }
    out.owners = owners.names;
    // Stable: the file's order decides among symbols of one address, as the kernel's own table order does.
    out.symbols.sort_by_key(|s| s.address);
    set_sizes(&mut out, modules, page_size.max(1));
    out
}

/// Address, letter, name, owner.
type Line<'a> = (u64, u8, &'a [u8], Option<&'a [u8]>);

fn parse_line(line: &[u8]) -> Option<Line<'_>> {
    let blank = line.iter().position(|&b| b == b' ')?;
    let address = core::str::from_utf8(line.get(..blank)?).ok()?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let kind = *line.get(blank.saturating_add(1))?;
    if *line.get(blank.saturating_add(2))? != b' ' {
        return None;
    }
    let rest = line.get(blank.saturating_add(3)..)?;
    let (name, owner) = match rest.iter().position(|&b| b == b'\t') {
        None => (rest, None),
        Some(tab) => {
            let owner = rest.get(tab.saturating_add(1)..)?.strip_prefix(b"[")?;
            (rest.get(..tab)?, Some(owner.strip_suffix(b"]").unwrap_or(owner)))
        }
    };
    (!name.is_empty()).then_some((address, kind, name, owner))
}

fn is_mapping_symbol(name: &[u8]) -> bool {
    match name {
        [b'$', b'a' | b't' | b'd' | b'x', rest @ ..] => rest.is_empty() || rest.starts_with(b"."),
        _ => name.starts_with(b".L") || name.starts_with(b"L0"),
    }
}

/// Names of owners, each once. A kernel has some hundreds; beyond 65,535 their symbols are taken for the kernel's.
#[derive(Default)]
struct Owners<'a> {
    names: Vec<&'a [u8]>,
    numbers: HashMap<&'a [u8], u16>,
}

impl<'a> Owners<'a> {
    fn owner(&mut self, name: &'a [u8]) -> SymbolOwner {
        if let Some(&number) = self.numbers.get(name) {
            return SymbolOwner::Owner(number);
        }
        match u16::try_from(self.names.len()) {
            Ok(number) if number < u16::MAX => {
                self.names.push(name);
                self.numbers.insert(name, number);
                SymbolOwner::Owner(number)
            }
            _ => SymbolOwner::Core,
        }
    }
}

/// Walks from the highest address down and remembers, for each owner, the next higher address.
fn set_sizes(out: &mut KernelSymbols<'_>, modules: &[Module], page_size: u64) {
    // For each owner (core last): next higher address, address of the current symbols, kind there.
    let mut next: Vec<Option<(u64, u8)>> = vec![None; out.owners.len().saturating_add(1)];
    let mut current: Vec<Option<(u64, u8)>> = vec![None; out.owners.len().saturating_add(1)];
    let core = out.owners.len();
    let ends: Vec<Option<u64>> = {
        let places = modules_by_name(modules);
        out.owners.iter().map(|name| module_end(places.get(name)?)).collect()
    };
    for symbol in out.symbols.iter_mut().rev() {
        let slot = match symbol.owner {
            SymbolOwner::Core => core,
            SymbolOwner::Owner(index) => usize::from(index).min(core),
        };
        let (Some(current), Some(next)) = (current.get_mut(slot), next.get_mut(slot)) else { continue };
        match current {
            Some((address, _)) if *address == symbol.address => {}
            _ => {
                *next = *current;
                *current = Some((symbol.address, symbol.kind));
            }
        }
        let mut end = next.map(|(address, _)| address);
        if slot != core {
            let text_ends_here = is_text(symbol.kind) && next.is_none_or(|(_, kind)| !is_text(kind));
            // After the last function of a module its text ends at a page boundary, before any data symbol.
            if text_ends_here {
                let page_end =
                    symbol.address.checked_next_multiple_of(page_size).filter(|&e| e > symbol.address);
                let page_end = page_end.or_else(|| symbol.address.checked_add(page_size));
                end = [end, page_end].into_iter().flatten().min();
            }
            let module_end = ends.get(slot).copied().flatten().filter(|&e| e > symbol.address);
            end = end.or(module_end);
        }
        symbol.size = end.map_or(0, |e| e.saturating_sub(symbol.address));
    }
}

fn module_end(module: &Module) -> Option<u64> {
    module.base.checked_add(module.size).filter(|_| module.base != 0)
}

fn is_text(kind: u8) -> bool {
    matches!(kind, b't' | b'T' | b'w' | b'W')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\nffffffff81000000 T _text\n\
        ffffffff81000040 t helper\nffffffff81000100 B _end\nffffffffc0001010 t mod_b\t[m]\nffffffffc0001000 t mod_a\t[m]\n\
        ffffffffc0001000 t $x\t[m]\nffffffffc0003000 d mod_data\t[m]\nnonsense\n";

    #[test]
    fn sizes_reach_to_the_next_symbol_of_the_owner() {
        let symbols = parse_kallsyms(TEXT, &[], 4096);
        let find = |name: &str| *symbols.symbols.iter().find(|s| s.name == name.as_bytes()).unwrap();
        assert_eq!(find("_stext").size, 0x40);
        assert_eq!(find("_text").size, 0x40);
        assert_eq!(find("helper").size, 0xc0);
        assert_eq!(find("mod_a").size, 0x10);
        assert_eq!(find("mod_b").size, 0xff0, "the text of a module ends at a page boundary");
        assert_eq!(find("_end").size, 0, "nothing of the kernel lies behind its end");
        assert_eq!(symbols.owners, [b"m"]);
        assert!(!symbols.symbols.iter().any(|s| s.name == b"$x"));
        assert_eq!(symbols.symbols[1].name, b"_stext", "the file's order decides at one address");
    }

    #[test]
    fn each_owner_has_one_number_however_many_there_are() {
        let text: String =
            (0..140_000).map(|i| format!("{:x} t f\t[m{}]\n", 0x1000 + i * 16, i % 70_000)).collect();
        let modules: Vec<Module> = (0..70_000u64)
            .map(|i| Module { name: format!("m{i}"), base: 0x1000 + i * 16, size: 1 << 30 })
            .collect();
        let symbols = parse_kallsyms(text.as_bytes(), &modules, 4096);
        assert_eq!(symbols.owners.len(), usize::from(u16::MAX));
        let owner = |at: usize| symbols.symbols[at].owner;
        assert_eq!(owner(65_534), SymbolOwner::Owner(65_534));
        assert_eq!(owner(65_535), SymbolOwner::Core, "nobody else's number");
        assert_eq!(owner(70_007), SymbolOwner::Owner(7));
    }

    #[test]
    fn zeroed_addresses_are_noticed() {
        let symbols = parse_kallsyms(b"0000000000000000 T a\n0000000000000000 T b\n", &[], 4096);
        assert!(symbols.all_zero && symbols.symbols.is_empty());
        assert!(!parse_kallsyms(b"", &[], 4096).all_zero);
    }
}
