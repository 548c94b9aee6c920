//! Writing symbols: all that are given, or those that events need.

use std::borrow::Cow;
use zerocopy::LittleEndian;

use super::Writer;
use super::symbols_chunk::symbols_body;
use super::used_code::NewSymbols;
use crate::error::Result;
use crate::kernel::{ByteOrder, KernelSymbols, Module, with_order};
use crate::raw::{ChunkKind, chunk_flags};
use crate::read::{SymbolChunk, SymbolTable};

impl Writer {
    /// Writes the kernel's symbols. `modules` gives the places of modules.
    ///
    /// # Errors
    ///
    /// Returns an error if the codec refuses it.
    pub fn add_symbols(&mut self, symbols: &KernelSymbols<'_>, modules: &[Module]) -> Result<()> {
        self.symbols_chunk(symbols, modules, None)
    }

    /// Keeps the kernel's symbols, and writes those that events need: in front of each event chunk the ones that it is
    /// the first to need. What the file holds from its start to any place has its names, and looking up the addresses
    /// of its events gives the same answers as with all symbols. The symbols that bound the kernel image come first.
    ///
    /// Addresses of code are fields by their role ([`Role::CALL_SITE`](crate::schema::Role::CALL_SITE),
    /// [`Role::STACK`](crate::schema::Role::STACK)) or name (`ip`, `parent_ip`, `func`), and fields that the `print fmt`
    /// prints by `%pS`, `%ps` or `%pB`; and those of [`Writer::add_code_address`].
    ///
    /// # Errors
    ///
    /// Returns an error if the table cannot be made.
    pub fn add_symbols_on_use(&mut self, symbols: &KernelSymbols<'_>, modules: &[Module]) -> Result<()> {
        let body = symbols_body::<LittleEndian>(symbols, modules, None);
        let mut table = SymbolTable::default();
        table.add(SymbolChunk::parse(Cow::Owned(body), 0, ByteOrder::Little)?);
        self.code.set_source(table);
        Ok(())
    }

    /// Collects the addresses of code that events hold, for [`Writer::take_code_addresses`]: for a writer that cannot
    /// hold a table of symbols.
    pub fn collect_code_addresses(&mut self) {
        self.code.start();
    }

    /// The addresses of code in events that were added since the last call; each address once, or, after very many
    /// others, once more. None with [`Writer::add_symbols_on_use`].
    pub fn take_code_addresses(&mut self) -> Vec<u64> {
        self.code.take()
    }

    /// Counts `address` among those that events hold.
    pub fn add_code_address(&mut self, address: u64) {
        if self.code.is_on() {
            self.code.add(address);
        }
    }

    pub(super) fn write_new_symbols(&mut self) -> Result<()> {
        let mut code = core::mem::take(&mut self.code);
        let written = code.new_symbols(|NewSymbols { symbols, modules, core }| {
            self.symbols_chunk(symbols, modules, Some(*core))
        });
        self.code = code;
        written
    }

    pub(super) fn symbols_chunk(
        &mut self,
        symbols: &KernelSymbols<'_>,
        modules: &[Module],
        core: Option<(u64, u64)>,
    ) -> Result<()> {
        let body = with_order!(self.options.order, O => symbols_body::<O>(symbols, modules, core));
        self.framer.loose_chunk(ChunkKind::SYMBOLS, chunk_flags::SAFE_TO_COPY, &body)
    }
}
