//! Functions and source lines of addresses.
//!
//! Lines come from the file (recorded) or from debug information that the command line gives (`dwarf`). The rules on
//! wrappers choose the function to show among inlined ones. Without lines the directory is that of the module, or is
//! inferred from names. Reports, exports and charts ask it by address.

use std::borrow::Cow;

use kmt_format::read::{Metadata, SymbolTable, Trace};
use kmt_format::tables::SourceLine;

use super::frame::{Directory, Frame};
use super::inferred::{by_name, subsystem};
use super::modules::ModulePaths;
use super::wrappers::Wrappers;
use crate::sort_rows::SortRows;

/// Functions and source lines of addresses.
#[derive(Debug)]
pub struct SourceTable<'d> {
    /// Lines that were looked up, by address, the innermost function first.
    looked_up: Vec<SourceLine<'static>>,
    /// Lines of the file, for addresses without others.
    file: Option<&'d Metadata<'d>>,
    wrappers: Wrappers,
    symbols: Option<&'d SymbolTable<'d>>,
    /// The machine, as `uname -m` names it.
    machine: Option<&'d str>,
    modules: ModulePaths,
}

impl<'d> SourceTable<'d> {
    /// Lines that a file has.
    pub fn of_file(trace: &'d Trace<'d>, wrappers: Wrappers) -> Self {
        let metadata = trace.metadata();
        Self {
            looked_up: Vec::new(),
            file: Some(metadata),
            wrappers,
            symbols: trace.symbols(),
            machine: metadata.text("kernel.machine"),
            modules: ModulePaths::default(),
        }
    }

    /// This table with lines that were looked up, and with modules' directories.
    pub fn looked_up(self, mut lines: Vec<SourceLine<'static>>, modules: ModulePaths) -> Self {
        lines.sort_rows_by_key(|line| (line.address, line.depth));
        Self { looked_up: lines, modules, ..self }
    }

    /// True if no address has a line.
    pub fn is_empty(&self) -> bool {
        self.looked_up.is_empty() && self.file.is_none_or(|metadata| metadata.lines.is_empty())
    }

    /// Functions of an address, the innermost first, at most 256; those without a file are left out.
    pub fn frames(&self, address: u64) -> Vec<Frame<'_>> {
        let first = self.looked_up.partition_point(|line| line.address < address);
        let rest = self.looked_up.get(first..).unwrap_or_default();
        let here = rest.iter().take_while(|line| line.address == address);
        let frames: Vec<Frame<'_>> = known(here);
        match self.file {
            Some(metadata) if frames.is_empty() => known(metadata.lines_at(address)),
            _ => frames,
        }
    }

    /// Functions of an address, and the number of the one to show.
    pub fn frames_with_shown(&self, address: u64) -> (Vec<Frame<'_>>, usize) {
        let frames = self.frames(address);
        let shown = frames.iter().position(|frame| !self.wrappers.has(frame));
        let shown = shown.unwrap_or(frames.len().saturating_sub(1));
        (frames, shown)
    }

    /// The function to show of an address: the innermost outside the rules on wrappers, else the outermost.
    pub fn shown(&self, address: u64) -> Option<Frame<'_>> {
        let (frames, shown) = self.frames_with_shown(address);
        frames.into_iter().nth(shown)
    }

    /// The directory of an address: of its function's file, else that of its module, else inferred from names.
    pub fn directory(&self, address: u64) -> Option<Directory<'_>> {
        if let Some(frame) = self.shown(address) {
            let path = Cow::Owned(frame.directory().path.into_owned());
            return Some(Directory { path, is_inferred: false });
        }
        let symbol = self.symbols?.resolve(address.checked_sub(1)?)?;
        let function = std::str::from_utf8(&symbol.name).ok()?;
        let module = symbol.module.and_then(|module| std::str::from_utf8(module).ok());
        let own = module.and_then(|module| self.modules.of(module));
        if let Some(path) = own {
            return Some(Directory { path: Cow::Borrowed(path), is_inferred: false });
        }
        let built_in = || by_name(function, |begin| self.modules.built_in(begin));
        let path = subsystem(function, module, self.machine).or_else(built_in)?;
        Some(Directory { path: Cow::Borrowed(path), is_inferred: true })
    }

    /// True if an address has a directory.
    pub fn has_directories(&self) -> bool {
        !self.is_empty() || self.symbols.is_some_and(|symbols| !symbols.is_empty())
    }
}

/// Most functions of one address: compilers nest some ten of them. Each row of a report may have them.
const FRAMES_MAX: usize = 256;

fn known<'t, 'l: 't>(lines: impl Iterator<Item = &'t SourceLine<'l>>) -> Vec<Frame<'t>> {
    lines.take(FRAMES_MAX).map(Frame::of).filter(Frame::is_known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_function_outside_the_allocator_is_shown() {
        let line = |address, function: &'static str, file: &'static str, line, depth| {
            let mut row = SourceLine::new(address);
            (row.function, row.file) = (function.as_bytes().into(), file.as_bytes().into());
            (row.line, row.depth) = (line, depth);
            row
        };
        let mut lines = vec![
            line(0x20, "do_open", "fs/open.c", 12, 1),
            line(0x20, "kmalloc", "include/linux/slab.h", 553, 0),
            line(0x10, "kmalloc", "include/linux/slab.h", 1, 0),
            line(0x30, "nowhere", "", 0, 0),
        ];
        lines.sort_by_key(|line| (line.address, line.depth));
        let table = SourceTable {
            looked_up: lines,
            file: None,
            wrappers: Wrappers::default(),
            symbols: None,
            machine: None,
            modules: ModulePaths::default(),
        };
        assert_eq!(table.shown(0x20).unwrap().file_and_line(), "fs/open.c:12");
        assert_eq!(table.shown(0x10).unwrap().function, "kmalloc");
        assert_eq!(table.frames(0x20).len(), 2);
        assert!(table.shown(0x30).is_none() && table.shown(0x21).is_none());
    }
}
