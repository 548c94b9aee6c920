//! `export`: the trace in the formats of other tools.

mod dhat;
mod events;
mod folded;
mod objects;
pub mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod perfetto;
mod points;
mod pprof;
mod proto;
mod rows;
#[cfg(feature = "sqlite")]
mod sqlite;
mod tables;

pub use output::Target;

use crate::failure::{Failure, Outcome, Result};
use crate::pass::selection::Selection;
use crate::reports::common::stated::Keys;
use crate::reports::report::AnyReport;
use crate::trace::session::Session;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Perfetto UI: live bytes by cache and call site, stalls, with --events the events
    Perfetto,
    /// pprof: allocated, live and wasted objects and bytes by call stack
    Pprof,
    /// DHAT: dh_view.html, Firefox Profiler
    Dhat,
    /// Lines of frames and a number: flamegraph.pl, inferno, speedscope
    Folded,
    /// Comma-separated values: events, or objects, or call sites, or a table of a report
    Csv,
    /// One JSON object a line: the same
    Ndjson,
    /// An SQLite database: objects, sites, stacks, tasks, with --events the events
    Sqlite,
    /// A Parquet data set: objects, call sites, events, in folders of target, boot and build
    Parquet,
}

/// What `folded` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Weight {
    /// Bytes allocated
    Alloc,
    /// Bytes live at the end
    Live,
    /// Bytes allocated that nobody asked for
    Waste,
    /// Allocations
    Count,
}

/// What to export.
pub struct Options {
    /// Format.
    pub format: Format,
    /// Where to.
    pub target: Target,
    /// What is counted.
    pub selection: Selection,
    /// With csv and ndjson: objects, call-sites, events, or the report that is given.
    pub of: Of,
    /// With a report: which of its tables.
    pub table: Option<String>,
    /// With folded: what is counted.
    pub weight: Weight,
    /// Events too, where they are not the export itself.
    pub events: bool,
    /// With parquet: name of the target.
    #[cfg_attr(not(feature = "parquet"), allow(dead_code))]
    pub name: Option<String>,
    /// Lines of the largest caches and call sites.
    pub lines: usize,
}

/// What rows are made of.
pub enum Of {
    /// Events.
    Events,
    /// Objects.
    Objects,
    /// Call sites.
    CallSites,
    /// A report.
    Report(Box<dyn AnyReport>),
}

/// Fails where the export could not be written, before any work is done.
pub fn check(options: &Options) -> Result<()> {
    let path = &options.target.path;
    if options.format != Format::Parquet {
        return options.target.check();
    }
    let nearest = path.ancestors().find(|p| p.symlink_metadata().is_ok());
    match nearest.filter(|p| !p.is_dir()) {
        Some(file) => Err(Failure::new(format!("{} is not a directory", file.display()))
            .hint("a data set is a directory of files: give one with -o")),
        None => Ok(()),
    }
}

/// Exports.
pub fn run(session: &Session<'_>, options: &Options) -> Result<Outcome> {
    let keys = match (options.format, &options.of) {
        (Format::Csv | Format::Ndjson, Of::Report(report)) => report.keys(),
        (Format::Csv | Format::Ndjson, Of::Events) | (Format::Perfetto, _) => Keys::All,
        _ => Keys::Slab,
    };
    options.selection.check(session, "this export", keys)?;
    if options.format == Format::Dhat && options.selection.at.is_some() {
        return Err(Failure::new("dhat tells of whole lives, and --at of one instant")
            .hint("folded and pprof tell what is live at an instant"));
    }
    match options.format {
        Format::Csv | Format::Ndjson => tables::run(session, options),
        Format::Folded => folded::run(session, options),
        Format::Pprof => pprof::run(session, options),
        Format::Dhat => dhat::run(session, options),
        Format::Perfetto => perfetto::run(session, options),
        #[cfg(feature = "sqlite")]
        Format::Sqlite => sqlite::run(session, options),
        #[cfg(feature = "parquet")]
        Format::Parquet => parquet::run(session, options),
        #[allow(unreachable_patterns)]
        _ => Err(Failure::new("this kmt-analyze was built without that format")
            .hint("build it with --features sqlite,parquet")),
    }
}
