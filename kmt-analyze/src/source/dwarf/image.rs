//! An ELF file with debug information.
//!
//! Relocatable files, as modules are, come first: their sections get addresses of their own, and debug information is relocated
//! to them. Sections are counted before a library reads them (`check`).

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use kmt_common::input::InputBytes;
use object::{
    CompressedData, CompressionFormat, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationKind,
    RelocationTarget, SectionFlags, SectionIndex, SectionKind,
};

use super::limits::{Budget, Place};
use crate::failure::{Failure, Result};
use crate::files::Files;
use crate::source::frame::PATH_MAX;

/// Most bytes of a pipe, which are held in memory.
const PIPE_MAX: u64 = 4 << 30;

/// Maps an ELF file that the command line names. It may be a pipe, of a shell that unpacks it.
pub fn bytes(path: &Path, files: &Files) -> Result<InputBytes> {
    if let Some(bytes) = files.get(path) {
        return Ok(InputBytes::InMemory(bytes));
    }
    let file = std::fs::File::open(path).map_err(|e| Failure::io("opening", path, &e))?;
    let kind = file.metadata().map_err(|e| Failure::io("opening", path, &e))?.file_type();
    if !kind.is_file() && !kind.is_fifo() {
        return Err(Failure::new(format!("{} is neither a regular file nor a pipe", path.display()))
            .hint("a vmlinux or .ko with debug information is needed"));
    }
    InputBytes::of_file(path, file, |file| {
        let mut bytes = Vec::new();
        let read = file.take(PIPE_MAX.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|e| Failure::io("reading", path, &e))?;
        if bytes.len() as u64 > PIPE_MAX {
            return Err(Failure::new(format!("{} has more than {PIPE_MAX} bytes", path.display()))
                .hint("save it to a file: files are mapped"));
        }
        Ok(bytes)
    })
}

/// An ELF file.
pub struct Image<'f> {
    pub path: &'f Path,
    pub elf: object::File<'f>,
    /// What its debug information may take.
    pub budget: Budget<'f>,
    /// Made-up addresses of the sections of a relocatable file, by index.
    relocations: Option<Relocations>,
}

impl<'f> Image<'f> {
    /// Parses the headers of a file.
    pub fn parse(path: &'f Path, bytes: &'f [u8]) -> Result<Self> {
        let elf = object::File::parse(bytes).map_err(|error| {
            Failure::new(format!("{}: not an ELF file: {error}", path.display())).hint(
                "a vmlinux or .ko with debug information is needed; bzImage, .ko.xz and .ko.zst are packed",
            )
        })?;
        let budget = Budget::new(path, bytes.len());
        count_names(&elf, &budget)?;
        let relocations = (elf.kind() == object::ObjectKind::Relocatable).then(|| Relocations::of(&elf));
        Ok(Self { path, elf, budget, relocations })
    }

    /// True if it has debug information.
    pub fn has_debug_information(&self) -> bool {
        self.elf.section_by_name(".debug_info").is_some()
    }

    /// Address of a symbol: as linked, or made up.
    pub fn address(&self, symbol: &object::Symbol<'_, '_>) -> Option<u64> {
        let section = symbol.section_index()?;
        let base = self.relocations.as_ref().map_or(Some(0), |relocations| relocations.base(section))?;
        base.checked_add(symbol.address())
    }

