//! `allocinfo`: copies of /proc/allocinfo, without a trace.

mod rows;
mod text;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::env::Env;
use crate::export;
use crate::failure::{Failure, Outcome, Result};
use crate::limits;
use crate::render::out::{Schema, print, print_rows};
use crate::render::screen::page;
use crate::reports::common::sorting::{SortKey, sort_keys};
use crate::reports::output::{Output, Show};
use crate::trace::allocinfo::{self, AllocinfoLine};
use rows::AllocinfoKey;
#[cfg(test)]
pub use rows::AllocinfoRows;

/// Largest copy in bytes: a kernel has some thousand call sites of about 100 bytes each.
const FILE_LEN_MAX: u64 = 256 << 20;

/// Options of `allocinfo`.
#[derive(Debug, clap::Args)]
pub struct AllocinfoArgs {
    /// Key of the rows
    #[arg(long, value_enum, default_value = "call-site")]
    by: AllocinfoKey,
    /// Order of the rows [default: change; live, if there is one copy]
    #[arg(short, long, value_parser = sort_keys(rows::ORDERS), value_name = "KEY")]
    sort: Option<SortKey>,
    /// Show at most N rows; 0: all [default: 20, all with --json and --csv]
    #[arg(short, long = "lines", value_name = "N", value_parser = limits::lines)]
    lines: Option<usize>,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
    /// Print the rows as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// A copy of /proc/allocinfo; - is standard input
    first: PathBuf,
    /// A later copy: what grew and shrank since the first
    second: Option<PathBuf>,
}

/// Prints the memory of one copy, or the changes between two.
pub fn run(args: &AllocinfoArgs, env: &Env, show: &Show) -> Result<Outcome> {
    let first = read(&args.first, env)?;
    let second = args.second.as_ref().map(|second| read(second, env)).transpose()?;
    let (before, after) = match &second {
        Some(second) => (Some(first.as_slice()), second.as_slice()),
        None => (None, first.as_slice()),
    };
    let order = args.sort.unwrap_or(if before.is_some() { SortKey::Change } else { SortKey::Live });
    let output = Output { limit: args.lines, json: args.json || args.csv, show: *show };
    let rows = rows::compute(before, after, args.by, order, output.rows())?;
    if args.csv {
        export::csv_of_rows(env, "allocinfo", &rows, ("rows", &rows::columns(args.by)))?;
    } else if args.json {
        print_rows(env, Schema::first("allocinfo"), &rows, args.lines)?;
    } else {
        let text = page(&text::screen(&rows), &[], &[], &show.look);
        print(env, show.pager, text.as_bytes())?;
    }
    Ok(Outcome::Done)
}

/// Call sites of a copy.
fn read(path: &Path, env: &Env) -> Result<Vec<AllocinfoLine>> {
    if let Some(bytes) = env.files.get(path) {
        return allocinfo::lines(path, &bytes);
    }
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(FILE_LEN_MAX + 1).read_to_end(&mut bytes)
    } else {
        let file = File::open(path).map_err(|e| Failure::io("opening", path, &e))?;
        file.take(FILE_LEN_MAX + 1).read_to_end(&mut bytes)
    };
    read.map_err(|e| Failure::io("reading", path, &e))?;
    if bytes.len() as u64 > FILE_LEN_MAX {
        return Err(Failure::new(format!("{}: larger than 256 MiB", path.display()))
            .hint("allocinfo reads copies of /proc/allocinfo (Linux 6.10 and later)"));
    }
    allocinfo::lines(path, &bytes)
}
