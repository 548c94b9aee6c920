//! `summary --compat trace-cmd-mem`: the output of trace-cmd mem for the same events.
//!
//! Functions are summed up by the rules of trace-cmd mem (tracecmd/trace-mem.c) and printed in its layout, or as JSON.

use kmt_common::text::tame;
use serde::{Serialize, Serializer};

use super::{CompatOptions, others};
use crate::failure::{Outcome, Result};
use crate::render::head::Head;
use crate::render::out::{Schema, print, print_json};
use crate::render::words::escaped;
use crate::reports::common::rows::text;
use crate::reports::compat::Others;
use crate::reports::compat::legacy::LegacyFunction;
use crate::sort_rows::SortRows;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Prints the output of trace-cmd mem.
pub fn run(session: &Session<'_>, options: &CompatOptions, json: bool) -> Result<Outcome> {
    let others = others(session);
    let rows = compute(session, &others, options.lines.unwrap_or(usize::MAX));
    if json {
        print_json(&session.env, Schema::first("trace-cmd-mem"), &rows)?;
    } else {
        print(&session.env, false, tame(&printed(&rows.functions)).as_bytes())?;
    }
    Ok(outcome(session, &others.faults))
}

/// Rows of the report.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TraceCmdMemRows {
    /// The trace and its clock.
    #[serde(flatten)]
    pub head: Head,
    /// Functions, the largest waste first.
    pub functions: Vec<FunctionRow>,
}

/// Sums of one function. An object is in use until its address is freed; without that event, for ever.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FunctionRow {
    /// Name of the function, or the address of a call site without a symbol.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub function: Vec<u8>,
    /// Bytes of the objects in use beyond those requested.
    pub waste: i64,
    /// Bytes of the objects in use.
    pub alloc: i64,
    /// Bytes requested for the objects in use.
    pub req: i64,
    /// Bytes of all allocations.
    pub total_alloc: u64,
    /// Bytes requested in all allocations.
    pub total_req: u64,
    /// Largest value of `alloc` at any time.
    pub max_alloc: i64,
    /// Largest value of `req` at any time; not always the time of `max_alloc`.
    pub max_req: i64,
    /// `max_alloc` less `max_req`, in bytes.
    pub max_waste: i64,
}

fn as_text<S: Serializer>(name: &[u8], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    text(name).serialize(serializer)
}

impl FunctionRow {
    fn of(name: &[u8], sums: &LegacyFunction) -> Self {
        Self {
            function: name.to_vec(),
            waste: sums.waste(),
            alloc: sums.alloc,
            req: sums.req,
            total_alloc: sums.total_alloc,
            total_req: sums.total_req,
            max_alloc: sums.max_alloc,
            max_req: sums.max_req,
            max_waste: sums.max_alloc - sums.max_req,
        }
    }
}

/// Rows of the functions with the largest waste, at most `limit`.
fn compute(session: &Session<'_>, others: &Others, limit: usize) -> TraceCmdMemRows {
    let mut sums: Vec<(&Vec<u8>, &LegacyFunction)> =
        others.names.iter().zip(&others.legacy.functions).collect();
    sums.sort_rows_by(|a, b| b.1.waste().cmp(&a.1.waste()).then_with(|| a.0.cmp(b.0)));
    let functions = sums.into_iter().take(limit).map(|(name, sums)| FunctionRow::of(name, sums)).collect();
    TraceCmdMemRows { head: Head::of(session.trace, &session.losses), functions }
}

const HEADING: &str = "                Function            \tWaste\tAlloc\treq\t\tTotAlloc     TotReq\t\tMaxAlloc     MaxReq\tMaxWaste
                --------            \t-----\t-----\t---\t\t--------     ------\t\t--------     ------\t--------
";

/// The layout of trace-cmd mem, tabs included.
fn printed(functions: &[FunctionRow]) -> String {
    let mut out = HEADING.to_owned();
    for row in functions {
        out.push_str(&format!(
            "{:>32}\t{}\t{}\t{}\t\t{:>8}   {:>8}\t\t{:>8}   {:>8}\t{}\n",
            escaped(&row.function),
            row.waste,
            row.alloc,
            row.req,
            row.total_alloc,
            row.total_req,
            row.max_alloc,
            row.max_req,
            row.max_waste,
        ));
    }
    out
}