    /// Contents of a section of debug information; empty: there is none.
    pub fn section(&self, name: &str) -> Result<Cow<'f, [u8]>> {
        let fail = |why: String| Failure::new(format!("{}: section {name}: {why}", self.path.display()));
        let Some(section) = self.elf.section_by_name(name) else { return Ok(Cow::Borrowed(&[])) };
        let data = section.compressed_data().map_err(|error| fail(error.to_string()))?;
        let place = Place { section: section_name(name), offset: 0 };
        let bytes = match data.format {
            CompressionFormat::None if self.relocations.is_none() => return Ok(Cow::Borrowed(data.data)),
            CompressionFormat::None => {
                self.budget.memory(data.data.len() as u64, place)?;
                data.data.to_vec()
            }
            CompressionFormat::Zlib => {
                // Both are counted before: 1 MB may have 1 GB, and all sections may be the same bytes.
                self.budget.memory(data.uncompressed_size, place)?;
                self.budget.steps(data.uncompressed_size, place)?;
                unzipped(&data).map_err(|error| fail(error.to_string()))?
            }
            other => {
                return Err(fail(format!("its compression, {other:?}, is not known"))
                    .hint("objcopy --decompress-debug-sections unpacks it"));
            }
        };
        Ok(Cow::Owned(match &self.relocations {
            Some(relocations) => relocations.applied(&self.elf, &section, bytes),
            None => bytes,
        }))
    }

    /// Refuses the file if its build id is another than the recorded one.
    pub fn check_build_id(&self, recorded: Option<&str>) -> Result<()> {
        let own = self.build_id();
        match (own, recorded) {
            (Some(own), Some(recorded)) if own != recorded => Err(Failure::new(format!(
                "{} has build id {own}, the traced one has {recorded}",
                self.path.display()
            ))
            .hint("addresses of another build would get wrong lines")),
            _ => Ok(()),
        }
    }

    /// Build id in hexadecimal.
    pub fn build_id(&self) -> Option<String> {
        let id = self.elf.build_id().ok().flatten()?;
        Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The failure for a file whose functions are not those of the trace.
    pub fn other_build(&self, why: &str) -> Failure {
        Failure::new(format!("{}: {why}", self.path.display()))
            .hint("it is of another build; the traced kernel's own vmlinux and modules are needed")
    }

    /// Functions: name, address, size.
    pub fn functions(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.elf.symbols().filter_map(|symbol| {
            let section = self.elf.section_by_index(symbol.section_index()?).ok()?;
            let address = self.address(&symbol).filter(|_| section.kind() == SectionKind::Text)?;
            Some((symbol.name_bytes().ok().filter(|name| name.len() <= PATH_MAX)?, address))
        })
    }

    /// Byte order for gimli.
    pub fn endian(&self) -> gimli::RunTimeEndian {
        if self.elf.is_little_endian() { gimli::RunTimeEndian::Little } else { gimli::RunTimeEndian::Big }
    }
}

/// Counts the texts of names: any number of sections and symbols may have one long name.
pub fn count_names(elf: &object::File<'_>, budget: &Budget<'_>) -> Result<()> {
    /// Sections that are looked for by their names.
    const LOOKED_FOR: u64 = 32;
    let steps = |name: &[u8]| 1 + (name.len() as u64 >> 10);
    for (number, section) in (0..).zip(elf.sections()) {
        let place = Place { section: "names of sections", offset: number };
        budget.steps(LOOKED_FOR * steps(section.name_bytes().unwrap_or_default()), place)?;
    }
    for (number, symbol) in (0..).zip(elf.symbols()) {
        let place = Place { section: "names of symbols", offset: number };
        budget.steps(2 * steps(symbol.name_bytes().unwrap_or_default()), place)?;
    }
    Ok(())
}

/// The content of a compressed section, of which no more is read than it has by its header.
fn unzipped(data: &CompressedData<'_>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut from = flate2::read::ZlibDecoder::new(data.data).take(data.uncompressed_size);
    from.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Name of a section of debug information, for a message.
fn section_name(name: &str) -> &'static str {
    const NAMES: [&str; 5] = [".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_ranges"];
    NAMES.into_iter().find(|known| *known == name).unwrap_or("a section of debug information")
}

/// Distance between sections, at least.
const GAP: u64 = 4_096;

/// Addresses of sections in memory.
pub struct Relocations {
    bases: HashMap<SectionIndex, u64>,
}

/// An operation on bytes.
enum Change {
    Set,
    Add,
    Subtract,
}

impl Relocations {
    /// One after the other, with gaps; address 0 stays free.
    pub fn of(elf: &object::File<'_>) -> Self {
        let mut next = GAP;
        let mut bases = HashMap::new();
        for section in elf.sections() {
            let is_loaded = match section.flags() {
                SectionFlags::Elf { sh_flags } => sh_flags & u64::from(object::elf::SHF_ALLOC) != 0,
                _ => false,
            };
            if is_loaded {
                bases.insert(section.index(), next);
                let len = section.size().min(1 << 32).next_multiple_of(GAP);
                next = next.saturating_add(len).saturating_add(GAP);
            }
        }
        Self { bases }
    }

