//! Lines of addresses in one ELF file.

use addr2line::Context;
use gimli::{DwarfSections, EndianSlice, RunTimeEndian};
use kmt_format::tables::SourceLine;

use super::image::Image;
use super::roots::Roots;
use super::units::{learn, name_of};
use crate::failure::{Failure, Result};

type Reader<'s> = EndianSlice<'s, RunTimeEndian>;

/// Most functions of one address: no compiler inlines deeper.
const FRAMES_MAX: u16 = 64;

/// Headers whose macros make functions.
const MACROS: [&str; 2] = ["include/trace/", "include/linux/syscalls.h"];

/// An address to look up.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Address in the trace.
    pub address: u64,
    /// The byte before it, in the ELF file.
    pub probe: u64,
}

/// Adds the lines of addresses; returns the number of those that have some.
pub fn add(
    image: &Image<'_>,
    roots: &mut Roots,
    wanted: &[Wanted],
    lines: &mut Vec<SourceLine<'static>>,
) -> Result<usize> {
    let fail = |why: String| Failure::new(format!("{}: {why}", image.path.display()));
    if !image.has_debug_information() {
        return Err(fail("it has no debug information".to_owned())
            .hint("distributions have packages with it, named -dbg, -dbgsym or -debuginfo"));
    }
    let sections = DwarfSections::load(|id| image.section(id.name()))?;
    let mut dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, image.endian()));
    // Many units may have one table of abbreviations.
    dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
    let directory = learn(&dwarf, roots);
    let context = Context::from_dwarf(dwarf).map_err(|error| fail(format!("debug information: {error}")))?;
    let mut found = 0;
    for one in wanted {
        let before = lines.len();
        add_frames(&context, roots, directory.as_deref(), *one, lines);
        found += usize::from(lines.len() > before);
    }
    Ok(found)
}

/// Adds the functions of an address, the innermost first. A macro of a header makes functions of tracepoints: their file is
/// that of the unit.
fn add_frames(
    context: &Context<Reader<'_>>,
    roots: &mut Roots,
    directory: Option<&str>,
    wanted: Wanted,
    lines: &mut Vec<SourceLine<'static>>,
) {
    let Ok(mut frames) = context.find_frames(wanted.probe).skip_all_loads() else { return };
    for depth in 0..FRAMES_MAX {
        let Ok(Some(frame)) = frames.next() else { return };
        let Some(location) = frame.location else { continue };
        let mut row = SourceLine::new(wanted.address);
        row.depth = depth;
        if let Some(Ok(name)) = frame.function.as_ref().map(|name| name.raw_name()) {
            row.function = name.into_owned().into_bytes().into();
        }
        row.line = location.line.unwrap_or(0);
        let mut file = location.file.map(|file| roots.relative(file, directory)).unwrap_or_default();
        let is_made = MACROS.iter().any(|begin| file.starts_with(begin));
        if is_made || file.starts_with('/') {
            if let Some(unit) = context.find_dwarf_and_unit(wanted.probe).skip_all_loads() {
                let (name, built_in) = name_of(unit.unit);
                roots.learn_directory(&built_in);
                (file, row.line) = match location.file {
                    Some(path) if !is_made => (roots.relative(path, directory), row.line),
                    _ => (roots.relative(&name, directory), 0),
                };
            }
        }
        row.file = file.into_bytes().into();
        lines.push(row);
    }
}
