//! Functions and source lines of addresses.

use kmt_format::read::Metadata;
use kmt_format::tables::SourceLine;

use super::frame::Frame;
use super::wrappers::Wrappers;

/// Lines of a file, or lines that were looked up.
#[derive(Debug)]
enum Lines<'d> {
    File(&'d Metadata<'d>),
    /// By address, the innermost function first.
    LookedUp(Vec<SourceLine<'static>>),
}

/// Functions and source lines of addresses.
#[derive(Debug)]
pub struct SourceTable<'d> {
    lines: Lines<'d>,
    wrappers: Wrappers,
}

impl<'d> SourceTable<'d> {
    /// Lines that a file has.
    pub fn of_file(metadata: &'d Metadata<'d>, wrappers: Wrappers) -> Self {
        Self { lines: Lines::File(metadata), wrappers }
    }

    /// Lines that were looked up.
    pub fn looked_up(mut lines: Vec<SourceLine<'static>>, wrappers: Wrappers) -> Self {
        lines.sort_by_key(|line| (line.address, line.depth));
        Self { lines: Lines::LookedUp(lines), wrappers }
    }

    /// True if no address has a line.
    pub fn is_empty(&self) -> bool {
        match &self.lines {
            Lines::File(metadata) => metadata.lines.is_empty(),
            Lines::LookedUp(lines) => lines.is_empty(),
        }
    }

    /// Functions of an address, the innermost first; those without a file are left out.
    pub fn frames(&self, address: u64) -> Vec<Frame<'_>> {
        let is_known = |frame: &Frame<'_>| !frame.file.is_empty();
        match &self.lines {
            Lines::File(metadata) => metadata.lines_at(address).map(Frame::of).filter(is_known).collect(),
            Lines::LookedUp(lines) => {
                let rest =
                    lines.get(lines.partition_point(|line| line.address < address)..).unwrap_or_default();
                let here = rest.iter().take_while(|line| line.address == address);
                here.map(Frame::of).filter(is_known).collect()
            }
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
        let lines = vec![
            line(0x20, "do_open", "fs/open.c", 12, 1),
            line(0x20, "kmalloc", "include/linux/slab.h", 553, 0),
            line(0x10, "kmalloc", "include/linux/slab.h", 1, 0),
            line(0x30, "nowhere", "", 0, 0),
        ];
        let table = SourceTable::looked_up(lines, Wrappers::default());
        assert_eq!(table.shown(0x20).unwrap().file_and_line(), "fs/open.c:12");
        let shown = table.shown(0x20).unwrap();
        assert_eq!((shown.dir(), shown.subsystem(), shown.dirs()), ("fs", "fs", vec!["fs".to_owned()]));
        let driver = line(0x40, "probe", "drivers/net/ethernet/a.c", 1, 0);
        let driver = Frame::of(&driver);
        assert_eq!(driver.dirs(), ["drivers", "drivers/net", "drivers/net/ethernet"]);
        assert_eq!((driver.subsystem(), driver.files()[1].as_str()), ("drivers/net", "a.c"));
        assert_eq!(table.shown(0x10).unwrap().function, "kmalloc");
        assert_eq!(table.frames(0x20).len(), 2);
        assert!(table.shown(0x30).is_none() && table.shown(0x21).is_none());
    }
}
