//! Input and output of a look-up in debug information.

use std::collections::BTreeMap;

use kmt_format::read::SymbolTable;
use kmt_format::tables::SourceLine;

/// The traced kernel, as its file describes it.
#[cfg_attr(not(feature = "dwarf"), allow(dead_code))]
pub struct Target<'d> {
    pub symbols: &'d SymbolTable<'d>,
    /// Release of the kernel, such as 6.1.0-18-amd64.
    pub release: Option<&'d str>,
    /// Build ids in hexadecimal, of the kernel ("") and of modules.
    pub build_ids: BTreeMap<&'d str, &'d str>,
}

/// Lines of addresses.
#[derive(Debug, Default)]
pub struct LookedUp {
    pub lines: Vec<SourceLine<'static>>,
    /// Messages on addresses without a line, with the reason.
    pub notes: Vec<String>,
}
