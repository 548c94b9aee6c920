//! Files of a target's tracefs as trace-cmd and perf write them: formats, symbols, names of tasks, one after another.
//!
//! Source: trace-cmd's `Documentation/trace-cmd/trace-cmd.dat.v6.5.txt`; `tools/perf/util/trace-event-info.c` of Linux 7.2.

use kmt_format::kernel::{ByteOrder, HeaderPage};

use super::bounds::{Bounds, raise};
use super::cursor::{Cursor, ImportError, Result};

/// The first bytes of a `trace.dat`, and of the tracing data in a `perf.data`.
pub const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// Most formats of a file: events have ids of 16 bits.
const FORMATS_MAX: usize = 65_536;

/// Start of such a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Version as text: 0.6, 6, 7.
    pub version: String,
    /// Byte order of all later integers.
    pub order: ByteOrder,
    /// Size of a `long` of the programs on the target, which may be another one than the kernel's.
    pub user_long_size: u8,
    /// Page size of the target, in bytes.
    pub page_size: u32,
}

/// Files of the target's tracefs, as they were read there.
#[derive(Debug, Clone, Default)]
pub struct TracingData {
    /// `events/header_page`.
    pub header_page: String,
    /// `events/header_event`.
    pub header_event: Vec<u8>,
    /// System, offset in the file, text of each `format`.
    pub formats: Vec<(String, u64, String)>,
    /// `/proc/kallsyms`.
    pub kallsyms: Vec<u8>,
    /// `printk_formats`.
    pub printk_formats: Vec<u8>,
    /// `saved_cmdlines`.
    pub saved_cmdlines: Vec<u8>,
    /// How much of them is taken in.
    bounds: Bounds,
    /// Bytes of all formats.
    formats_len: u64,
}

/// A file of lines, and how many bytes a line of it has at least on average.
pub(super) struct Lines {
    /// Name of the file, and of its bound.
    pub name: &'static str,
    /// Size of the number before it that tells its length.
    pub size: usize,
    /// Bytes.
    pub line_len: u64,
}

/// A file of lines, each of which becomes a row in memory, with its size before it.
pub(super) fn lines(cursor: &mut Cursor<'_>, file: &Lines, len_max: u64) -> Result<Vec<u8>> {
    let name = file.name;
    let len = cursor.uint(file.size, name)?;
    let offset = cursor.offset();
    let bytes = cursor.take(len, name)?;
    if len > len_max {
        let what = format!("{name} has {len} bytes: more than {len_max}; {}", raise(name));
        return Err(ImportError::at(offset, what));
    }
    let lines = bytes.iter().filter(|&&b| b == b'\n').count() as u64;
    let lines_max = len_max.checked_div(file.line_len).unwrap_or(len_max);
    if lines > lines_max {
        let what = format!(
            "{name} has {lines} lines: more than {lines_max}, one for each {} bytes of {len_max}; {}",
            file.line_len,
            raise(name)
        );
        return Err(ImportError::at(offset, what));
    }
    Ok(bytes.to_vec())
}

impl Start {
    /// Reads it and leaves the cursor after it, with the byte order set.
    pub fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let offset = cursor.offset();
        if cursor.take(MAGIC.len() as u64, "the magic")? != MAGIC {
            return Err(ImportError::at(offset, "not trace-cmd's tracing data"));
        }
        let version = cursor.text("the version")?;
        let offset = cursor.offset();
        cursor.order = match cursor.u8("the byte order")? {
            0 => ByteOrder::Little,
            1 => ByteOrder::Big,
            other => {
                return Err(ImportError::at(
                    offset,
                    format!("byte order {other} is invalid: 0 is little, 1 is big"),
                ));
            }
        };
        let offset = cursor.offset();
        let user_long_size = cursor.u8("the size of long")?;
        if user_long_size != 4 && user_long_size != 8 {
            return Err(ImportError::at(offset, format!("the size of long is {user_long_size}, not 4 or 8")));
        }
        let offset = cursor.offset();
        let page_size = cursor.u32("the page size")?;
        if !page_size.is_power_of_two() || !(1024..=1 << 20).contains(&page_size) {
            return Err(ImportError::at(offset, format!("a page cannot have {page_size} bytes")));
        }
        Ok(Self { version, order: cursor.order, user_long_size, page_size })
    }
}

