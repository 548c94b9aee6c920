//! `export`: writes the trace in formats of other tools.
//!
//! A format has a file of its own; what they share is here: options, the early check of the output, and the report of
//! trust on standard error, since a file of another tool has no place for it. `tabular` has the tables of csv, ndjson,
//! parquet and sqlite, `points` the sums by stack of the profiles. Totals are those of `summary`.

mod dhat;
mod folded;
pub mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod perfetto;
mod points;
mod pprof;
mod proto;
#[cfg(feature = "sqlite")]
mod sqlite;
mod sums;
mod tabular;

pub use folded::{Stacks, stacks as folded_stacks};
pub use output::Target;
pub use tabular::report::{ReportTable, csv, csv_of_rows};

use std::path::PathBuf;

use kmt_common::shell;

use crate::built;
use crate::failure::{Failure, Outcome, Result};
use crate::limits;
use crate::pass::Analysis;
use crate::pass::selection::Selection;
use crate::reports::common::stated::Keys;
use crate::reports::common::{Context, ReportContext, trust};
use crate::reports::report::AnyReport;
use crate::trace::session::Session;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Perfetto UI: live bytes by cache and call site, stalls; with --events also events
    Perfetto,
    /// pprof: allocated, live and wasted objects and bytes by call stack
    Pprof,
    /// DHAT: dh_view.html, Firefox Profiler
    Dhat,
    /// Lines of frames and a number: flamegraph.pl, inferno, speedscope
    Folded,
    /// Comma-separated values of events, objects, call sites, or a table of a report
    Csv,
    /// The same rows, one JSON object a line
    Ndjson,
    /// An SQLite database of objects, sites, stacks and tasks; with --events also events
    Sqlite,
    /// A Parquet data set of objects, call sites and events, in folders by target, boot and build
    Parquet,
}

/// Weight of a folded stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Weight {
    /// Bytes allocated
    Alloc,
    /// Bytes live at the end
    Live,
    /// Bytes allocated beyond those requested
    Waste,
    /// Allocations; with --pages pages
    Count,
}

/// Options of `export`.
#[derive(clap::Args)]
pub struct ExportOptions {
    /// Output format
    #[arg(value_enum)]
    pub format: Format,
    /// The .kmt file, or the files of one recording of `kmt-capture record --rotate`; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// File to write, a directory for parquet; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,
    /// Overwrite existing output
    #[arg(long)]
    pub force: bool,
    /// With csv and ndjson: the rows: events, objects, call-sites, or the name of a report
    #[arg(long, value_name = "WHAT", default_value = "events")]
    pub of: String,
    /// With csv and ndjson of a report: the name of the table
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// With folded: the weight of a stack
    #[arg(long, value_enum, default_value = "alloc")]
    pub by: Weight,
    /// With folded and pprof: pages by allocation stack, instead of slab objects
    #[arg(long)]
    pub pages: bool,
    /// With perfetto, sqlite and parquet: include the events
    #[arg(long)]
    pub events: bool,
    /// With parquet: the name of the target [default: its host name]
    #[arg(long = "target", value_name = "NAME")]
    pub name: Option<String>,
    /// With csv, ndjson, sqlite and parquet: at most the first N rows of a table. With perfetto: counters of the N largest
    /// caches and call sites. 0: all [default: all; with perfetto 20]
    #[arg(short, long = "lines", value_name = "N", value_parser = limits::lines)]
    pub lines: Option<usize>,
    #[command(flatten)]
    pub selection: Selection,
}

/// Caches and call sites with counters, without `-l`.
const COUNTERS: usize = 20;

impl ExportOptions {
    /// Most rows of a table.
    fn rows_max(&self) -> usize {
        self.lines.unwrap_or(usize::MAX)
    }

    /// Most caches and call sites with counters.
    fn counters_max(&self) -> usize {
        self.lines.unwrap_or(COUNTERS)
    }

    /// The file to write.
    pub fn target(&self) -> Target {
        Target { path: self.output.clone(), force: self.force }
    }
}

