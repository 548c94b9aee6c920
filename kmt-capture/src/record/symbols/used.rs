//! Symbols of a running kernel that events need, by passes over /proc/kallsyms: a recorder holds no table.
//!
//! A pass runs on a thread of its own: the ring buffers are emptied meanwhile, however busy the recorder is, and the file of a
//! recorder that is killed has the names of nearly all of its events.

use std::collections::{BTreeMap, HashMap};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kmt_format::kernel::{KernelSymbols, Module, Symbol, SymbolOwner};
use kmt_format::write::Writer;

use super::slices::{for_each_slice, running_modules};
use crate::failure::{Failure, Result};

/// Time from the first event to the first pass: most functions have had events by then.
const FIRST: Duration = Duration::from_millis(500);
/// How much longer each pass is waited for than the one before, since new functions get rare.
const LONGER: u32 = 4;
/// Longest time that a pass is waited for, as a multiple of the CPU time of the last one, which is 40 to 100 ms on a fast
/// machine: passes take at most a hundredth of one CPU.
const LONGEST: u32 = 100;
/// Bytes of text that are looked through at once.
const SLICE_LEN: usize = 32 << 10;
/// Bytes of a symbol in the file, at most about: address, size, kind, module, and a name of 40 bytes.
const SYMBOL_LEN: u64 = 64;
/// Symbols that are remembered as written; beyond, some are written once more.
const WRITTEN_MAX: usize = 1 << 17;

/// Which symbols are in the file, and for which addresses they are still to be found.
#[derive(Debug, Default)]
pub struct UsedSymbols {
    /// Start and end of symbols in the file.
    written: BTreeMap<u64, u64>,
    wanted: Vec<u64>,
    has_bounds: bool,
    /// The pass that runs, and the number of its addresses.
    running: Option<(JoinHandle<Result<SymbolPass>>, usize)>,
    /// When the next pass may begin, once it is wanted.
    due: Option<Instant>,
    /// How long a pass is waited for.
    rest: Duration,
}

/// Result of a pass, and the modules at that time.
#[derive(Debug)]
struct SymbolPass {
    found: Vec<FoundSymbol>,
    modules: Vec<Module>,
    /// CPU time: a pass that waits for a CPU costs nothing meanwhile.
    took: Duration,
}

/// The last symbol that does not start after an address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FoundSymbol {
    address: u64,
    size: u64,
    kind: u8,
    owner: Option<Vec<u8>>,
    name: Vec<u8>,
}

impl UsedSymbols {
    /// Starts a pass if symbols are missing, and writes what the last one found. Returns true if symbols were written.
    pub fn advance(&mut self, writer: &mut Writer) -> Result<bool> {
        let has_written = self.running.as_ref().is_some_and(|(pass, _)| pass.is_finished());
        if has_written {
            self.end_pass(writer)?;
        }
        self.collect(writer);
        if !self.wanted.is_empty() {
            let due = *self.due.get_or_insert_with(|| Instant::now() + FIRST);
            if self.running.is_none() && Instant::now() >= due {
                self.start_pass(writer)?;
            }
        }
        Ok(has_written)
    }

    /// Finds and writes all that is still missing; in a file without events the symbols that bound the kernel image.
    pub fn finish(&mut self, writer: &mut Writer) -> Result<()> {
        self.end_pass(writer)?;
        self.collect(writer);
        if !self.wanted.is_empty() || !self.has_bounds {
            let wanted = std::mem::take(&mut self.wanted);
            let pass = pass(wanted, !self.has_bounds)?;
            self.write(pass, writer)?;
        }
        Ok(())
    }

    /// True if the file has the symbols of all its events.
    pub fn is_complete(&mut self, writer: &mut Writer) -> bool {
        self.collect(writer);
        self.running.is_none() && self.wanted.is_empty()
    }

    /// Begins again, for the next file: it has no symbols yet.
    pub fn next_file(&mut self) {
        *self = Self::default();
    }

    fn start_pass(&mut self, writer: &mut Writer) -> Result<()> {
        let (wanted, wants_bounds) = (std::mem::take(&mut self.wanted), !self.has_bounds);
        let count = wanted.len();
        let addresses = wanted.clone();
        let builder = thread::Builder::new().name("kmt-symbols".to_owned());
        match builder.spawn(move || pass(addresses, wants_bounds)) {
            Ok(running) => self.running = Some((running, count)),
            // No thread to be had (RLIMIT_NPROC): the buffers wait for this pass.
            Err(_) => self.write(pass(wanted, wants_bounds)?, writer)?,
        }
        Ok(())
    }

    /// Waits for the pass that runs, and writes what it found.
    fn end_pass(&mut self, writer: &mut Writer) -> Result<()> {
        let Some((running, _)) = self.running.take() else { return Ok(()) };
        let pass = running.join().map_err(|_| Failure::new("reading /proc/kallsyms failed"))??;
        self.write(pass, writer)
    }

