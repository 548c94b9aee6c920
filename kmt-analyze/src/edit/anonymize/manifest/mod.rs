//! Contents of an anonymized file, for the person who shares it.

mod rows;
mod text;

#[cfg(test)]
pub use rows::AnonymizeRows;

use super::AnonymizeOptions;
use super::fields::ClassMask;
use super::record::Masks;
use super::treatment::Treatment;
use crate::env::Env;
use crate::failure::Result;
use crate::render::out::{Schema, print_json};
use crate::trace::session::Session;

/// Counts of what was kept, replaced and left out.
#[derive(Debug)]
pub struct Manifest {
    /// Events of the new file.
    pub events: u64,
    /// Keys kept, and left out.
    pub pairs: (usize, usize),
    /// Attached files that were kept.
    pub files_kept: Vec<String>,
    /// Number of files that were left out.
    pub files_dropped: usize,
    /// Chunks of kinds that are not known, left out.
    chunks_dropped: u64,
    cpus: usize,
    /// Event classes that are known, and that are not.
    classes: (usize, usize),
    /// Events of those that are not.
    events_emptied: u64,
    /// Fields of known classes that become zero.
    fields_zeroed: usize,
    /// Print fmts that are not the kernel's.
    print_fmts: usize,
    is_seeded: bool,
    shows_symbols: bool,
}

impl Manifest {
    /// Nothing written yet.
    pub fn new(session: &Session<'_>, plans: &[Option<ClassMask>], options: &AnonymizeOptions) -> Self {
        let hidden = plans.iter().flatten().filter(|plan| plan.is_hidden()).count();
        let zeroed = |plan: &ClassMask| plan.treatments.iter().filter(|t| **t == Treatment::Zero).count();
        Self {
            events: 0,
            pairs: (0, 0),
            files_kept: Vec::new(),
            files_dropped: 0,
            chunks_dropped: session.trace.unknown_kinds().values().sum(),
            cpus: session.trace.streams().len(),
            classes: (plans.iter().flatten().count() - hidden, hidden),
            events_emptied: 0,
            fields_zeroed: plans.iter().flatten().map(zeroed).sum(),
            print_fmts: plans.iter().flatten().filter(|plan| plan.is_reprinted).count(),
            is_seeded: options.seed.is_some(),
            shows_symbols: !options.hide_symbols,
        }
    }

    /// Counts an event.
    pub fn event(&mut self, plan: &ClassMask) {
        self.events_emptied += u64::from(plan.is_hidden());
    }

    /// Prints it: text on standard error, JSON on standard output.
    pub fn print(&self, masks: &Masks, as_json: bool, env: &Env) -> Result<()> {
        let rows = rows::compute(self, masks);
        if as_json {
            return print_json(env, Schema::first("anonymize"), &rows);
        }
        kmt_common::text::to_stderr(format_args!("{}", text::text(&rows.anonymize)));
        Ok(())
    }
}
