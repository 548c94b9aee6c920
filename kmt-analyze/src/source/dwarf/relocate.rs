//! Relocatable files, as modules are: their sections get addresses of their own, and debug information is relocated to them.

use std::collections::HashMap;

use object::{
    Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationKind, RelocationTarget, SectionFlags,
    SectionIndex,
};

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
