//! `allocinfo`: copies of /proc/allocinfo, without a trace.
//!
//! The kernel counts live bytes of each source line there (CONFIG_MEM_ALLOC_PROFILING). One copy, or two copies compared, become
//! rows and a screen.

mod rows;

pub use rows::AllocinfoRows;
use rows::{AllocinfoKey, AllocinfoRow};

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::env::Env;
use crate::failure::{Failure, Outcome, Result};
use crate::render::out::{Schema, print, print_rows};
use crate::render::screen::{Cell, Column, Screen, Table, page};
use crate::render::words::{counted, size};
use crate::reports::common::sorting::{SortKey, sort_keys};
use crate::reports::output::{Output, Show};
use crate::trace::allocinfo::{self, AllocinfoLine};
use crate::{export, limits};

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
        let text = page(&screen(&rows), &[], &[], &show.look);
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

/// The totals in a sentence, and the rows.
fn screen(rows: &AllocinfoRows) -> Screen {
    let mut screen = Screen::new(answer(rows));
    let (one, several) = nouns(rows.by);
    let mut table = Table::of_rows("", &rows.rows)
        .of(one, several, rows.rows_total)
        .column(Column::name(one), |row| Cell::text(&row.name))
        .column_if(rows.by == AllocinfoKey::CallSite, Column::name("function").leaves(1), |row| {
            Cell::text(row.function.as_deref().unwrap_or_default())
        })
        .column_if(
            rows.rows.iter().any(|row| row.module.is_some()),
            Column::name("module").leaves(3),
            |row| Cell::text(row.module.as_deref().unwrap_or_default()),
        );
    if rows.is_compared {
        table = table
            .column(Column::number("before").leaves(2), |row| bytes(row.figures.bytes_before))
            .column(Column::number("after"), |row| bytes(Some(row.figures.bytes)))
            .column(Column::number("change"), |row| {
                row.figures.bytes_change.map_or(Cell::Unknown, Cell::BytesChange)
            })
            .column(Column::number("calls before").leaves(5), |row| calls(row.figures.calls_before))
            .column(Column::number("calls after").leaves(4), |row| calls(Some(row.figures.calls)))
            .column(Column::number("calls change"), |row| {
                row.figures.calls_change.map_or(Cell::Unknown, Cell::Change)
            });
    } else {
        table = table
            .column(Column::number("live"), |row| bytes(Some(row.figures.bytes)))
            .column(Column::number("calls"), |row| calls(Some(row.figures.calls)));
    }
    screen.table(table);
    notes(&mut screen, rows);
    screen
}

fn notes(screen: &mut Screen, rows: &AllocinfoRows) {
    if let Some(unchanged) = rows.unchanged.filter(|unchanged| *unchanged > 0) {
        let (one, several) = nouns(rows.by);
        screen.note(format!("{} without a change are left out.", counted(unchanged, one, several)));
    }
    let inaccurate = rows.total.inaccurate;
    if inaccurate > 0 {
        let lines = counted(inaccurate, "line", "lines");
        screen.note(format!("Not accurate: the kernel could not count all allocations of {lines}."));
    }
}

fn answer(rows: &AllocinfoRows) -> String {
    let total = &rows.total;
    let sized = |bytes: i64| size(bytes.unsigned_abs());
    let (_, several) = nouns(rows.by);
    let (Some(before), Some(change)) = (total.bytes_before, total.bytes_change) else {
        let largest = rows.rows.first().map_or(String::new(), |row| {
            format!("; the first is {} ({})", row.name, sized(row.figures.bytes))
        });
        let (one, several) = nouns(rows.by);
        let number = counted(rows.rows_total as u64, one, several);
        return format!("{} are in use, of {number}{largest}.", sized(total.bytes));
    };
    let direction = match change {
        0 => "did not change".to_owned(),
        1.. => format!("grew by {}", sized(change)),
        _ => format!("shrank by {}", sized(change)),
    };
    let first = rows.rows.first().map_or(String::new(), |row: &AllocinfoRow| {
        let change = row.figures.bytes_change.unwrap_or(0);
        let sign = if change < 0 { "-" } else { "+" };
        format!(" First: {} ({sign}{}).", row.name, sized(change))
    });
    format!(
        "Memory in use {direction}, from {} to {}: {} {several} grew and {} shrank.{first}",
        sized(before),
        sized(total.bytes),
        rows.grown.unwrap_or(0),
        rows.shrunk.unwrap_or(0),
    )
}

fn nouns(by: AllocinfoKey) -> (&'static str, &'static str) {
    match by {
        AllocinfoKey::Function => ("function", "functions"),
        AllocinfoKey::File => ("file", "files"),
        AllocinfoKey::Dir => ("directory", "directories"),
        AllocinfoKey::Module => ("module", "modules"),
        AllocinfoKey::CallSite => ("call site", "call sites"),
    }
}

fn bytes(bytes: Option<i64>) -> Cell {
    bytes.map_or(Cell::Unknown, |bytes| u64::try_from(bytes).map_or(Cell::BytesChange(bytes), Cell::Bytes))
}

fn calls(calls: Option<i64>) -> Cell {
    calls.map_or(Cell::Unknown, |calls| u64::try_from(calls).map_or(Cell::Change(calls), Cell::Count))
}
