//! A row of a table of the page: its names, and what happened in each step.

use crate::collect::flows::{Flow, Flows};
use crate::collect::sorted::Sorted;
use crate::collect::step_row::Row;
use crate::collect::sums::Sums;
use crate::ledger::totals::Totals;
use crate::reports::common::report_context::is_doubtful;
use crate::reports::common::rows::RecordedSums;

/// Longest name, in characters; the rest is left out.
const NAME_MAX: usize = 200;

/// A row: its names, and what happened in each step.
pub struct SteppedRow {
    pub name: String,
    /// Function of a call site; empty elsewhere.
    pub function: String,
    /// Source file of a call site or, where that is not known, its directory, with `/` at its end and `~` before it if it is
    /// inferred; empty elsewhere.
    pub source: String,
    /// Numbers that are known.
    pub recorded: RecordedSums,
    /// True if frees of its objects lack events: what seems live may be free.
    pub is_doubtful: bool,
    /// Flows of the steps with changes, by number of the step.
    pub steps: Vec<(u32, Flows)>,
}

/// Sums of one row.
#[derive(Default)]
pub struct RowSum {
    /// By number of the step.
    pub flows: Sorted<Flows>,
    /// Over all steps.
    pub totals: Totals,
}

impl RowSum {
    /// Adds objects of one size.
    pub fn add_objects(&mut self, row: &Row<Flow>, bytes_req: u64, bytes_alloc: u64) {
        for (step, flow) in row.iter().filter(|(_, flow)| **flow != Flow::default()) {
            self.flows.of(step as u32).absorb(Flows::of(flow, bytes_req, bytes_alloc));
        }
    }

    /// Adds objects of several sizes.
    pub fn add(&mut self, row: &Row<Flows>) {
        for (step, flows) in row.iter().filter(|(_, flows)| **flows != Flows::default()) {
            self.flows.of(step as u32).absorb(*flows);
        }
    }

    /// Adds another row.
    pub fn add_all(&mut self, other: &Self) {
        for (step, flows) in other.flows.iter() {
            self.flows.of(step).absorb(*flows);
        }
    }

    /// Bytes allocated in all steps.
    pub fn bytes_alloc(&self) -> i64 {
        self.flows.iter().fold(0, |sum, (_, flows)| sum.saturating_add(flows.bytes_alloc))
    }

    /// The row.
    pub fn row(self, name: String, function: String, recorded: RecordedSums) -> SteppedRow {
        let is_doubtful = is_doubtful(&self.totals);
        let steps = self.flows.into_list();
        let [name, function] = [name, function].map(|text| shortened(&text));
        SteppedRow { name, function, source: String::new(), recorded, is_doubtful, steps }
    }
}

/// The first characters of a name.
pub fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_MAX) {
        None => name.to_owned(),
        Some((at, _)) => format!("{}…", name.get(..at).unwrap_or(name)),
    }
}
