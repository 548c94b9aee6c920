//! `summary --compat` and `reconcile`: what other tools print for the same events, and what sets them apart.
//!
//! `perf_rules`, `legacy` and `trace_cmd_mem` add up the events by the rules of the other tool; `perf_kmem` and
//! `trace_cmd_mem` print them in its layout. `reconcile` names each term between these totals and the ledger's. Other
//! rules need operations without the ledger (`pass/operations`).

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
use crate::limits;
use crate::pass::Selection;
use crate::pass::operations::operations;
use crate::reports::compat::legacy::Legacy;
use crate::reports::compat::perf_rules::PerfKey;
use crate::trace::faults::Faults;
use crate::trace::session::Session;

/// Another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Tool {
    /// trace-cmd mem
    TraceCmdMem,
    /// perf kmem stat; with --slab, --page, --caller, --alloc
    PerfKmem,
}

/// The other tool, and parts of its output.
#[derive(Debug, Clone, clap::Args)]
pub struct CompatOptions {
    /// Print the output of another tool for the same events; cannot be combined with a selection
    #[arg(
        long,
        value_enum,
        value_name = "TOOL",
        conflicts_with_all = ["time", "at", "pids", "comms", "children", "cpus", "terms", "start_branch", "without_recorder"]
    )]
    pub compat: Option<Tool>,
    /// With --compat perf-kmem: slab (default)
    #[arg(long, requires = "compat")]
    pub slab: bool,
    /// With --compat perf-kmem: pages
    #[arg(long, requires = "compat")]
    pub page: bool,
    /// With --compat perf-kmem: a table by call site
    #[arg(long, requires = "compat")]
    pub caller: bool,
    /// With --compat perf-kmem: a table by address or frame
    #[arg(long, requires = "compat")]
    pub alloc: bool,
    /// With --compat perf-kmem: sort the table of --caller or --alloc by these keys, the most important first
    #[arg(short, long, value_enum, value_name = "KEY", value_delimiter = ',', requires = "compat")]
    pub sort: Vec<PerfKey>,
    /// With --compat: show at most N rows of each table; 0: all [default: all]
    #[arg(short, long = "lines", value_name = "N", value_parser = limits::lines, requires = "compat")]
    pub lines: Option<usize>,
}

/// The events by the rules of other tools, and the names of the functions.
struct Others {
    legacy: Legacy,
    names: Vec<Vec<u8>>,
    faults: Faults,
}

/// Functions are distinguished as trace-cmd does: by the symbol that the call site is in.
fn others(session: &Session<'_>) -> Others {
    let (mut legacy, mut names, mut numbers) = (Legacy::default(), Vec::new(), HashMap::new());
    let symbols = session.symbolizer();
    let faults = operations(session, &Selection::default(), |ops, new_items| {
        legacy.enter(ops, &new_items, |call_site| {
            let (start, name) = function(&symbols.raw(call_site), call_site);
            *numbers.entry((start, name.clone())).or_insert_with(|| {
                names.push(name);
                names.len() as u32 - 1
            })
        });
    });
    Others { legacy, names, faults }
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
pub fn run(session: &Session<'_>, tool: Tool, options: &CompatOptions, json: bool) -> Result<Outcome> {
    for (event, samples, events) in session.sampled() {
        tell!(
            "note: {event} was sampled, {samples} of about {events} events; like the tool's, these sums are not scaled"
        );
    }
    match tool {
        Tool::PerfKmem if json => Err(Failure::new("perf kmem has no machine-readable output")
            .hint("summary, callers and pages have, with the exact figures: docs/json.md")),
        Tool::PerfKmem => perf_kmem::run(session, options),
        _ if options.slab || options.page || options.caller || options.alloc || !options.sort.is_empty() => {
            Err(Failure::new("--slab, --page, --caller, --alloc and --sort are options of perf kmem")
                .hint("give --compat perf-kmem"))
        }
        Tool::TraceCmdMem => trace_cmd_mem::run(session, options, json),
    }
}
