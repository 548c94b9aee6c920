//! `account`: the account file of trace_analyze.py.

mod read;
mod rows;
mod rules;
mod text;

#[cfg(test)]
pub use rows::AccountRows;

use kmt_common::tell;

use crate::failure::{Outcome, Result};
use crate::limits;
use crate::pass::Selection;
use crate::render::out::{Schema, print_rows};
use crate::render::screen::Screen;
use crate::reports::account::read::read;
use crate::reports::common::stated::Keys;
use crate::reports::document::print_screen;
use crate::reports::output::Output;
use crate::trace::open::outcome;
use crate::trace::session::Session;

/// Order of the rows, the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Order {
    /// Bytes of all allocations
    TotalDynamic,
    /// Bytes in use
    CurrentDynamic,
    /// Allocations
    AllocCount,
    /// Frees
    FreeCount,
    /// Bytes in use beyond those requested
    Waste,
}

/// Options of the report.
#[derive(Debug, clap::Args)]
pub struct AccountOptions {
    /// Order of the rows
    #[arg(short, long, value_enum, default_value = "current_dynamic")]
    order_by: Order,
    /// Only kmalloc and kfree
    #[arg(long, conflicts_with = "cache")]
    malloc: bool,
    /// Only kmem_cache_alloc and kmem_cache_free
    #[arg(long)]
    cache: bool,
    /// Show at most N rows; 0: all [default: all]
    #[arg(short, long = "lines", value_name = "N", value_parser = limits::lines)]
    lines: Option<usize>,
}

/// Prints the account.
pub fn run(
    session: &Session<'_>,
    options: &AccountOptions,
    selection: &Selection,
    output: &Output,
) -> Result<Outcome> {
    selection.check(session, "account", Keys::Slab)?;
    let (account, faults) = read(session, options, selection)?;
    let rows = rows::compute(session, &account, selection, options);
    if output.json {
        print_rows(&session.env, Schema::first("account"), &rows, options.lines)?;
    } else {
        print_screen(session, Screen::verbatim(text::text(&rows.account)), &output.show)?;
        if selection.is_active() {
            tell!("note: selected by {}", selection.options().join(" "));
        }
        if rows.account.duplicate_pointers > 0 {
            tell!(
                "note: {} pointers were allocated again without a free: the account keeps both, the exact live bytes are in summary",
                rows.account.duplicate_pointers
            );
        }
    }
    Ok(outcome(session, &faults))
}