    fn write(&mut self, pass: SymbolPass, writer: &mut Writer) -> Result<()> {
        let SymbolPass { found, modules, took } = pass;
        self.has_bounds = true;
        self.rest = (self.rest * LONGER).max(FIRST).min((took * LONGEST).max(FIRST));
        self.due = Some(Instant::now() + self.rest);
        if self.written.len() + found.len() > WRITTEN_MAX {
            self.written.clear();
        }
        for symbol in &found {
            self.written.insert(symbol.address, symbol.address.saturating_add(symbol.size));
        }
        if found.is_empty() { Ok(()) } else { write(writer, &found, &modules) }
    }

    /// Bytes of the file that symbols still to be found will take, at most about.
    pub fn wanted_len(&self) -> u64 {
        let running = self.running.as_ref().map_or(0, |&(_, count)| count);
        (self.wanted.len() + running) as u64 * SYMBOL_LEN
    }

    /// Takes the addresses over that `writer` collected.
    pub fn collect(&mut self, writer: &mut Writer) {
        let Self { written, wanted, .. } = self;
        let is_in_file = |address: u64| {
            let before = written.range(..=address).next_back();
            before.is_some_and(|(_, &end)| address < end)
        };
        wanted.extend(writer.take_code_addresses().into_iter().filter(|&address| !is_in_file(address)));
    }
}

/// Finds the symbols of these addresses, and those that bound the kernel image if asked for.
fn pass(mut wanted: Vec<u64>, wants_bounds: bool) -> Result<SymbolPass> {
    let start = thread_cpu_time();
    let modules = running_modules();
    wanted.sort_unstable();
    let mut search = Search::new(&wanted, wants_bounds);
    let is_wanted = |from, to| wants_bounds || has_any(&wanted, from, to);
    for_each_slice(SLICE_LEN, &modules, is_wanted, |symbols, beyond| {
        search.add_slice(symbols, beyond);
        Ok(())
    })?;
    Ok(SymbolPass { found: search.finish(), modules, took: thread_cpu_time().saturating_sub(start) })
}

/// True if any of these sorted addresses is one of `from..to`.
fn has_any(wanted: &[u64], from: u64, to: u64) -> bool {
    wanted.get(wanted.partition_point(|&address| address < from)).is_some_and(|&address| address < to)
}

/// CPU time of this thread.
fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}

/// One pass.
struct Search<'a> {
    /// Sorted.
    wanted: &'a [u64],
    best: Vec<Option<FoundSymbol>>,
    wants_bounds: bool,
    bounds: Vec<FoundSymbol>,
}

impl<'a> Search<'a> {
    fn new(wanted: &'a [u64], wants_bounds: bool) -> Self {
        Self { wanted, best: vec![None; wanted.len()], wants_bounds, bounds: Vec::new() }
    }

    /// Looks through a slice; the kernel's own symbols go on at `beyond`.
    fn add_slice(&mut self, symbols: &KernelSymbols<'_>, beyond: Option<u64>) {
        let Some(first) = symbols.symbols.first().map(|s| s.address) else { return };
        let from = self.wanted.partition_point(|&address| address < first);
        let to = beyond.map_or(self.wanted.len(), |b| self.wanted.partition_point(|&address| address < b));
        for (address, best) in self.wanted.iter().zip(&mut self.best).take(to).skip(from) {
            let behind = symbols.symbols.partition_point(|s| s.address <= *address);
            let Some(last) = behind.checked_sub(1).and_then(|at| symbols.symbols.get(at)) else { continue };
            if best.as_ref().is_none_or(|best| last.address >= best.address) {
                // Of those at one address the first, as the kernel names it.
                let first = symbols.symbols.partition_point(|s| s.address < last.address);
                *best = symbols.symbols.get(first).map(|symbol| FoundSymbol::of(symbol, symbols));
            }
        }
        if self.wants_bounds {
            // Most names begin otherwise, and need not be compared.
            let may_bound = |s: &&Symbol<'_>| s.owner == SymbolOwner::Core && s.name.starts_with(b"_");
            let bounds = symbols.symbols.iter().filter(may_bound);
            let bounds = bounds.filter(|s| KernelSymbols::BOUNDS.contains(&s.name));
            for bound in bounds {
                let first = symbols.symbols.partition_point(|s| s.address < bound.address);
                let first = symbols.symbols.get(first).filter(|&first| first != bound);
                self.bounds.extend(first.map(|first| FoundSymbol::of(first, symbols)));
                self.bounds.push(FoundSymbol::of(bound, symbols));
            }
        }
    }

