//! `perf.data`, files and pipe mode: all of it but its records.
//!
//! Source: Linux 7.2, `include/uapi/linux/perf_event.h` and
//! `tools/perf/Documentation/perf.data-file-format.txt`.

mod attr;
mod build_ids;
mod records;
mod rounds;
mod sample;
mod unpack;

pub use attr::Attr;
pub use records::{Record, Records};
pub use rounds::{Item, Rounds};
pub use sample::{Sample, Trailer};

use super::bounds::{Bounds, raise};
use super::cursor::{Cursor, ImportError, Result};
use super::inflate::inflated_max;
use super::tracing_data::{Start, TracingData};
use kmt_format::kernel::ByteOrder;

/// A `perf.data`, all but its records.
#[derive(Debug)]
pub struct PerfData<'d> {
    bytes: &'d [u8],
    /// Byte order of the machine that recorded.
    pub order: ByteOrder,
    /// True if it was written to a pipe.
    pub is_pipe: bool,
    /// Offsets of the first record and after the last one.
    pub records: (u64, u64),
    /// Attributes of the events.
    pub attrs: Vec<Attr>,
    /// Tracing data about the target: its start, and the files.
    pub tracing: Option<(Start, TracingData)>,
    /// Names and texts of the header: `hostname`, `osrelease`, `version`, `arch`, `cmdline`.
    pub facts: Vec<(&'static str, String)>,
    /// `_text` or `_stext`, by which the kernel's symbols were placed: its name, its address, where its mapping starts.
    pub kernel_text: Option<(String, u64, u64)>,
    /// Build ids of modules, "" for the kernel.
    pub build_ids: Vec<(String, String)>,
    /// Missing facts and their consequences.
    pub notes: Vec<String>,
    /// Bytes that all compressed records together may hold.
    pub inflated_max: u64,
    /// How much else is taken in.
    bounds: Bounds,
}

/// Header features that are kept, as text.
const TEXTS: [(u32, &str); 5] =
    [(3, "hostname"), (4, "osrelease"), (5, "version"), (6, "arch"), (11, "cmdline")];
/// The feature that is the target's tracefs.
const TRACING_DATA: u32 = 1;
/// The feature that is build ids of the files whose code was hit.
const BUILD_IDS: u32 = 2;

impl<'d> PerfData<'d> {
    /// Reads everything before and after the records, and records up to the first sample.
    ///
    /// # Errors
    ///
    /// Returns the offset at which the file contradicts its format.
    pub fn open(bytes: &'d [u8], bounds: Bounds) -> Result<Self> {
        let order = match bytes.get(..8) {
            Some(b"PERFILE2") => ByteOrder::Little,
            Some(b"2ELIFREP") => ByteOrder::Big,
            _ => return Err(ImportError::at(0, "not a perf.data: it does not begin with PERFILE2")),
        };
        let mut cursor = Cursor::new(bytes, 0, order);
        cursor.take(8, "the magic")?;
        let size = cursor.u64("the size of the header")?;
        let mut file = Self {
            bytes,
            order,
            is_pipe: size == 16,
            records: (size, bytes.len() as u64),
            attrs: Vec::new(),
            tracing: None,
            facts: Vec::new(),
            kernel_text: None,
            build_ids: Vec::new(),
            notes: Vec::new(),
            inflated_max: inflated_max(bytes.len() as u64),
            bounds,
        };
        if !file.is_pipe {
            file.read_header(cursor)?;
        }
        file.read_first_records()?;
        if file.attrs.is_empty() {
            return Err(ImportError::at(
                bytes.len() as u64,
                "the file ends without a description of its events",
            ));
        }
        Ok(file)
    }

