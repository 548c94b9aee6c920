//! Names of the units of debug information.

use gimli::{EndianSlice, RunTimeEndian};

use super::roots::Roots;

type Reader<'s> = EndianSlice<'s, RunTimeEndian>;

/// Roots by the kernel's first unit; the directory in which the first unit of all was built.
pub fn learn(dwarf: &gimli::Dwarf<Reader<'_>>, roots: &mut Roots) -> Option<String> {
    let mut first = None;
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let (name, directory) = name_of(&unit);
        if name.ends_with("main.c") {
            roots.learn(&name, &directory);
        }
        first.get_or_insert(directory);
        if first.is_some() && roots.is_known() {
            break;
        }
    }
    first
}

/// Path of a unit, and the directory in which it was built.
pub fn name_of(unit: &gimli::Unit<Reader<'_>>) -> (String, String) {
    let text = |reader: Reader<'_>| String::from_utf8_lossy(reader.slice()).into_owned();
    let (name, directory) =
        (unit.name.map(text).unwrap_or_default(), unit.comp_dir.map(text).unwrap_or_default());
    (if name.starts_with('/') { name } else { format!("{directory}/{name}") }, directory)
}