    /// The symbols found, sorted, without duplicates.
    fn finish(self) -> Vec<FoundSymbol> {
        let mut found: Vec<FoundSymbol> = self.bounds;
        found.extend(self.best.into_iter().flatten());
        // Stable: of those at one address the one that the kernel names is there first.
        found.sort_by_key(|f| f.address);
        let mut out: Vec<FoundSymbol> = Vec::with_capacity(found.len());
        for symbol in found {
            let same = out.iter().rev().take_while(|o| o.address == symbol.address);
            if !same.into_iter().any(|o| *o == symbol) {
                out.push(symbol);
            }
        }
        out
    }
}

impl FoundSymbol {
    fn of(symbol: &Symbol<'_>, symbols: &KernelSymbols<'_>) -> Self {
        let owner = match symbol.owner {
            SymbolOwner::Core => None,
            SymbolOwner::Owner(index) => symbols.owners.get(usize::from(index)).map(|name| name.to_vec()),
        };
        let Symbol { address, size, kind, name, .. } = *symbol;
        Self { address, size, kind, owner, name: name.to_vec() }
    }
}

fn write(writer: &mut Writer, found: &[FoundSymbol], modules: &[Module]) -> Result<()> {
    let mut owners: Vec<&[u8]> = Vec::new();
    let mut numbers: HashMap<&[u8], usize> = HashMap::new();
    let mut symbols = Vec::new();
    for FoundSymbol { address, size, kind, owner, name } in found {
        let owner = owner.as_deref().map_or(SymbolOwner::Core, |owner| {
            let at = *numbers.entry(owner).or_insert_with(|| {
                owners.push(owner);
                owners.len() - 1
            });
            u16::try_from(at).map_or(SymbolOwner::Core, SymbolOwner::Owner)
        });
        symbols.push(Symbol { address: *address, size: *size, kind: *kind, owner, name });
    }
    Ok(writer.add_symbols(&KernelSymbols { symbols, owners, all_zero: false }, modules)?)
}

#[cfg(test)]
mod tests {
    use kmt_format::kernel::parse_kallsyms;

    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _stext\nffffffff81000000 T first\nffffffff81000100 t b\nffffffff81000100 t b_alias\n\
ffffffff81000200 t c\nffffffff81000300 T _etext\nffffffffc0000100 t m2\t[m]\nffffffffc0000000 t m1\t[m]\n";

    /// A pass finds the same from one slice and from slices of any length.
    #[test]
    fn a_pass_finds_what_decides_for_each_address() {
        let wanted = [5, 0xffff_ffff_8100_0010, 0xffff_ffff_8100_01f0, 0xffff_ffff_c000_0044];
        let names = |found: Vec<FoundSymbol>| -> Vec<String> {
            found.into_iter().map(|f| String::from_utf8(f.name).unwrap()).collect()
        };
        let mut search = Search::new(&wanted, true);
        search.add_slice(&parse_kallsyms(TEXT.as_bytes(), &[], 4096), None);
        assert_eq!(names(search.finish()), ["_stext", "b", "_etext", "m1"]);
        let mut search = Search::new(&wanted, false);
        let lines: Vec<&str> = TEXT.split_inclusive('\n').collect();
        for (slice, beyond) in
            [(&lines[..2], Some(0xffff_ffff_8100_0100)), (&lines[2..6], None), (&lines[6..], None)]
        {
            search.add_slice(&parse_kallsyms(slice.concat().as_bytes(), &[], 4096), beyond);
        }
        assert_eq!(names(search.finish()), ["_stext", "b", "m1"]);
    }

    /// Slices without a wanted address are passed over, and nothing that is wanted is in them.
    #[test]
    fn a_pass_looks_only_where_something_is_wanted() {
        use super::super::slices::KallsymsSlices;

        let mut text = String::new();
        for i in 0..20_000u64 {
            text.push_str(&format!("{:016x} t function_{i}\n", 0xffff_ffff_8100_0000u64 + i / 3 * 16));
        }
        text.push_str("ffffffffc0000100 t m2\t[m]\nffffffffc0000000 t m1\t[m]\n");
        let first = 0xffff_ffff_8100_0000u64;
        for wanted in
            [vec![first + 5, first + 16 * 4_000 + 7, 0xffff_ffff_c000_0044], vec![first + 90_000], vec![]]
        {
            let mut whole = Search::new(&wanted, false);
            whole.add_slice(&parse_kallsyms(text.as_bytes(), &[], 4096), None);
            let (mut search, mut slices) = (Search::new(&wanted, false), 0);
            KallsymsSlices::new(text.as_bytes(), 32 << 10)
                .for_each(
                    &[],
                    |from, to| has_any(&wanted, from, to),
                    |symbols, beyond| {
                        slices += 1;
                        search.add_slice(symbols, beyond);
                        Ok(())
                    },
                )
                .unwrap();
            assert_eq!(search.finish(), whole.finish(), "{wanted:x?}");
            // One for each address of the kernel's own symbols, the last of these, and the module's.
            assert!(slices <= wanted.len() + 2, "{slices} slices for {}", wanted.len());
        }
    }
}
