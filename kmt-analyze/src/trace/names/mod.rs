//! Names of things of the kernel, as every output has them: one name for each thing, decided here.
//!
//! | thing | name |
//! |---|---|
//! | address of code | function, offset and module as the kernel prints them: `ext4_alloc_inode+0x1c/0x80 [ext4]` |
//! | function | a symbol without its offset, with its module |
//! | module | in brackets; the core kernel is one |
//! | cache (`caches`) | by its events; of kmalloc by the size; `?` and the size where no event names it |
//! | task | its name and id: `bash-1234`, the name of a time ([`comms`](super::comms)) |
//!
//! A shown name is escaped once ([`kmt_common::text::escaped`]), here, for screens, JSON and exports alike: escaping it again
//! changes nothing. Conditions (`--where`) accept the shown name beside the name that the kernel has. Paths of cgroups are in
//! [`cgroups`](super::cgroups); places in source files are in `source`.

mod caches;

pub use caches::{
    CacheKey, OLDER_KMALLOC, SizeClasses, cache_name, in_k, is_kmalloc, is_of_pages, nameless,
    names_of_cache, names_of_size,
};

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use kmt_common::text::{escaped, shown};
use kmt_format::print::PrintEnv;

/// A symbol without the size of its function: `kfree+0x1c/0x80 [m]` becomes `kfree+0x1c [m]`.
pub fn without_size(symbol: &str) -> String {
    let Some((name, rest)) = symbol.split_once("+0x") else { return symbol.to_owned() };
    let (offset, after) = rest.split_once('/').unwrap_or((rest, ""));
    let module = after.split_once(' ').map_or(String::new(), |(_, module)| format!(" {module}"));
    let is_hex = !offset.is_empty() && offset.chars().all(|c| c.is_ascii_hexdigit());
    if is_hex && after.starts_with("0x") { format!("{name}+0x{offset}{module}") } else { symbol.to_owned() }
}

/// The function of a symbol, with its module: `kfree+0x1c/0x80 [m]` becomes `kfree [m]`. An address stays as it is.
pub fn function_of(symbol: &str) -> String {
    let (function, module) = function_and_module(symbol);
    module.map_or_else(|| function.to_owned(), |module| format!("{function} {module}"))
}

/// The function of a symbol, and its module in brackets: of `kfree+0x1c/0x80 [m]` these are `kfree` and `[m]`.
pub fn function_and_module(symbol: &str) -> (&str, Option<&str>) {
    match symbol.split_once("+0x") {
        Some((function, rest)) => (function, rest.split_once(' ').map(|(_, module)| module)),
        None => symbol.split_once(' ').map_or((symbol, None), |(function, module)| (function, Some(module))),
    }
}

/// Module of a symbol as the kernel prints it, in brackets: `ext4_alloc_inode+0x10/0x20 [ext4]`; [`CORE`] without one. `None`:
/// an address without a symbol.
pub fn module_of(symbol: &[u8]) -> Option<&[u8]> {
    match symbol.iter().position(|byte| *byte == b' ') {
        Some(at) => symbol.get(at + 1..),
        None if symbol.starts_with(b"0x") => None,
        None => Some(CORE),
    }
}

/// True if a symbol is of the core kernel, false if it is of a module; `None`: an address without a symbol.
pub fn is_core(symbol: &[u8]) -> Option<bool> {
    module_of(symbol).map(|module| module == CORE)
}

/// Names of a task in conditions: that of its events, and the shown one.
pub fn names_of_task(name: &[u8]) -> [Cow<'_, [u8]>; 2] {
    [Cow::Borrowed(name), Cow::Owned(escaped(name).into_bytes())]
}

/// Names of a module in conditions: in brackets, and without.
pub fn names_of_module(module: &[u8]) -> [String; 2] {
    let name = String::from_utf8_lossy(module).into_owned();
    let bare = name.trim_start_matches('[').trim_end_matches(']').to_owned();
    [name, bare]
}

/// Module of the core kernel.
const CORE: &[u8] = b"[kernel]";

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

/// Name and id of a task.
pub fn task_name(comm: &[u8], pid: i32) -> String {
    format!("{}-{pid}", escaped(comm))
}

/// Name and id of a task in a message, which has the beginning of a long name.
pub fn task_in_message(comm: &[u8], pid: i32) -> String {
    format!("{}-{pid}", shown(comm))
}

#[cfg(test)]
mod tests {
    use kmt_format::kernel::ByteOrder;

    use super::*;

    #[test]
    fn sizes_of_functions_leave() {
        assert_eq!(without_size("kfree+0x1c/0x80 [m]"), "kfree+0x1c [m]");
        assert_eq!(without_size("kfree+0x1c/0x80"), "kfree+0x1c");
        assert_eq!(without_size("0xffffffff81000000"), "0xffffffff81000000");
        assert_eq!(without_size("a+0xb/c"), "a+0xb/c");
    }

    #[test]
    fn a_function_keeps_its_module() {
        for (symbol, function, module) in [
            ("kfree+0x1c/0x80", "kfree", None),
            ("kfree+0x1c", "kfree", None),
            ("kfree", "kfree", None),
            ("inode+0x1c/0x80 [ext4]", "inode", Some("[ext4]")),
            ("inode+0x1c [ext4]", "inode", Some("[ext4]")),
            ("inode [ext4]", "inode", Some("[ext4]")),
            ("0xffffffff81000000", "0xffffffff81000000", None),
            ("", "", None),
        ] {
            assert_eq!(function_and_module(symbol), (function, module), "{symbol}");
            let whole = module.map_or(function.to_owned(), |module| format!("{function} {module}"));
            assert_eq!(function_of(symbol), whole);
            assert_eq!(function_of(&whole), whole, "the function of a function is itself");
        }
        // Other texts that stand in the place of a symbol are not changed.
        for text in ["order 0, Movable, GFP_KERNEL", "? (576 byte objects)", "(no stack)", " a  b "] {
            assert_eq!(function_of(text), text);
        }
    }

    #[test]
    fn modules_are_those_in_brackets() {
        assert_eq!(module_of(b"ext4_alloc_inode+0x10/0x20 [ext4]"), Some(&b"[ext4]"[..]));
        assert_eq!(module_of(b"alloc_file+0x10/0x20"), Some(CORE));
        assert_eq!(module_of(b"0xffffffff81000010"), None);
        assert_eq!(names_of_module(b"[ext4]"), ["[ext4]", "ext4"]);
    }

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

    #[test]
    fn a_task_has_its_name_and_id() {
        assert_eq!(task_name(b"bash", 7), "bash-7");
        assert_eq!(task_name(b"a\x1bb", 7), "a\\x1bb-7");
        assert_eq!(task_in_message(b"bash", 7), task_name(b"bash", 7));
        assert!(task_in_message(&[b'x'; 5_000], 7).len() < 1_100);
    }
}
