//! `summary --compat` and `reconcile`: what other tools print for the same events, and what sets them apart.

mod perf_kmem;
mod reconcile;

pub use reconcile::reconcile;

use std::collections::HashMap;

use kmt_common::tell;
use serde_json::{Value, json};

use crate::analysis::legacy::{Function, Legacy};
use crate::failure::{Failure, Outcome, Result};
use crate::render::json;
use crate::render::out::{Out, Schema, print_json};
use crate::render::text::escaped;
use crate::stream::decode::{Decoder, Wanted};
use crate::stream::load::Loader;
use crate::stream::{SharedInterner, pipe};
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Tool {
    /// trace-cmd mem
    TraceCmdMem,
    /// perf kmem stat; with --slab, --page, --caller, --alloc
    PerfKmem,
}

/// What of another tool's output is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Options {
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

/// Functions are told apart as trace-cmd does: by the symbol that the call site lies in.
fn others(session: &Session<'_>) -> Others {
    let interner = SharedInterner::default();
    let loader = Loader::new(session.trace, u64::MAX);
    let decoder = Decoder::new(session.trace, &interner, Wanted::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut legacy, mut names, mut numbers) = (Legacy::default(), Vec::new(), HashMap::new());
    let env = session.print_env();
    let (_, damages) = pipe::run(&loader, decoder, threads, u64::MAX, |ops, _| {
        legacy.enter(ops, &interner, |call_site| {
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
pub fn run(session: &Session<'_>, options: &Options) -> Result<Outcome> {
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
        Tool::TraceCmdMem => trace_cmd_mem(session, options),
    }
}

fn trace_cmd_mem(session: &Session<'_>, options: &Options) -> Result<Outcome> {
    let others = others(session);
    let mut rows: Vec<(&Vec<u8>, &Function)> = others.names.iter().zip(&others.legacy.functions).collect();
    rows.sort_by(|a, b| (b.1.alloc - b.1.req).cmp(&(a.1.alloc - a.1.req)).then_with(|| a.0.cmp(b.0)));
    rows.truncate(options.limit.unwrap_or(usize::MAX));
    if options.json {
        let mut out = json::head(session.trace, &session.losses);
        out.insert("functions".into(), rows.iter().map(|(name, f)| row_json(name, f)).collect());
        print_json(Schema::first("trace-cmd-mem"), out)?;
    } else {
        let mut out = Out::stdout();
        out.page(&trace_cmd_mem_page(&rows))?;
        out.finish()?;
    }
    Ok(outcome(&session.path, session.trace, &others.damages, session.losses.any()))
}

fn row_json(name: &[u8], f: &Function) -> Value {
    json!({
        "function": json::text(name),
        "waste": f.alloc - f.req,
        "alloc": f.alloc,
        "req": f.req,
        "total_alloc": f.total_alloc,
        "total_req": f.total_req,
        "max_alloc": f.max_alloc,
        "max_req": f.max_req,
        "max_waste": f.max_alloc - f.max_req,
    })
}

/// The layout of trace-cmd mem, tabs included.
fn trace_cmd_mem_page(rows: &[(&Vec<u8>, &Function)]) -> String {
    let mut out = String::from(
        "                Function            \tWaste\tAlloc\treq\t\tTotAlloc     TotReq\t\tMaxAlloc     MaxReq\tMaxWaste\n                --------            \t-----\t-----\t---\t\t--------     ------\t\t--------     ------\t--------\n",
    );
    for (name, f) in rows {
        out.push_str(&format!(
            "{:>32}\t{}\t{}\t{}\t\t{:>8}   {:>8}\t\t{:>8}   {:>8}\t{}\n",
            escaped(name),
            f.alloc - f.req,
            f.alloc,
            f.req,
            f.total_alloc,
            f.total_req,
            f.max_alloc,
            f.max_req,
            f.max_alloc - f.max_req,
        ));
    }
    out
}
