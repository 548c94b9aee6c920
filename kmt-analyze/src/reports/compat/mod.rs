//! `summary --compat` and `reconcile`: what other tools print for the same events, and what sets them apart.

mod legacy;
mod perf_kmem;
mod perf_rules;
mod reconcile;
mod trace_cmd_mem;

#[cfg(test)]
pub use reconcile::ReconcileRows;
pub use reconcile::reconcile;
#[cfg(test)]
pub use trace_cmd_mem::TraceCmdMemRows;

use std::collections::HashMap;

use kmt_common::tell;

use crate::failure::{Failure, Outcome, Result};
use crate::reports::compat::legacy::Legacy;
use crate::stream::decode::Decoder;
use crate::stream::load::Loader;
use crate::stream::{Interests, pipe};
use crate::trace::session::Session;

/// Another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Tool {
    /// trace-cmd mem
    TraceCmdMem,
    /// perf kmem stat; with --slab, --page, --caller, --alloc
    PerfKmem,
}

/// Wanted parts of another tool's output.
#[derive(Debug, Clone, Copy)]
pub struct CompatOptions {
    /// The tool.
    pub tool: Tool,
    /// perf kmem: slab.
    pub slab: bool,
    /// perf kmem: pages.
    pub page: bool,
    /// perf kmem: by call site.
    pub caller: bool,
    /// perf kmem: by address or frame.
    pub alloc: bool,
    /// So many rows of each table.
    pub limit: Option<usize>,
    /// As JSON.
    pub json: bool,
}

/// The events by the rules of other tools, and the names of the functions.
struct Others {
    legacy: Legacy,
    names: Vec<Vec<u8>>,
    damages: Vec<kmt_format::read::Damage>,
}

/// Functions are distinguished as trace-cmd does: by the symbol that the call site is in.
fn others(session: &Session<'_>) -> Others {
    let loader = Loader::new(session.trace, u64::MAX);
    let decoder = Decoder::new(session.trace, Interests::empty());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut legacy, mut names, mut numbers) = (Legacy::default(), Vec::new(), HashMap::new());
    let env = session.print_env();
    let (_, damages) = pipe::run(&loader, decoder, threads, u64::MAX, |ops, news| {
        legacy.enter(ops, &news, |call_site| {
            let (start, name) = function(&env.symbol_with_offset(call_site), call_site);
            *numbers.entry((start, name.clone())).or_insert_with(|| {
                names.push(name);
                names.len() as u32 - 1
            })
        });
    });
    Others { legacy, names, damages }
}

/// Start and name of the function in `name+0xOFFSET/0xSIZE [module]`.
fn function(symbol: &[u8], address: u64) -> (u64, Vec<u8>) {
    let Some(at) = symbol.iter().rposition(|&b| b == b'+') else { return (address, symbol.to_vec()) };
    let (name, offset) = symbol.split_at(at);
    let digits: String =
        offset.iter().skip(3).map(|&b| char::from(b)).take_while(char::is_ascii_hexdigit).collect();
    let offset = u64::from_str_radix(&digits, 16).unwrap_or(0);
    (address.wrapping_sub(offset), name.to_vec())
}

/// Prints what the tool prints.
pub fn run(session: &Session<'_>, options: &CompatOptions) -> Result<Outcome> {
    for (event, samples, events) in session.sampled() {
        tell!(
            "note: {event} was sampled, {samples} of about {events} events; like the tool's, these sums are not scaled"
        );
    }
    match options.tool {
        Tool::PerfKmem if options.json => Err(Failure::new("perf kmem has no machine-readable output")
            .hint("summary, callers and pages have, with the exact figures: docs/json.md")),
        Tool::PerfKmem => perf_kmem::run(session, options),
        _ if options.slab || options.page || options.caller || options.alloc => {
            Err(Failure::new("--slab, --page, --caller and --alloc are options of perf kmem")
                .hint("give --compat perf-kmem"))
        }
        Tool::TraceCmdMem => trace_cmd_mem::run(session, options),
    }
}
