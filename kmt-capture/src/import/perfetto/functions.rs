//! Addresses of functions of which a trace has the names only.

use std::collections::HashMap;

use super::super::text::NamedSymbols;

/// Addresses of functions.
#[derive(Debug)]
pub enum Functions {
    /// Those of the kernel's own symbols.
    Known(HashMap<Vec<u8>, u64>),
    /// Addresses of our own, which go with a table of our own.
    Own(NamedSymbols),
}

impl Functions {
    /// Addresses of our own, where no kernel has code: its call sites are in the trace, and have no symbols.
    pub fn own(long_size: usize, most: u64) -> Self {
        Self::Own(NamedSymbols::at(if long_size == 8 { 0xffff_fffe_0000_0000 } else { 0x1000_0000 }, most))
    }

    /// Address of a function, if known.
    pub fn address(&mut self, name: &[u8]) -> Option<u64> {
        match self {
            Self::Known(addresses) => addresses.get(name).copied(),
            Self::Own(symbols) => symbols.address(name),
        }
    }

    /// A function of which an event has an address in it: `FUNCTION+0xOFFSET`.
    pub fn set_address(&mut self, text: &[u8], address: u64) {
        if let Self::Own(symbols) = self {
            symbols.set_address(text, address);
        }
    }
}
