//! Names of the units of debug information.

use super::roots::{HEADER, Roots};
use super::walk::Reader;
use crate::source::frame::PATH_MAX;

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
    if !roots.is_known() {
        learn_from_headers(dwarf, roots);
    }
    first
}

/// Roots by the header that units of a module include.
fn learn_from_headers(dwarf: &gimli::Dwarf<Reader<'_>>, roots: &mut Roots) {
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Some(program) = &unit.line_program else { continue };
        let header = program.header();
        let directory = name_of(&unit).1;
        for file in header.file_names() {
            let text = |value| {
                let text = dwarf.attr_string(&unit, value).ok().filter(|text| text.len() <= PATH_MAX)?;
                Some(text.to_string_lossy().into_owned())
            };
            let name = text(file.path_name()).unwrap_or_default();
            if !HEADER.ends_with(&name) || name.is_empty() {
                continue;
            }
            let folder = file.directory(header).and_then(text).unwrap_or_default();
            let path = format!("{folder}/{name}");
            roots
                .learn(&if path.starts_with('/') { path } else { format!("{directory}/{path}") }, &directory);
            if roots.is_known() {
                return;
            }
        }
    }
}

/// Path of a unit, and the directory in which it was built; of longer texts the begin.
pub fn name_of(unit: &gimli::Unit<Reader<'_>>) -> (String, String) {
    let text = |reader: Reader<'_>| {
        let bytes = reader.slice();
        String::from_utf8_lossy(bytes.get(..PATH_MAX).unwrap_or(bytes)).into_owned()
    };
    let (name, directory) =
        (unit.name.map(text).unwrap_or_default(), unit.comp_dir.map(text).unwrap_or_default());
    (if name.starts_with('/') { name } else { format!("{directory}/{name}") }, directory)
}
