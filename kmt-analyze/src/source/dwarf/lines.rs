//! Lines of addresses in one ELF file.
//!
//! `check` counts a file's units first, addr2line then finds the functions and lines of each address, also inlined
//! ones. Paths are those of the source tree (`roots`). The rows have the form in which a .kmt file keeps source lines;
//! `source/table` looks them up.

use addr2line::Context;
use gimli::DwarfSections;
use kmt_format::tables::SourceLine;

use super::check::Checked;
use super::image::Image;
use super::limits::{ROWS_BASE, cost};
use super::roots::{Roots, learn_units, unit_name};
use super::walk::{Reader, in_units};
use crate::failure::{Failure, Result};
use crate::source::frame::PATH_MAX;

/// Most functions of one address: no compiler inlines deeper.
const FRAMES_MAX: u16 = 64;

/// Headers whose macros make functions.
const MACROS: [&str; 2] = ["include/trace/", "include/linux/syscalls.h"];

/// An address to look up.
#[derive(Debug, Clone, Copy)]
pub struct WantedAddress {
    /// Address in the trace.
    pub address: u64,
    /// The byte before it, in the ELF file.
    pub probe: u64,
}

/// Lines of addresses, of all files together.
#[derive(Debug)]
pub struct Lines {
    pub rows: Vec<SourceLine<'static>>,
    /// Bytes that they may still take: each row has texts of its own, and a file can give long ones to each address.
    bytes_left: u64,
}

impl Lines {
    /// None yet.
    pub fn new() -> Self {
        Self { rows: Vec::new(), bytes_left: ROWS_BASE }
    }

    fn push(&mut self, row: SourceLine<'static>, image: &Image<'_>) -> Result<()> {
        let bytes = cost::FRAME + (row.function.len() + row.file.len()) as u64;
        let Some(left) = self.bytes_left.checked_sub(bytes) else {
            let why = "has texts that are too long for its number of addresses".to_owned();
            return Err(image.budget.beyond(in_units(0), why));
        };
        self.bytes_left = left;
        self.rows.push(row);
        Ok(())
    }
}

/// Adds the lines of addresses; returns the number of those that have some.
pub fn add(
    image: &Image<'_>,
    roots: &mut Roots,
    wanted: &[WantedAddress],
    lines: &mut Lines,
) -> Result<usize> {
    let fail = |why: String| Failure::new(format!("{}: {why}", image.path.display()));
    if !image.has_debug_information() {
        return Err(fail("it has no debug information".to_owned())
            .hint("distributions have packages with it, named -dbg, -dbgsym or -debuginfo"));
    }
    let sections = DwarfSections::load(|id| image.section(id.name()))?;
    let mut checked = Checked::open(image, &sections)?;
    checked.look_up(wanted.iter().map(|one| one.probe))?;
    lines.bytes_left = lines.bytes_left.saturating_add(image.budget.rows());
    let directory = learn_units(&checked.dwarf, roots);
    let context = Context::from_arc_dwarf(checked.dwarf.clone());
    let context = context.map_err(|error| fail(format!("debug information: {error}")))?;
    let mut found = 0;
    for one in wanted {
        let before = lines.rows.len();
        for row in frames(&context, roots, directory.as_deref(), *one) {
            lines.push(row, image)?;
        }
        found += usize::from(lines.rows.len() > before);
    }
    Ok(found)
}

/// The functions of an address, the innermost first. A macro of a header makes functions of tracepoints: their file is that
/// of the unit.
fn frames(
    context: &Context<Reader<'_>>,
    roots: &mut Roots,
    directory: Option<&str>,
    wanted: WantedAddress,
) -> Vec<SourceLine<'static>> {
    let mut lines = Vec::new();
    let Ok(mut frames) = context.find_frames(wanted.probe).skip_all_loads() else { return lines };
    for depth in 0..FRAMES_MAX {
        let Ok(Some(frame)) = frames.next() else { break };
        let Some(location) = frame.location else { continue };
        let mut row = SourceLine::new(wanted.address);
        row.depth = depth;
        let name = frame.function.as_ref().map(|name| name.raw_name());
        if let Some(name) = name.and_then(|name| name.ok()).filter(|name| name.len() <= PATH_MAX) {
            row.function = name.into_owned().into_bytes().into();
        }
        row.line = location.line.unwrap_or(0);
        let path = location.file.filter(|path| path.len() <= PATH_MAX);
        let mut file = path.map(|file| roots.relative(file, directory)).unwrap_or_default();
        let is_made = MACROS.iter().any(|begin| file.starts_with(begin));
        if is_made || file.starts_with('/') {
            if let Some(unit) = context.find_dwarf_and_unit(wanted.probe).skip_all_loads() {
                let (name, built_in) = unit_name(unit.unit);
                roots.learn_directory(&built_in);
                (file, row.line) = match path {
                    Some(path) if !is_made => (roots.relative(path, directory), row.line),
                    _ => (roots.relative(&name, directory), 0),
                };
            }
        }
        row.file = file.into_bytes().into();
        lines.push(row);
    }
    lines
}