impl TracingData {
    /// Nothing yet.
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Reads what version 6 and perf write in one go: everything but the last part, which perf has since 4.16.
    pub fn read_in_a_row(cursor: &mut Cursor<'_>, bounds: Bounds) -> Result<Self> {
        let mut data = Self::new(bounds);
        data.read_header_info(cursor)?;
        data.read_ftrace_formats(cursor)?;
        data.read_formats(cursor)?;
        data.read_kallsyms(cursor)?;
        let len = cursor.u32("the size of printk_formats")?;
        data.printk_formats = cursor.take(len.into(), "printk_formats")?.to_vec();
        Ok(data)
    }

    /// `kallsyms` with its size before it.
    pub fn read_kallsyms(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let file = Lines { name: "kallsyms", size: 4, line_len: 16 };
        self.kallsyms = lines(cursor, &file, self.bounds.kallsyms)?;
        Ok(())
    }

    /// `saved_cmdlines` with its size before it.
    pub fn read_cmdlines(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let file = Lines { name: "saved_cmdlines", size: 8, line_len: 32 };
        self.saved_cmdlines = lines(cursor, &file, self.bounds.saved_cmdlines)?;
        Ok(())
    }

    /// `header_page` and `header_event`, each with its name and size before it.
    pub fn read_header_info(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        for name in ["header_page", "header_event"] {
            let offset = cursor.offset();
            let found = cursor.text("the name of a header")?;
            if found != name {
                return Err(ImportError::at(offset, format!("{found:?} instead of {name}")));
            }
            let len = cursor.u64(name)?;
            let bytes = cursor.take(len, name)?;
            match name {
                "header_page" => self.header_page = String::from_utf8_lossy(bytes).into_owned(),
                _ => self.header_event = bytes.to_vec(),
            }
        }
        Ok(())
    }

    /// Formats of the events that ftrace itself has.
    pub fn read_ftrace_formats(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let count = cursor.u32("the number of ftrace formats")?;
        for _ in 0..count {
            self.read_format("ftrace", cursor)?;
        }
        Ok(())
    }

    /// Formats of all other events, system by system.
    pub fn read_formats(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let systems = cursor.u32("the number of systems")?;
        for _ in 0..systems {
            let system = cursor.text("the name of a system")?;
            let count = cursor.u32("the number of its events")?;
            for _ in 0..count {
                self.read_format(&system, cursor)?;
            }
        }
        Ok(())
    }

    fn read_format(&mut self, system: &str, cursor: &mut Cursor<'_>) -> Result<()> {
        let offset = cursor.offset();
        if self.formats.len() >= FORMATS_MAX {
            return Err(ImportError::at(
                offset,
                format!("more than {FORMATS_MAX} formats: event ids have 16 bits"),
            ));
        }
        let len = cursor.u64("the size of a format")?;
        let text = cursor.take(len, "a format")?;
        // Each has a copy of its system's name.
        self.formats_len = self.formats_len.saturating_add(len).saturating_add(system.len() as u64);
        if self.formats_len > self.bounds.formats {
            let what =
                format!("the formats have more than {} bytes; {}", self.bounds.formats, raise("formats"));
            return Err(ImportError::at(offset, what));
        }
        let text = String::from_utf8_lossy(text).into_owned();
        self.formats.push((system.to_owned(), offset, text));
        Ok(())
    }

    /// The layout of sub-buffers.
    pub fn layout(&self) -> Result<HeaderPage> {
        HeaderPage::parse(&self.header_page).map_err(|e| ImportError::at(0, format!("header_page: {e}")))
    }
}
