//! Names of addresses and tasks.

use crate::pass;
use crate::render::text::escaped;
use crate::stream::Api;
use crate::trace::session::Session;
use crate::trace::session::task_names;

/// Names of addresses and tasks, for one report.
pub struct Labels<'s, 'd> {
    env: kmt_format::print::PrintEnv<'d>,
    tasks: std::collections::HashMap<i32, &'s [u8]>,
}

impl<'s, 'd> Labels<'s, 'd> {
    /// Of a trace.
    pub fn new(session: &'s Session<'d>) -> Self {
        Self { env: session.print_env(), tasks: task_names(session) }
    }

    /// A function and an offset in it, or the address.
    pub fn symbol(&self, address: u64) -> String {
        escaped(&self.env.symbol_with_offset(address))
    }

    /// A function alone.
    pub fn function(&self, address: u64) -> String {
        let name = self.symbol(address);
        match name.split_once("+0x") {
            Some((function, rest)) => match rest.split_once(' ') {
                Some((_, module)) => format!("{function} {module}"),
                None => function.to_owned(),
            },
            None => name,
        }
    }

    /// Name and number of a task.
    pub fn task(&self, pid: i32) -> String {
        let name = self.tasks.get(&pid).map_or("<...>".to_owned(), |c| escaped(c));
        format!("{name}-{pid}")
    }

    /// The call site and interface of that number.
    pub fn caller(&self, result: &pass::Analysis, number: u32) -> (Api, u64, String) {
        let (api, address) =
            result.balance.callers.get(number as usize).copied().unwrap_or((Api::Kmalloc, 0));
        (api, address, self.symbol(address))
    }

    /// The freeing site of that number.
    pub fn free_site(&self, result: &pass::Analysis, number: u32) -> (u64, String) {
        let address = result.interner.frees.get(number).map_or(0, |f| f.call_site);
        (address, self.symbol(address))
    }
}
