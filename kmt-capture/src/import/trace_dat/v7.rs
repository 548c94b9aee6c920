//! Version 7: sections that options point to, compressed or not.

use std::borrow::Cow;
use std::collections::HashSet;

use super::super::cursor::{Cursor, ImportError, Result};
use super::super::inflate::Codec;
use super::super::tracing_data::{Lines, lines};
use super::TraceDat;
use super::buffers::{BufferInstance, CPUS_MAX, CpuData};

/// A section is compressed.
const COMPRESSED: u16 = 1;

/// A section's contents, and where they stand.
struct Section<'d> {
    offset: u64,
    bytes: Cow<'d, [u8]>,
}

impl<'d> TraceDat<'d> {
    pub(super) fn read_v7(&mut self, mut cursor: Cursor<'d>) -> Result<()> {
        let offset = cursor.offset();
        let compression = cursor.text("the name of the compression")?;
        let _version = cursor.text("the version of the compression")?;
        self.codec = Codec::named(&compression, offset)?;
        let mut next = cursor.u64("the offset of the options")?;
        let mut offsets = HashSet::new();
        let mut options = 0u64;
        while next != 0 {
            if !offsets.insert(next) {
                return Err(ImportError::at(next, "the sections of options form a loop"));
            }
            let section = self.section(&cursor, next, 0)?;
            let mut inner = Cursor::new(&section.bytes, section.offset, cursor.order);
            next = 0;
            while !inner.rest().is_empty() {
                options = options.saturating_add(1);
                if options > self.bounds.options {
                    return Err(self.too_many_options(inner.offset()));
                }
                let id = inner.u16("an option")?;
                let len = inner.u32("the size of an option")?;
                let at = inner.offset();
                let data = inner.take(len.into(), "an option")?;
                let mut option = Cursor::new(data, at, cursor.order);
                if id == 0 {
                    next = option.u64("the offset of more options")?;
                    break;
                }
                self.v7_option(id, &mut option, &cursor)?;
            }
        }
        // The top level has no name and goes first.
        self.instances.sort_by_key(|i| !i.name.is_empty());
        Ok(())
    }

    fn v7_option(&mut self, id: u16, option: &mut Cursor<'_>, file: &Cursor<'d>) -> Result<()> {
        match id {
            3 => {
                let instance = self.buffer(option, file)?;
                self.instances.push(instance);
                Ok(())
            }
            16..=21 | 23..=25 => {
                let at = option.u64("the offset of a section")?;
                let section = self.section(file, at, id)?;
                self.read_section(id, &section, file)
            }
            22 => {
                self.notes.push("a latency trace, which is text, is left out".to_owned());
                Ok(())
            }
            8 | 15 => Ok(()),
            _ => {
                self.option(id, option.rest(), file.order);
                Ok(())
            }
        }
    }

    fn read_section(&mut self, id: u16, section: &Section<'_>, file: &Cursor<'_>) -> Result<()> {
        let mut cursor = Cursor::new(&section.bytes, section.offset, file.order);
        let sized = |cursor: &mut Cursor<'_>, size: usize, what: &str| -> Result<Vec<u8>> {
            let len = cursor.uint(size, what)?;
            Ok(cursor.take(len, what)?.to_vec())
        };
        match id {
            16 => self.data.read_header_info(&mut cursor)?,
            17 => self.data.read_ftrace_formats(&mut cursor)?,
            18 => self.data.read_formats(&mut cursor)?,
            19 => self.data.read_kallsyms(&mut cursor)?,
            20 => self.data.printk_formats = sized(&mut cursor, 4, "printk_formats")?,
            21 => self.data.read_cmdlines(&mut cursor)?,
            23 => self.options.btf = Some(sized(&mut cursor, 4, "the BTF")?),
            24 => self.options.last_boot_info = Some(sized(&mut cursor, 4, "last_boot_info")?),
            _ => {
                let file = Lines { name: "modules", size: 4, line_len: 64 };
                self.options.modules = Some(lines(&mut cursor, &file, self.bounds.modules)?);
            }
        }
        Ok(())
    }

    fn buffer(&mut self, option: &mut Cursor<'_>, file: &Cursor<'d>) -> Result<BufferInstance> {
        let at = option.u64("the offset of a buffer")?;
        let name = option.text("the name of a buffer")?;
        let clock = option.text("the clock of a buffer")?;
        let page_size = option.u32("the size of sub-buffers")?;
        let offset = option.offset();
        let count = option.u32("the number of CPUs")?;
        if count > CPUS_MAX {
            return Err(ImportError::at(offset, format!("{count} CPUs: more than {CPUS_MAX}")));
        }
        self.count_cpus(count, offset)?;
        let mut cpus = Vec::new();
        for _ in 0..count {
            let cpu = option.u32("a CPU's number")?;
            let offset = option.u64("the offset of a CPU's data")?;
            cpus.push(CpuData { cpu, offset, len: option.u64("the length of a CPU's data")? });
        }
        let flags = Header::read(&mut file.seek(at, "a buffer")?, 3)?.flags;
        let is_compressed = flags & COMPRESSED != 0 && self.codec.is_some();
        Ok(BufferInstance { name, clock: Some(clock), page_size: Some(page_size), cpus, is_compressed })
    }

    /// The section at `offset`, of that kind.
    fn section(&self, file: &Cursor<'d>, offset: u64, id: u16) -> Result<Section<'d>> {
        let mut cursor = file.seek(offset, "a section")?;
        let header = Header::read(&mut cursor, id)?;
        let at = cursor.offset();
        let bytes = cursor.take(header.size, "a section")?;
        let Some(codec) = self.codec.filter(|_| header.flags & COMPRESSED != 0) else {
            self.sections.take(header.size, at)?;
            return Ok(Section { offset: at, bytes: Cow::Borrowed(bytes) });
        };
        let mut inner = Cursor::new(bytes, at, file.order);
        let packed = inner.u32("the compressed size of a section")?;
        let len = inner.u32("the size of a section")?;
        let packed = inner.take(packed.into(), "a compressed section")?;
        self.sections.take(len.into(), at)?;
        let bytes = codec.inflate(packed, len.into(), self.bounds.compressed_part, at)?;
        Ok(Section { offset: at, bytes: Cow::Owned(bytes) })
    }
}

struct Header {
    flags: u16,
    size: u64,
}

impl Header {
    fn read(cursor: &mut Cursor<'_>, id: u16) -> Result<Self> {
        let offset = cursor.offset();
        let found = cursor.u16("the kind of a section")?;
        if found != id {
            return Err(ImportError::at(offset, format!("a section of kind {found} instead of kind {id}")));
        }
        let flags = cursor.u16("the flags of a section")?;
        let _description = cursor.u32("the description of a section")?;
        Ok(Self { flags, size: cursor.u64("the size of a section")? })
    }
}
