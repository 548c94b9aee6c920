//! Two builds, symbol by symbol, by the rules of the kernel's scripts/bloat-o-meter.
//!
//! Symbols are read from ELF files; static names lose the numbers that compilers add, and texts that differ in every
//! build are left out. The result are the rows of `footprint --against`.

use std::collections::BTreeMap;
use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind};
use serde::Serialize;

use crate::env::Env;
use crate::failure::Result;
use crate::sort_rows::SortRows;
use crate::source::image::{self, Image};

/// Symbols that compilers and macros make, and texts that differ in every build.
const LEFT_OUT: [&str; 4] = ["__mod_", "__se_sys", "__se_compat_sys", "__addressable_"];
const LEFT_OUT_NAMES: [&str; 2] = ["linux_banner", "vermagic"];

/// Differences between two builds.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedRows {
    /// Symbols of the new build alone.
    pub added: usize,
    /// Symbols of the old build alone.
    pub removed: usize,
    /// Symbols that grew.
    pub grown: usize,
    /// Symbols that shrank.
    pub shrunk: usize,
    /// Bytes added by the first and third.
    pub up: u64,
    /// Bytes removed by the others.
    pub down: u64,
    /// Bytes of all symbols of the old build.
    pub before: u64,
    /// Bytes of all symbols of the new build.
    pub after: u64,
    /// Symbols that differ, the largest growth first.
    pub symbols: Vec<ComparedSymbol>,
}

/// A symbol of two builds.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedSymbol {
    /// Name of the symbol, without numbers that the compiler adds.
    pub name: String,
    /// Bytes in the old build; `null`: it has none of that name.
    pub old: Option<u64>,
    /// Bytes in the new build.
    pub new: Option<u64>,
    /// new - old.
    pub delta: i64,
}

/// Sizes of the symbols of a build by name.
pub fn sizes(path: &Path, env: &Env) -> Result<BTreeMap<String, u64>> {
    let bytes = image::bytes(path, &env.files)?;
    let image = Image::parse(path, &bytes)?;
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    for symbol in image.elf.symbols().filter(|symbol| is_counted(&image.elf, symbol)) {
        let name = String::from_utf8_lossy(symbol.name_bytes().unwrap_or_default()).into_owned();
        let is_left_out =
            LEFT_OUT.iter().any(|begin| name.starts_with(begin)) || LEFT_OUT_NAMES.contains(&name.as_str());
        if !is_left_out {
            let sum = sizes.entry(without_numbers(&name)).or_default();
            *sum = sum.saturating_add(symbol.size());
        }
    }
    Ok(sizes)
}

/// True for what `nm --size-sort` lists as t, d, b or r, small or capital: no weak symbols, no undefined ones.
fn is_counted(elf: &object::File<'_>, symbol: &object::Symbol<'_, '_>) -> bool {
    let is_thing = matches!(
        symbol.kind(),
        SymbolKind::Text | SymbolKind::Data | SymbolKind::Unknown | SymbolKind::Label | SymbolKind::Tls
    );
    let section = symbol.section_index().and_then(|index| elf.section_by_index(index).ok());
    let is_loaded = section.is_some_and(|section| match section.flags() {
        SectionFlags::Elf { sh_flags } => sh_flags & u64::from(object::elf::SHF_ALLOC) != 0,
        _ => false,
    });
    is_thing && is_loaded && symbol.size() > 0 && !symbol.is_weak()
}

/// A name without `.123`, which compilers add to static names.
fn without_numbers(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('.') {
        out.push_str(before);
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 {
            out.push('.');
        }
        rest = after.get(digits..).unwrap_or_default();
    }
    out + rest
}

/// Differences of two lists of sizes.
pub fn compare(old: &BTreeMap<String, u64>, new: &BTreeMap<String, u64>) -> ComparedRows {
    let mut rows = ComparedRows {
        before: old.values().fold(0, |sum, size| sum.saturating_add(*size)),
        after: new.values().fold(0, |sum, size| sum.saturating_add(*size)),
        ..ComparedRows::default()
    };
    let gone =
        old.iter().filter(|(name, _)| !new.contains_key(*name)).map(|(name, size)| (name, Some(*size), None));
    let there = new.iter().map(|(name, size)| (name, old.get(name).copied(), Some(*size)));
    for (name, before, after) in gone.chain(there) {
        let (from, to) = (before.unwrap_or(0), after.unwrap_or(0));
        let count = match (before, after) {
            (_, None) => &mut rows.removed,
            (None, _) => &mut rows.added,
            _ if to > from => &mut rows.grown,
            _ if to < from => &mut rows.shrunk,
            _ => continue,
        };
        *count += 1;
        rows.up = rows.up.saturating_add(to.saturating_sub(from));
        rows.down = rows.down.saturating_add(from.saturating_sub(to));
        let delta = i64::try_from(i128::from(to) - i128::from(from)).unwrap_or(i64::MAX);
        rows.symbols.push(ComparedSymbol { name: name.clone(), old: before, new: after, delta });
    }
    rows.symbols.sort_rows_by(|a, b| (b.delta, &b.name).cmp(&(a.delta, &a.name)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_compilers_are_left_out() {
        assert_eq!(without_numbers("state.123"), "state");
        assert_eq!(without_numbers("f.isra.0"), "f.isra");
        assert_eq!(without_numbers("a.1.b.22"), "a.b");
        assert_eq!(without_numbers("plain"), "plain");
    }

    #[test]
    fn sizes_are_compared_by_name() {
        let of = |list: &[(&str, u64)]| list.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        let rows = compare(
            &of(&[("a", 10), ("b", 5), ("c", 3), ("d", 1)]),
            &of(&[("a", 12), ("b", 4), ("d", 1), ("e", 9)]),
        );
        assert_eq!((rows.added, rows.removed, rows.grown, rows.shrunk), (1, 1, 1, 1));
        assert_eq!((rows.up, rows.down, rows.before, rows.after), (11, 4, 19, 26));
        let order: Vec<(&str, i64)> = rows.symbols.iter().map(|s| (s.name.as_str(), s.delta)).collect();
        assert_eq!(order, [("e", 9), ("a", 2), ("b", -1), ("c", -3)]);
    }
}