    fn read_header(&mut self, mut cursor: Cursor<'d>) -> Result<()> {
        let whole = cursor.clone();
        let offset = cursor.offset();
        let attr_size = cursor.u64("the size of an attribute")?;
        let section = |cursor: &mut Cursor<'d>, what: &str| -> Result<(u64, u64)> {
            Ok((cursor.u64(what)?, cursor.u64(what)?))
        };
        let attrs = section(&mut cursor, "the section of the attributes")?;
        let data = section(&mut cursor, "the section of the records")?;
        section(&mut cursor, "the section of the event types")?;
        let mut features = Vec::new();
        for word in 0..4u32 {
            let bits = cursor.u64("the features")?;
            features.extend((0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| word * 64 + bit));
        }
        if !(16 + 48..=4096).contains(&attr_size) {
            return Err(ImportError::at(offset, format!("an attribute cannot have {attr_size} bytes")));
        }
        self.read_attrs(&whole, attrs, attr_size)?;
        let end = self.bytes.len() as u64;
        let data_end = data.0.saturating_add(data.1);
        if data.1 == 0 || data_end > end {
            let what = if data.1 == 0 { "was not closed" } else { "is truncated" };
            self.notes.push(format!(
                "the file {what}: records are read up to its end; the data after the records is missing"
            ));
            self.records = (data.0, end);
            return Ok(());
        }
        self.records = (data.0, data_end);
        let mut table = whole.seek(data_end, "the features")?;
        for feature in features {
            let (offset, len) = section(&mut table, "the section of a feature")?;
            let mut at = whole.seek(offset, "a feature")?;
            let contents = at.take(len, "a feature")?;
            self.feature(feature, contents, offset)?;
        }
        Ok(())
    }

    fn read_attrs(&mut self, whole: &Cursor<'d>, (offset, len): (u64, u64), attr_size: u64) -> Result<()> {
        let mut cursor = whole.seek(offset, "the attributes")?;
        let mut ids_count = 0u64;
        for _ in 0..len / attr_size {
            let entry_offset = cursor.offset();
            let entry = cursor.take(attr_size, "an attribute")?;
            let mut attr = Attr::read(&mut Cursor::new(entry, entry_offset, self.order))?;
            let tail = entry.get(entry.len().saturating_sub(16)..).unwrap_or_default();
            let mut tail = Cursor::new(tail, entry_offset, self.order);
            let (ids, ids_len) = (tail.u64("the offset of ids")?, tail.u64("the length of ids")?);
            let mut at = whole.seek(ids, "ids")?;
            let ids = at.take(ids_len, "ids")?;
            ids_count = ids_count.saturating_add(ids.len() as u64 / 8);
            if ids_count > self.bounds.ids {
                return Err(self.too_many(entry_offset, "ids of attributes"));
            }
            attr.ids = ids.chunks_exact(8).map(|id| self.order.uint(id)).collect();
            self.attrs.push(attr);
        }
        Ok(())
    }

    fn too_many(&self, offset: u64, what: &str) -> ImportError {
        ImportError::at(offset, format!("more than {} {what}; {}", self.bounds.ids, raise("ids")))
    }

    fn feature(&mut self, number: u32, contents: &[u8], offset: u64) -> Result<()> {
        let mut cursor = Cursor::new(contents, offset, self.order);
        if number == BUILD_IDS {
            self.build_ids = build_ids::read(&mut cursor);
            return Ok(());
        }
        if number == TRACING_DATA {
            return self.tracing(&mut cursor);
        }
        let Some((_, name)) = TEXTS.iter().find(|(n, _)| *n == number) else { return Ok(()) };
        let count = if number == 11 { cursor.u32("the number of words")?.min(4096) } else { 1 };
        let mut words = Vec::new();
        for _ in 0..count {
            let len = cursor.u32("the length of a text")?;
            let text = cursor.take(len.into(), "a text")?;
            let text = text.split(|&b| b == 0).next().unwrap_or_default();
            words.push(String::from_utf8_lossy(text).into_owned());
        }
        self.facts.push((name, words.join(" ")));
        Ok(())
    }

    fn tracing(&mut self, cursor: &mut Cursor<'_>) -> Result<()> {
        let start = Start::read(cursor)?;
        let mut data = TracingData::read_in_a_row(cursor, self.bounds)?;
        // Since version 0.6.
        if !cursor.rest().is_empty() && data.read_cmdlines(cursor).is_err() {
            data.saved_cmdlines.clear();
        }
        self.tracing = Some((start, data));
        Ok(())
    }

    /// In pipe mode attributes and the tracing data are records; the place of the kernel is one always.
    fn read_first_records(&mut self) -> Result<()> {
        let mut records = self.records();
        while let Some(record) = records.next_record()? {
            match record.kind {
                Record::SAMPLE | Record::COMPRESSED | Record::COMPRESSED2 => break,
                Record::HEADER_ATTR => {
                    let mut cursor = Cursor::new(record.body, record.offset, self.order);
                    let mut attr = Attr::read(&mut cursor)?;
                    attr.ids = cursor.rest().chunks_exact(8).map(|id| self.order.uint(id)).collect();
                    self.attrs.push(attr);
                    if self.attrs.len() as u64 > self.bounds.ids {
                        return Err(self.too_many(record.offset, "attributes"));
                    }
                }
                Record::TRACING_DATA => {
                    self.tracing(&mut Cursor::new(record.tail, record.tail_offset, self.order))?;
                }
                Record::HEADER_FEATURE => {
                    let mut cursor = Cursor::new(record.body, record.offset, self.order);
                    let number = cursor.u64("the number of a feature")?;
                    let number = u32::try_from(number).unwrap_or(u32::MAX);
                    // Features that are not whole are no reason to stop.
                    let _ = self.feature(number, cursor.rest(), cursor.offset());
                }
                Record::MMAP => self.kernel_map(&record),
                _ => {}
            }
        }
        Ok(())
    }

    fn kernel_map(&mut self, record: &Record<'_>) {
        let mut cursor = Cursor::new(record.body, record.offset, self.order);
        let mut read = || -> Result<(u64, u64, String)> {
            cursor.take(8, "a mapping")?;
            let start = cursor.u64("a mapping")?;
            cursor.take(8, "a mapping")?;
            let offset = cursor.u64("a mapping")?;
            Ok((start, offset, cursor.text("the name of a mapping")?))
        };
        let Ok((start, offset, name)) = read() else { return };
        if let Some(symbol) = name.strip_prefix("[kernel.kallsyms]") {
            self.kernel_text.get_or_insert_with(|| (symbol.to_owned(), offset, start));
        }
    }

    /// All records, from the first.
    pub fn records(&self) -> Records<'d> {
        let (start, end) = self.records;
        let position = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let bytes = self.bytes.get(position(start)..position(end)).unwrap_or_default();
        Records::new(Cursor::new(bytes, start, self.order))
    }

    /// A fact of the header.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(n, _)| *n == name).map(|(_, text)| text.as_str())
    }
}
