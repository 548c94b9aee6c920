//! Names of addresses and tasks, as rows and screens have them.
//!
//! A symbol has its function, offset and module; with debug information or a table of source lines its place in the source too.
//! Names are made by `trace/names`.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;

use crate::pass;
use crate::render::screen::Cell;
use crate::render::words::escaped;
use crate::reports::common::Context;
use crate::source::SourceTable;
use crate::stream::Api;
use crate::trace::names::{Symbolizer, function_and_module, function_of, task_name};
use crate::trace::session::Session;

/// Looks up names of addresses and tasks for one report.
pub struct Labels<'s, 'd> {
    symbols: Symbolizer<'d>,
    session: &'s Session<'d>,
    /// End of the selected time.
    end: u64,
}

impl<'s, 'd> Labels<'s, 'd> {
    /// Names in a report. A task has the name that it had at the end of the selected time.
    pub fn of(context: &Context<'s, 'd>) -> Self {
        let end = context.selection.span(context.session).1;
        Self { end, ..Self::new(context.session) }
    }

    /// Names in a trace. A task has its last name.
    pub fn new(session: &'s Session<'d>) -> Self {
        Self { symbols: session.symbolizer(), session, end: u64::MAX }
    }

    /// Cgroup of a task.
    pub fn cgroup(&self, pid: i32) -> Option<String> {
        let cgroups = self.session.cgroups();
        cgroups.path(pid, cgroups.number_at(pid, self.end)).map(escaped)
    }

    /// Symbols of addresses.
    pub fn symbols(&self) -> &Symbolizer<'d> {
        &self.symbols
    }

    /// Function and offset, or the address.
    pub fn symbol(&self, address: u64) -> String {
        self.symbols.shown(address)
    }

    /// Function and offset, or the address, with its place in the source.
    pub fn located(&self, address: u64) -> Symbol {
        self.named(self.symbol(address), address)
    }

    /// [`Self::located`] for a call site of pages, which has none without a stack.
    pub fn of_pages(&self, call_site: Option<u64>) -> Symbol {
        call_site.map_or_else(|| Symbol::from("(no stack)".to_owned()), |address| self.located(address))
    }

    /// A function whose name is known; address 0: of none.
    pub fn named(&self, name: String, address: u64) -> Symbol {
        Symbol::at(name, address, self.session.source())
    }

    /// Function without the offset.
    pub fn function(&self, address: u64) -> String {
        self.symbols.function(address)
    }

    /// Function of a call site, as `--by function` has it.
    pub fn caller_function(&self, address: u64) -> String {
        caller_function(self.session, &self.symbol(address), address)
    }

    /// Module, `[kernel]` for the core kernel; `None`: the address has no symbol.
    pub fn module(&self, address: u64) -> Option<String> {
        self.symbols.module(address)
    }

    /// Name of a task, for sums of its events.
    pub fn name(&self, pid: i32) -> String {
        escaped(self.session.names().shown_at(pid, self.end))
    }

    /// Name and id of a task, for sums of its events.
    pub fn task(&self, pid: i32) -> String {
        self.task_at(pid, self.end)
    }

    /// Id of a task, and its name at the time of an event.
    pub fn task_at(&self, pid: i32, time: u64) -> String {
        task_name(self.session.names().shown_at(pid, time), pid)
    }

    /// Call site and interface of a caller number.
    pub fn caller(&self, result: &pass::Analysis, number: u32) -> (Api, u64, Symbol) {
        let (api, address) =
            result.balance.callers.get(number as usize).copied().unwrap_or((Api::Kmalloc, 0));
        (api, address, self.located(address))
    }

    /// Call site of a free, by its number.
    pub fn free_site(&self, result: &pass::Analysis, number: u32) -> (u64, Symbol) {
        let address = result.interner.frees.get(number).map_or(0, |f| f.call_site);
        (address, self.located(address))
    }
}

/// Function of a call site, with its module; where lines are known, the one outside the allocator.
pub fn caller_function(session: &Session<'_>, symbol: &str, address: u64) -> String {
    let frame = session.source().shown(address).filter(|frame| !frame.function.is_empty());
    let Some(frame) = frame else { return function_of(symbol) };
    let module = function_and_module(symbol).1.map_or(String::new(), |module| format!(" {module}"));
    escaped(frame.function.as_bytes()) + &module
}

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