/// Rows of a table.
pub enum ExportOf {
    Events,
    Objects,
    CallSites,
    Report(Box<dyn AnyReport>),
}

/// Fails early if the output cannot be written.
pub fn check(options: &ExportOptions) -> Result<()> {
    let path = &options.output;
    match options.format {
        Format::Sqlite => built::check("sqlite", "SQLite")?,
        Format::Parquet => built::check("parquet", "Parquet")?,
        _ => {}
    }
    if options.format != Format::Parquet {
        return options.target().check();
    }
    let nearest = path.ancestors().find(|p| p.symlink_metadata().is_ok());
    match nearest.filter(|p| !p.is_dir()) {
        Some(file) => Err(Failure::new(format!("{} is not a directory", file.display()))
            .hint("a data set is a directory of files: give one with -o")),
        None => Ok(()),
    }
}

/// A use of the file that was written.
pub fn next(options: &ExportOptions) -> String {
    let file = shell::path(&options.output);
    match options.format {
        Format::Perfetto => "open it at https://ui.perfetto.dev".to_owned(),
        Format::Pprof => format!("go tool pprof -top {file}"),
        Format::Dhat => "open it with Valgrind's dh_view.html, or with the Firefox Profiler".to_owned(),
        Format::Folded => format!("flamegraph.pl {file} > flames.svg"),
        Format::Csv => "a heading, then a row a line".to_owned(),
        Format::Ndjson => "a JSON object a line".to_owned(),
        Format::Sqlite => format!("sqlite3 {file} .tables"),
        Format::Parquet => "a Parquet data set, in folders by target, boot and build".to_owned(),
    }
}

/// Writes the export; `of`: rows of csv and ndjson.
pub fn run(session: &Session<'_>, options: &ExportOptions, of: &ExportOf) -> Result<Outcome> {
    let keys = match (options.format, of) {
        (Format::Csv | Format::Ndjson, ExportOf::Report(report)) => report.keys(),
        (Format::Csv | Format::Ndjson, ExportOf::Events) | (Format::Perfetto, _) => Keys::All,
        (Format::Folded | Format::Pprof, _) if options.pages => Keys::Pages,
        _ => Keys::Slab,
    };
    options.selection.check(session, "this export", keys)?;
    if options.format == Format::Dhat && options.selection.at.is_some() {
        return Err(Failure::new("dhat needs whole lifetimes, and --at selects one instant")
            .hint("folded and pprof export live memory at an instant"));
    }
    if options.pages && !matches!(options.format, Format::Folded | Format::Pprof) {
        return Err(Failure::new("--pages is for folded and pprof")
            .hint("sqlite, parquet, csv and ndjson have events; `pages --csv` has sums"));
    }
    if options.lines.is_some() && matches!(options.format, Format::Folded | Format::Pprof | Format::Dhat) {
        return Err(Failure::new(
            "-l is for tables and for counters of perfetto: a part of a profile has other totals",
        )
        .hint("select allocations with --where, or give -l to the program that shows the profile"));
    }
    sums::check(session, options, of)?;
    sums::report(session, options, of);
    match options.format {
        Format::Csv | Format::Ndjson => tabular::run(session, options, of),
        Format::Folded => folded::run(session, options),
        Format::Pprof => pprof::run(session, options),
        Format::Dhat => dhat::run(session, options),
        Format::Perfetto => perfetto::run(session, options),
        #[cfg(feature = "sqlite")]
        Format::Sqlite => sqlite::run(session, options),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::run(session, options),
        // Refused by `check`.
        #[allow(unreachable_patterns)]
        _ => Err(Failure::new("this kmt-analyze was built without that format")),
    }
}

/// Reports on standard error how far the numbers of a pass can be trusted: an export has no place for it.
fn report_trust(session: &Session<'_>, selection: &Selection, result: &Analysis) {
    trust::report(&ReportContext::new(&Context { session, selection, limit: 0 }, result));
}
