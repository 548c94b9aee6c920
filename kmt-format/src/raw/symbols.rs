//! The body of a symbols chunk. Spec section "KSYM".

use zerocopy::{ByteOrder, FromBytes, Immutable, IntoBytes, KnownLayout, U16, U32, U64, Unaligned};

/// Head of a symbols chunk: owners, blocks of symbols sorted by address, and a heap, one after the other.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct SymbolsHead<O: ByteOrder> {
    /// Length of this head in bytes; a later minor version may append fields.
    pub head_len: U32<O>,
    /// Number of owners.
    pub owner_count: U32<O>,
    /// Number of symbols in all blocks.
    pub symbol_count: U32<O>,
    /// Number of blocks.
    pub block_count: U32<O>,
    /// First address of the kernel image; 0 if not known.
    pub core_start: U64<O>,
    /// First address after the kernel image; 0 if not known.
    pub core_end: U64<O>,
    /// Bytes from one owner to the next; a later minor version may append fields to the rows.
    pub owner_len: U32<O>,
    /// Bytes from one block to the next; a later minor version may append fields to the rows.
    pub block_len: U32<O>,
    /// Length of the heap in bytes.
    pub heap_len: U32<O>,
    /// Written as 0, ignored by readers.
    pub reserved: U32<O>,
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

/// Symbols that follow each other by address. Their bytes are in the heap; numbers there do not depend on byte order or
/// word size.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct SymbolBlockRow<O: ByteOrder> {
    /// Address of the first symbol.
    pub address: U64<O>,
    /// Offset of the first symbol in the heap.
    pub offset: U32<O>,
    /// Number of symbols: 1 to [`SYMBOLS_IN_BLOCK_MAX`].
    pub symbol_count: U16<O>,
    /// Written as 0, ignored by readers.
    pub reserved: U16<O>,
}

/// Symbols of one block at most: a lookup reads a block from its start.
pub const SYMBOLS_IN_BLOCK_MAX: usize = 256;
/// Bytes of a symbol's name at most; the kernel's have 512 (`KSYM_NAME_LEN`, include/linux/kallsyms.h 6.1).
pub const SYMBOL_NAME_MAX: usize = 1024;
/// Set in the first byte of a symbol whose owner follows.
pub const OWNER_FOLLOWS: u8 = 0x80;

const _: () = assert!(size_of::<SymbolsHead<zerocopy::LE>>() == 48);
const _: () = assert!(size_of::<SymbolOwnerRow<zerocopy::LE>>() == 24);
const _: () = assert!(size_of::<SymbolBlockRow<zerocopy::LE>>() == 16);
