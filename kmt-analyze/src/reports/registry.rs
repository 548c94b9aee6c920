//! All reports, one line each.

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::anomalies::AnomalyReport;
use super::caches::Caches;
use super::callers::Callers;
use super::callgraph::CallGraph;
use super::crosscpu::CrossCpuReport;
use super::events::Events;
use super::fragmentation::Fragmentation;
use super::latency::Latency;
use super::leaks::Leaks;
use super::lifetimes::{Lifetimes, Temporary};
use super::pages::Pages;
use super::peak::PeakReport;
use super::report::{AnyReport, Report};
use super::sizes::Sizes;
use super::slabinfo::SlabInfo;
use super::summary::Summary;
use super::tasks::TaskReport;
use super::timeline::TimelineReport;
use super::what_if::WhatIf;
use super::who::WhoReport;
use crate::pass::selection::Selection;

/// All reports, in the order in which `all` and the help have them.
pub static REPORTS: [Entry; 20] = [
    Entry::of::<Summary>(),
    Entry::of::<Callers>(),
    Entry::of::<Caches>(),
    Entry::of::<Sizes>(),
    Entry::of::<SlabInfo>(),
    Entry::of::<TaskReport>(),
    Entry::of::<Pages>(),
    Entry::of::<Lifetimes>(),
    Entry::of::<Temporary>(),
    Entry::of::<PeakReport>(),
    Entry::of::<TimelineReport>(),
    Entry::of::<Leaks>(),
    Entry::of::<Fragmentation>(),
    Entry::of::<Latency>(),
    Entry::of::<CrossCpuReport>(),
    Entry::of::<AnomalyReport>(),
    Entry::of::<CallGraph>(),
    Entry::of::<WhatIf>(),
    Entry::of::<Events>(),
    Entry::of::<WhoReport>(),
];

/// The report that a command line asks for, or what is wrong with it.
pub type Parsed = Result<Box<dyn AnyReport>, clap::Error>;

/// A report as the command line knows it.
#[derive(Debug)]
pub struct Entry {
    /// See [`Report::NAME`].
    pub name: &'static str,
    /// See [`Report::ABOUT`].
    pub about: &'static str,
    /// See [`Report::VERSION`].
    pub version: u32,
    /// See [`Report::HAS_LINES`].
    pub has_lines: bool,
    /// See [`Report::ACCOUNTS`].
    pub accounts: bool,
    /// Adds its own options to a command.
    pub with_options: fn(Command) -> Command,
    /// The report that a command line asks for.
    pub parse: fn(&ArgMatches, &Selection) -> Parsed,
    /// The report as it is among others, if it is.
    pub usual: fn() -> Option<Box<dyn AnyReport>>,
    /// Keys of its JSON with their types and meanings.
    #[cfg(test)]
    pub schema: fn() -> schemars::Schema,
}

impl Entry {
    const fn of<R: Report>() -> Self {
        Self {
            name: R::NAME,
            about: R::ABOUT,
            version: R::VERSION,
            has_lines: R::HAS_LINES,
            accounts: R::ACCOUNTS,
            with_options: |command| R::Options::augment_args(command),
            parse: |matches, selection| {
                let options = R::Options::from_arg_matches(matches)?;
                Ok(Box::new(R::new(options, selection)))
            },
            usual: || R::usual().map(|report| Box::new(report) as Box<dyn AnyReport>),
            #[cfg(test)]
            schema: || schemars::SchemaGenerator::default().into_root_schema_for::<R::Rows>(),
        }
    }
}

/// The report of that command.
pub fn named(name: &str) -> Option<&'static Entry> {
    REPORTS.iter().find(|entry| entry.name == name)
}
