//! An ELF file with debug information.

use std::borrow::Cow;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use kmt_common::input::InputBytes;
use object::{CompressionFormat, Object, ObjectSection, ObjectSymbol, SectionKind};

use super::relocate::Relocations;
use crate::failure::{Failure, Result};
use crate::files::Files;

/// Largest section that is unpacked, in bytes: all debug information of a distribution's kernel has 0.5 GB.
const UNPACKED_MAX: u64 = 1 << 30;

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
        let relocations = (elf.kind() == object::ObjectKind::Relocatable).then(|| Relocations::of(&elf));
        Ok(Self { path, elf, relocations })
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
        let bytes = match data.format {
            CompressionFormat::None => Cow::Borrowed(data.data),
            CompressionFormat::Zlib => {
                if data.uncompressed_size > UNPACKED_MAX {
                    return Err(fail(format!(
                        "it has {} bytes unpacked, more than {UNPACKED_MAX}",
                        data.uncompressed_size
                    ))
                    .hint("objcopy --decompress-debug-sections unpacks it"));
                }
                let mut bytes = Vec::new();
                let mut from = flate2::read::ZlibDecoder::new(data.data).take(data.uncompressed_size);
                from.read_to_end(&mut bytes).map_err(|error| fail(error.to_string()))?;
                Cow::Owned(bytes)
            }
            other => {
                return Err(fail(format!("its compression, {other:?}, is not known"))
                    .hint("objcopy --decompress-debug-sections unpacks it"));
            }
        };
        Ok(match &self.relocations {
            Some(relocations) => Cow::Owned(relocations.applied(&self.elf, &section, bytes.into_owned())),
            None => bytes,
        })
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
            Some((symbol.name_bytes().ok()?, address))
        })
    }

    /// Byte order for gimli.
    pub fn endian(&self) -> gimli::RunTimeEndian {
        if self.elf.is_little_endian() { gimli::RunTimeEndian::Little } else { gimli::RunTimeEndian::Big }
    }
}
