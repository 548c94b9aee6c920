//! Names of addresses and tasks.

use crate::pass;
use crate::render::words::escaped;
use crate::reports::common::Context;
use crate::reports::common::symbol::Symbol;
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
