//! A linked kernel: its symbols by source file, and the bytes of each section between them.
//!
//! Input is a vmlinux or a module with debug information. A symbol belongs to the source file of its first address, or
//! of its variable; bytes between symbols are a part of their own, so that the parts add up to the loaded sections.
//! `footprint` adds them up by directory.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::rc::Rc;

use addr2line::Context;
use gimli::{AttributeValue, DwarfSections, Operation};
use object::{Object, ObjectSection, ObjectSymbol, SectionIndex, SymbolKind};

use super::build::SizedObject;
use super::sizes::{SizeKind, Sizes, kind_of};
use crate::env::Env;
use crate::failure::{Failure, Result};
use crate::sort_rows::SortRows;
use crate::source::image::{self, Image};
use crate::source::roots::{self, Roots};
use crate::source::{Checked, Reader, cost};

/// The part without a source file.
pub const UNKNOWN: &str = "unknown";
/// The part that no symbol covers: padding, tables of the linker.
pub const UNNAMED: &str = "no symbol";

/// Sizes by source file; symbols without one are [`UNKNOWN`], bytes without a symbol are [`UNNAMED`]. Together they are all
/// loaded sections.
pub fn objects(path: &Path, env: &Env) -> Result<Vec<SizedObject>> {
    let bytes = image::bytes(path, &env.files)?;
    let image = Image::parse(path, &bytes)?;
    let fail = |why: String| Failure::new(format!("{}: {why}", path.display()));
    let mut roots = Roots::new(env.source.source_root.as_deref());
    let sections = DwarfSections::load(|id| image.section(id.name()))?;
    let mut checked = Checked::open(&image, &sections)?;
    let kinds: HashMap<SectionIndex, (SizeKind, u64, u64)> = image
        .elf
        .sections()
        .filter_map(|s| Some((s.index(), (kind_of(&s)?, s.address(), s.size()))))
        .collect();
    let symbols = symbols(&image, &kinds);
    let is_code =
        |section| image.elf.section_by_index(section).is_ok_and(|s| s.kind() == object::SectionKind::Text);
    checked.look_up(symbols.iter().filter(|symbol| is_code(symbol.0)).map(|symbol| symbol.1))?;
    let directory = roots::learn_units(&checked.dwarf, &mut roots);
    let variables = variables(&checked, &roots, directory.as_deref())?;
    let context = Context::from_arc_dwarf(checked.dwarf.clone());
    let context = context.map_err(|error| fail(format!("debug information: {error}")))?;
    let mut file_of = |address: u64, is_code: bool| -> Result<Option<Rc<str>>> {
        if !is_code {
            return Ok(variables.get(&address).cloned());
        }
        let Some(unit) = context.find_dwarf_and_unit(address).skip_all_loads() else { return Ok(None) };
        let (name, built_in) = roots::unit_name(unit.unit);
        // Each symbol of a unit has its path once more.
        checked.steps(name.len() + built_in.len(), unit_offset(unit.unit))?;
        roots.learn_directory(&built_in);
        Ok(Some(roots.relative(&name, directory.as_deref()).into()))
    };
    let mut sums: BTreeMap<String, Sizes> = BTreeMap::new();
    let mut covered: HashMap<SectionIndex, u64> = HashMap::new();
    for (section, address, len) in symbols {
        let Some((kind, ..)) = kinds.get(&section) else { continue };
        let file = file_of(address, is_code(section))?.filter(|file| !file.is_empty());
        let file = file.as_deref().unwrap_or(UNKNOWN);
        if let Some(sizes) = sums.get_mut(file) {
            sizes.add(*kind, len);
        } else {
            checked.memory(file.len() + size_of::<Sizes>(), 0)?;
            sums.entry(file.to_owned()).or_default().add(*kind, len);
        }
        *covered.entry(section).or_default() += len;
    }
    for (section, (kind, _, size)) in &kinds {
        let rest = size.saturating_sub(covered.get(section).copied().unwrap_or(0));
        if rest > 0 {
            sums.entry(UNNAMED.to_owned()).or_default().add(*kind, rest);
        }
    }
    Ok(sums.into_iter().map(|(path, sizes)| SizedObject { path, sizes }).collect())
}

/// Symbols with a size: section, address, bytes that no symbol before has.
fn symbols(
    image: &Image<'_>,
    kinds: &HashMap<SectionIndex, (SizeKind, u64, u64)>,
) -> Vec<(SectionIndex, u64, u64)> {
    let named = image.elf.symbols().filter(|symbol| {
        matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data | SymbolKind::Unknown | SymbolKind::Label)
            && symbol.size() > 0
    });
    let mut all: Vec<(SectionIndex, u64, u64)> = named
        .filter_map(|symbol| {
            let section = symbol.section_index()?;
            let (_, start, size) = kinds.get(&section)?;
            let end = symbol.address().checked_add(symbol.size())?.min(start.checked_add(*size)?);
            Some((section, symbol.address().max(*start), end))
        })
        .collect();
    // Of several at one address the longest.
    all.sort_rows_by_key(|&(section, address, end)| (section.0, address, std::cmp::Reverse(end)));
    let mut reached: (Option<SectionIndex>, u64) = (None, 0);
    let mut out = Vec::new();
    for (section, address, end) in all {
        if reached.0 != Some(section) {
            reached = (Some(section), 0);
        }
        let from = address.max(reached.1);
        if end > from {
            out.push((section, address, end - from));
            reached.1 = end;
        }
    }
    out
}

/// Source files of variables at the top of their units, by address.
fn variables(
    checked: &Checked<'_, '_>,
    roots: &Roots,
    directory: Option<&str>,
) -> Result<HashMap<u64, Rc<str>>> {
    let dwarf = &*checked.dwarf;
    let mut found = HashMap::new();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let offset = unit_offset(&unit);
        let file: Rc<str> = roots.relative(&roots::unit_name(&unit).0, directory).into();
        checked.steps(file.len(), offset)?;
        let mut addresses = Vec::new();
        // A unit whose tree is wrong gives the variables before its fault.
        let _ = unit_variables(dwarf, &unit, |address| addresses.push(address));
        checked.memory(cost::VARIABLE.saturating_mul(addresses.len()).saturating_add(file.len()), offset)?;
        for address in addresses {
            found.entry(address).or_insert_with(|| file.clone());
        }
    }
    Ok(found)
}

/// Where a unit begins.
fn unit_offset(unit: &gimli::Unit<Reader<'_>>) -> usize {
    unit.header.offset().as_debug_info_offset().map_or(0, |offset| offset.0)
}

fn unit_variables<'s>(
    dwarf: &gimli::Dwarf<Reader<'s>>,
    unit: &gimli::Unit<Reader<'s>>,
    mut add: impl FnMut(u64),
) -> gimli::Result<()> {
    let mut tree = unit.entries_tree(None)?;
    let mut children = tree.root()?.children();
    while let Some(child) = children.next()? {
        let entry = child.entry();
        if entry.tag() != gimli::DW_TAG_variable {
            continue;
        }
        let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(gimli::DW_AT_location)? else {
            continue;
        };
        match expression.operations(unit.encoding()).next()? {
            Some(Operation::Address { address }) => add(address),
            Some(Operation::AddressIndex { index }) => add(dwarf.address(unit, index)?),
            _ => {}
        }
    }
    Ok(())
}
