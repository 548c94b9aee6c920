//! The body of a symbols chunk. Spec section "KSYM".

use zerocopy::{ByteOrder, FromBytes, Immutable, IntoBytes, KnownLayout, U16, U32, U64, Unaligned};

/// Head of a symbols chunk: owners, symbols sorted by address, and a heap of names, one behind the other.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct SymbolsHead<O: ByteOrder> {
    /// Length of this head in bytes; a later minor version may append fields.
    pub head_len: U32<O>,
    /// Number of owners.
    pub owner_count: U32<O>,
    /// Number of symbols.
    pub symbol_count: U32<O>,
    /// Length of the heap in bytes.
    pub heap_len: U32<O>,
    /// First address of the kernel image; 0 if not known.
    pub core_start: U64<O>,
    /// First address behind the kernel image; 0 if not known.
    pub core_end: U64<O>,
    /// Bytes from one owner to the next; a later minor version may append fields to the rows.
    pub owner_len: U32<O>,
    /// The same for symbols.
    pub symbol_len: U32<O>,
}

/// A module, or `bpf`, `__builtin__ftrace` and the like.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct SymbolOwnerRow<O: ByteOrder> {
    /// First address as /proc/modules has it; 0 if not known.
    pub base: U64<O>,
    /// Size in bytes, all parts of the module together; 0 if not known.
    pub size: U64<O>,
    /// Offset of the name in the heap.
    pub name_offset: U32<O>,
    /// Length of the name in bytes.
    pub name_len: U32<O>,
}

/// A symbol of a target whose long has 8 bytes.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct SymbolRow64<O: ByteOrder> {
    /// Address.
    pub address: U64<O>,
    /// Size in bytes; 0 if not known, 0xffff_ffff for that and more.
    pub size: U32<O>,
    /// Offset of the name in the heap.
    pub name_offset: U32<O>,
    /// Length of the name in bytes.
    pub name_len: U16<O>,
    /// 0: the kernel; otherwise the index of the owner, plus 1.
    pub owner: U16<O>,
    /// Letter as nm prints it.
    pub kind: u8,
    /// Written as 0, ignored by readers.
    pub reserved: [u8; 3],
}

/// A symbol of a target whose long has 4 bytes.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct SymbolRow32<O: ByteOrder> {
    /// Address.
    pub address: U32<O>,
    /// Size in bytes; 0 if not known.
    pub size: U32<O>,
    /// Offset of the name in the heap.
    pub name_offset: U32<O>,
    /// Length of the name in bytes.
    pub name_len: U16<O>,
    /// 0: the kernel; otherwise the index of the owner, plus 1.
    pub owner: U16<O>,
    /// Letter as nm prints it.
    pub kind: u8,
    /// Written as 0, ignored by readers.
    pub reserved: [u8; 3],
}

const _: () = assert!(size_of::<SymbolsHead<zerocopy::LE>>() == 40);
const _: () = assert!(size_of::<SymbolOwnerRow<zerocopy::LE>>() == 24);
const _: () = assert!(size_of::<SymbolRow64<zerocopy::LE>>() == 24);
const _: () = assert!(size_of::<SymbolRow32<zerocopy::LE>>() == 20);
