//! The function of an address, with its place in the source.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;

use crate::render::screen::Cell;
use crate::render::words::escaped;
use crate::source::SourceTable;
use crate::trace::names::function_and_module;

/// A function at an address: the one that holds it, or one inlined there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceRow {
    /// Function.
    pub function: String,
    /// Source file, from the top of the kernel's source.
    pub file: String,
    /// Line; `null`: not known.
    pub line: Option<u32>,
}

/// The function of an address. It is used as a text: function and offset.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Symbol {
    /// Function and offset, or the address.
    symbol: String,
    /// Functions at the address with their source lines, the innermost inlined one first; absent: not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    source: Vec<SourceRow>,
    /// Number of the function outside the allocator.
    #[serde(skip)]
    shown: usize,
}

impl Symbol {
    /// The function of an address, whose name is known.
    pub fn at(symbol: String, address: u64, table: &SourceTable<'_>) -> Self {
        let (frames, shown) = table.frames_with_shown(address);
        let row = |frame: &crate::source::Frame<'_>| SourceRow {
            // Assembler code has lines, and no functions.
            function: match frame.function.as_ref() {
                "" => function_and_module(&symbol).0.to_owned(),
                function => escaped(function.as_bytes()),
            },
            file: escaped(frame.file.as_bytes()),
            line: Some(frame.line).filter(|line| *line > 0),
        };
        let source = frames.iter().map(row).collect();
        Self { symbol, source, shown }
    }
}

impl Symbol {
    /// Functions of the symbol with their source lines.
    pub fn into_source(self) -> Vec<SourceRow> {
        self.source
    }

    /// Function and offset.
    pub fn as_str(&self) -> &str {
        &self.symbol
    }
}

impl Deref for Symbol {
    type Target = str;

    fn deref(&self) -> &str {
        &self.symbol
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.symbol)
    }
}

impl From<String> for Symbol {
    fn from(symbol: String) -> Self {
        Self { symbol, ..Self::default() }
    }
}

#[cfg(test)]
impl From<&str> for Symbol {
    fn from(symbol: &str) -> Self {
        Self::from(symbol.to_owned())
    }
}

impl From<Symbol> for String {
    fn from(symbol: Symbol) -> Self {
        symbol.symbol
    }
}

impl SourceRow {
    /// `fs/open.c:7`
    pub fn file_and_line(&self) -> String {
        let line = self.line.map_or(String::new(), |line| format!(":{line}"));
        format!("{}{line}", self.file)
    }
}

impl From<&Symbol> for Cell {
    fn from(symbol: &Symbol) -> Self {
        let place = symbol.source.get(symbol.shown);
        let place = place.map(|row| (row.function.clone(), row.file_and_line()));
        Self::Symbol(symbol.symbol.clone(), place.map(Box::new))
    }
}
