//! Names of addresses and tasks.

use crate::pass;
use crate::render::text::escaped;
use crate::stream::Api;
use crate::trace::session::Session;
use crate::trace::session::task_names;

/// Looks up names of addresses and tasks for one report.
pub struct Labels<'s, 'd> {
    env: kmt_format::print::PrintEnv<'d>,
    tasks: std::collections::HashMap<i32, &'s [u8]>,
}

impl<'s, 'd> Labels<'s, 'd> {
    /// Names in a trace.
    pub fn new(session: &'s Session<'d>) -> Self {
        Self { env: session.print_env(), tasks: task_names(session) }
    }

    /// Function and offset, or the address.
    pub fn symbol(&self, address: u64) -> String {
        escaped(&self.env.symbol_with_offset(address))
    }

    /// Function without the offset.
    pub fn function(&self, address: u64) -> String {
        function_of(self.symbol(address))
    }

    /// Name of a task.
    pub fn name(&self, pid: i32) -> String {
        self.tasks.get(&pid).map_or("<...>".to_owned(), |c| escaped(c))
    }

    /// Name and id of a task.
    pub fn task(&self, pid: i32) -> String {
        format!("{}-{pid}", self.name(pid))
    }

    /// Call site and interface of a caller number.
    pub fn caller(&self, result: &pass::Analysis, number: u32) -> (Api, u64, String) {
        let (api, address) =
            result.balance.callers.get(number as usize).copied().unwrap_or((Api::Kmalloc, 0));
        (api, address, self.symbol(address))
    }

    /// Call site of a free, by its number.
    pub fn free_site(&self, result: &pass::Analysis, number: u32) -> (u64, String) {
        let address = result.interner.frees.get(number).map_or(0, |f| f.call_site);
        (address, self.symbol(address))
    }
}

/// A symbol without its offset, with its module.
pub fn function_of(symbol: String) -> String {
    match symbol.split_once("+0x") {
        Some((function, rest)) => match rest.split_once(' ') {
            Some((_, module)) => format!("{function} {module}"),
            None => function.to_owned(),
        },
        None => symbol,
    }
}
