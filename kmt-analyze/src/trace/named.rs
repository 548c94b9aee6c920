//! Names of functions for a trace that has none, from a System.map.
//!
//! A file that was made on a machine without /proc/kallsyms has addresses alone. The option `--system-map` gives the
//! names; only symbols that the addresses need are added, to a copy in memory. A map of another kernel, or of one at
//! other addresses, is refused.

use std::path::Path;

use kmt_common::input::InputBytes;
use kmt_common::tell;
use kmt_format::kernel::{KernelSymbols, Symbol, SymbolOwner, parse_kallsyms};
use kmt_format::write::Writer;
use kmt_format::{Compression, read::Trace};

use crate::env::Env;
use crate::failure::{Failure, Result};
use crate::trace::open::{addresses, repair, trace_in};

/// Page size for the end of the last function of a module; a System.map has no modules.
const PAGE_SIZE: u64 = 4096;

/// The file with the names that `--system-map` gives, or as it is without that option.
pub fn with_names(path: &Path, bytes: InputBytes, env: &Env) -> Result<InputBytes> {
    let Some(map) = &env.source.system_map else { return Ok(bytes) };
    let text = match env.files.get(map) {
        Some(text) => text,
        None => std::fs::read(map).map_err(|e| Failure::io("reading", map, &e))?,
    };
    let trace = trace_in(path, &bytes, env)?;
    if trace.symbols().is_some_and(|symbols| !symbols.is_empty()) {
        tell!("note: {} has names of functions; {} is not used", path.display(), map.display());
        return Ok(bytes);
    }
    let table = used(&trace, parse_kallsyms(&text, &[], PAGE_SIZE), map)?;
    let failed = |error: kmt_format::Error| Failure::new(format!("{}: {error}", path.display()));
    let mut writer = Writer::append_to(&bytes, env.limits.file, Compression::None)
        .map_err(|error| failed(error).hint(repair(path)))?;
    writer.add_symbols(&table, &[]).map_err(failed)?;
    let rest = writer.finish().map_err(failed)?;
    Ok(InputBytes::InMemory([&*bytes, &rest].concat()))
}

/// The symbols that addresses of a trace need, and those that bound the kernel. Refused if they are not in it: the kernel
/// was loaded elsewhere, or it is another one.
fn used<'t>(trace: &Trace<'_>, mut table: KernelSymbols<'t>, map: &Path) -> Result<KernelSymbols<'t>> {
    table.symbols.sort_by_key(|symbol| symbol.address);
    let (start, end) = bounds(&mut table, map)?;
    let wanted = addresses(trace);
    let inside = wanted.iter().filter(|address| (start..=end).contains(*address)).count();
    if inside * 2 < wanted.len() {
        return Err(Failure::new(format!(
            "{}: of {} addresses of code in the trace, {inside} are in this kernel",
            map.display(),
            wanted.len()
        ))
        .hint("it is of another build, or the kernel was loaded at a random address (KASLR): boot with nokaslr, or record /proc/kallsyms"));
    }
    let mut starts: Vec<u64> = wanted
        .iter()
        .filter_map(|address| {
            let after = table.symbols.partition_point(|symbol| symbol.address < *address);
            Some(table.symbols.get(after.checked_sub(1)?)?.address)
        })
        .collect();
    starts.dedup();
    table.symbols.retain(|symbol| {
        starts.binary_search(&symbol.address).is_ok() || KernelSymbols::BOUNDS.contains(&symbol.name)
    });
    Ok(table)
}

/// First and last address of the kernel's code. A part of a System.map may lack the symbols that say so: they are added
/// around the code that it has.
fn bounds(table: &mut KernelSymbols<'_>, map: &Path) -> Result<(u64, u64)> {
    let bound = |name: &[u8]| table.symbols.iter().find(|s| s.name == name).map(|s| s.address);
    let start = bound(b"_stext").or(bound(b"_text"));
    let (end, has_end) = (bound(b"_etext"), bound(b"_etext").or(bound(b"_end")).is_some());
    let is_code = |s: &&Symbol<'_>| s.address != 0 && matches!(s.kind, b't' | b'T' | b'w' | b'W');
    let mut code = table.symbols.iter().filter(is_code).map(|s| s.address);
    let Some(first) = code.next() else {
        return Err(Failure::new(format!("{}: it has no addresses of functions", map.display()))
            .hint("--system-map takes the System.map of the kernel's build, or its /proc/kallsyms"));
    };
    let last = code.next_back().unwrap_or(first).saturating_add(PAGE_SIZE);
    let symbol = |name, address| Symbol { address, size: 0, kind: b'T', owner: SymbolOwner::Core, name };
    if start.is_none() {
        // In front of the first function, whose name it would take.
        table.symbols.push(symbol(b"_stext", first.saturating_sub(1)));
    }
    if !has_end {
        table.symbols.push(symbol(b"_etext", last));
    }
    table.symbols.sort_by_key(|symbol| symbol.address);
    Ok((start.unwrap_or(first), end.unwrap_or(u64::MAX)))
}
