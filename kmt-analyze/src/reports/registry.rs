//! All reports, one line each.
//!
//! An entry makes a report of its command line, and has the question that groups it in the help. The command line,
//! help, completions, `all`, the page, exports and the JSON schema walk this list, so that a report is added in one
//! place. Their order is that of `all`.

use clap::{ArgMatches, Command};

use super::anomalies::AnomalyReport;
use super::areas::{AreaReport, Percpu, Vmalloc};
use super::baseline::BaselineReport;
use super::boot::BootReport;
use super::caches::Caches;
use super::callers::Callers;
use super::callgraph::CallGraph;
use super::crosscpu::CrossCpuReport;
use super::events::Events;
use super::findings::Findings;
use super::fragmentation::Fragmentation;
use super::grouped::Grouped;
use super::latency::Latency;
use super::leaks::Leaks;
use super::lifetimes::{Lifetimes, Temporary};
use super::memory::MemoryReport;
use super::pages::Pages;
use super::peak::PeakReport;
use super::report::{AnyReport, Report};
use super::sizes::Sizes;
use super::slabinfo::SlabInfo;
use super::summary::Summary;
use super::tasks::TaskReport;
use super::timeline::TimelineReport;
use super::waste::WasteReport;
use super::what_if::WhatIf;
use super::who::WhoReport;
use crate::pass::selection::Selection;

/// Question that a command answers: the help lists commands by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportGroup {
    /// Holders and kinds of memory.
    Memory,
    /// Growth and lifetimes.
    Grows,
    /// Time that tasks wait.
    Waits,
    /// Two runs, or other layouts.
    Compare,
    /// Single events, and the file itself.
    Events,
    /// Files for other tools and people.
    Exchange,
}

impl ReportGroup {
    /// All groups, in the order of the help.
    pub const ALL: [Self; 6] =
        [Self::Memory, Self::Grows, Self::Waits, Self::Compare, Self::Events, Self::Exchange];

    /// Heading of the group in the help.
    pub fn title(self) -> &'static str {
        match self {
            Self::Memory => "Where memory is",
            Self::Grows => "What grows",
            Self::Waits => "What waits",
            Self::Compare => "Compare",
            Self::Events => "Events and files",
            Self::Exchange => "Exchange",
        }
    }
}

/// All reports, in the order in which `all` and the help have them.
pub static REPORTS: &[Entry] = &[
    Entry::of::<Findings>(ReportGroup::Memory),
    Entry::of::<Summary>(ReportGroup::Memory),
    Entry::of::<Grouped<Callers>>(ReportGroup::Memory),
    Entry::of::<Grouped<Caches>>(ReportGroup::Memory),
    Entry::of::<Grouped<Sizes>>(ReportGroup::Memory),
    Entry::of::<SlabInfo>(ReportGroup::Grows),
    Entry::of::<Grouped<TaskReport>>(ReportGroup::Memory),
    Entry::of::<Pages>(ReportGroup::Memory),
    Entry::of::<MemoryReport>(ReportGroup::Memory),
    Entry::of::<AreaReport<Vmalloc>>(ReportGroup::Memory),
    Entry::of::<AreaReport<Percpu>>(ReportGroup::Memory),
    Entry::of::<Lifetimes>(ReportGroup::Grows),
    Entry::of::<Temporary>(ReportGroup::Grows),
    Entry::of::<PeakReport>(ReportGroup::Grows),
    Entry::of::<TimelineReport>(ReportGroup::Grows),
    Entry::of::<Leaks>(ReportGroup::Grows),
    Entry::of::<BootReport>(ReportGroup::Grows),
    Entry::of::<Fragmentation>(ReportGroup::Memory),
    Entry::of::<WasteReport>(ReportGroup::Memory),
    Entry::of::<BaselineReport>(ReportGroup::Memory),
    Entry::of::<Latency>(ReportGroup::Waits),
    Entry::of::<CrossCpuReport>(ReportGroup::Waits),
    Entry::of::<AnomalyReport>(ReportGroup::Events),
    Entry::of::<CallGraph>(ReportGroup::Memory),
    Entry::of::<WhatIf>(ReportGroup::Compare),
    Entry::of::<Events>(ReportGroup::Events),
    Entry::of::<WhoReport>(ReportGroup::Events),
];

/// The report of a command line, or its error.
pub type Parsed = Result<Box<dyn AnyReport>, clap::Error>;

/// A report on the command line.
#[derive(Debug)]
pub struct Entry {
    /// See [`Report::NAME`].
    pub name: &'static str,
    /// Group of the report in the help.
    pub group: ReportGroup,
    /// See [`Report::TITLE`].
    pub title: &'static str,
    /// See [`Report::ABOUT`].
    pub about: &'static str,
    /// See [`Report::details`].
    pub details: fn() -> String,
    /// See [`Report::VERSION`].
    pub version: u32,
    /// See [`Report::HAS_LINES`].
    pub has_lines: bool,
    /// See [`Report::ACCOUNTS`].
    pub accounts: bool,
    /// Adds its own options to a command.
    pub with_options: fn(Command) -> Command,
    /// Parses the report's options.
    pub parse: fn(&ArgMatches, &Selection) -> Parsed,
    /// The report with default options; `None`: it needs options.
    pub with_defaults: fn() -> Option<Box<dyn AnyReport>>,
    /// Keys of its JSON with their types and meanings.
    #[cfg(test)]
    pub schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
}

impl Entry {
    const fn of<R: Report>(group: ReportGroup) -> Self {
        Self {
            name: R::NAME,
            group,
            title: R::TITLE,
            about: R::ABOUT,
            details: R::details,
            version: R::VERSION,
            has_lines: R::HAS_LINES,
            accounts: R::ACCOUNTS,
            with_options: R::augment_args,
            parse: |matches, selection| Ok(Box::new(R::from_arg_matches(matches)?.for_selection(selection))),
            with_defaults: || R::with_defaults().map(|report| Box::new(report) as Box<dyn AnyReport>),
            #[cfg(test)]
            schema: schemars::SchemaGenerator::subschema_for::<R::Rows>,
        }
    }
}

/// The report with this command name.
pub fn named(name: &str) -> Option<&'static Entry> {
    REPORTS.iter().find(|entry| entry.name == name)
}