    /// Address of a section; 0 for one that is not in memory, such as debug information.
    pub fn base(&self, section: SectionIndex) -> Option<u64> {
        self.bases.get(&section).copied()
    }

    /// Contents of a section with its relocations applied. Relocations of kinds that debug information does not use are
    /// left out.
    pub fn applied(
        &self,
        elf: &object::File<'_>,
        section: &object::Section<'_, '_>,
        mut bytes: Vec<u8>,
    ) -> Vec<u8> {
        let is_little = elf.is_little_endian();
        for (offset, relocation) in section.relocations() {
            let target = match relocation.target() {
                RelocationTarget::Symbol(index) => elf.symbol_by_index(index).ok().map(|symbol| {
                    let base = symbol.section_index().and_then(|section| self.base(section)).unwrap_or(0);
                    base.wrapping_add(symbol.address())
                }),
                RelocationTarget::Section(index) => Some(self.base(index).unwrap_or(0)),
                _ => Some(0),
            };
            let change = match (relocation.kind(), relocation.flags()) {
                (RelocationKind::Absolute, _) => Some((Change::Set, usize::from(relocation.size() / 8))),
                (_, RelocationFlags::Elf { r_type })
                    if elf.architecture() == object::Architecture::Riscv64
                        || elf.architecture() == object::Architecture::Riscv32 =>
                {
                    riscv(r_type)
                }
                _ => None,
            };
            let (Some(target), Some((change, len))) = (target, change) else { continue };
            let end = usize::try_from(offset).ok().and_then(|start| Some((start, start.checked_add(len)?)));
            let Some(field) = end.and_then(|(start, end)| bytes.get_mut(start..end)) else { continue };
            let here = read(field, is_little);
            let implicit = if relocation.has_implicit_addend() { here } else { 0 };
            let value = target.wrapping_add(relocation.addend() as u64).wrapping_add(implicit);
            let value = match change {
                Change::Set => value,
                Change::Add => here.wrapping_add(value),
                Change::Subtract => here.wrapping_sub(value),
            };
            write(field, value, is_little);
        }
        bytes
    }
}

/// Relocations of RISC-V that debug information uses, where code may shrink when it is linked. RISC-V ELF psABI, 1.0.
fn riscv(r_type: u32) -> Option<(Change, usize)> {
    Some(match r_type {
        object::elf::R_RISCV_ADD8 => (Change::Add, 1),
        object::elf::R_RISCV_ADD16 => (Change::Add, 2),
        object::elf::R_RISCV_ADD32 => (Change::Add, 4),
        object::elf::R_RISCV_ADD64 => (Change::Add, 8),
        object::elf::R_RISCV_SUB8 => (Change::Subtract, 1),
        object::elf::R_RISCV_SUB16 => (Change::Subtract, 2),
        object::elf::R_RISCV_SUB32 => (Change::Subtract, 4),
        object::elf::R_RISCV_SUB64 => (Change::Subtract, 8),
        object::elf::R_RISCV_SET8 => (Change::Set, 1),
        object::elf::R_RISCV_SET16 => (Change::Set, 2),
        object::elf::R_RISCV_SET32 => (Change::Set, 4),
        _ => return None,
    })
}

fn read(field: &[u8], is_little: bool) -> u64 {
    let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    if is_little { field.iter().rev().fold(0, add) } else { field.iter().fold(0, add) }
}

fn write(field: &mut [u8], value: u64, is_little: bool) {
    let len = field.len();
    for (at, byte) in field.iter_mut().enumerate() {
        let shift = 8 * if is_little { at } else { len - 1 - at };
        *byte = (value >> shift) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_numbers_of_both_orders() {
        let mut field = [0; 4];
        for is_little in [true, false] {
            write(&mut field, 0x1234_5678_9abc, is_little);
            assert_eq!(read(&field, is_little), 0x5678_9abc);
        }
        assert_eq!(field, [0x56, 0x78, 0x9a, 0xbc]);
    }
}
