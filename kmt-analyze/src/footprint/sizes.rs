//! Sizes of code and data, by their kind.
//!
//! Code, read-only data, written data and zeroed data are distinguished by flags and names of sections. `build` and
//! `linked` add the sizes up by object or source file, `rows` by directory.

use object::{Object, ObjectSection, SectionFlags};
use serde::Serialize;

/// Bytes by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sizes {
    /// Code.
    pub text: u64,
    /// Data that is written.
    pub data: u64,
    /// Data that is only read.
    pub rodata: u64,
    /// Data that begins as zeros, and is not in the file.
    pub bss: u64,
    /// Data that each CPU has; counted once.
    pub percpu: u64,
    /// Code and data that are freed after the boot, or after a module's start.
    pub init: u64,
}

/// Kind of a section's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeKind {
    Text,
    Data,
    Rodata,
    Bss,
    Percpu,
    Init,
}

impl Sizes {
    /// Adds bytes of a kind.
    pub fn add(&mut self, kind: SizeKind, bytes: u64) {
        let sum = match kind {
            SizeKind::Text => &mut self.text,
            SizeKind::Data => &mut self.data,
            SizeKind::Rodata => &mut self.rodata,
            SizeKind::Bss => &mut self.bss,
            SizeKind::Percpu => &mut self.percpu,
            SizeKind::Init => &mut self.init,
        };
        *sum = sum.saturating_add(bytes);
    }

    /// Sums by kind of all sections that are loaded.
    pub fn of(elf: &object::File<'_>) -> Self {
        let mut sizes = Self::default();
        for section in elf.sections() {
            if let Some(kind) = kind_of(&section) {
                sizes.add(kind, section.size());
            }
        }
        sizes
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        [self.text, self.data, self.rodata, self.bss, self.percpu, self.init]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

impl std::ops::AddAssign for Sizes {
    fn add_assign(&mut self, other: Self) {
        let kinds = [
            (SizeKind::Text, other.text),
            (SizeKind::Data, other.data),
            (SizeKind::Rodata, other.rodata),
            (SizeKind::Bss, other.bss),
            (SizeKind::Percpu, other.percpu),
            (SizeKind::Init, other.init),
        ];
        kinds.into_iter().for_each(|(kind, bytes)| self.add(kind, bytes));
    }
}

/// Kind of a section; `None`: it is not loaded. Names: include/asm-generic/vmlinux.lds.h of Linux 6.12.
pub fn kind_of(section: &object::Section<'_, '_>) -> Option<SizeKind> {
    let SectionFlags::Elf { sh_flags } = section.flags() else { return None };
    let has = |flag: u32| sh_flags & u64::from(flag) != 0;
    if !has(object::elf::SHF_ALLOC) {
        return None;
    }
    let name = section.name().unwrap_or_default();
    let is_init = [".init", ".meminit", ".con_initcall", ".initcall", ".exit"]
        .iter()
        .any(|begin| name.starts_with(begin));
    Some(match name {
        name if name.contains("percpu") => SizeKind::Percpu,
        _ if is_init => SizeKind::Init,
        _ if has(object::elf::SHF_EXECINSTR) => SizeKind::Text,
        _ if section.kind() == object::SectionKind::UninitializedData => SizeKind::Bss,
        // A linked kernel marks it as written, for what is written once.
        name if name.starts_with(".rodata") => SizeKind::Rodata,
        _ if has(object::elf::SHF_WRITE) => SizeKind::Data,
        _ => SizeKind::Rodata,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_add_up() {
        let mut sizes = Sizes::default();
        sizes.add(SizeKind::Text, 5);
        sizes.add(SizeKind::Bss, u64::MAX);
        let mut twice = sizes;
        twice += sizes;
        assert_eq!((twice.text, twice.bss, twice.total()), (10, u64::MAX, u64::MAX));
    }
}
