//! Symbols of addresses: one lookup, and the forms of its result that users need.

use std::cell::RefCell;
use std::collections::HashMap;

use kmt_common::text::escaped;
use kmt_format::print::PrintEnv;

use super::functions::function_of;
use super::modules::module_of;

/// Looks up the symbols of addresses.
///
/// It is made once for a report or an export: making a [`PrintEnv`] reads all symbols and strings of the file.
pub struct Symbolizer<'d> {
    env: PrintEnv<'d>,
    kept: RefCell<HashMap<u64, String>>,
}

impl<'d> Symbolizer<'d> {
    /// By the symbols of a file.
    pub fn new(env: PrintEnv<'d>) -> Self {
        Self { env, kept: RefCell::default() }
    }

    /// Symbols, strings and constants, for texts of events.
    pub fn env(&self) -> &PrintEnv<'d> {
        &self.env
    }

    /// Function, offset and module as the kernel prints them, to compare them; an address without a symbol is itself.
    pub fn raw(&self, address: u64) -> Vec<u8> {
        self.env.symbol_with_offset(address)
    }

    /// Function, offset and module, escaped for output.
    pub fn shown(&self, address: u64) -> String {
        escaped(&self.raw(address))
    }

    /// [`Symbolizer::shown`], looked up once for each address: for rows of events and objects, many of which have few
    /// addresses.
    pub fn kept(&self, address: u64) -> String {
        self.kept.borrow_mut().entry(address).or_insert_with(|| self.shown(address)).clone()
    }

    /// Function and module for output.
    pub fn function(&self, address: u64) -> String {
        function_of(&self.shown(address))
    }

    /// Module for output, `[kernel]` for the core kernel; `None`: the address has no symbol.
    pub fn module(&self, address: u64) -> Option<String> {
        module_of(&self.raw(address)).map(escaped)
    }
}

#[cfg(test)]
mod tests {
    use kmt_format::kernel::ByteOrder;

    use super::*;

    #[test]
    fn an_address_without_a_symbol_is_itself_in_all_forms() {
        let symbols = Symbolizer::new(PrintEnv::new(ByteOrder::Little, 8));
        let raw = symbols.raw(0xffff_ffff_8100_0000);
        assert_eq!(raw, b"0xffffffff81000000");
        let shown = String::from_utf8(raw).unwrap();
        for of in [Symbolizer::shown, Symbolizer::kept, Symbolizer::kept, Symbolizer::function] {
            assert_eq!(of(&symbols, 0xffff_ffff_8100_0000), shown);
        }
        assert_eq!(symbols.module(0xffff_ffff_8100_0000), None);
    }
}
